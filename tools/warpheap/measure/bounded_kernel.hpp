// SPDX-License-Identifier: Apache-2.0
// A functor as a kernel with a launch bound of one's choice, or with none. launch() bounds its
// kernels to 1,024 threads; a kernel that people write has no bound. On the host backend a bound
// means nothing.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "warpheap/platform/simt.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

/// What a kernel says of its thread blocks, as __launch_bounds__ has it; 0: nothing.
struct launch_bound {
  u32 threads = 0, blocks = 0;
};

#if defined(__CUDACC__)
template <class Functor, class... Arguments>
__global__ void run_unbounded(Functor functor, Arguments... arguments) {
  functor(arguments...);
}
template <u32 Threads, class Functor, class... Arguments>
__global__ void __launch_bounds__(Threads) run_bounded(Functor functor, Arguments... arguments) {
  functor(arguments...);
}
template <u32 Threads, u32 Blocks, class Functor, class... Arguments>
__global__ void __launch_bounds__(Threads, Blocks) run_resident(Functor functor, Arguments... arguments) {
  functor(arguments...);
}
#endif

template <launch_bound Bound, class Functor, class... Arguments>
class bounded_kernel {
 public:
  static void launch_on(launch_shape shape, Arguments... arguments) {
#if defined(__CUDACC__)
    kernel()<<<shape.blocks, shape.threads>>>(Functor{}, arguments...);
    cuda_backend::throw_on_error(cudaGetLastError(), "kernel launch");
#else
    launch(shape, Functor{}, arguments...);
#endif
  }

  /// The kernel's registers a thread, its stack in bytes, and the threads that fit on a
  /// multiprocessor in thread blocks of `thread_block`. Nothing on the host backend.
  static std::vector<std::pair<std::string, double>> figures([[maybe_unused]] u32 thread_block) {
#if defined(__CUDACC__)
    cudaFuncAttributes found{};
    cuda_backend::throw_on_error(cudaFuncGetAttributes(&found, kernel()), "cudaFuncGetAttributes");
    int resident = 0;
    cuda_backend::throw_on_error(
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel(), static_cast<int>(thread_block), 0),
        "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
    return {{"registers", found.numRegs},
            {"stack_bytes", static_cast<double>(found.localSizeBytes)},
            {"resident_threads", static_cast<double>(resident) * thread_block}};
#else
    return {};
#endif
  }

 private:
#if defined(__CUDACC__)
  static auto kernel() {
    if constexpr (Bound.threads == 0) return &run_unbounded<Functor, Arguments...>;
    else if constexpr (Bound.blocks == 0) return &run_bounded<Bound.threads, Functor, Arguments...>;
    else return &run_resident<Bound.threads, Bound.blocks, Functor, Arguments...>;
  }
#endif
};

/// Launches a functor without members as a kernel without a bound.
template <class Functor, class... Arguments>
void launch_unbounded(launch_shape shape, Functor, Arguments... arguments) {
  bounded_kernel<launch_bound{}, Functor, Arguments...>::launch_on(shape, arguments...);
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
