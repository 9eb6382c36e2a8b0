// SPDX-License-Identifier: Apache-2.0
// A heap made by kernels, for a program without a C++ compiler. WARPHEAP_SETUP_KERNELS(allocator)
// defines the kernels. The program keeps a heap_record in device memory for each heap. It launches:
//
//   warpheap_plan        <<<1, 1>>>    how many bytes to allocate for a pool
//   warpheap_place       <<<1, 1>>>    writes the reference, and the fills for the program to do
//   warpheap_initialize  <<<1, 256>>>  after the fills; fills and this kernel again reset the heap
//   warpheap_count       <<<1, 32>>>   available_slots() of a quiet heap
//
// For a growing pool, the program first maps memory, and kernel_growth.hpp has more kernels.
//
// For NVRTC only: nvcc compiles basic_heap.
#pragma once

#include "placement.hpp"

#if defined(__CUDACC_RTC__)

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// The set-up's output to the program. All members are 64 bits, so that any language can read it.
struct heap_record {
  backend::setup steps;
  u64 whole_bytes = 0;  ///< to allocate, from an address of any alignment
  u64 least_bytes = 0;  ///< of memory that holds the smallest pool
  u64 pool_bytes = 0;
  u64 metadata_bytes = 0;
  u64 handle = 0;
  u64 available = 0;
  u64 committed = 0;  ///< of a pool that grows, bytes that have memory; the program writes it, and
  u64 shared = 0;     ///< the device's address of the words of growth_word
  u64 answer = 0;     ///< of a kernel of kernel_growth.hpp; 0 before it
};

template <class Allocator>
struct kernel_setup {
  using creation_type = typename Allocator::creation_type;
  using oom_type = typename Allocator::oom_type;
  using placement = detail::placement<Allocator>;
  static constexpr u64 alignment = Allocator::alignment_type::bytes;

  /// Sizes for a pool of `bytes` bytes, at least the smallest pool.
  static WARPHEAP_DEVICE void plan(heap_record* record, u64 bytes) {
    backend::current_setup = &record->steps;
    record->least_bytes = placement::whole_bytes(placement::minimum_bytes) + alignment;
    record->whole_bytes = placement::whole_bytes(bytes) + alignment;
  }

  /// The heap in `bytes` bytes at `memory`, with a pool of `pool` bytes; 0 for the largest that
  /// fits. Call plan() first; `bytes` must not be below the size that it wrote.
  static WARPHEAP_DEVICE void place(heap_record* record, void* memory, u64 bytes, u64 pool) {
    backend::current_setup = &record->steps;
    memory_range const range = Allocator::alignment_type::align_pool({memory, bytes});
    if (pool == 0) pool = placement::pool_that_fits(range.bytes);
    auto const creation = creation_type::place(range.begin, pool);
    u8* const tail = placement::tail_after(reinterpret_cast<u64>(range.begin) + creation_type::required_bytes(pool));
    u8* const reference = tail + placement::state_bytes(pool);
    record->handle = reinterpret_cast<u64>(reference);
    if constexpr (growing_pool<typename Allocator::reserve_pool_type>)
      *growth_of(record) = first_growth_state(pool, record->committed, reinterpret_cast<u64*>(record->shared));
    if constexpr (requests_growth<oom_type>) new (reference) Allocator{creation, oom_type{growth_of(record)}};
    else new (reference) Allocator{creation};
    record->pool_bytes = creation.pool_bytes();
    record->metadata_bytes = creation.metadata_bytes();
    using stamp = detail::layout_stamp;
    *reinterpret_cast<stamp*>(stamp::address(record->handle)) =
        stamp::of<Allocator>(record->pool_bytes, record->metadata_bytes);
    record->steps.runs_functors = 0;
    initialize(record, creation);
  }

  /// All threads of one thread block call.
  static WARPHEAP_DEVICE void initialize(heap_record* record) {
    if (threadIdx.x == 0) backend::current_setup = &record->steps;
    __syncthreads();
    initialize(record, reinterpret_cast<Allocator const*>(record->handle)->creation());
  }

  /// A growing pool's state in device memory.
  static WARPHEAP_DEVICE growth_state* growth_of(heap_record const* record) {
    return reinterpret_cast<growth_state*>(detail::layout_stamp::address(record->handle) - placement::growth_bytes());
  }

  /// All lanes of one warp call.
  static WARPHEAP_DEVICE void count(heap_record* record, u64 bytes) {
    Allocator const heap = *reinterpret_cast<Allocator const*>(record->handle);
    u64 const available = heap.available_slots_warp(0xffffffffu, bytes);
    if (threadIdx.x == 0) record->available = available;
  }

 private:
  static WARPHEAP_DEVICE void initialize(heap_record const* record, creation_type const& creation) {
    if constexpr (growing_pool<typename Allocator::reserve_pool_type>)
      creation.initialize({}, &growth_of(record)->committed);
    else creation.initialize({});
  }
};

}}  // namespace warpheap::WARPHEAP_BACKEND

#define WARPHEAP_SETUP_KERNELS(...)                                                                                \
  extern "C" __global__ void warpheap_plan(warpheap::heap_record* record, unsigned long long bytes) {              \
    record->steps.runs_functors = 0;                                                                               \
    warpheap::kernel_setup<__VA_ARGS__>::plan(record, bytes);                                                      \
  }                                                                                                                \
  extern "C" __global__ void warpheap_place(warpheap::heap_record* record, void* memory, unsigned long long bytes, \
                                            unsigned long long pool) {                                             \
    warpheap::kernel_setup<__VA_ARGS__>::place(record, memory, bytes, pool);                                       \
  }                                                                                                                \
  extern "C" __global__ void warpheap_initialize(warpheap::heap_record* record) {                                  \
    warpheap::kernel_setup<__VA_ARGS__>::initialize(record);                                                       \
  }                                                                                                                \
  extern "C" __global__ void warpheap_count(warpheap::heap_record* record, unsigned long long bytes) {             \
    warpheap::kernel_setup<__VA_ARGS__>::count(record, bytes);                                                     \
  }

#endif
