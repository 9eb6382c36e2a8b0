// A heap of bins over a handful of chunks, so that a few lanes can fill it, empty it and fight over it.
#pragma once

#include <gtest/gtest.h>

#include "support/schedules.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/warpheap.hpp"

namespace warpheap::test {

/// The smallest chunks, whose seven bins go back at once when they are empty; as many arenas as the pool has room for.
inline constexpr creation::ualloc_config tight{.chunk_log2 = 15, .idle_bins = 0};
inline constexpr u64 small_chunk = u64{1} << 15;

/// Owns the memory of a pool; `Allocator` is a creation policy.
template <class Allocator>
class bin_pool {
 public:
  explicit bin_pool(u64 bytes)
      : memory_{Allocator::required_bytes(bytes) + 40}, allocator_{Allocator::place(memory_.data() + 40, bytes)} {
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
struct bin_report {
  u32 served = 0;
  u32 refused = 0;
  u32 broken = 0;  ///< blocks in which somebody else wrote
};

/// Every lane keeps up to `held_max` blocks of random powers of two in [least, least << doublings], writes a tag into both ends
/// of each, and checks the tags before it frees. All are freed at the end.
struct bin_churn {
  static constexpr u32 held_max = 3;
  u32 rounds, least, doublings;
  u64 seed;

  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, bin_report* report) const {
    u32 const me = static_cast<u32>(global_thread_index());
    random_sequence random{seed + me};
    u32* held[held_max] = {};
    u32 words[held_max] = {};
    for (u32 round = 0; round < rounds + held_max; ++round) {
      u32 const slot = round % held_max, tag = me * 64 + slot + 1;
      if (held[slot]) {
        if (held[slot][0] != tag || held[slot][words[slot] - 1] != tag)
          atomic_ref<u32>{report->broken}.fetch_add(1, order::relaxed);
        heap.destroy(held[slot]);
      }
      held[slot] = nullptr;
      if (round >= rounds || random.below(4) == 0) continue;
      words[slot] = (least << random.below(doublings + 1)) / 4;
      held[slot] = static_cast<u32*>(heap.create(words[slot] * 4));
      atomic_ref<u32>{held[slot] ? report->served : report->refused}.fetch_add(1, order::relaxed);
      if (!held[slot]) continue;
      held[slot][0] = tag;
      held[slot][words[slot] - 1] = tag;
    }
  }
};

/// Every lane takes one block of one of `sizes` sizes and gives it back, again and again; nobody holds two.
struct take_one_and_give_it_back {
  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, u32 rounds, u64 least, u32 step_log2, u32 sizes,
                                  bin_report* report) const {
    u32 const me = static_cast<u32>(global_thread_index());
    for (u32 round = 0; round < rounds; ++round) {
      u64 const bytes = least << (me + round) * 7 % sizes * step_log2;
      void* const block = heap.create(bytes);
      atomic_ref<u32>{block ? report->served : report->refused}.fetch_add(1, order::relaxed);
      heap.destroy(block);
    }
  }
};

/// Kernel: every thread asks once, or frees once.
struct create_each {
  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, u64 bytes, void** blocks) const {
    blocks[global_thread_index()] = heap.create(bytes);
  }
};
struct destroy_each {
  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, void** blocks) const {
    heap.destroy(blocks[global_thread_index()]);
  }
};

#if !defined(__CUDACC__)
/// The first of `seeds` schedules under which `body` returns false or throws. Who hangs is stopped after few steps.
template <class Body>
std::optional<u64> find_failing_short_schedule(unsigned seeds, Body body) {
  for (u64 seed = 0; seed < seeds; ++seed) {
    auto run = schedule_of(seed);
    run.step_cap = 400'000;
    host::scoped_execution const use{run};
    try {
      if (!body()) return seed;
    } catch (std::exception const&) {
      return seed;
    }
  }
  return std::nullopt;
}
#endif

}  // namespace warpheap::test
