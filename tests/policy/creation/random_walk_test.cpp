// SPDX-License-Identifier: Apache-2.0
// random_walk as a heap: geometries at their limits, what is refused, and steps.
#include <stdexcept>

#include "random_walk/pool_fixture.hpp"

namespace warpheap::test { namespace {

using creation::random_walk;

constexpr creation::random_walk_config odd_pages{.page_bytes = 48};
constexpr creation::random_walk_config large_pages{.page_bytes = 65536};
static_assert(sizeof(random_walk<>) == 16);
static_assert(random_walk<>::traits.self_aligned_up_to == 4096 && random_walk<>::traits.largest_bytes == 8192);
static_assert(random_walk<odd_pages>::traits.self_aligned_up_to == 16);
static_assert(random_walk<large_pages>::traits.self_aligned_up_to == 4096);

template <class Walk>
void expect_refusals() {
  walk_pool<Walk> const pool{6};
  for (u64 const bytes : {u64{0}, u64{65}, u64{1} << 32, ~u64{0}}) {
    EXPECT_EQ(allocate(pool, {1, 2}, bytes), (std::vector<void*>{nullptr, nullptr})) << bytes;
    EXPECT_EQ(count_slots_by_grid(pool.allocator(), bytes), 0u) << bytes;
  }
  EXPECT_EQ(pool.allocator().snapshot().statistics().failures, 6u) << "no bytes are no failure";
  EXPECT_TRUE(pool.is_quiet(0));
}

TEST(RandomWalk, RefusesWhatIsLargerThanAPage) {
  expect_refusals<random_walk<tiny_plain>>();
  expect_refusals<random_walk<tiny_bitmap>>();
  expect_refusals<random_walk<tiny_shared>>();
}

// The last page of a word is its highest bit, beside which there is none for a lock.
TEST(RandomWalk, GivesOutAndTakesBackEveryPageOfAWordOf64) {
  walk_pool<random_walk<tiny_walk(walk_kind::bitmap, 64)>> const pool{130};
  auto const got = allocate(pool, {5, 32}, 64);
  EXPECT_EQ(std::count(got.begin(), got.end(), nullptr), 30);
  EXPECT_TRUE(pool.is_quiet(130));
  EXPECT_EQ(count_slots_by_grid(pool.allocator(), 64), 0u);
  release(pool, got, {5, 32});
  EXPECT_TRUE(pool.is_quiet(0));
  EXPECT_EQ(count_slots_by_grid(pool.allocator(), 64), 130u);
  release(pool, got, {5, 32});
  EXPECT_TRUE(pool.is_quiet(0, 130)) << "each second free is noticed";
}

static_assert(is_valid(tiny_walk(walk_kind::bitmap, 64)) && is_valid(tiny_walk(walk_kind::plain, 64)));
static_assert(!is_valid(tiny_walk(walk_kind::collaborative, 64)) && !is_valid(tiny_walk(walk_kind::bitmap, 128)));
static_assert(random_walk<tiny_walk(walk_kind::bitmap, 64)>::traits.largest_bytes == 64);

TEST(RandomWalk, TakesPoolsOfOneToABillionPages) {
  EXPECT_THROW(random_walk<>::required_bytes(8191), std::invalid_argument);
  EXPECT_THROW(random_walk<odd_pages>::required_bytes((size_t{1} << 30) * 48 + 48), std::invalid_argument);
  size_t const large = size_t{141} << 30;  // the whole of the largest GPUs
  EXPECT_LT(random_walk<>::required_bytes(large), large + large / 10'000);
  for (u32 pages = 1; pages <= 40; ++pages) {
    walk_pool<random_walk<tiny_bitmap>> const pool{pages};
    EXPECT_EQ(count_slots_by_grid(pool.allocator(), 1), pages);
    auto got = allocate(pool, {1, pages + 1}, 64);
    EXPECT_EQ(std::count(got.begin(), got.end(), nullptr), 1) << pages;
    EXPECT_TRUE(pool.is_quiet(pages));
  }
}

TEST(RandomWalk, IsAHeapLikeOthers) {
  rw_heap const by_page{size_t{1} << 20};
  rw_bitmap_heap const by_word{size_t{1} << 20};
  corw_heap const together{size_t{1} << 20};
  EXPECT_EQ(by_page.available_slots(1) + by_word.available_slots(1) + together.available_slots(1), 3u * 128);
  EXPECT_NE(by_page.info().find("creation rw"), std::string::npos);
  EXPECT_NE(by_word.info().find("creation rw_bitmap"), std::string::npos);
  EXPECT_NE(together.info().find("creation corw"), std::string::npos);
}

TEST(RandomWalk, CountsTheStepsOfThreadsAndWarps) {
  static constexpr auto plenty = tiny_walk(walk_kind::collaborative, 32, 64);
  for_each_schedule(40, [] {
    walk_pool<random_walk<plenty>> const pool{4096};
    allocate(pool, {2, 40}, 64);
    auto const taken = pool.allocator().steps_taken();
    EXPECT_EQ(taken.threads, 80u);
    EXPECT_GE(taken.warps, 4u);
    EXPECT_GE(taken.thread_steps, taken.threads);
    EXPECT_GE(taken.warp_steps, taken.warps);
    pool.allocator().forget_steps();
    synchronize();
    EXPECT_EQ(pool.allocator().steps_taken().threads, 0u);
  });
}

/// Sums collisions over all schedules, of lanes that take all but two of the pages of a few words.
template <class Walk>
u64 collisions_of(launch_shape shape, u32 pages) {
  u64 collisions = 0;
  for_each_schedule(60, [&] {
    walk_pool<Walk> const pool{pages};
    allocate(pool, shape, 64);
    collisions += pool.allocator().steps_taken().collisions;
  });
  return collisions;
}

TEST(RandomWalk, CountsPagesThatAnotherTookMeanwhile) {
  static constexpr auto by_page = tiny_walk(walk_kind::plain, 4, 64), by_word = tiny_walk(walk_kind::bitmap, 4, 64),
                        together = tiny_walk(walk_kind::collaborative, 4, 64);
  EXPECT_EQ(collisions_of<random_walk<by_page>>({1, 1}, 8), 0u) << "nobody else is there";
  EXPECT_EQ(collisions_of<random_walk<by_word>>({1, 1}, 8), 0u);
  EXPECT_EQ(collisions_of<random_walk<together>>({1, 1}, 8), 0u);
#if defined(__CUDACC__)
  constexpr launch_shape contending{264, 256};  // a few lanes may miss each other
#else
  constexpr launch_shape contending{2, 3};
#endif
  constexpr u32 pages = contending.blocks * contending.threads + 2;
  EXPECT_GT(collisions_of<random_walk<by_page>>(contending, pages), 0u);
  EXPECT_GT(collisions_of<random_walk<by_word>>(contending, pages), 0u);
  EXPECT_GT(collisions_of<random_walk<together>>(contending, pages), 0u);
}

TEST(RandomWalk, TakesAWholeWarpsPagesWithTheSameSteps) {
#if !defined(__CUDACC__)
  host::scoped_execution const use{{.mode = host::execution_mode::deterministic, .masks = host::mask_policy::maximal}};
#endif
  static constexpr auto plenty = tiny_walk(walk_kind::collaborative, 32, 64);
  walk_pool<random_walk<plenty>> const pool{512};
  allocate(pool, {1, 480}, 64);  // most of it
  pool.allocator().forget_steps();
  synchronize();
  allocate(pool, {1, 32}, 64);
  auto const taken = pool.allocator().steps_taken();
  EXPECT_EQ(taken.threads, 32u);
  EXPECT_EQ(taken.thread_steps, 32 * taken.warp_steps) << "TAS and WAS are one";
}

/// More lanes than pages, each alone, take and free pages in a pool of `words` words of a page: no
/// lane looks at a word twice in a search.
template <class Walk>
void expect_few_looks(u32 words) {
  for_each_schedule(100, [&] {
    walk_pool<Walk> const pool{words};
    auto const kept = allocate(pool, {1, words - 3}, 64);
    pool.allocator().forget_steps();
    launch({8, 1}, walk_churn{}, pool.allocator(), 10u, device_buffer<lanes_report>(1).data());
    synchronize();
    auto const taken = pool.allocator().steps_taken();
    // a walk of one step; a lane looks at eight words at once
    u64 const most = 1 + align_up(words, 8);
    EXPECT_LE(taken.thread_steps, taken.threads * most);
    EXPECT_GT(taken.thread_steps, 2 * taken.threads) << "hardly anybody searched";
    EXPECT_TRUE(pool.is_quiet(words - 3));
  });
}

TEST(RandomWalk, LooksAtEachWordOnceHoweverOthersChurn) {
  static constexpr auto by_page = tiny_walk(walk_kind::plain, 1, 1), by_word = tiny_walk(walk_kind::bitmap, 1, 1),
                        together = tiny_walk(walk_kind::collaborative, 1, 1);
  for (u32 const words : {5u, 40u, 150u}) {
    expect_few_looks<random_walk<by_page>>(words);
    expect_few_looks<random_walk<by_word>>(words);
    expect_few_looks<random_walk<together>>(words);
  }
}

}}  // namespace warpheap::test
