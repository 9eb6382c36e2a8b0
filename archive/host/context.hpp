// SPDX-License-Identifier: Apache-2.0
// The CUDA context in which a heap was made. It may be the runtime's or one of cuCtxCreate(), and
// may be gone when the heap is used.
#pragma once

#include <cuda.h>

#include <stdexcept>
#include <string>

#include <warpheap/platform/address_range.hpp>

namespace warpheap::archive {

/// The context was reset or destroyed, and the heap's memory with it.
struct context_gone : std::runtime_error {
  context_gone() : runtime_error{"the CUDA context in which the heap was made was reset or destroyed since"} {}
};

/// The driver's functions that the runtime has none for.
struct driver {
  template <class Function>
  static Function named(char const* name) {
    return cuda_backend::detail::driver_function<Function>(name);
  }

  decltype(&cuCtxGetCurrent) get_current = named<decltype(&cuCtxGetCurrent)>("cuCtxGetCurrent");
  decltype(&cuCtxSetCurrent) set_current = named<decltype(&cuCtxSetCurrent)>("cuCtxSetCurrent");
  decltype(&cuCtxPushCurrent) push = named<decltype(&cuCtxPushCurrent)>("cuCtxPushCurrent");
  decltype(&cuCtxPopCurrent) pop = named<decltype(&cuCtxPopCurrent)>("cuCtxPopCurrent");
  decltype(&cuCtxGetId) get_id = named<decltype(&cuCtxGetId)>("cuCtxGetId");
  decltype(&cuModuleGetGlobal) of_module = named<decltype(&cuModuleGetGlobal)>("cuModuleGetGlobal");
  decltype(&cuLibraryGetGlobal) of_library = named<decltype(&cuLibraryGetGlobal)>("cuLibraryGetGlobal");
  // Unlike the runtime's copies, these take no address for one of the host's.
  decltype(&cuMemcpyDtoHAsync) read = named<decltype(&cuMemcpyDtoHAsync)>("cuMemcpyDtoHAsync");
  decltype(&cuMemcpyHtoDAsync) write = named<decltype(&cuMemcpyHtoDAsync)>("cuMemcpyHtoDAsync");

  static driver const& instance() {
    static driver const found;
    return found;
  }

  /// As cuda_backend::throw_on_error(), for a status of the driver.
  static void throw_on_error(CUresult status, char const* call) {
    cuda_backend::detail::virtual_memory::instance().throw_on_error(status, call);
  }
};

class context {
 public:
  /// The current one, or the device's own, which is then current.
  context() {
    cuda_backend::throw_on_error(cudaFree(nullptr), "cudaFree");
    driver::throw_on_error(driver::instance().get_current(&handle_), "cuCtxGetCurrent");
    driver::throw_on_error(driver::instance().get_id(handle_, &id_), "cuCtxGetId");
  }

  /// A reset context keeps its handle and gets another number.
  bool is_alive() const {
    unsigned long long now = 0;
    return driver::instance().get_id(handle_, &now) == CUDA_SUCCESS && now == id_;
  }

  /// Makes it this thread's, for good.
  void enter() const { driver::throw_on_error(driver::instance().set_current(handle_), "cuCtxSetCurrent"); }

  /// Makes it current as long as the object lives.
  class scope {
   public:
    /// Throws context_gone.
    explicit scope(context const& to) {
      if (!to.is_alive()) throw context_gone{};
      driver::throw_on_error(driver::instance().push(to.handle_), "cuCtxPushCurrent");
    }
    scope(scope const&) = delete;
    scope& operator=(scope const&) = delete;
    ~scope() {
      CUcontext popped = nullptr;
      driver::instance().pop(&popped);
    }
  };

 private:
  CUcontext handle_ = nullptr;
  unsigned long long id_ = 0;
};

}  // namespace warpheap::archive
