// SPDX-License-Identifier: Apache-2.0
// The allocator behind the archive's names. The archive is compiled once, so its users differ in
// data that the host writes: a pool of one size or one that grows, counters or none, and whether
// blocks share sectors of 32 bytes.
#pragma once

#include <warpheap/heap/growing_heap.hpp>

#include "pool.hpp"

namespace warpheap::archive {

/// Calls of one multiprocessor, in a cache line of its own. Threads add and never read.
struct alignas(128) call_counts {
  u64 calls;    ///< of malloc, calloc, realloc, aligned_alloc
  u64 frees;    ///< calls of free with a pointer
  u64 refused;  ///< calls that returned nullptr; a realloc that only frees is none
};

/// What the host may ask for. All bits zero: nothing.
struct options {
  call_counts* counts = nullptr;  ///< of rows, each for the multiprocessors of its number
  u32 rows = 0;                   ///< of counts
  u32 forgiving = 0;              ///< 1: no two blocks share a sector of 32 bytes
};

using waiting_base = warpheap::allocator<creation::slab_bitmap<>, distribution::none, oom::grow_on_demand<wait_20_ms>,
                                         pool, alignment::shrink<16>>;

/// waiting_allocator with options.
///
///   archive.A1  Over a pool that has all its memory from the start, kernels hold a growth_state of
///       zeros. Its limit of 0 ends each request before it is posted, so no call waits.
class allocator : public waiting_base {
 public:
  using waiting_base::waiting_base;

  /// This heap, with these options.
  WARPHEAP_HOST allocator with(options const& wanted) const {
    allocator made = *this;
    made.options_ = wanted;
    return made;
  }
  /// This heap without waits: a call that finds no memory is refused at once. `no_growth` is zero
  /// (archive.A1).
  WARPHEAP_HOST allocator without_growth(growth_state* no_growth) const {
    return allocator{creation(), oom_type{no_growth}}.with(options_);
  }

  WARPHEAP_DEVICE void* malloc(size_t bytes) const { return counted(waiting_base::malloc(apart(bytes)), bytes != 0); }

  WARPHEAP_DEVICE void free(void* memory) const {
    if (options_.counts && memory) count(row().frees);
    waiting_base::free(memory);
  }

  WARPHEAP_DEVICE void* calloc(size_t count, size_t size) const {
    // A product that overflows is refused as it is.
    bool const fits = size == 0 || count <= ~size_t{0} / size;
    void* const memory = waiting_base::calloc(fits ? 1 : count, fits ? apart(count * size) : size);
    return counted(memory, count != 0 && size != 0);
  }

  WARPHEAP_DEVICE void* realloc(void* memory, size_t bytes) const {
    return counted(waiting_base::realloc(memory, apart(bytes)), bytes != 0);
  }

  WARPHEAP_DEVICE void* aligned_alloc(size_t alignment, size_t bytes) const {
    size_t const at_least = options_.forgiving && alignment < sector ? sector : alignment;
    bool const is_power = alignment != 0 && (alignment & (alignment - 1)) == 0;
    return counted(waiting_base::aligned_alloc(is_power ? at_least : 0, apart(bytes)), bytes != 0);
  }

 private:
  static constexpr size_t sector = 32;  ///< bytes, the smallest unit that a cache holds

  WARPHEAP_DEVICE size_t apart(size_t bytes) const {
    return options_.forgiving ? alignment::shrink<sector>::pad(bytes) : bytes;
  }

  WARPHEAP_DEVICE call_counts& row() const { return options_.counts[simt::sm_id() % options_.rows]; }
  /// relaxed: the host reads it when no kernel runs.
  WARPHEAP_DEVICE static void count(u64& calls) { atomic_ref<u64>{calls}.fetch_add(1, order::relaxed); }

  WARPHEAP_DEVICE void* counted(void* memory, bool wants_memory) const {
    if (options_.counts) {
      count(row().calls);
      if (!memory && wants_memory) count(row().refused);
    }
    return memory;
  }

  options options_;
};

}  // namespace warpheap::archive
