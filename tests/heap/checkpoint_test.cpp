// SPDX-License-Identifier: Apache-2.0
// What restore() makes of heaps that have changed since save(), and what it refuses. Every creation
// policy is in tests/conformance/checks/restoring.hpp, and files are in heap_image_test.cpp.
#include "warpheap/heap/checkpoint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>

#include "linked_lists.hpp"
#include "support/message_of.hpp"
#include "support/numbered_blocks.hpp"
#include "warpheap/heap/growing_heap.hpp"
#include "warpheap/heap/growth_service.hpp"
#include "warpheap/heap/persistent_heap.hpp"
#include "warpheap/policy/creation/tbuddy.hpp"
#include "warpheap/policy/creation/throughput.hpp"
#include "warpheap/warpheap.hpp"

namespace checkpoint_test {

using namespace warpheap;
using namespace warpheap::literals;
using namespace warpheap::test;
using testing::HasSubstr;

size_t const unit = reserve_pool::growing::granularity();

template <class Heap>
void expect_lists(Heap const& heap, list_table const* table) {
  EXPECT_EQ(spoilt_lists(table), 0u);
  EXPECT_EQ(heap.statistics().live_blocks, blocks_of_lists);
  EXPECT_THAT(heap.check_invariants(), testing::IsEmpty());
}

/// After what a restored heap has: it serves, and its blocks can be freed.
template <class Heap>
void expect_goes_on(Heap const& heap, list_table* table) {
  auto* const more = build_lists(heap);
  EXPECT_EQ(spoilt_lists(more), 0u);
  EXPECT_EQ(spoilt_lists(table), 0u) << "as its blocks are not handed out again";
  free_lists(heap, more);
  free_lists(heap, table);
  EXPECT_EQ(heap.statistics().live_blocks, 2u) << "the two tables";
  EXPECT_EQ(heap.statistics().double_frees + heap.statistics().foreign_frees, 0u);
  EXPECT_THAT(heap.check_invariants(), testing::IsEmpty());
}

TEST(Checkpoint, RollsAHeapBackAnyNumberOfTimes) {
  heap heap{2_MiB};
  auto* const table = build_lists(heap);
  auto const image = save(heap);
  for (int round = 0; round < 3; ++round) {
    spoil_lists(heap, table);
    EXPECT_EQ(spoilt_lists(table), list_count);
    restore(heap, image);
    expect_lists(heap, table);
  }
  heap.reset();
  restore(heap, image);
  expect_lists(heap, table);
  expect_goes_on(heap, table);
}

/// A heap of which every block of 256 bytes is taken.
struct full_heap {
  static constexpr u32 words = 32;

  full_heap() {
    for (u64 i = 0; i < blocks.size(); i += 64)
      run({1, 64}, take_numbered{}, heap.ref(), u64{words}, blocks.data() + i);
  }
  u64 damaged_of_freed() const {
    device_buffer<u64> const wrong(1);
    for (u64 i = 0; i < blocks.size(); i += 64)
      run({1, 64}, verify_numbered_and_free{}, heap.ref(), u64{words}, blocks.data() + i, wrong.data());
    return wrong[0];
  }

  warpheap::heap heap{1_MiB};
  device_buffer<u64*> blocks{1_MiB / (8 * words) + 64};
};

TEST(Checkpoint, KeepsAFullHeapFull) {
  full_heap full;
  u64 const live = full.heap.statistics().live_blocks;
  EXPECT_EQ(full.heap.available_slots(256), 0u);
  EXPECT_GE(live, 4000u);
  auto const image = save(full.heap);
  EXPECT_EQ(full.damaged_of_freed(), 0u);
  EXPECT_EQ(full.heap.statistics().live_blocks, 0u);
  restore(full.heap, image);
  EXPECT_EQ(full.heap.available_slots(256), 0u);
  EXPECT_EQ(full.heap.statistics().live_blocks, live);
  EXPECT_THAT(full.heap.check_invariants(), testing::IsEmpty());
  EXPECT_EQ(full.damaged_of_freed(), 0u);
  EXPECT_EQ(full.heap.statistics().live_blocks, 0u);
}

TEST(Checkpoint, KeepsAnEmptyHeapEmpty) {
  heap heap{1_MiB};
  u64 const fresh = heap.available_slots(64);
  auto const image = save(heap);
  build_lists(heap);
  restore(heap, image);
  EXPECT_EQ(heap.statistics().live_blocks, 0u);
  EXPECT_EQ(heap.available_slots(64), fresh);
  EXPECT_THAT(heap.check_invariants(), testing::IsEmpty());
}

using overflowing = basic_heap<allocator<creation::slab_bitmap<>, distribution::none, oom::overflow_to<heap_ref>,
                                         reserve_pool::device_memory, alignment::shrink<16>>>;

TEST(Checkpoint, TakesTheHeapBehindAlong) {
  overflowing heap{2_MiB};
  device_buffer<u64*> const blocks(1536);
  run({24, 64}, take_numbered{}, heap.ref(), u64{128}, blocks.data());  // 1.5 MiB
  auto* const table = build_lists(heap);
  auto const image = save(heap);
  EXPECT_GT(image.bytes(), 2_MiB);
  EXPECT_GE(heap.second().statistics().live_blocks, 500u);
  u64 const live = heap.statistics().live_blocks;
  spoil_lists(heap, table);
  device_buffer<u64> const wrong(1);
  run({24, 64}, verify_numbered_and_free{}, heap.ref(), u64{128}, blocks.data(), wrong.data());
  restore(heap, image);
  EXPECT_EQ(heap.statistics().live_blocks, live);
  EXPECT_EQ(spoilt_lists(table), 0u);
  run({24, 64}, verify_numbered_and_free{}, heap.ref(), u64{128}, blocks.data(), wrong.data());
  EXPECT_EQ(wrong[0], 0u);
  expect_lists(heap, table);
}

TEST(Checkpoint, IsTakenBackByAnotherHeapInTheSamePlace) {
  using placed = basic_heap<allocator<creation::slab_bitmap<>, distribution::none, oom::return_null,
                                      reserve_pool::external, alignment::shrink<16>>>;
  device_buffer<u8> const memory(2_MiB);
  auto first = std::make_unique<placed>(memory.data() + 5, memory.size() - 5);
  auto* const table = build_lists(*first);
  auto const image = save(*first);
  first.reset();
  backend::fill_bytes(memory.data(), 0xa7, memory.size());
  placed second{memory.data() + 5, memory.size() - 5};
  restore(second, image);
  expect_lists(second, table);
  expect_goes_on(second, table);
}

TEST(Checkpoint, OfAnotherHeapIsRefusedAndChangesNothing) {
  using padded = basic_heap<allocator<creation::slab_bitmap<>, distribution::none, oom::return_null,
                                      reserve_pool::device_memory, alignment::shrink<32>>>;
  heap saved{1_MiB}, other{1_MiB}, larger{2_MiB};
  padded differs{1_MiB};
  auto const image = save(saved);
  auto* const table = build_lists(other);
  auto const refusal = [&](auto& heap) { return message_of<std::invalid_argument>([&] { restore(heap, image); }); };
  EXPECT_THAT(refusal(other), testing::AllOf(HasSubstr("restore: the image is of "), HasSubstr(" bytes at 0x"),
                                             HasSubstr(warpheap::detail::address_text(saved.handle()).substr(0, 6))));
  EXPECT_THAT(refusal(larger),
              testing::AllOf(HasSubstr("a pool of 1048576 bytes"), HasSubstr("a pool of 2097152 bytes")));
  EXPECT_THAT(refusal(differs), testing::AllOf(HasSubstr("shrink<16>, and"), HasSubstr("shrink<32>")));
  EXPECT_THAT(message_of<std::invalid_argument>([&] { restore<growing_heap>(image); }),
              testing::AllOf(HasSubstr("reserve_pool device_memory"), HasSubstr("reserve_pool growing")));
  expect_lists(other, table);
}

TEST(Checkpoint, OfAPoolThatHasGrownSinceLeavesItTheMemory) {
  growing_heap heap{growth{.initial = unit, .limit = 16 * unit, .chunk = unit}};
  auto* const table = build_lists(heap);
  auto const image = save(heap);
  EXPECT_LT(image.bytes(), 2 * unit + heap.metadata_bytes());
  heap.grow(3 * unit);
  u64 const slots = heap.available_slots(unit);
  device_buffer<u64*> const blocks(64);
  run({1, 64}, take_numbered{}, heap.ref(), u64{unit / 64}, blocks.data());
  spoil_lists(heap, table);
  restore(heap, image);
  EXPECT_EQ(heap.committed_bytes(), 4 * unit);
  EXPECT_EQ(heap.statistics().pool_bytes, 4 * unit);
  EXPECT_EQ(heap.available_slots(unit), slots);
  expect_lists(heap, table);
  expect_goes_on(heap, table);
  EXPECT_EQ(heap.grow(unit), unit);
  EXPECT_EQ(heap.available_slots(unit), slots + 1);
}

TEST(Checkpoint, OfAPoolThatWasTrimmedSinceGrowsItAgain) {
  growing_heap heap{growth{.initial = unit, .limit = 16 * unit, .chunk = unit}};
  heap.grow(2 * unit);
  device_buffer<u64*> const large(64);
  run({1, 64}, take_numbered{}, heap.ref(), u64{unit / 8 / 32}, large.data());  // 2 units
  auto* const table = build_lists(heap);
  u64 const live = heap.statistics().live_blocks;
  auto const image = save(heap);
  heap.reset();
  EXPECT_EQ(heap.trim(), 2 * unit);
  restore(heap, image);
  EXPECT_EQ(heap.committed_bytes(), 3 * unit);
  EXPECT_EQ(heap.statistics().live_blocks, live);
  device_buffer<u64> const wrong(1);
  run({1, 64}, verify_numbered_and_free{}, heap.ref(), u64{unit / 8 / 32}, large.data(), wrong.data());
  EXPECT_EQ(wrong[0], 0u);
  expect_lists(heap, table);
  expect_goes_on(heap, table);
}

// As long as a busy machine may need.
constexpr oom::grow_on_demand_config wait_a_minute{.deadline_us = 60'000'000};
using patient_heap = basic_heap<growing_allocator_with<oom::grow_on_demand<wait_a_minute>>>;

// growth.G2
TEST(Checkpoint, LeavesNoCallWaitingForMemoryThatIsThere) {
  patient_heap heap{growth{.initial = unit, .limit = 4 * unit, .chunk = unit}};
  growth_service const service{heap};
  auto const image = save(heap);
  EXPECT_EQ(heap.grow(2 * unit), 2 * unit);
  restore(heap, image);
  device_buffer<u64*> const blocks(64);
  auto const began = std::chrono::steady_clock::now();
  run({1, 64}, take_numbered{}, heap.ref(), u64{unit / 16}, blocks.data());
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds{30});
  EXPECT_EQ(heap.committed_bytes(), 4 * unit);
  EXPECT_EQ(heap.statistics().live_blocks, 8u);
  EXPECT_THAT(heap.check_invariants(), testing::IsEmpty());
}

/// One call for blocks of `units` units.
template <class Heap>
void ask_for(Heap const& heap, u64 units) {
  device_buffer<u64*> const block(1);
  run({1, 1}, take_numbered{}, heap.ref(), units * unit / 8, block.data());
}

TEST(Checkpoint, UndoesNoRequestOfCalls) {
  polled_heap heap{growth{.initial = 0, .limit = 8 * unit, .chunk = unit}};
  ask_for(heap, 1);
  EXPECT_EQ(heap.serve(), unit) << "mapped, and no blocks made of it";
  auto const image = save(heap);
  EXPECT_EQ(heap.available_slots(unit), 1u) << "save() has made them";
  ask_for(heap, 2);
  EXPECT_EQ(heap.poll(), 2 * unit);
  u64 const requested = heap.requested_bytes();
  restore(heap, image);
  EXPECT_EQ(heap.requested_bytes(), requested);
  EXPECT_EQ(heap.poll(), 0u) << "all was answered";
  EXPECT_EQ(heap.available_slots(unit), 3u);
  ask_for(heap, 4);
  EXPECT_EQ(heap.poll(), 4 * unit) << "a new request";
}

TEST(PersistentHeap, BeginsWhereItIsTold) {
  auto* const wanted = backend::address_range{64 * unit}.begin();  // free again at the semicolon
  persistent_heap const heap{1_MiB, reserve_pool::at_address{wanted}};
  EXPECT_EQ(heap.memory()[0].begin, wanted);
  EXPECT_THAT(message_of<out_of_memory>([&] {
                persistent_heap{1_MiB, reserve_pool::at_address{wanted}};
              }),
              HasSubstr(" is taken"));
  EXPECT_THAT(message_of<std::invalid_argument>([&] {
                persistent_heap{1_MiB, reserve_pool::at_address{wanted + 4096}};
              }),
              HasSubstr("no multiple of 2097152"));
  EXPECT_THAT(message_of<out_of_memory>([&] { growing_heap{growth{.limit = 4 * unit, .at = wanted}}; }),
              HasSubstr(" is taken"));
}

template <class Heap>
void expect_returns(std::unique_ptr<Heap> first) {
  auto* const table = build_lists(*first);
  auto const image = save(*first, table);
  EXPECT_EQ(image.root(), table);
  EXPECT_THAT(message_of<out_of_memory>([&] { restore<Heap>(image); }), HasSubstr(" is taken"));
  first.reset();
  auto second = restore<Heap>(image);
  EXPECT_EQ(second.memory()[0].begin, image.address());
  expect_lists(second, table);
  expect_goes_on(second, table);
}

TEST(PersistentHeap, ComesBackWhenItWasGone) {
  expect_returns(std::make_unique<persistent_heap>(1_MiB + 12345));
  expect_returns(std::make_unique<basic_heap<persistent_allocator_of<creation::tbuddy<>>>>(16_MiB - 1));
  expect_returns(std::make_unique<basic_heap<persistent_allocator_of<creation::throughput<>>>>(16_MiB - 1));
  expect_returns(std::make_unique<growing_heap>(growth{.initial = 2 * unit, .limit = 16 * unit}));
}

}  // namespace checkpoint_test
