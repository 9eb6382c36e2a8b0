// SPDX-License-Identifier: Apache-2.0
// Kernels that know Warpheap, with launch bounds as kernels have them, in a unit that replaces
// device malloc too. Compiled with -rdc=true and read by scripts/check_override.py: ptxas refuses a
// kernel that calls a function of more registers.
#if defined(OVERRIDE_GROWS)
#include <warpheap/heap/override_growing.hpp>
#else
#include <warpheap/heap/override.hpp>
#endif
#include <warpheap/warpheap.hpp>

__device__ void call_all(warpheap::heap_ref heap, void** results) {
  void* const mine = heap.malloc(16 + threadIdx.x);
  heap.free(results[threadIdx.x]);
  free(mine);
  results[threadIdx.x] = malloc(16 + threadIdx.x);
}

// As many thread blocks as fit on a multiprocessor of 2,048 threads, or on this one.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ / 100 == 8 || __CUDA_ARCH__ / 100 == 9 || __CUDA_ARCH__ / 100 == 10
#define RESIDENT(threads) 2048 / threads
#else
#define RESIDENT(threads) 1024 / threads
#endif

#define KERNEL(name, bounds) \
  __global__ void bounds name(warpheap::heap_ref heap, void** results) { call_all(heap, results); }
KERNEL(call_unbounded, )
KERNEL(call_1024, __launch_bounds__(1024))
KERNEL(call_1024_once, __launch_bounds__(1024, 1))
KERNEL(call_512, __launch_bounds__(512, RESIDENT(512)))
KERNEL(call_256, __launch_bounds__(256, RESIDENT(256)))

struct functor {
  WARPHEAP_DEVICE void operator()(warpheap::heap_ref heap, void** results) const { call_all(heap, results); }
};
struct bounded_functor : functor {
  static constexpr unsigned most_threads = 256, resident_blocks = 8;
};

void launch_bounded(warpheap::heap_ref heap, void** results) {
  call_unbounded<<<1, 32>>>(heap, results);
  call_1024<<<1, 32>>>(heap, results);
  call_1024_once<<<1, 32>>>(heap, results);
  call_512<<<1, 32>>>(heap, results);
  call_256<<<1, 32>>>(heap, results);
  warpheap::launch({1, 32}, functor{}, heap, results);
  warpheap::launch({1, 32}, bounded_functor{}, heap, results);
}
