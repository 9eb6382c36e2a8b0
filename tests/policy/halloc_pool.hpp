// A halloc heap of a few slabs of 16 KiB, so that a few lanes can fill it, empty it and fight over it.
#pragma once

#include <gtest/gtest.h>

#include "support/schedules.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/warpheap.hpp"

namespace warpheap::test {

inline constexpr u64 halloc_slab_bytes = 16384;

/// Several rows on few slabs, short probes, and slabs that are soon sparse: they change hands all the time.
inline constexpr creation::halloc_config few_slabs{
    .slab_bytes = 16384, .sparse_up_to = 500, .probes = 2, .check_every = 1, .slabs_per_row = 2, .counts_work = true};
using small_halloc = creation::halloc<few_slabs>;

/// Owns the memory of a pool; `Allocator` is a halloc.
template <class Allocator = small_halloc>
class halloc_pool {
 public:
  explicit halloc_pool(u32 slabs) : halloc_pool{slabs * halloc_slab_bytes, 0} {}
  halloc_pool(u64 bytes, int)
      : memory_{Allocator::required_bytes(bytes) + 24}, allocator_{Allocator::place(memory_.data() + 24, bytes)} {
    allocator_.initialize({});
    synchronize();
  }

  Allocator const& allocator() const { return allocator_; }

  /// Whether every invariant holds and `live` blocks are there, and nobody freed what he did not have.
  bool is_quiet(u64 live) const {
    auto const counts = allocator_.statistics();
    return allocator_.check_invariants().empty() && counts.live_blocks == live &&
           counts.double_frees + counts.foreign_frees == 0;
  }
  void expect_quiet(u64 live) const {
    for (auto const& line : allocator_.check_invariants()) ADD_FAILURE() << line;
    auto const counts = allocator_.statistics();
    EXPECT_EQ(counts.live_blocks, live);
    EXPECT_EQ(counts.double_frees + counts.foreign_frees, 0u);
  }

 private:
  device_buffer<u8> memory_;
  Allocator allocator_;
};

/// What lanes saw.
struct halloc_report {
  u32 served = 0;
  u32 refused = 0;
  u32 broken = 0;  ///< blocks in which somebody else wrote
};

/// Bytes of a request, drawn: of one kind of chunks, or of any size; with large ones among them, if wished.
struct halloc_sizes {
  u32 least, doublings;
  u32 large_bytes = 0;  ///< of every fourth request, if not 0
  bool odd = false;     ///< half of the others are of the sizes between the doublings

  WARPHEAP_DEVICE u32 draw(random_sequence& random) const {
    if (large_bytes != 0 && random.below(4) == 0) return large_bytes;
    u32 const bytes = least << random.below(doublings + 1);
    return odd && random.below(2) == 0 ? bytes + bytes / 2 : bytes;
  }
};

/// Every lane keeps up to `held_max` blocks, writes a tag into both ends of each, and checks the tags before it frees. All are
/// freed at the end.
struct halloc_churn {
  static constexpr u32 most_held = 4;
  u32 rounds, held_max;
  halloc_sizes sizes;
  u64 seed;

  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, halloc_report* report) const {
    u32 const me = static_cast<u32>(global_thread_index());
    random_sequence random{seed * 1000 + me};
    u64* held[most_held] = {};
    u32 words[most_held] = {};
    for (u32 round = 0; round < rounds + held_max; ++round) {
      u32 const slot = round % held_max;
      u64 const tag = me * 64 + slot + 1;
      if (held[slot]) {
        if (held[slot][0] != tag || held[slot][words[slot] - 1] != tag)
          atomic_ref<u32>{report->broken}.fetch_add(1, order::relaxed);
        heap.destroy(held[slot]);
      }
      held[slot] = nullptr;
      if (round >= rounds || (held_max > 1 && random.below(4) == 0)) continue;
      u32 const bytes = sizes.draw(random);
      words[slot] = bytes / 8;
      held[slot] = static_cast<u64*>(heap.create(bytes));
      atomic_ref<u32>{held[slot] ? report->served : report->refused}.fetch_add(1, order::relaxed);
      if (!held[slot]) continue;
      held[slot][0] = tag;
      held[slot][words[slot] - 1] = tag;
    }
  }
};

template <class Allocator>
halloc_report churned(halloc_pool<Allocator> const& pool, launch_shape shape, halloc_churn body) {
  device_buffer<halloc_report> const report(1);
  launch(shape, body, pool.allocator(), report.data());
  synchronize();
  return report[0];
}

/// Kernel: every thread asks once, or frees once.
struct halloc_create_each {
  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, u64 bytes, void** blocks) const {
    blocks[global_thread_index()] = heap.create(bytes);
  }
};
struct halloc_destroy_each {
  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, void** blocks) const {
    heap.destroy(blocks[global_thread_index()]);
  }
};

template <class Allocator>
std::vector<void*> allocate(halloc_pool<Allocator> const& pool, launch_shape shape, u64 bytes) {
  device_buffer<void*> const blocks(u64{shape.blocks} * shape.threads);
  launch(shape, halloc_create_each{}, pool.allocator(), bytes, blocks.data());
  synchronize();
  return blocks.to_host();
}

template <class Allocator>
void release(halloc_pool<Allocator> const& pool, std::vector<void*> const& blocks) {
  if (blocks.empty()) return;
  device_buffer<void*> const list{blocks};
  launch({1, static_cast<u32>(blocks.size())}, halloc_destroy_each{}, pool.allocator(), list.data());
  synchronize();
}

}  // namespace warpheap::test
