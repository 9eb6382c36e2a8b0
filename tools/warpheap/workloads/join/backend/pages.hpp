// SPDX-License-Identifier: Apache-2.0
// Where a join's pages come from: a heap, or an array in its order, by one counter.
#pragma once

#include <string>

#include "tables.hpp"
#include "warpheap/sync/warp_aggregate.hpp"

namespace warpheap::tool::join { inline namespace WARPHEAP_BACKEND {

/// Pages from an allocator under test.
template <class Allocator, class Heap = basic_heap<Allocator>>
class heap_pages {
 public:
  static constexpr bool frees = true;

  explicit heap_pages(u64 pool_bytes, u64) : heap_{pool_bytes} {}

  typename Heap::ref_type ref() const { return heap_.ref(); }
  /// Before a join.
  void prepare() {}
  /// What is wrong after everything was freed.
  std::string fault() const { return bench::fault_of_emptied(heap_); }
  /// What was asked of a heap that records it.
  call_trace trace() const requires requires(Heap const heap) { heap.trace(); }
  { return heap_.trace(); }

 private:
  Heap heap_;
};

/// Whether each lane adds to the counter of an array of pages, or one lane for its warp.
enum class page_counting { by_lane, by_warp };

/// A kernel's view of an array of pages: a heap of one size that never frees. All atomics are on
/// one address: one for each page, or one for the active lanes of a warp.
template <page_counting Counting>
struct page_array {
  u8* memory;
  u64* taken;
  u64 page_bytes;
  u64 pages;

  WARPHEAP_DEVICE void* malloc(u64) const {
    u64 const mine = next();
    return mine < pages ? memory + mine * page_bytes : nullptr;
  }
  WARPHEAP_DEVICE void free(void*) const {}

 private:
  WARPHEAP_DEVICE u64 next() const {
    // relaxed: the number is ours alone, and the memory had no owner before.
    if constexpr (Counting == page_counting::by_lane) return atomic_ref<u64>{*taken}.fetch_add(1, order::relaxed);
    else return aggregated_fetch_add(group_of(simt::active_mask()), *taken);
  }
};

/// The baseline of Pham et al. 2022: direct output. No page is ever given back.
template <page_counting Counting>
class direct_pages {
 public:
  static constexpr bool frees = false;

  direct_pages(u64 pool_bytes, u64 page_bytes)
      : page_bytes_{(page_bytes + 7) / 8 * 8}, memory_(pool_bytes), taken_(1) {}

  page_array<Counting> ref() const {
    return {memory_.data(), taken_.data(), page_bytes_, memory_.size() / page_bytes_};
  }
  void prepare() { taken_ = device_buffer<u64>(1); }
  static std::string fault() { return {}; }

 private:
  u64 page_bytes_;
  device_buffer<u8> memory_;
  device_buffer<u64> taken_;
};

}}  // namespace warpheap::tool::join::WARPHEAP_BACKEND
