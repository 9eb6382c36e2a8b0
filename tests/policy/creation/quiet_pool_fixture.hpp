// SPDX-License-Identifier: Apache-2.0
// What tests of all creation policies share: a heap in memory of its own that is checked when all
// is quiet, kernels that ask and free, and a churn that notices a block with two owners. Pools are
// small enough that a few lanes can fill one, empty it and contend for it. So faults that a heap of
// a mebibyte or more shows rarely, they show in every schedule.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "support/schedules.hpp"
#include "warpheap/all.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace warpheap::test {

/// Owns the memory of a heap; `Allocator` is a creation policy.
template <class Allocator>
class quiet_pool {
 public:
  /// A heap of `bytes` that starts `offset` bytes after its memory, so rarely at an aligned
  /// address.
  explicit quiet_pool(u64 bytes, u64 offset = 24)
      : memory_{Allocator::required_bytes(bytes) + offset},
        allocator_{Allocator::place(memory_.data() + offset, bytes)} {
    allocator_.initialize({});
    synchronize();
  }

  Allocator const& allocator() const { return allocator_; }

  /// Whether every invariant holds, `live` blocks are there, and the heap ignored `ignored` frees.
  bool is_quiet(u64 live, u64 ignored = 0) const {
    auto const counts = allocator_.snapshot().statistics();
    return allocator_.snapshot().check_invariants().empty() && counts.live_blocks == live &&
           counts.double_frees + counts.foreign_frees == ignored;
  }
  void expect_quiet(u64 live, u64 ignored = 0) const {
    for (auto const& line : allocator_.snapshot().check_invariants()) ADD_FAILURE() << line;
    auto const counts = allocator_.snapshot().statistics();
    EXPECT_EQ(counts.live_blocks, live);
    EXPECT_EQ(counts.double_frees + counts.foreign_frees, ignored);
  }

 private:
  device_buffer<u8> memory_;
  Allocator allocator_;
};

/// Kernel: every thread asks once.
struct create_each {
  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, u64 bytes, void** blocks) const {
    blocks[global_thread_index()] = heap.create(bytes);
  }
};

/// Kernel: every thread frees one block, if there is one.
struct destroy_each {
  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, void** blocks) const {
    heap.destroy(blocks[global_thread_index()]);
  }
};

/// What the threads that asked once each for `bytes` got, nullptr for those refused.
template <class Allocator>
std::vector<void*> allocate(quiet_pool<Allocator> const& pool, launch_shape shape, u64 bytes) {
  device_buffer<void*> const blocks(u64{shape.blocks} * shape.threads);
  launch(shape, create_each{}, pool.allocator(), bytes, blocks.data());
  synchronize();
  return blocks.to_host();
}

template <class Allocator>
void release(quiet_pool<Allocator> const& pool, std::vector<void*> const& blocks, launch_shape shape) {
  device_buffer<void*> const list{blocks};
  launch(shape, destroy_each{}, pool.allocator(), list.data());
  synchronize();
}
/// One thread block asks.
template <class Allocator>
void release(quiet_pool<Allocator> const& pool, std::vector<void*> const& blocks) {
  if (!blocks.empty()) release(pool, blocks, {1, static_cast<u32>(blocks.size())});
}

/// A block that a thread got, and how many of its bytes are its own.
struct placed_block {
  u64 address, usable;
};

/// Kernel: one thread asks for sizes (with alignments, if there are any) one after the other,
/// keeping each.
struct create_in_order {
  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, u64 const* bytes, u64 const* alignments, u32 count,
                                  placed_block* placed) const {
    for (u32 i = 0; i < count; ++i) {
      void* const memory = alignments ? heap.create_aligned(alignments[i], bytes[i]) : heap.create(bytes[i]);
      placed[i] = {reinterpret_cast<u64>(memory), heap.usable_size(memory)};
    }
  }
};

template <class Allocator>
std::vector<placed_block> ask(quiet_pool<Allocator> const& pool, std::vector<u64> const& bytes,
                              std::vector<u64> const& alignments = {}) {
  device_buffer<u64> const sizes{bytes}, starts{alignments.empty() ? bytes : alignments};
  device_buffer<placed_block> const placed(bytes.size());
  launch({1, 1}, create_in_order{}, pool.allocator(), static_cast<u64 const*>(sizes.data()),
         alignments.empty() ? nullptr : static_cast<u64 const*>(starts.data()), static_cast<u32>(bytes.size()),
         placed.data());
  synchronize();
  return placed.to_host();
}

/// Kernel: one thread frees addresses, whatever they are, one after the other.
struct destroy_in_order {
  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, u64 const* addresses, u32 count) const {
    for (u32 i = 0; i < count; ++i) heap.destroy(reinterpret_cast<void*>(addresses[i]));
  }
};

template <class Allocator>
void free_addresses(quiet_pool<Allocator> const& pool, std::vector<u64> const& addresses) {
  device_buffer<u64> const list{addresses};
  launch({1, 1}, destroy_in_order{}, pool.allocator(), static_cast<u64 const*>(list.data()),
         static_cast<u32>(addresses.size()));
  synchronize();
}

/// What lanes saw.
struct lanes_report {
  u32 served = 0;
  u32 refused = 0;
  u32 broken = 0;  ///< blocks in which another lane wrote
};

/// Pauses this many times.
WARPHEAP_DEVICE inline void pause_for(u32 turns) {
  for (; turns != 0; --turns) simt::pause(1);
}

/// Sizes in [least, most], and `least` doubled up to `doublings` times.
struct sizes_between {
  u32 least, most;
  WARPHEAP_DEVICE u32 draw(random_sequence& random) const { return least + random.below(most - least + 1); }
};
struct doubled_sizes {
  u32 least, doublings;
  WARPHEAP_DEVICE u32 draw(random_sequence& random) const { return least << random.below(doublings + 1); }
};

/// Every lane keeps up to `held_max` blocks of drawn sizes, of 4 bytes at least, writes a tag into
/// both ends of each, and checks the tags before it frees. All are freed at the end.
template <class Sizes>
struct tagged_churn {
  static constexpr u32 most_held = 4;
  u32 rounds;
  u32 held_max = 3;
  Sizes sizes;
  u64 seed;

  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, lanes_report* report) const {
    u32 const me = static_cast<u32>(global_thread_index());
    random_sequence random{seed * 1000 + me};
    u32* held[most_held] = {};
    u32 words[most_held] = {};
    for (u32 round = 0; round < rounds + held_max; ++round) {
      u32 const slot = round % held_max, tag = me * 64 + slot + 1;
      if (held[slot]) {
        if (held[slot][0] != tag || held[slot][words[slot] - 1] != tag)
          atomic_ref<u32>{report->broken}.fetch_add(1, order::relaxed);
        heap.destroy(held[slot]);
      }
      held[slot] = nullptr;
      // A lane that may hold several blocks sometimes holds fewer.
      if (round >= rounds || (held_max > 1 && random.below(4) == 0)) continue;
      u32 const bytes = sizes.draw(random);
      words[slot] = bytes / 4;
      held[slot] = static_cast<u32*>(heap.create(bytes));
      atomic_ref<u32>{held[slot] ? report->served : report->refused}.fetch_add(1, order::relaxed);
      if (!held[slot]) continue;
      held[slot][0] = tag;
      held[slot][words[slot] - 1] = tag;
    }
  }
};

/// Runs a kernel that reports what lanes saw.
template <class Allocator, class Body>
lanes_report report_of(quiet_pool<Allocator> const& pool, launch_shape shape, Body body) {
  device_buffer<lanes_report> const report(1);
  launch(shape, body, pool.allocator(), report.data());
  synchronize();
  return report[0];
}

/// A churn in the pools of `make_pool()` under many schedules. Lanes are served and find no other
/// lane's writes in their blocks; `expect_after(pool)` says what must hold then.
template <class MakePool, class Sizes, class ExpectAfter>
void expect_clean_churn(unsigned seeds, MakePool make_pool, launch_shape shape, u32 rounds, Sizes sizes,
                        ExpectAfter expect_after) {
  for_each_schedule(seeds, [&] {
    auto const pool = make_pool();
    auto const report =
        report_of(pool, shape, tagged_churn<Sizes>{.rounds = rounds, .sizes = sizes, .seed = schedule_seed() + 1});
    EXPECT_EQ(report.broken, 0u);
    EXPECT_GT(report.served, 0u);
    expect_after(pool);
  });
}

}  // namespace warpheap::test
