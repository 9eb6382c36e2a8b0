// A scatter heap of a few pages, so that a few lanes can fill it, empty it and fight over it: what a heap of a mebibyte or
// more shows rarely, this shows in every schedule.
#pragma once

#include <gtest/gtest.h>

#include "support/schedules.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/warpheap.hpp"

namespace warpheap::test {

/// Owns the memory of a pool of `pages` pages.
template <class Allocator>
class scatter_pool {
 public:
  static constexpr u64 page_bytes = Allocator::config.page_bytes;

  explicit scatter_pool(u32 pages)
      : memory_{Allocator::required_bytes(pages * page_bytes) + 24},
        allocator_{Allocator::place(memory_.data() + 24, pages * page_bytes)},
        pages_{pages} {
    allocator_.initialize({});
    synchronize();
  }

  Allocator const& allocator() const { return allocator_; }
  u32 pages() const { return pages_; }
  u64 first_address() const { return reinterpret_cast<u64>(allocator_.table().pool()); }
  u64 page_of(void const* memory) const { return (reinterpret_cast<u64>(memory) - first_address()) / page_bytes; }

  /// Every invariant holds, and `live` blocks are there.
  void expect_quiet(u64 live) const {
    for (auto const& line : allocator_.check_invariants()) ADD_FAILURE() << line;
    auto const counts = allocator_.statistics();
    EXPECT_EQ(counts.live_blocks, live);
    EXPECT_EQ(counts.double_frees + counts.foreign_frees, 0u);
  }

  /// Nothing is live, and where emptied pages are reset every page is free: no run is too long, and every slot is there.
  void expect_empty() const {
    expect_quiet(0);
    if (!Allocator::config.reset_freed_pages) return;
    EXPECT_EQ(allocator_.statistics().free_slabs, pages_);
    EXPECT_EQ(allocator_.available_slots_on_host(page_bytes), pages_);
    EXPECT_EQ(allocator_.available_slots_on_host(pages_ * page_bytes), 1u);
  }

 private:
  device_buffer<u8> memory_;
  Allocator allocator_;
  u32 pages_;
};

/// What lanes saw.
struct scatter_report {
  u32 served = 0;
  u32 refused = 0;
  u32 broken = 0;  ///< blocks in which somebody else wrote
};

/// Every lane keeps up to `held_max` blocks of random sizes in [min_bytes, max_bytes], writes a tag into both ends of each,
/// and checks the tags before it frees. All are freed at the end.
struct scatter_churn {
  static constexpr u32 held_max = 3;
  u32 rounds, min_bytes, max_bytes;
  u64 seed;

  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, scatter_report* report) const {
    u32 const me = static_cast<u32>(global_thread_index());
    random_sequence random{seed + me};
    u32* held[held_max] = {};
    u32 words[held_max] = {};
    for (u32 round = 0; round < rounds + held_max; ++round) {
      u32 const slot = round % held_max, tag = me * 64 + slot;
      if (held[slot]) {
        if (held[slot][0] != tag || held[slot][words[slot] - 1] != tag)
          atomic_ref<u32>{report->broken}.fetch_add(1, order::relaxed);
        heap.destroy(held[slot]);
      }
      held[slot] = nullptr;
      if (round >= rounds || random.below(4) == 0) continue;
      words[slot] = (min_bytes + random.below(max_bytes - min_bytes + 1)) / 4;
      held[slot] = static_cast<u32*>(heap.create(words[slot] * 4));
      atomic_ref<u32>{held[slot] ? report->served : report->refused}.fetch_add(1, order::relaxed);
      if (!held[slot]) continue;
      held[slot][0] = tag;
      held[slot][words[slot] - 1] = tag;
    }
  }
};

/// Kernel: every thread asks once.
struct scatter_allocate {
  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, u64 bytes, void** blocks) const {
    blocks[global_thread_index()] = heap.create(bytes);
  }
};

/// Kernel: every thread frees one block, if there is one.
struct scatter_free {
  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, void** blocks) const {
    heap.destroy(blocks[global_thread_index()]);
  }
};

/// What `threads` threads got that asked once each for `bytes`, nullptr for those refused.
template <class Allocator>
std::vector<void*> allocate(scatter_pool<Allocator> const& pool, launch_shape shape, u64 bytes) {
  device_buffer<void*> blocks(u64{shape.blocks} * shape.threads);
  launch(shape, scatter_allocate{}, pool.allocator(), bytes, blocks.data());
  synchronize();
  return blocks.to_host();
}

template <class Allocator>
void release(scatter_pool<Allocator> const& pool, std::vector<void*> const& blocks) {
  if (blocks.empty()) return;
  device_buffer<void*> const list{blocks};
  launch({1, static_cast<u32>(blocks.size())}, scatter_free{}, pool.allocator(), list.data());
  synchronize();
}

}  // namespace warpheap::test
