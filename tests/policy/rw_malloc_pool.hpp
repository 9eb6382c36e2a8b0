// A rw_malloc heap of a few words, so that a few lanes can fill it, empty it and fight over it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "support/schedules.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/warpheap.hpp"

namespace warpheap::test {

constexpr creation::rw_malloc_config tiny_units{.unit_bytes = 16,
                                                .aggregated_units = 4,
                                                .walk_windows = 1,
                                                .group_words = 4,
                                                .epoch_counters = 2,
                                                .counts_steps = true};

/// Owns the memory of a heap of `units` units of 16 bytes.
template <class Heap>
class unit_pool {
 public:
  explicit unit_pool(u64 units)
      : memory_{Heap::required_bytes(units * 16) + 24}, allocator_{Heap::place(memory_.data() + 24, units * 16)} {
    allocator_.initialize({});
    synchronize();
  }

  Heap const& allocator() const { return allocator_; }

  /// Every invariant holds, and `live` blocks are there.
  bool is_quiet(u64 live) const {
    return allocator_.check_invariants().empty() && allocator_.statistics().live_blocks == live;
  }

 private:
  device_buffer<u8> memory_;
  Heap allocator_;
};

/// Kernel: thread i asks for units[i] units, at a multiple of `alignment` where it is not 0.
struct ask_for_units {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 const* units, u64 alignment, void** got) const {
    u64 const i = global_thread_index(), bytes = 16 * units[i];
    got[i] = alignment ? heap.create_aligned(alignment, bytes) : heap.create(bytes);
  }
};

/// Kernel: thread i frees what it got.
struct free_units {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, void** got) const {
    heap.destroy(got[global_thread_index()]);
  }
};

template <class Heap>
std::vector<void*> ask(unit_pool<Heap> const& pool, launch_shape shape, std::vector<u64> const& units,
                       u64 alignment = 0) {
  device_buffer<u64> const wanted{units};
  device_buffer<void*> got(units.size());
  launch(shape, ask_for_units{}, pool.allocator(), static_cast<u64 const*>(wanted.data()), alignment, got.data());
  synchronize();
  return got.to_host();
}

template <class Heap>
void release(unit_pool<Heap> const& pool, std::vector<void*> const& blocks) {
  if (blocks.empty()) return;
  device_buffer<void*> got{blocks};
  launch({1, static_cast<u32>(blocks.size())}, free_units{}, pool.allocator(), got.data());
  synchronize();
}

/// What a churn reports.
struct unit_report {
  u32 served, refused, broken;
};

/// Every lane takes a block of a random length, writes its tag into the first and last word of each unit, waits a little, finds
/// the tags, and frees the block; again and again. Every lane holds one block at most.
struct unit_churn {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u32 rounds, u32 most_units, bool varies, u64 seed,
                                  unit_report* report) const {
    u32 const tag = static_cast<u32>(global_thread_index()) + 1;
    random_sequence random{seed + tag};
    for (u32 round = 0; round < rounds; ++round) {
      u32 const units = varies ? 1 + random.below(most_units) : most_units;
      auto* const block = static_cast<u32*>(heap.create(16 * units));
      atomic_ref<u32>{block ? report->served : report->refused}.fetch_add(1, order::relaxed);
      if (!block) continue;
      // Atomic, so that a twin that gives a unit to two lanes makes no undefined behaviour of it.
      for (u32 i = 0; i < units; ++i) atomic_ref<u32>{block[4 * i]}.store(tag, order::relaxed);
      if (tag % 3 == 0) simt::pause(100);
      for (u32 i = 0; i < units; ++i)
        if (atomic_ref<u32>{block[4 * i]}.load(order::relaxed) != tag)
          atomic_ref<u32>{report->broken}.fetch_add(1, order::relaxed);
      if (heap.usable_size(block) != 16 * units) atomic_ref<u32>{report->broken}.fetch_add(1, order::relaxed);
      heap.destroy(block);
    }
  }
};

}  // namespace warpheap::test
