// SPDX-License-Identifier: Apache-2.0
// A growing pool, for a program without a C++ compiler whose heap kernel_setup.hpp has made. The
// program maps and unmaps memory as detail::pool_growth does. It launches the kernels that
// WARPHEAP_GROWTH_KERNELS(allocator) defines, with any number of thread blocks of 256 threads:
//
//   warpheap_extend           bytes [from, to) of the pool have memory now: blocks are made of them
//   warpheap_note_added       after it, for the same bytes
//   warpheap_find_used_end    raises record->answer to where the last slab in use ends
//   warpheap_decommit         no blocks are made of bytes [from, to) from now on; adds to
//                             record->answer the slabs there that are in use, and remain so
//   warpheap_shrink           the first `committed` bytes have memory, and no others
//
// For NVRTC only.
#pragma once

#include "kernel_setup.hpp"
#include "pool_growth.hpp"

#if defined(__CUDACC_RTC__)

namespace warpheap { inline namespace WARPHEAP_BACKEND {

template <class Allocator>
struct kernel_growth {
  using creation_type = typename Allocator::creation_type;
  using setup = kernel_setup<Allocator>;

  /// Calls `visit(creation, state)`. All threads of a thread block call.
  template <class Visitor>
  static WARPHEAP_DEVICE void visit(heap_record* record, Visitor visit) {
    if (threadIdx.x == 0) backend::current_setup = &record->steps;
    __syncthreads();
    visit(reinterpret_cast<Allocator const*>(record->handle)->creation(), setup::growth_of(record));
  }

  static WARPHEAP_DEVICE void extend(heap_record* record, u64 from, u64 to) {
    visit(record, [=](creation_type const& creation, growth_state* state) {
      creation.extend(from, to, &state->committed, {});
    });
  }
  static WARPHEAP_DEVICE void note_added(heap_record* record, u64 from, u64 to) {
    if (global_thread_index() == 0) detail::note_added{}(setup::growth_of(record), from, to);
  }
  static WARPHEAP_DEVICE void find_used_end(heap_record* record, u64 committed) {
    visit(record,
          [=](creation_type const& creation, growth_state*) { creation.find_used_end(committed, &record->answer); });
  }
  static WARPHEAP_DEVICE void decommit(heap_record* record, u64 from, u64 to) {
    visit(record, [=](creation_type const& creation, growth_state*) { creation.decommit(from, to, &record->answer); });
  }
  static WARPHEAP_DEVICE void shrink(heap_record* record, u64 committed) {
    if (global_thread_index() != 0) return;
    auto* const state = setup::growth_of(record);
    state->committed = state->claimed = state->added = committed;
    state->at_once = 0;
  }
};

}}  // namespace warpheap::WARPHEAP_BACKEND

#define WARPHEAP_GROWTH_KERNELS(...)                                                                               \
  extern "C" __global__ void warpheap_extend(warpheap::heap_record* record, unsigned long long from,               \
                                             unsigned long long to) {                                              \
    warpheap::kernel_growth<__VA_ARGS__>::extend(record, from, to);                                                \
  }                                                                                                                \
  extern "C" __global__ void warpheap_note_added(warpheap::heap_record* record, unsigned long long from,           \
                                                 unsigned long long to) {                                          \
    warpheap::kernel_growth<__VA_ARGS__>::note_added(record, from, to);                                            \
  }                                                                                                                \
  extern "C" __global__ void warpheap_find_used_end(warpheap::heap_record* record, unsigned long long committed) { \
    warpheap::kernel_growth<__VA_ARGS__>::find_used_end(record, committed);                                        \
  }                                                                                                                \
  extern "C" __global__ void warpheap_decommit(warpheap::heap_record* record, unsigned long long from,             \
                                               unsigned long long to) {                                            \
    warpheap::kernel_growth<__VA_ARGS__>::decommit(record, from, to);                                              \
  }                                                                                                                \
  extern "C" __global__ void warpheap_shrink(warpheap::heap_record* record, unsigned long long committed) {        \
    warpheap::kernel_growth<__VA_ARGS__>::shrink(record, committed);                                               \
  }

#endif
