// SPDX-License-Identifier: Apache-2.0
// The memory of vectors: when it grows and by how much, what they refuse, how elements are aligned,
// and how vectors pass from lane to lane and from kernel to kernel.
#include "warpheap/container/vector.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "container/heaps.hpp"
#include "support/schedules.hpp"
#include "warpheap/adaptor/checked.hpp"
#include "warpheap/all.hpp"
#include "warpheap/heap/heap_set.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/platform/shared_memory.hpp"

namespace vector_memory_test {

using namespace warpheap;
using namespace warpheap::literals;
using namespace warpheap::test;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

/// Kernel: pushes `count` elements, and counts how often the elements moved.
struct push_many {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, u32 count, vector<u32>* all, u32* moves) const {
    vector<u32> mine;
    for (u32 i = 0; i < count; ++i) {
      u32 const* const before = mine.data();
      if (!mine.push_back(heap, i)) break;
      if (mine.data() != before) ++*moves;
    }
    *all = mine;
  }
};

struct pushed {
  u32 size, capacity, moves;
};

template <class Ref>
pushed push(Ref ref, u32 count) {
  device_buffer<vector<u32>> const all(1);
  device_buffer<u32> const moves(1);
  launch({1, 1}, push_many{}, ref, count, all.data(), moves.data());
  synchronize();
  auto const found = all[0].to_host();
  for (u32 i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], i);
  return {all[0].size(), all[0].capacity(), moves[0]};
}

struct reserve_five {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, u32* capacity) const {
    vector<u32> mine;
    mine.reserve(heap, 5);
    *capacity = mine.capacity();
    mine.destroy(heap);
  }
};

template <class Ref>
u32 capacity_for_five(Ref ref) {
  device_buffer<u32> const capacity(1);
  launch({1, 1}, reserve_five{}, ref, capacity.data());
  synchronize();
  return capacity[0];
}

TEST(Vector, DoublesAndUsesAllOfItsBlock) {
  heap const heap{4_MiB};
  auto const one = push(heap.ref(), 1);
  EXPECT_EQ(one.capacity, 4u) << "the smallest block";
  auto const many = push(heap.ref(), 1000);
  EXPECT_EQ(many.size, 1000u);
  EXPECT_EQ(many.capacity, 1024u);
  EXPECT_LE(many.moves, 9u) << "4 to 1024";
  EXPECT_LE(push(bare_ref<>{heap.ref()}, 1000).moves, 9u) << "a heap that tells no sizes";
  EXPECT_EQ(capacity_for_five(heap.ref()), 8u) << "of 32 bytes";
  EXPECT_EQ(capacity_for_five(bare_ref<>{heap.ref()}), 5u);
}

TEST(Vector, TakesWhatItNeedsWhereThereIsNoMemoryToDouble) {
  heap const heap{4_MiB};
  // 64 elements fit 256 bytes; the next 512 are refused, and 260 to 300 are not.
  auto const found = push(limited_ref{heap.ref(), 300}, 1000);
  EXPECT_EQ(found.size, 75u);
  EXPECT_EQ(found.capacity, 75u);
}

/// Kernel: appends large arrays that lie in the lane's own memory.
struct append_locals {
  WARPHEAP_DEVICE void operator()(heap_ref heap, u32* wrong) const {
    u32 const me = static_cast<u32>(global_thread_index());
    u32 locals[100];
    for (u32 i = 0; i < 100; ++i) locals[i] = me * 1000 + i;
    vector<u32> mine;
    for (u32 round = 0; round < 3; ++round)
      if (!mine.append(heap, locals, 100 - me % 2)) ++wrong[me];
    for (u32 i = 0; i < mine.size(); ++i)
      if (mine[i] != me * 1000 + i % (100 - me % 2)) ++wrong[me];
    mine.destroy(heap);
  }
};

TEST(Vector, AppendsWhatNoOtherLaneCanRead) {
  heap const heap{4_MiB};
  device_buffer<u32> const wrong(64);
  launch({1, 64}, append_locals{}, heap.ref(), wrong.data());
  synchronize();
  EXPECT_THAT(wrong.to_host(), testing::Each(0u));
}

/// Every block has the same address, which must not be accessed.
struct boundless_ref {
  WARPHEAP_DEVICE void* malloc(size_t) const { return reinterpret_cast<void*>(u64{16}); }
  WARPHEAP_DEVICE void free(void*) const {}
};

struct ask_for_too_much {
  WARPHEAP_DEVICE void operator()(u32* answers) const {
    boundless_ref const heap;
    vector<u8> bytes;
    answers[0] = bytes.extend(heap, 3'000'000'000u) != nullptr;
    answers[1] = bytes.extend(heap, 3'000'000'000u) == nullptr;
    answers[2] = bytes.extend(heap, ~u64{0}) == nullptr;
    answers[3] = !bytes.resize(heap, u64{1} << 32, 0) && !bytes.reserve(heap, u64{1} << 32);
    answers[4] = !bytes.append(heap, bytes.data(), ~u64{0} - 7) && bytes.append(heap, bytes.data(), 0);
    answers[5] = bytes.size() == 3'000'000'000u;
    vector<u64> words;
    answers[6] = words.extend(heap, vector<u64>::most) && words.capacity() == vector<u64>::most;
    answers[7] = !words.push_back(heap, 1);
  }
};

TEST(Vector, RefusesMoreThanItCanCount) {
  device_buffer<u32> const answers(8);
  launch({1, 1}, ask_for_too_much{}, answers.data());
  synchronize();
  EXPECT_THAT(answers.to_host(), ElementsAre(1, 1, 1, 1, 1, 1, 1, 1));
}

struct alignas(64) line {
  u32 number;
};

/// Kernel: pushes lines, and counts those at other places than they need.
struct push_lines {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, u32* wrong) const {
    u64 const me = global_thread_index();
    vector<line> lines;
    for (u32 i = 0; i < 5 + me % 9; ++i) {
      if (!lines.push_back(heap, {i})) ++wrong[me];
      if (reinterpret_cast<u64>(lines.data()) % 64 != 0) ++wrong[me];
    }
    lines.shrink_to_fit(heap);
    for (u32 i = 0; i < lines.size(); ++i)
      if (lines[i].number != i || reinterpret_cast<u64>(&lines[i]) % 64 != 0) ++wrong[me];
    lines.destroy(heap);
  }
};

template <class Heap>
void expect_lines_aligned() {
  Heap const heap{4_MiB};
  device_buffer<u32> const wrong(40);
  launch({1, 40}, push_lines{}, heap.ref(), wrong.data());
  synchronize();
  for (u32 const each : wrong.to_host()) EXPECT_EQ(each, 0u);
  EXPECT_EQ(heap.statistics().live_blocks, 0u);
}

TEST(Vector, AlignsElements) {
  for_each_schedule(6, [] {
    expect_lines_aligned<heap>();
    expect_lines_aligned<coalescing_heap>();  // by aligned_alloc
    expect_lines_aligned<checked<heap>>();
  });
}

/// A tree: vectors of what holds vectors.
struct branch {
  u32 number;
  vector<branch> children;
};

/// Kernel: each lane grows a vector of its own in zeroed memory.
struct fill {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, vector<branch>* trees) const {
    u64 const me = global_thread_index();
    for (u32 i = 0; i < me % 7 + 1; ++i) {
      trees[me].push_back(heap, {i, {}});
      for (u32 j = 0; j < i; ++j) trees[me].back().children.push_back(heap, {j, {}});
    }
  }
};

/// Kernel of another shape: takes them apart, each by a lane that did not make it.
struct take_apart {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, vector<branch>* trees, u32 count, u32* wrong) const {
    u64 const me = global_thread_index();
    if (me >= count) return;
    u64 const other = count - 1 - me;
    vector<branch>& tree = trees[other];
    if (tree.size() != other % 7 + 1) ++wrong[me];
    for (u32 i = 0; i < tree.size(); ++i) {
      if (tree[i].number != i || tree[i].children.size() != i) ++wrong[me];
      tree[i].children.destroy(heap);
    }
    tree.destroy(heap);
  }
};

template <class Set, class Ref>
void expect_moves(Set const& heap, Ref ref) {
  device_buffer<vector<branch>> const trees(80);
  device_buffer<u32> const wrong(80);
  launch({2, 40}, fill{}, ref, trees.data());
  launch({1, 96}, take_apart{}, ref, trees.data(), 80u, wrong.data());
  synchronize();
  for (u32 const each : wrong.to_host()) EXPECT_EQ(each, 0u);
  for (auto const& tree : trees.to_host()) EXPECT_EQ(tree.capacity(), 0u);
  if constexpr (requires { heap.statistics(); }) {
    EXPECT_EQ(heap.statistics().live_blocks, 0u);
  }
}

TEST(Vector, IsEmptyInZeroedMemoryAndMovesFromKernelToKernel) {
  for_each_schedule(10, [] {
    heap const heap{4_MiB};
    expect_moves(heap, heap.ref());
    heap_set const set{4_MiB};
    expect_moves(set, set.ref(0));
  });
}

/// Kernel: lane 0 of each warp's vector lies in shared memory, and goes from lane to lane, each of
/// which makes it longer.
struct pass_round {
  WARPHEAP_DEVICE void operator()(heap_ref heap, u32* wrong) const {
    u32 const me = simt::thread_index(), threads = simt::block_dim();
    auto& passed = *static_cast<vector<u32>*>(simt::dynamic_shared());
    if (me == 0) passed = {};
    for (u32 turn = 0; turn < threads; ++turn) {
      simt::sync_block();
      if (turn == me && !passed.push_back(heap, me)) ++wrong[me];
    }
    simt::sync_block();
    if (me != 1) return;
    for (u32 i = 0; i < threads; ++i)
      if (passed[i] != i) ++wrong[i];
    passed.destroy(heap);
  }
};

TEST(Vector, PassesFromLaneToLaneThroughSharedMemory) {
  for_each_schedule(20, [] {
    heap const heap{4_MiB};
    device_buffer<u32> const wrong(40);
    launch({.blocks = 3, .threads = 40, .shared_bytes = sizeof(vector<u32>)}, pass_round{}, heap.ref(), wrong.data());
    synchronize();
    for (u32 const each : wrong.to_host()) EXPECT_EQ(each, 0u);
    EXPECT_EQ(heap.statistics().live_blocks, 0u);
  });
}

constexpr u32 first_line = __LINE__ + 4;
struct make_errors {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap) const {
    vector<u64> kept, grown, longer;
    kept.push_back(heap, 1);
    grown.push_back(heap, 1);
    longer.reserve(heap, 8, "a library");
    u64* const dangling = grown.data();
    grown.resize(heap, 9);
    dangling[0] = 2;
    vector<u64> copy = grown;
    grown.destroy(heap);
    copy.destroy(heap);
    longer.data()[8] = 1;
    longer.destroy(heap);
  }
};

TEST(Vector, TellsACheckedHeapTheLineOfTheCall) {
  checked<heap> heap{1_MiB};
  launch({1, 1}, make_errors{}, heap.ref());
  synchronize();
  auto const here = [](u32 line) { return "vector_memory_test.cpp:" + std::to_string(first_line + line); };
  auto const leaks = heap.leaks();
  ASSERT_EQ(leaks.size(), 1u);
  EXPECT_THAT(leaks[0].describe(), HasSubstr(here(1)));
  heap.check_blocks();
  auto const reports = heap.reports();
  ASSERT_EQ(reports.size(), 3u);
  EXPECT_THAT(reports[0].describe(), AllOf(HasSubstr("double free"), HasSubstr("allocated"), HasSubstr(here(5)),
                                           HasSubstr(here(8)), HasSubstr(here(9))));
  EXPECT_THAT(reports[1].describe(), AllOf(HasSubstr("overrun"), HasSubstr(" in a library"), HasSubstr(here(11))));
  EXPECT_THAT(reports[2].describe(),
              AllOf(HasSubstr("use after free: 8 bytes from byte 0 on"), HasSubstr(here(2)), HasSubstr(here(5))));
}

}  // namespace vector_memory_test
