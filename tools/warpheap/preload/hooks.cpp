// SPDX-License-Identifier: Apache-2.0
// The hooks of `warpheap run`, and the three ways to them: a program finds the driver's functions
// by cuGetProcAddress or dlsym, as all CUDA runtimes do, or is linked with libcuda.so.1.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "driver.hpp"
#include "hook.hpp"
#include "loading.hpp"
#include "relink/relink.hpp"

namespace warpheap::preload {

namespace {

using u64 = unsigned long;

/// Loads the replacement if there is one, and the image itself if there is none, or the driver
/// refuses it.
template <class Load>
int load(std::vector<unsigned char> replaced, void** made, Load load_image, loaded_as what, void const* image) {
  if (replaced.empty()) return load_image(image);
  if (int const result = load_image(replaced.data()); result != success) {
    replacement_refused(result);
    return load_image(image);
  }
  bool const is_library = what == loaded_as::library;
  if (is_library ? library_loaded(*made) : module_loaded(*made)) {
    if (is_library) keep(std::move(replaced));
    return success;
  }
  call_driver(is_library ? "cuLibraryUnload" : "cuModuleUnload", *made);
  return load_image(image);
}

struct library_load_data {
  static constexpr char const* name = "cuLibraryLoadData";
  static int run(int (*real)(void**, void const*, int*, void**, unsigned, int*, void**, unsigned), void** library,
                 void const* image, int* jit, void** jit_values, unsigned jit_count, int* options, void** values,
                 unsigned count) {
    auto const load_image = [&](void const* which) {
      return real(library, which, jit, jit_values, jit_count, options, values, count);
    };
    return load(replacement(image, loaded_as::library), library, load_image, loaded_as::library, image);
  }
};

struct library_load_from_file {
  static constexpr char const* name = "cuLibraryLoadFromFile";
  static int run(int (*real)(void**, char const*, int*, void**, unsigned, int*, void**, unsigned), void** library,
                 char const* path, int* jit, void** jit_values, unsigned jit_count, int* options, void** values,
                 unsigned count) {
    auto const load_image = [&](void const* which) {
      return which == path
                 ? real(library, path, jit, jit_values, jit_count, options, values, count)
                 : call_driver("cuLibraryLoadData", library, which, jit, jit_values, jit_count, options, values, count);
    };
    return load(replacement_of_file(path, loaded_as::library), library, load_image, loaded_as::library, path);
  }
};

struct library_unload {
  static constexpr char const* name = "cuLibraryUnload";
  static int run(int (*real)(void*), void* library) {
    library_unloaded(library);
    return real(library);
  }
};

struct module_load {
  static constexpr char const* name = "cuModuleLoad";
  static int run(int (*real)(void**, char const*), void** module, char const* path) {
    auto const load_image = [&](void const* which) {
      return which == path ? real(module, path) : call_driver("cuModuleLoadData", module, which);
    };
    return load(replacement_of_file(path, loaded_as::module), module, load_image, loaded_as::module, path);
  }
};

/// cuModuleLoadFatBinary too.
struct module_load_data {
  static constexpr char const* name = "cuModuleLoadData";
  static int run(int (*real)(void**, void const*), void** module, void const* image) {
    return load(
        replacement(image, loaded_as::module), module, [&](void const* which) { return real(module, which); },
        loaded_as::module, image);
  }
};

struct module_load_data_ex {
  static constexpr char const* name = "cuModuleLoadDataEx";
  static int run(int (*real)(void**, void const*, unsigned, int*, void**), void** module, void const* image,
                 unsigned count, int* options, void** values) {
    auto const load_image = [&](void const* which) { return real(module, which, count, options, values); };
    return load(replacement(image, loaded_as::module), module, load_image, loaded_as::module, image);
  }
};

// preload.B1

struct launch_kernel {
  static constexpr char const* name = "cuLaunchKernel";
  static int run(int (*real)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                             void**),
                 void* kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                 unsigned block_z, unsigned shared, void* stream, void** parameters, void** extra) {
    before_launch(stream);
    return real(kernel, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, parameters, extra);
  }
};

/// Of a CUlaunchConfig: behind two extents of three numbers, and the bytes of shared memory.
void* stream_of(void const* config) {
  constexpr size_t offset = 32;
  void* stream = nullptr;
  if (config != nullptr) std::memcpy(&stream, static_cast<char const*>(config) + offset, sizeof stream);
  return stream;
}

struct launch_kernel_ex {
  static constexpr char const* name = "cuLaunchKernelEx";
  static int run(int (*real)(void const*, void*, void**, void**), void const* config, void* kernel, void** parameters,
                 void** extra) {
    before_launch(stream_of(config));
    return real(config, kernel, parameters, extra);
  }
};

struct launch_cooperative_kernel {
  static constexpr char const* name = "cuLaunchCooperativeKernel";
  static int run(int (*real)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                             void**),
                 void* kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                 unsigned block_z, unsigned shared, void* stream, void** parameters) {
    before_launch(stream);
    return real(kernel, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, parameters);
  }
};

struct graph_launch {
  static constexpr char const* name = "cuGraphLaunch";
  static int run(int (*real)(void*, void*), void* graph, void* stream) {
    before_launch(stream);
    return real(graph, stream);
  }
};

// preload.B2

/// Destroys a context's heap while the context is current.
void destroy_heap_of(void* context) {
  if (call_driver("cuCtxPushCurrent_v2", context) != success) return;
  before_destruction(context);
  void* popped = nullptr;
  call_driver("cuCtxPopCurrent_v2", &popped);
}

struct context_destroy {
  static constexpr char const* name = "cuCtxDestroy";
  static int run(int (*real)(void*), void* context) {
    destroy_heap_of(context);
    return real(context);
  }
};

struct primary_context_reset {
  static constexpr char const* name = "cuDevicePrimaryCtxReset";
  static int run(int (*real)(int), int device) {
    unsigned flags = 0;
    int active = 0;
    void* context = nullptr;
    if (call_driver("cuDevicePrimaryCtxGetState", device, &flags, &active) == success && active != 0 &&
        call_driver("cuDevicePrimaryCtxRetain", &context, device) == success) {
      destroy_heap_of(context);
      call_driver("cuDevicePrimaryCtxRelease_v2", device);
    }
    return real(device);
  }
};

struct primary_context_release {
  static constexpr char const* name = "cuDevicePrimaryCtxRelease";
  static int run(int (*real)(int), int device) {
    int const result = real(device);
    contexts_changed();
    return result;
  }
};

// In a context with a heap the stack limit has room for the heap's functions on top of what the
// program set. The program is given back what it set.

bool is_raised(int limit) { return limit == stack_limit && !own_calls::are_made() && has_heap(); }

struct context_set_limit {
  static constexpr char const* name = "cuCtxSetLimit";
  static int run(int (*real)(int, u64), int limit, u64 value) {
    return real(limit, is_raised(limit) ? value + relink::most_heap_stack : value);
  }
};

struct context_get_limit {
  static constexpr char const* name = "cuCtxGetLimit";
  static int run(int (*real)(u64*, int), u64* value, int limit) {
    int const result = real(value, limit);
    if (result == success && is_raised(limit)) *value -= std::min<u64>(*value, relink::most_heap_stack);
    return result;
  }
};

/// cuGetProcAddress itself, before and since CUDA 12.
struct get_address {
  static int run(int (*real)(char const*, void**, int, u64), char const* wanted, void** function, int version,
                 u64 flags) {
    int const result = real(wanted, function, version, flags);
    bool const is_wanted = result == success && *function != nullptr && !own_calls::are_made();
    if (is_wanted) *function = hooked(wanted, *function);
    return result;
  }
};
struct get_address_v2 {
  static int run(int (*real)(char const*, void**, int, u64, void*), char const* wanted, void** function, int version,
                 u64 flags, void* status) {
    int const result = real(wanted, function, version, flags, status);
    if (result != success || *function == nullptr || own_calls::are_made()) return result;
    constexpr int first_with_status = 12000;
    bool const is_old = std::string_view{wanted} == "cuGetProcAddress" && version < first_with_status;
    *function = is_old ? entries<get_address>::before(*function) : hooked(wanted, *function);
    return result;
  }
};

struct named_hook {
  std::string_view name;
  void* (*before)(void* real);
};
template <class Hook>
constexpr named_hook named{Hook::name, entries<Hook>::before};

constexpr named_hook hooks[] = {
    named<library_load_data>,
    named<library_load_from_file>,
    named<library_unload>,
    named<module_load>,
    named<module_load_data>,
    {"cuModuleLoadFatBinary", entries<module_load_data>::before},
    named<module_load_data_ex>,
    named<launch_kernel>,
    named<launch_kernel_ex>,
    named<launch_cooperative_kernel>,
    named<graph_launch>,
    named<context_destroy>,
    named<primary_context_reset>,
    named<primary_context_release>,
    named<context_set_limit>,
    named<context_get_limit>,
    {"cuGetProcAddress", entries<get_address_v2>::before},
};

/// The name without what says the version or the stream.
std::string_view plain(std::string_view name) {
  for (std::string_view const suffix : {"_ptsz", "_v2"})
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  return name;
}

named_hook const* hook_of(std::string_view name) {
  auto const* const found = std::ranges::find(hooks, plain(name), &named_hook::name);
  return found == std::end(hooks) ? nullptr : found;
}

/// Whether what dlsym finds is replaced.
bool is_hooked(char const* name) { return hook_of(name) != nullptr; }

/// Whether it is a function of this library, which RTLD_DEFAULT finds before the driver's.
bool is_ours(void* function) {
  Dl_info found{}, here{};
  return dladdr(function, &found) != 0 && dladdr(reinterpret_cast<void*>(&is_hooked), &here) != 0 &&
         found.dli_fbase == here.dli_fbase;
}

using dlsym_type = void*(void*, char const*);

/// Nothing here holds a lock, as that of a static variable that is being made, while the loader may
/// have its own.
dlsym_type* true_function() {
  static std::atomic<dlsym_type*> found{nullptr};
  if (auto* const made = found.load(std::memory_order_relaxed)) return made;
  // Since glibc 2.34 it is in libc, before that in libdl; on arm64 libdl's is of 2.17.
  for (char const* const version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"})
    if (auto* const made = reinterpret_cast<dlsym_type*>(dlvsym(RTLD_NEXT, "dlsym", version))) {
      found.store(made, std::memory_order_relaxed);
      return made;
    }
  return nullptr;
}

/// A function of the driver, found once.
void* driver_function_once(std::atomic<void*>& found, char const* name) {
  if (found.load(std::memory_order_relaxed) == nullptr) found.store(driver_function(name), std::memory_order_relaxed);
  return found.load(std::memory_order_relaxed);
}

}  // namespace

void* hooked(std::string_view name, void* real) {
  auto const* const hook = hook_of(name);
  return hook == nullptr ? real : hook->before(real);
}

void* true_dlsym(void* handle, char const* name) { return true_function()(handle, name); }

}  // namespace warpheap::preload

#define WARPHEAP_EXPORTED extern "C" [[gnu::visibility("default")]]

/// Every library of the process finds this one. What is no function of the driver goes to the true
/// dlsym by a jump, which leaves it the caller's address: RTLD_NEXT means what comes after it. A
/// library that asks so for a function of the driver stands before it itself, behind our hooks.
WARPHEAP_EXPORTED void* dlsym(void* handle, char const* name) {
  using namespace warpheap::preload;
  if (handle == RTLD_NEXT || !is_hooked(name)) {
    auto* const real = true_function();
    return real(handle, name);
  }
  void* const found = true_dlsym(handle, name);
  // The archive's own CUDA runtime asks while a heap is made, and is never hooked.
  if (found == nullptr || own_calls::are_made() || is_ours(found)) return found;
  // The first cuGetProcAddress had no status.
  if (std::string_view{name} == "cuGetProcAddress") return entries<get_address>::before(found);
  return hooked(name, found);
}

// What a program that is linked with libcuda.so.1 calls.
#define WARPHEAP_DRIVER_FUNCTION(symbol, hook, parameters, ...)                      \
  WARPHEAP_EXPORTED int symbol parameters {                                          \
    using namespace warpheap::preload;                                               \
    static std::atomic<void*> found{nullptr};                                        \
    void* const real = driver_function_once(found, #symbol);                         \
    if (real == nullptr) return not_found;                                           \
    return hook::run(reinterpret_cast<driver_function_of<hook>>(real), __VA_ARGS__); \
  }

WARPHEAP_DRIVER_FUNCTION(cuLibraryLoadData, library_load_data,
                         (void** library, void const* image, int* jit, void** jit_values, unsigned jit_count,
                          int* options, void** values, unsigned count),
                         library, image, jit, jit_values, jit_count, options, values, count)
WARPHEAP_DRIVER_FUNCTION(cuLibraryLoadFromFile, library_load_from_file,
                         (void** library, char const* path, int* jit, void** jit_values, unsigned jit_count,
                          int* options, void** values, unsigned count),
                         library, path, jit, jit_values, jit_count, options, values, count)
WARPHEAP_DRIVER_FUNCTION(cuLibraryUnload, library_unload, (void* library), library)
WARPHEAP_DRIVER_FUNCTION(cuModuleLoad, module_load, (void** module, char const* path), module, path)
WARPHEAP_DRIVER_FUNCTION(cuModuleLoadData, module_load_data, (void** module, void const* image), module, image)
WARPHEAP_DRIVER_FUNCTION(cuModuleLoadFatBinary, module_load_data, (void** module, void const* image), module, image)
WARPHEAP_DRIVER_FUNCTION(cuModuleLoadDataEx, module_load_data_ex,
                         (void** module, void const* image, unsigned count, int* options, void** values), module, image,
                         count, options, values)
WARPHEAP_DRIVER_FUNCTION(cuCtxDestroy_v2, context_destroy, (void* context), context)
WARPHEAP_DRIVER_FUNCTION(cuDevicePrimaryCtxReset_v2, primary_context_reset, (int device), device)
WARPHEAP_DRIVER_FUNCTION(cuDevicePrimaryCtxRelease_v2, primary_context_release, (int device), device)
WARPHEAP_DRIVER_FUNCTION(cuCtxSetLimit, context_set_limit, (int limit, unsigned long value), limit, value)
WARPHEAP_DRIVER_FUNCTION(cuCtxGetLimit, context_get_limit, (unsigned long* value, int limit), value, limit)
WARPHEAP_DRIVER_FUNCTION(cuGetProcAddress, get_address,
                         (char const* name, void** function, int version, unsigned long flags), name, function, version,
                         flags)
WARPHEAP_DRIVER_FUNCTION(cuGetProcAddress_v2, get_address_v2,
                         (char const* name, void** function, int version, unsigned long flags, void* status), name,
                         function, version, flags, status)

// Launches, into the legacy default stream and the one of each thread.
#define WARPHEAP_LAUNCH(symbol)                                                                             \
  WARPHEAP_DRIVER_FUNCTION(                                                                                 \
      symbol, launch_kernel,                                                                                \
      (void* kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
       unsigned block_z, unsigned shared, void* stream, void** parameters, void** extra),                   \
      kernel, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, parameters, extra)
#define WARPHEAP_COOPERATIVE_LAUNCH(symbol)                                                                        \
  WARPHEAP_DRIVER_FUNCTION(symbol, launch_cooperative_kernel,                                                      \
                           (void* kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,     \
                            unsigned block_y, unsigned block_z, unsigned shared, void* stream, void** parameters), \
                           kernel, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, parameters)
#define WARPHEAP_LAUNCH_EX(symbol)                                                                              \
  WARPHEAP_DRIVER_FUNCTION(symbol, launch_kernel_ex,                                                            \
                           (void const* config, void* kernel, void** parameters, void** extra), config, kernel, \
                           parameters, extra)
#define WARPHEAP_GRAPH_LAUNCH(symbol) \
  WARPHEAP_DRIVER_FUNCTION(symbol, graph_launch, (void* graph, void* stream), graph, stream)
WARPHEAP_LAUNCH(cuLaunchKernel)
WARPHEAP_LAUNCH(cuLaunchKernel_ptsz)
WARPHEAP_COOPERATIVE_LAUNCH(cuLaunchCooperativeKernel)
WARPHEAP_COOPERATIVE_LAUNCH(cuLaunchCooperativeKernel_ptsz)
WARPHEAP_LAUNCH_EX(cuLaunchKernelEx)
WARPHEAP_LAUNCH_EX(cuLaunchKernelEx_ptsz)
WARPHEAP_GRAPH_LAUNCH(cuGraphLaunch)
WARPHEAP_GRAPH_LAUNCH(cuGraphLaunch_ptsz)
