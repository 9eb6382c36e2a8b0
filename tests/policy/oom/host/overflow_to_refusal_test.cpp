// SPDX-License-Identifier: Apache-2.0
// A nullptr from a heap with another behind it means that in neither a block stayed free during the
// whole call. Tested with two pools of one block and a few lanes: all holdings and all refusals are
// recorded by the clock that all lanes share here, and compared afterwards. A first heap that
// refuses without a look is caught.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "support/schedules.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/util/random.hpp"
#include "warpheap/warpheap.hpp"

namespace overflow_refusal_test {

using namespace warpheap;

struct block_pool {
  u32 taken;
  u32 slow;  ///< calls take up to this many pauses before they look
  u64 unused;
  u64 block[2];
  u64 taken_at;  ///< when it was last taken
};

/// A heap of one block. One that `gives_up` refuses some calls without a look.
template <bool GivesUp = false>
struct single_block {
  static constexpr char const* name = "single_block";
  static constexpr allocator_traits traits{.alignment = 16, .exact_out_of_memory = true};
  static constexpr bool supports_mixed_heaps = true;

  block_pool* at = nullptr;

  void* create(size_t bytes) const {
    if (!bytes) return nullptr;
    dawdle();
    if (GivesUp && mix(simt::clock()) % 4 == 0) return nullptr;
    if (atomic_ref<u32>{at->taken}.exchange(1, order::acquire) != 0) return nullptr;
    at->taken_at = simt::clock();
    return at->block;
  }
  void destroy(void* memory) const {
    if (!memory) return;
    dawdle();
    atomic_ref<u32>{at->taken}.exchange(0, order::release);
  }

  void dawdle() const {
    for (u64 wait = mix(simt::clock() + global_thread_index()) % at->slow; wait; --wait) simt::pause(1);
  }
};

using second =
    allocator<single_block<>, distribution::none, oom::return_null, reserve_pool::device_memory, alignment::shrink<16>>;
template <class First>
using both =
    allocator<First, distribution::none, oom::overflow_to<second>, reserve_pool::device_memory, alignment::shrink<16>>;

struct interval {
  u64 from, to;
};

/// The record of one lane: when it held which pool's block, from the taking until its free had
/// returned, and when a refused call was under way.
struct diary {
  static constexpr u32 rounds = 5;
  interval held[2][rounds];
  interval refused[rounds];
};

/// Every lane asks, waits, and frees, again and again.
struct come_and_go {
  template <class Heap>
  void operator()(Heap heap, block_pool const* pools, u64 seed, diary* diaries) const {
    random_sequence random{seed * 64 + global_thread_index()};
    auto& mine = diaries[global_thread_index()];
    for (u32 round = 0; round < diary::rounds; ++round) {
      for (u32 wait = random.below(8); wait; --wait) simt::pause(1);
      u64 const began = simt::clock();
      void* const memory = heap.malloc(16);
      if (!memory) {
        mine.refused[round] = {began, simt::clock()};
        continue;
      }
      u32 const pool = memory == pools[1].block ? 1 : 0;
      u64 const taken = pools[pool].taken_at;
      for (u32 wait = random.below(8); wait; --wait) simt::pause(1);
      heap.free(memory);
      mine.held[pool][round] = {taken, simt::clock()};
    }
  }
};

/// Whether the block was owned at some moment of `call`.
bool held_within(interval call, std::vector<interval> const& held) {
  return std::any_of(held.begin(), held.end(),
                     [&](interval each) { return std::max(call.from, each.from) <= std::min(call.to, each.to); });
}

/// Refusals of one run; none if one of them came while a block stayed free during the whole call.
template <class First>
std::optional<u64> sound_refusals(u64 seed) {
  auto run = test::schedule_of(seed);
  run.sm_count = 6;
  // The claim is about moments of one clock, which memory orders do not know.
  run.weak_memory = false;
  host::scoped_execution const use{run};
  constexpr launch_shape shapes[] = {{5, 1}, {3, 2}, {1, 6}};
  device_buffer<block_pool> const pools(2);
  device_buffer<u64> const state(oom::overflow_to<second>::state_bytes / 8);
  device_buffer<diary> const diaries(6);
  pools.data()[0].slow = 1 + static_cast<u32>(seed % 3);
  pools.data()[1].slow = 1 + static_cast<u32>(seed % 12);
  both<First> const heap{First{pools.data()},
                         {second{single_block<>{pools.data() + 1}}, {pools.data(), sizeof(block_pool)}, state.data()}};
  launch(shapes[seed / 24 % 3], come_and_go{}, heap, static_cast<block_pool const*>(pools.data()), seed,
         diaries.data());
  synchronize();
  std::vector<interval> held[2];
  for (auto const& each : diaries.to_host())
    for (u32 pool = 0; pool < 2; ++pool)
      held[pool].insert(held[pool].end(), each.held[pool], each.held[pool] + diary::rounds);
  for (auto& intervals : held) std::erase_if(intervals, [](interval const& each) { return each.to == 0; });
  u64 refused = 0;
  for (auto const& each : diaries.to_host())
    for (auto const& call : each.refused) {
      if (call.to == 0) continue;
      ++refused;
      if (!held_within(call, held[0]) || !held_within(call, held[1])) return std::nullopt;
    }
  return refused;
}

TEST(Overflow, RefusesOnlyWhatNeitherHadAllTheTime) {
  u64 refused = 0;
  for (u64 seed = 0; seed < 10'000; ++seed) {
    auto const sound = sound_refusals<single_block<>>(seed);
    ASSERT_TRUE(sound) << "seed " << seed;
    refused += *sound;
  }
  EXPECT_GT(refused, 10'000u);
}

TEST(OverflowMutant, WhoseFirstHeapGivesUpIsCaught) {
  bool caught = false;
  for (u64 seed = 0; seed < 2'000 && !caught; ++seed) caught = !sound_refusals<single_block<true>>(seed);
  EXPECT_TRUE(caught);
}

}  // namespace overflow_refusal_test
