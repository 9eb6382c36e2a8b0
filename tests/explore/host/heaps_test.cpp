// SPDX-License-Identifier: Apache-2.0
// Every creation policy under schedules that are searched and drawn: short programs of malloc and
// free by a few lanes on pools of a few blocks, held against the contract.
#include <gtest/gtest.h>

#include <string>
#include <vector>
#include <warpheap/explore/heap_program.hpp>

#include "policy/creation/halloc/pool_fixture.hpp"
#include "policy/creation/queue/pool_fixture.hpp"
#include "policy/creation/random_walk/pool_fixture.hpp"
#include "policy/creation/rw_malloc/pool_fixture.hpp"
#include "policy/creation/tbuddy/pool_fixture.hpp"
#include "policy/creation/ualloc/pool_fixture.hpp"
#include "support/explorations.hpp"

namespace explored_heaps_test {

using namespace warpheap;
using explore::heap_program;
using explore::lane_program;
using explore::regions;

/// Says nothing about what stays free.
template <class Creation>
struct no_regions {
  regions operator()(Creation const&) const { return {}; }
};

using slab_bitmap = creation::slab_bitmap<>;
constexpr u64 slab_bytes = 16384;

/// Slabs of one class, and runs of slabs.
struct slabs {
  regions operator()(slab_bitmap const& heap) const {
    return {.first = reinterpret_cast<u64>(heap.table().pool()),
            .bytes = slab_bytes,
            .count = heap.geometry().slabs(),
            .class_of = [](u64 bytes) { return bytes > slab_bytes ? i64{-1} : i64{size_class_of(bytes)}; },
            .capacity = [](i64 size_class) { return u64{block_count(static_cast<u32>(size_class), 14)}; }};
  }
};

struct subject {
  std::string name;
  u64 pool_bytes;
  std::vector<u64> sizes;
};

/// The lanes of a thread block each; on some seeds the lanes of a warp.
launch_shape shape_of(u64 seed, u32 lanes) { return seed % 3 == 2 ? launch_shape{1, lanes} : launch_shape{lanes, 1}; }

/// A program of up to five calls by `lanes` lanes that a seed draws, under schedules of random
/// priorities, with weak memory for one seed in two. So few calls that take 2^18 steps hang.
template <class Creation, class Divide>
explore::exploration_result explore_drawn_program(subject const& what, u64 seed, u32 lanes, u64 schedules,
                                                  Divide divide) {
  constexpr host::mask_policy masks[] = {host::mask_policy::maximal, host::mask_policy::random,
                                         host::mask_policy::singleton};
  explore::heap_exploration<Creation, Divide> body{
      what.pool_bytes, heap_program::drawn(shape_of(seed, lanes), what.sizes, 5, seed), divide};
  return explore::explore({.schedules = schedules,
                           .seed = seed,
                           .masks = masks[seed / 3 % 3],
                           .weak_memory = seed % 2 == 1,
                           .step_cap = u64{1} << 18},
                          body);
}

/// Programs drawn by seed on one of the subjects after the other.
template <class Creation, class Divide>
void expect_drawn_programs_right(std::vector<subject> const& subjects, Divide divide) {
  if (host::detail::under_tsan) return;
  auto const limit = test::limit_of_drawn_programs(subjects.size());
  std::vector<explore::exploration_result> sums(subjects.size());
  double seconds = 0;
  u64 programs = 0;
  for (; programs < limit.programs && seconds < limit.seconds; ++programs) {
    u64 const which = programs % subjects.size(), seed = programs / subjects.size();
    auto const& what = subjects[which];
    u32 const few = 2 + seed / 2 % 3, many = 5 + seed / 2 % 4;
    auto const done = explore_drawn_program<Creation>(what, seed, seed % 8 >= 4 ? many : few, limit.schedules, divide);
    ASSERT_FALSE(done.fault) << what.name << ", program " << seed << ", after " << seconds
                             << " s: " << done.fault->what;
    sums[which].schedules += done.schedules;
    sums[which].seconds += done.seconds;
    seconds += done.seconds;
  }
  for (size_t i = 0; i < subjects.size(); ++i)
    test::print_row(subjects[i].name + ", " + std::to_string(programs / subjects.size()) + " programs", "drawn",
                    sums[i]);
}

/// Each lane asks once for the largest of the sizes, and frees what it got.
template <class Creation, class Divide>
void expect_pairs_right(subject const& what, u32 lanes, test::search_bounds bounds, Divide divide) {
  heap_program program{{lanes, 1}, std::vector<lane_program>(lanes)};
  for (auto& lane : program.lanes) lane.allocate(what.sizes.back()).release();
  test::expect_every_schedule_right(what.name + ", " + std::to_string(lanes) + " lanes, malloc and free", bounds,
                                    explore::heap_exploration<Creation, Divide>{what.pool_bytes, program, divide});
}

template <class Creation, class Divide = no_regions<Creation>>
void explore_heap(std::vector<subject> const& subjects, Divide divide = {}) {
  if (!test::draws_alone()) {
    for (auto const& what : subjects) {
      expect_pairs_right<Creation>(what, 2, {1, 3}, divide);
      if (test::explores_fully()) expect_pairs_right<Creation>(what, 3, {1, 1}, divide);
    }
  }
  expect_drawn_programs_right<Creation>(subjects, divide);
}

TEST(ExploredHeap, SlabBitmap) {
  explore_heap<slab_bitmap>({{"slab_bitmap of 1 slab", slab_bytes, {4096, 8192, 16384}},
                             {"slab_bitmap of 3 slabs", 3 * slab_bytes, {4096, 64, 20000, 8192, 16384}}},
                            slabs{});
}
/// A run of two slabs against a small block.
TEST(ExploredHeap, SlabBitmapWithARunAndASmallBlock) {
  for (u64 const slab_count : {2u, 3u}) {
    heap_program program{{2, 1}, std::vector<lane_program>(2)};
    program.lanes[0].allocate(20000).release();
    program.lanes[1].allocate(64).release();
    test::expect_every_schedule_right(
        "slab_bitmap of " + std::to_string(slab_count) + " slabs, a run against a small block", {2, 3},
        explore::heap_exploration<slab_bitmap, slabs>{slab_count * slab_bytes, program, {}});
  }
}

/// Takes minutes.
TEST(ExploredHeap, SlabBitmapWithThreeLanesAndThreePreemptions) {
  if (!test::explores_fully()) GTEST_SKIP() << "takes minutes: make explore";
  for (u64 const slab_count : {1u, 2u})
    expect_pairs_right<slab_bitmap>(
        {"slab_bitmap of " + std::to_string(slab_count) + " slabs", slab_count * slab_bytes, {16384}}, 3, {3, 3},
        slabs{});
}

TEST(ExploredHeap, RingBuffer) {
  explore_heap<creation::ring_buffer<>>({{"ring_buffer of 2 frames", 2 * 8192, {64, 8192}}});
}
/// Chunks of one word, of which a few lanes empty a queue, make a chunk change its class, and are
/// refused.
template <class Queue>
void explore_queue() {
  std::string const name = Queue::name;
  explore_heap<Queue>({{name + " of 1 chunk", 256, {128, 256}}, {name + " of 2 chunks", 2 * 256, {256, 16, 128}}});
}
TEST(ExploredHeap, QueueOfPages) { explore_queue<creation::queue<test::tiny_queues(test::queue_element::page)>>(); }
TEST(ExploredHeap, QueueOfChunks) { explore_queue<creation::queue<test::tiny_queues(test::queue_element::chunk)>>(); }
TEST(ExploredHeap, VirtualQueueOfPages) {
  explore_queue<creation::queue<test::tiny_queues(test::queue_element::page, test::queue_form::virtual_array)>>();
}
TEST(ExploredHeap, VirtualQueueOfChunks) {
  explore_queue<creation::queue<test::tiny_queues(test::queue_element::chunk, test::queue_form::virtual_array)>>();
}
TEST(ExploredHeap, RandomWalk) {
  explore_heap<creation::random_walk<test::tiny_plain>>({{"random_walk of 3 pages", 3 * 64, {64}}});
  explore_heap<creation::random_walk<test::tiny_bitmap>>({{"random_walk with a bitmap, 6 pages", 6 * 64, {64}}});
  explore_heap<creation::random_walk<test::tiny_shared>>({{"random_walk shared, 6 pages", 6 * 64, {64}}});
}
TEST(ExploredHeap, RwMalloc) {
  explore_heap<creation::rw_malloc<test::tiny_units>>({{"rw_malloc of 64 units", 64 * 16, {16, 500, 300}}});
}
TEST(ExploredHeap, Scatter) { explore_heap<creation::scatter<>>({{"scatter of 3 pages", 3 * 4096, {16, 5000, 2048}}}); }
TEST(ExploredHeap, Halloc) {
  explore_heap<test::small_halloc>({{"halloc of 3 slabs", 3 * test::halloc_slab_bytes, {16, 1024, 3072}}});
}
TEST(ExploredHeap, Tbuddy) { explore_heap<test::small_tbuddy>({{"tbuddy of 4 pages", 4 * 64, {64, 128, 256}}}); }
TEST(ExploredHeap, Ualloc) {
  // One arena, and two, between which chunks change hands.
  explore_heap<creation::ualloc<test::tight>>(
      {{"ualloc of 2 chunks", 2 << 15, {1024, 16, 512}}, {"ualloc of 4 chunks", 4 << 15, {1024, 16, 512}}});
}

using throughput = creation::throughput<test::tight>;
subject const four_chunks{"throughput of 4 chunks", 4 << 15, {16, 1 << 16, 1024}};

TEST(ExploredHeap, Throughput) { explore_heap<throughput>({four_chunks}); }
/// A lane with a chunk on its way lost a race at TBuddy's semaphore. Lanes that searched for pages
/// waited for that chunk, woke each other by their barriers, and kept the lane out.
TEST(ExploredHeap, ThroughputWhereASearchWaitsForALaneThatLostARace) {
  if (host::detail::under_tsan) return;
  auto const done = explore_drawn_program<throughput>(four_chunks, 45, 7, 60, no_regions<throughput>{});
  EXPECT_FALSE(done.fault) << done.fault->what;
}

}  // namespace explored_heaps_test
