// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 without a GPU, which writes down what it is asked. Programs that the tests start
// under `warpheap run` load it. FAKE_VERSION is the version that it tells, FAKE_REFUSES the kind of
// images that it does not load, and FAKE_SECOND_GPU, such as 80, what a second GPU is.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <vector>

#include "tests/tool/relink/written_down.hpp"

// NOLINTBEGIN(readability-identifier-naming): the driver's names

namespace {

constexpr int success = 0, invalid_context = 201, no_binary_for_gpu = 209, file_not_found = 301, not_found = 500;

/// What handles point to.
struct object {
  int number;
};
object contexts[3] = {{0}, {1}, {2}};  ///< the first is the device's own
size_t stack_bytes[3] = {1024, 1024, 1024};
object loaded[64];
std::atomic<int> loaded_count{0};

/// As the runtime does it, a thread begins with the device's own context.
thread_local std::vector<object*> current{&contexts[0]};

/// Set by a program of the tests.
int is_recording = 0;

int number_of_context() { return current.back() == nullptr ? -1 : current.back()->number; }

char const* kind_of(void const* image) {
  if (std::memcmp(image, "\177ELF", 4) == 0) return "cubin";
  if (std::memcmp(image, "\x50\xed\x55\xba", 4) == 0) return "fat binary";
  return std::memcmp(image, "\xb1\x43\x62\x46", 4) == 0 ? "wrapper" : "PTX";
}

int load(char const* what, void** made, char const* kind, void const* from) {
  char const* const refused = std::getenv("FAKE_REFUSES");
  if (refused != nullptr && std::strcmp(refused, kind) == 0) {
    write_down("driver: %s at %p refused", kind, from);
    return no_binary_for_gpu;
  }
  auto& object = loaded[loaded_count++];
  object.number = loaded_count;
  *made = &object;
  write_down("driver: %s %d, %s at %p", what, object.number, kind, from);
  return success;
}

int load_file(char const* what, void** made, char const* path) {
  if (access(path, R_OK) != 0) return file_not_found;
  auto& object = loaded[loaded_count++];
  object.number = loaded_count;
  *made = &object;
  write_down("driver: %s %d of a file", what, object.number);
  return success;
}

int launch(char const* what) {
  if (current.back() == nullptr) return invalid_context;
  write_down("driver: %s in context %d", what, number_of_context());
  return success;
}

}  // namespace

extern "C" {

int cuInit(unsigned) { return success; }
int cuDriverGetVersion(int* version) {
  char const* const told = std::getenv("FAKE_VERSION");
  *version = told == nullptr ? 13000 : std::atoi(told);
  return success;
}
int cuDeviceGetCount(int* count) {
  *count = std::getenv("FAKE_SECOND_GPU") == nullptr ? 1 : 2;
  return success;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  constexpr int capability_major = 75;
  int const capability = device == 0 ? 90 : std::atoi(std::getenv("FAKE_SECOND_GPU"));
  *value = attribute == capability_major ? capability / 10 : capability % 10;
  return success;
}

int cuCtxGetCurrent(void** now) {
  *now = current.back();
  return success;
}
int cuCtxSetCurrent(void* wanted) {
  current.back() = static_cast<object*>(wanted);
  return success;
}
int cuCtxGetId(void* asked, unsigned long long* number) {
  *number = 1000u + static_cast<object*>(asked)->number;
  return success;
}
int cuThreadExchangeStreamCaptureMode(int* mode) {
  static thread_local int now = 0;
  std::swap(*mode, now);
  return success;
}
/// What a program of the tests says of its launches.
int cuStreamIsCapturing(void*, int* status) {
  *status = is_recording;
  return success;
}
int cuCtxGetDevice(int* device) {
  *device = 0;
  return success;
}
int cuCtxPushCurrent_v2(void* pushed) {
  current.push_back(static_cast<object*>(pushed));
  return success;
}
int cuCtxPopCurrent_v2(void** popped) {
  *popped = current.back();
  current.pop_back();
  return success;
}
/// From now on launches are recorded, or run.
int fakeRecord(int on) {
  is_recording = on;
  return success;
}
int cuCtxGetLimit(size_t* value, int) {
  *value = stack_bytes[number_of_context()];
  return success;
}
int cuCtxSetLimit(int limit, size_t value) {
  write_down("driver: limit %d of %zu in context %d", limit, value, number_of_context());
  if (limit == 0) stack_bytes[number_of_context()] = value;
  return success;
}
int cuCtxDestroy_v2(void* destroyed) {
  write_down("driver: context %d destroyed", static_cast<object*>(destroyed)->number);
  return success;
}

int cuDevicePrimaryCtxGetState(int, unsigned* flags, int* active) {
  *flags = 0;
  *active = 1;
  return success;
}
int cuDevicePrimaryCtxRetain(void** retained, int) {
  *retained = &contexts[0];
  return success;
}
int cuDevicePrimaryCtxRelease_v2(int) { return success; }
int cuDevicePrimaryCtxReset_v2(int) {
  write_down("driver: device reset");
  stack_bytes[0] = 1024;
  return success;
}

int cuCtxCreate_v2(void** made, unsigned, int) {
  static int count = 1;
  *made = &contexts[count++];
  return success;
}

int cuLibraryLoadData(void** made, void const* image, int*, void**, unsigned, int*, void**, unsigned) {
  return load("library", made, kind_of(image), image);
}
int cuLibraryLoadFromFile(void** made, char const* path, int*, void**, unsigned, int*, void**, unsigned) {
  return load_file("library", made, path);
}
int cuLibraryUnload(void* library) {
  write_down("driver: library %d unloaded", static_cast<object*>(library)->number);
  return success;
}
int cuModuleUnload(void* module) {
  write_down("driver: module %d unloaded", static_cast<object*>(module)->number);
  return success;
}
int cuModuleLoad(void** made, char const* path) { return load_file("module", made, path); }
int cuModuleLoadData(void** made, void const* image) { return load("module", made, kind_of(image), image); }
int cuModuleLoadFatBinary(void** made, void const* image) { return load("module", made, kind_of(image), image); }
int cuModuleLoadDataEx(void** made, void const* image, unsigned, int*, void**) {
  return load("module", made, kind_of(image), image);
}

int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**) {
  return launch("launch");
}
int cuLaunchKernel_ptsz(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                        void**) {
  return launch("launch into the thread's stream");
}
int cuLaunchKernelEx(void const*, void*, void**, void**) { return launch("launch"); }
int cuLaunchKernelEx_ptsz(void const*, void*, void**, void**) { return launch("launch into the thread's stream"); }
int cuLaunchCooperativeKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                              void**) {
  return launch("launch");
}
int cuLaunchCooperativeKernel_ptsz(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                                   void**) {
  return launch("launch into the thread's stream");
}
int cuGraphLaunch(void*, void*) { return launch("launch"); }
int cuGraphLaunch_ptsz(void*, void*) { return launch("launch into the thread's stream"); }

int cuGetProcAddress(char const* name, void** function, int version, std::uint64_t flags);
int cuGetProcAddress_v2(char const* name, void** function, int version, std::uint64_t flags, void* status);

}  // extern "C"

namespace {

struct named_function {
  char const* name;
  void* legacy;
  void* of_thread_stream;
};

template <class Function>
named_function named(char const* name, Function* function) {
  return {name, reinterpret_cast<void*>(function), reinterpret_cast<void*>(function)};
}
template <class Function>
named_function named(char const* name, Function* legacy, Function* of_thread_stream) {
  return {name, reinterpret_cast<void*>(legacy), reinterpret_cast<void*>(of_thread_stream)};
}

named_function const all[] = {
    named("cuCtxCreate", cuCtxCreate_v2),
    named("cuCtxSetCurrent", cuCtxSetCurrent),
    named("cuCtxSetLimit", cuCtxSetLimit),
    named("cuCtxGetLimit", cuCtxGetLimit),
    named("fakeRecord", fakeRecord),
    named("cuCtxDestroy", cuCtxDestroy_v2),
    named("cuDevicePrimaryCtxReset", cuDevicePrimaryCtxReset_v2),
    named("cuLibraryLoadData", cuLibraryLoadData),
    named("cuLibraryLoadFromFile", cuLibraryLoadFromFile),
    named("cuLibraryUnload", cuLibraryUnload),
    named("cuModuleLoad", cuModuleLoad),
    named("cuModuleLoadData", cuModuleLoadData),
    named("cuModuleLoadDataEx", cuModuleLoadDataEx),
    named("cuModuleLoadFatBinary", cuModuleLoadFatBinary),
    named("cuLaunchKernel", cuLaunchKernel, cuLaunchKernel_ptsz),
    named("cuLaunchKernelEx", cuLaunchKernelEx, cuLaunchKernelEx_ptsz),
    named("cuLaunchCooperativeKernel", cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz),
    named("cuGraphLaunch", cuGraphLaunch, cuGraphLaunch_ptsz)};

}  // namespace

extern "C" int cuGetProcAddress(char const* name, void** function, int version, std::uint64_t flags) {
  constexpr std::uint64_t per_thread = 2;
  constexpr int first_with_status = 12000;
  if (std::strcmp(name, "cuGetProcAddress") == 0) {
    *function = version < first_with_status ? reinterpret_cast<void*>(cuGetProcAddress)
                                            : reinterpret_cast<void*>(cuGetProcAddress_v2);
    return success;
  }
  auto const* const found =
      std::find_if(std::begin(all), std::end(all), [&](auto const& each) { return std::strcmp(each.name, name) == 0; });
  if (found == std::end(all)) return not_found;
  *function = (flags & per_thread) != 0 ? found->of_thread_stream : found->legacy;
  return success;
}

extern "C" int cuGetProcAddress_v2(char const* name, void** function, int version, std::uint64_t flags, void* status) {
  if (status != nullptr) *static_cast<int*>(status) = 0;
  return cuGetProcAddress(name, function, version, flags);
}

// NOLINTEND(readability-identifier-naming)
