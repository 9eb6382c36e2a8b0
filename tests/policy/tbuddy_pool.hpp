// A tbuddy heap of a few small pages, so that a few lanes can fill it, empty it and fight over it: what a heap of a mebibyte
// or more shows rarely, this shows in every schedule.
#pragma once

#include <gtest/gtest.h>

#include "support/schedules.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/warpheap.hpp"

namespace warpheap::test {

constexpr creation::tbuddy_config pages_of_64{.page_bytes = 64};
using small_tbuddy = creation::tbuddy<pages_of_64>;

/// Owns the memory of a pool of `pages` pages.
class tbuddy_pool {
 public:
  static constexpr u64 page_bytes = 64;

  explicit tbuddy_pool(u32 pages)
      : memory_{small_tbuddy::required_bytes(pages * page_bytes) + 24},
        allocator_{small_tbuddy::place(memory_.data() + 24, pages * page_bytes)},
        pages_{pages} {
    allocator_.initialize({});
    synchronize();
  }

  small_tbuddy const& allocator() const { return allocator_; }
  u32 pages() const { return pages_; }
  u64 page_of(void const* memory) const { return allocator_.pages().page_of(memory); }

  /// Every invariant holds, and `live` blocks are there.
  void expect_quiet(u64 live) const {
    for (auto const& line : allocator_.check_invariants()) ADD_FAILURE() << line;
    EXPECT_EQ(allocator_.statistics().live_blocks, live);
  }

  /// Nothing is live, and all that is free is in the largest blocks that there are.
  bool is_as_new() const {
    bool largest = allocator_.check_invariants().empty() && allocator_.statistics().live_blocks == 0;
    for (u32 order = 0; order < 31; ++order)
      largest = largest && allocator_.available_slots_on_host(page_bytes << order) == pages_ >> order;
    return largest;
  }

 private:
  device_buffer<u8> memory_;
  small_tbuddy allocator_;
  u32 pages_;
};

/// Kernel: every thread asks once.
struct tbuddy_allocate {
  WARPHEAP_DEVICE void operator()(small_tbuddy heap, u64 bytes, void** blocks) const {
    blocks[global_thread_index()] = heap.create(bytes);
  }
};

/// Kernel: every thread frees one block, if there is one.
struct tbuddy_free {
  WARPHEAP_DEVICE void operator()(small_tbuddy heap, void** blocks) const {
    heap.destroy(blocks[global_thread_index()]);
  }
};

/// What the threads got that asked once each for `bytes`, nullptr for those refused.
inline std::vector<void*> allocate(tbuddy_pool const& pool, launch_shape shape, u64 bytes) {
  device_buffer<void*> blocks(u64{shape.blocks} * shape.threads);
  launch(shape, tbuddy_allocate{}, pool.allocator(), bytes, blocks.data());
  synchronize();
  return blocks.to_host();
}

inline void release(tbuddy_pool const& pool, std::vector<void*> const& blocks) {
  if (blocks.empty()) return;
  device_buffer<void*> const list{blocks};
  launch({1, static_cast<u32>(blocks.size())}, tbuddy_free{}, pool.allocator(), list.data());
  synchronize();
}

}  // namespace warpheap::test
