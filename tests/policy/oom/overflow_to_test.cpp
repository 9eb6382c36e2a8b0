// SPDX-License-Identifier: Apache-2.0
// Two heaps as one: the first serves until it is full, every free finds its way back, and nullptr
// says that both are full.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/schedules.hpp"
#include "warpheap/all.hpp"
#include "warpheap/platform/backoff.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/util/random.hpp"

namespace overflow_test {

using namespace warpheap;
using namespace warpheap::literals;
using testing::HasSubstr;

using slabs = creation::slab_bitmap<>;

template <class Oom, class Distribution = distribution::none, class ReservePool = reserve_pool::device_memory>
using over_slabs = allocator<slabs, Distribution, Oom, ReservePool, alignment::shrink<16>>;

using second = over_slabs<oom::return_null, distribution::none, reserve_pool::host_memory>;
using overflowing = over_slabs<oom::overflow_to<second>>;
using overflowing_heap = basic_heap<overflowing>;
using coalesced_in_front = over_slabs<oom::overflow_to<second>, distribution::warp_coalesce>;
using coalesced_behind = over_slabs<oom::overflow_to<over_slabs<oom::return_null, distribution::warp_coalesce>>,
                                    distribution::warp_coalesce>;
using three_deep = over_slabs<oom::overflow_to<overflowing>>;
using before_the_toolkit = over_slabs<oom::overflow_to<toolkit_allocator>>;

static_assert(sizeof(overflowing) == 56 && sizeof(heap_ref) == 16);
static_assert(overflowing::traits.exact_out_of_memory && overflowing::traits.detects_misuse);
static_assert(overflowing::traits.self_aligned_up_to == 4096 && !overflowing::traits.whole_pool);
static_assert(!before_the_toolkit::traits.exact_out_of_memory && !before_the_toolkit::traits.detects_misuse);
static_assert(before_the_toolkit::traits.alignment == 16 && before_the_toolkit::traits.self_aligned_up_to == 0);
static_assert(!coalesced_in_front::traits.exact_out_of_memory && coalesced_in_front::traits.alignment == 16);

/// Asks for `count` blocks one after the other, in one thread.
struct ask_in_turn {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 bytes, void** blocks, u64 count) const {
    for (u64 i = 0; i < count; ++i) blocks[i] = heap.malloc(bytes);
  }
};

struct free_each {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, void* const* blocks, u64 count) const {
    for (u64 i = global_thread_index(); i < count; i += u64{simt::grid_dim()} * simt::block_dim()) heap.free(blocks[i]);
  }
};

template <class Heap>
std::vector<void*> ask(Heap const& heap, u64 bytes, u64 count) {
  device_buffer<void*> const blocks(count);
  launch({1, 1}, ask_in_turn{}, heap.ref(), bytes, blocks.data(), count);
  synchronize();
  return blocks.to_host();
}

template <class Heap>
void free_all(Heap const& heap, std::vector<void*> const& list) {
  device_buffer<void*> const blocks{list};
  launch({2, 40}, free_each{}, heap.ref(), static_cast<void* const*>(blocks.data()), u64{list.size()});
  synchronize();
}

u64 live_in_first(auto const& heap) { return heap.ref().creation().snapshot().statistics().live_blocks; }

TEST(Overflow, FillsTheFirstHeapBeforeTheSecond) {
  test::for_each_schedule(20, [] {
    overflowing_heap heap{1_MiB, basic_heap<second>{2_MiB}};
    EXPECT_EQ(heap.pool_bytes(), 3_MiB);
    EXPECT_EQ(heap.available_slots(16384), 192u);
    auto const blocks = ask(heap, 16384, 193);
    EXPECT_EQ(blocks[192], nullptr);
    auto const first = heap.ref().oom().first();
    for (u64 i = 0; i < 192; ++i) EXPECT_EQ(first.contains(blocks[i]), i < 64) << i;
    EXPECT_EQ(heap.available_slots(16384), 0u);
    auto const counts = heap.statistics();
    EXPECT_EQ(counts.live_blocks, 192u);
    EXPECT_EQ(counts.pool_bytes, 3_MiB);
    EXPECT_EQ(counts.failures, 1u) << "what the first refuses and the second serves is no failure";
    free_all(heap, blocks);
    EXPECT_EQ(live_in_first(heap), 0u);
    EXPECT_EQ(heap.second().statistics().live_blocks, 0u);
    EXPECT_EQ(heap.statistics().foreign_frees, 0u);
    EXPECT_EQ(heap.available_slots(16384), 192u);
    EXPECT_THAT(heap.check_invariants(), testing::IsEmpty());
  });
}

TEST(Overflow, SplitsAHeapMadeWithOneSize) {
  constexpr oom::overflow_config three_quarters{.second_sixteenths = 12};
  basic_heap<over_slabs<oom::overflow_to<second, three_quarters>>> const heap{4_MiB};
  EXPECT_EQ(heap.ref().creation().pool_bytes(), 1_MiB);
  EXPECT_EQ(heap.second().pool_bytes(), 3_MiB);
  EXPECT_THAT(heap.info(), HasSubstr("oom overflow_to"));
  EXPECT_THAT(heap.info(), HasSubstr("second heap: creation slab_bitmap"));
  EXPECT_THAT(heap.info(), HasSubstr("host_memory"));
}

TEST(Overflow, ResetsAndMovesBoth) {
  overflowing_heap made{1_MiB, basic_heap<second>{1_MiB}};
  auto const blocks = ask(made, 16384, 129);
  overflowing_heap heap{std::move(made)};
  EXPECT_EQ(heap.statistics().live_blocks, 128u);
  EXPECT_EQ(heap.statistics().failures, 1u);
  heap.reset();
  synchronize();
  EXPECT_EQ(heap.statistics().live_blocks, 0u);
  EXPECT_EQ(heap.statistics().failures, 0u);
  EXPECT_EQ(ask(heap, 16384, 128)[127] != nullptr, true);
}

/// Every thread grows a block by sizes of its own; its contents stay, whichever heap it lies in.
struct grow {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 rounds, u64* broken, u64* moves) const {
    u64 const me = global_thread_index();
    u64 words = 2;
    auto* block = static_cast<u64*>(heap.malloc(words * 8));
    for (u64 i = 0; block && i < words; ++i) block[i] = me + i;
    for (u64 round = 0; block && round < rounds; ++round) {
      u64 const larger = words + 1 + mix(me ^ round) % 300;
      auto* const grown = static_cast<u64*>(heap.realloc(block, larger * 8));
      if (!grown) break;
      bool whole = heap.owns(grown) && heap.usable_size(grown) >= larger * 8;
      for (u64 i = 0; i < words; ++i) whole &= grown[i] == me + i;
      for (u64 i = words; i < larger; ++i) grown[i] = me + i;
      if (!whole) atomic_ref<u64>{*broken}.fetch_add(1, order::relaxed);
      bool const moves_over = heap.oom().first_holds(block) != heap.oom().first_holds(grown);
      if (moves_over) atomic_ref<u64>{*moves}.fetch_add(1, order::relaxed);
      block = grown;
      words = larger;
    }
    heap.free(block);
  }
};

template <class Allocator>
void expect_contents_to_move_along() {
  u64 all_moves = 0;
  test::for_each_schedule(25, [&] {
    basic_heap<Allocator> const heap{1_MiB};
    device_buffer<u64> const broken(1), moves(1);
    launch({3, 50}, grow{}, heap.ref(), u64{8}, broken.data(), moves.data());
    synchronize();
    EXPECT_EQ(broken[0], 0u);
    EXPECT_EQ(heap.statistics().live_blocks, 0u);
    EXPECT_EQ(live_in_first(heap), 0u);
    EXPECT_EQ(heap.statistics().double_frees + heap.statistics().foreign_frees, 0u);
    EXPECT_THAT(heap.check_invariants(), testing::IsEmpty());
    all_moves += moves[0];
  });
  EXPECT_GT(all_moves, 0u) << "blocks moved from one heap to the other";
}

TEST(Overflow, ReallocatesFromOneHeapToTheOther) { expect_contents_to_move_along<overflowing>(); }
TEST(Overflow, WorksBehindCombinedRequests) { expect_contents_to_move_along<coalesced_in_front>(); }
TEST(Overflow, WorksWithCombinedRequestsInBoth) { expect_contents_to_move_along<coalesced_behind>(); }
TEST(Overflow, WorksThreeDeep) { expect_contents_to_move_along<three_deep>(); }

TEST(Overflow, ListsTheBlocksOfAllHeapsInOrder) {
  basic_heap<three_deep> const heap{4_MiB};
  auto blocks = ask(heap, 100'000, 36);
  EXPECT_GT(heap.second().second().statistics().live_blocks, 0u);
  std::erase(blocks, nullptr);
  std::sort(blocks.begin(), blocks.end());
  std::vector<void*> listed;
  heap.for_each_live([&](void* memory, size_t) { listed.push_back(memory); });
  EXPECT_EQ(listed, blocks);
}

TEST(Overflow, LeadsToTheToolkitsHeap) {
  basic_heap<before_the_toolkit> const heap{2_MiB};
  auto const blocks = ask(heap, 1000, 1500);
  auto const first = heap.ref().oom().first();
  u64 const inside =
      static_cast<u64>(std::count_if(blocks.begin(), blocks.end(), [&](void* block) { return first.contains(block); }));
  EXPECT_EQ(std::count(blocks.begin(), blocks.end(), nullptr), 0);
  EXPECT_LT(inside, 1500u);
  EXPECT_EQ(live_in_first(heap), inside);
  free_all(heap, blocks);
  EXPECT_EQ(live_in_first(heap), 0u);
}

/// With as many blocks as lanes that hold at most one each, a lane that keeps asking is served in
/// the end, wherever the free blocks are.
struct take_turns {
  WARPHEAP_DEVICE void operator()(overflowing heap, u64 rounds, u64 bytes, u64* served) const {
    for (u64 round = 0; round < rounds; ++round) {
      void* memory = nullptr;
      for (backoff wait; !memory; wait.while_working()) memory = heap.malloc(bytes);
      atomic_ref<u64>{*served}.fetch_add(1, order::relaxed);
      heap.free(memory);
    }
  }
};

TEST(Overflow, ServesWhoeverAsksAgainFromEither) {
  test::for_each_schedule(400, [] {
    overflowing_heap const heap{1_MiB};
    auto const ballast = ask(heap, 16384, 64);
    free_all(heap, {ballast[0], ballast[1], ballast[40], ballast[41]});
    device_buffer<u64> const served(1);
    launch({4, 1}, take_turns{}, heap.ref(), u64{6}, u64{16384}, served.data());
    synchronize();
    EXPECT_EQ(served[0], 24u);
    EXPECT_EQ(heap.statistics().live_blocks, 60u);
  });
}

}  // namespace overflow_test
