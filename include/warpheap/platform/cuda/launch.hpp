// SPDX-License-Identifier: Apache-2.0
// Runs a functor as a CUDA kernel, so that one body serves both backends.
#pragma once

#include "../types.hpp"
#include "memory.hpp"

namespace warpheap::cuda_backend {

// The bound keeps any functor below 65 registers, so that a block of 1,024 threads can be launched
// at all. On sm_80 and sm_90 ptxas goes down to 32, so that two such blocks fit.
template <class Functor, class... Arguments>
__global__ void __launch_bounds__(1024) run_functor(Functor functor, Arguments... arguments) {
  functor(arguments...);
}

/// A functor that names its launch bounds: thread blocks of at most `most_threads` threads, of
/// which `resident_blocks` should fit a multiprocessor. These bounds, not 1,024 threads, then limit
/// its registers.
template <class Functor>
concept bounds_registers = requires {
  Functor::most_threads;
  Functor::resident_blocks;
};

// Asking for more resident threads than a multiprocessor has room for is an error.
#if !defined(__CUDA_ARCH__)
#define WARPHEAP_RESIDENT_THREADS 2048
#elif __CUDA_ARCH__ < 800
#define WARPHEAP_RESIDENT_THREADS 1024
#elif (__CUDA_ARCH__ > 800 && __CUDA_ARCH__ < 900) || __CUDA_ARCH__ >= 1100
#define WARPHEAP_RESIDENT_THREADS 1536
#else
#define WARPHEAP_RESIDENT_THREADS 2048
#endif
#define WARPHEAP_RESIDENT_BLOCKS(Functor)                                       \
  (Functor::resident_blocks * Functor::most_threads > WARPHEAP_RESIDENT_THREADS \
       ? WARPHEAP_RESIDENT_THREADS / Functor::most_threads                      \
       : Functor::resident_blocks)

template <bounds_registers Functor, class... Arguments>
__global__ void __launch_bounds__(Functor::most_threads, WARPHEAP_RESIDENT_BLOCKS(Functor))
    run_bounded_functor(Functor functor, Arguments... arguments) {
  functor(arguments...);
}

#undef WARPHEAP_RESIDENT_BLOCKS
#undef WARPHEAP_RESIDENT_THREADS

/// As below, of a __global__ function.
template <class... Parameters, class... Arguments>
void launch(stream_view on, launch_shape shape, void (*kernel)(Parameters...), Arguments... arguments) {
  if (shape.blocks == 0) return;
  if (!shape.has_whole_rows()) throw_on_error(cudaErrorInvalidConfiguration, "kernel launch");
  auto const in_full = [](extent of, u32 total) { return dim3{of.in_x(total), of.y, of.in_z(total)}; };
  if (shape.shared_bytes > 48 << 10) {  // more than this a kernel must be allowed
    auto const bytes = static_cast<int>(shape.shared_bytes);
    throw_on_error(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), "kernel launch");
  }
  auto const grid = in_full(shape.grid_extent, shape.blocks), block = in_full(shape.block_extent, shape.threads);
  kernel<<<grid, block, shape.shared_bytes, on>>>(arguments...);
  throw_on_error(cudaGetLastError(), "kernel launch");
}

/// Launches `functor(arguments...)` on every thread of `shape`, in order on stream `on`. Does not
/// wait; `synchronize` does, and reports what went wrong in the kernel. Functor and arguments are
/// trivially copyable. A grid of no thread blocks does nothing. Throws cuda_error if the launch
/// itself is refused.
template <class Functor, class... Arguments>
void launch(stream_view on, launch_shape shape, Functor functor, Arguments... arguments) {
  if constexpr (bounds_registers<Functor>)
    launch(on, shape, run_bounded_functor<Functor, Arguments...>, functor, arguments...);
  else launch(on, shape, run_functor<Functor, Arguments...>, functor, arguments...);
}

/// Launches on the default stream.
template <class Functor, class... Arguments>
void launch(launch_shape shape, Functor functor, Arguments... arguments) {
  launch(stream_view{}, shape, functor, arguments...);
}

}  // namespace warpheap::cuda_backend
