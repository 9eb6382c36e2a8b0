// SPDX-License-Identifier: Apache-2.0
// A rw_malloc heap of a few words, so that a few lanes can fill it, empty it and fight over it.
#pragma once

#include <algorithm>
#include <set>

#include "policy/creation/quiet_pool_fixture.hpp"

namespace warpheap::test {

constexpr creation::rw_malloc_config tiny_units{
    .unit_bytes = 16, .aggregated_units = 4, .walk_windows = 1, .group_words = 4, .counts_steps = true};

/// These units with windows of several words a lane.
template <u32 Words>
constexpr creation::rw_malloc_config tiny_wide_units{.unit_bytes = 16,
                                                     .aggregated_units = 4,
                                                     .words_per_lane = Words,
                                                     .walk_windows = 1,
                                                     .group_words = 4,
                                                     .counts_steps = true};

/// Owns the memory of a heap of `units` units of 16 bytes.
template <class Heap>
class unit_pool : public quiet_pool<Heap> {
 public:
  explicit unit_pool(u64 units) : quiet_pool<Heap>{units * 16} {}
};

/// Kernel: thread i asks for units[i] units, at a multiple of `alignment` where it is not 0.
struct ask_for_units {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 const* units, u64 alignment, void** got) const {
    u64 const i = global_thread_index(), bytes = 16 * units[i];
    got[i] = alignment ? heap.create_aligned(alignment, bytes) : heap.create(bytes);
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

using unit_report = lanes_report;

/// Every lane takes a block of a random length, writes its tag into the first and last word of each
/// unit, waits a little, finds the tags, and frees the block; again and again. Every lane holds one
/// block at most. Blocks of one length lie at its multiples.
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
      // Atomic, so that a mutant that gives a unit to two lanes makes no undefined behaviour of it.
      for (u32 i = 0; i < units; ++i) atomic_ref<u32>{block[4 * i]}.store(tag, order::relaxed);
      if (tag % 3 == 0) simt::pause(100);
      for (u32 i = 0; i < units; ++i)
        if (atomic_ref<u32>{block[4 * i]}.load(order::relaxed) != tag)
          atomic_ref<u32>{report->broken}.fetch_add(1, order::relaxed);
      u64 const first = static_cast<u64>(reinterpret_cast<u8*>(block) - heap.table().pool()) / 16;
      bool const is_in_place = varies || first % units == 0;  // what leaves no gaps
      if (heap.usable_size(block) != 16 * units || !is_in_place)
        atomic_ref<u32>{report->broken}.fetch_add(1, order::relaxed);
      heap.destroy(block);
    }
  }
};

}  // namespace warpheap::test
