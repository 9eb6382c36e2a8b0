// SPDX-License-Identifier: Apache-2.0
#include "jit_linker.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>

namespace warpheap::relink {

namespace {

/// nvJitLink's functions, as its header declares them: a handle is a pointer, a result an int.
struct jit_library {
  int (*create)(void** handle, u32 options, char const** texts);
  int (*destroy)(void** handle);
  int (*add)(void* handle, int kind, void const* bytes, size_t size, char const* name);
  int (*complete)(void* handle);
  int (*cubin_size)(void* handle, size_t* bytes);
  int (*cubin)(void* handle, void* to);
  int (*log_size)(void* handle, size_t* bytes);
  int (*log)(void* handle, char* to);
};
constexpr int input_cubin = 1, input_ptx = 2;  // nvJitLinkInputType

void* open_library() {
  if (char const* const asked = std::getenv("WARPHEAP_NVJITLINK"); asked != nullptr && *asked != 0) {
    if (auto* const handle = dlopen(asked, RTLD_NOW | RTLD_LOCAL)) return handle;
    throw unusable_code{std::string{"WARPHEAP_NVJITLINK: "} + dlerror()};
  }
  for (char const* const name :
       {"libnvJitLink.so.13", "libnvJitLink.so.12", "libnvJitLink.so", "/usr/local/cuda/lib64/libnvJitLink.so"})
    if (auto* const handle = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return handle;
  throw unusable_code{
      "libnvJitLink.so, which links device code, is not found: install the CUDA toolkit, or set WARPHEAP_NVJITLINK to "
      "its path"};
}

template <class Function>
void find(void* handle, char const* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(handle, name));
  if (function == nullptr) throw unusable_code{std::string{"libnvJitLink.so has no function "} + name};
}

/// Opened by the first thread that needs it, or by two at once. No lock is held meanwhile: the
/// loader has one of its own, under which constructors of other libraries come here.
jit_library const& library() {
  static std::atomic<jit_library const*> found{nullptr};
  if (auto const* const made = found.load(std::memory_order_acquire)) return *made;
  auto* const handle = open_library();
  auto* const made = new jit_library;
  find(handle, "nvJitLinkCreate", made->create);
  find(handle, "nvJitLinkDestroy", made->destroy);
  find(handle, "nvJitLinkAddData", made->add);
  find(handle, "nvJitLinkComplete", made->complete);
  find(handle, "nvJitLinkGetLinkedCubinSize", made->cubin_size);
  find(handle, "nvJitLinkGetLinkedCubin", made->cubin);
  find(handle, "nvJitLinkGetErrorLogSize", made->log_size);
  find(handle, "nvJitLinkGetErrorLog", made->log);
  found.store(made, std::memory_order_release);
  return *made;
}

/// One link.
class session {
 public:
  explicit session(std::string const& target) {
    auto const option = "-arch=" + target;
    char const* texts[] = {option.c_str()};
    expect(library().create(&handle_, 1, texts), "refuses " + option);
  }
  session(session const&) = delete;
  session& operator=(session const&) = delete;
  ~session() {
    if (handle_ != nullptr) library().destroy(&handle_);
  }

  void add(link_input const& input) {
    int const kind = input.kind == code_kind::ptx ? input_ptx : input_cubin;
    expect(library().add(handle_, kind, input.bytes.data(), input.bytes.size(), input.name),
           std::string{"refuses "} + input.name);
  }

  std::vector<u8> complete() {
    expect(library().complete(handle_), "fails");
    size_t bytes = 0;
    expect(library().cubin_size(handle_, &bytes), "made nothing");
    std::vector<u8> made(bytes);
    expect(library().cubin(handle_, made.data()), "made nothing");
    return made;
  }

 private:
  void expect(int result, std::string const& otherwise) {
    if (result == 0) return;
    std::string log;
    size_t bytes = 0;
    if (handle_ != nullptr && library().log_size(handle_, &bytes) == 0 && bytes > 1) {
      log.resize(bytes);
      library().log(handle_, log.data());
      log = ": " + log.substr(0, log.find_first_of(std::string_view{"\n\0", 2}));
    }
    throw unusable_code{"nvJitLink " + otherwise + log};
  }

  void* handle_ = nullptr;
};

}  // namespace

std::vector<u8> link(std::vector<link_input> const& inputs, std::string const& target) {
  session made{target};
  for (auto const& each : inputs) made.add(each);
  return made.complete();
}

}  // namespace warpheap::relink
