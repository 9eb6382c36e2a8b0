// SPDX-License-Identifier: Apache-2.0
// Threads that contend for runs of pages. A search answers a round of callers, so a call's cost
// does not grow with their number, whether they fill the heap to the last page or it has no room
// left. No refused size is free afterwards.
#include <algorithm>

#include "policy/creation/scatter/pool_fixture.hpp"

namespace scatter_contention_test {

using namespace warpheap;
using namespace warpheap::test;
using pool_type = scatter_pool<creation::scatter<>>;

constexpr u32 page = 4096, threads = 4096;

/// Kernel: one thread tells how many searches for runs there were.
struct tell_searches {
  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, u64* searches) const {
    searches[0] = scatter_parts::runs<Allocator::config>::searches_made(heap.table());
  }
};

u64 searches_of(pool_type const& pool) {
  device_buffer<u64> const searches(1);
  launch({1, 1}, tell_searches{}, pool.allocator(), searches.data());
  synchronize();
  return searches[0];
}

/// Sizes of 16 bytes to 2 pages, evenly spread, or evenly by their logarithm.
u32 drawn_size(u64 me, bool by_logarithm) {
  random_sequence random{schedule_seed() * threads + me};
  u32 const most = by_logarithm ? 32u << random.below(9) : 2 * page;
  u32 const least = by_logarithm ? most / 2 : 16;
  return least + random.below(most - least + 1);
}

/// Kernel: every thread asks once, for a size of its own.
struct create_mixed {
  bool by_logarithm;

  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, void** blocks) const {
    u64 const me = global_thread_index();
    blocks[me] = heap.create(drawn_size(me, by_logarithm));
  }
};

std::vector<void*> allocate_mixed(pool_type const& pool, bool by_logarithm) {
  device_buffer<void*> const blocks(threads);
  launch({threads / 256, 256}, create_mixed{by_logarithm}, pool.allocator(), blocks.data());
  synchronize();
  return blocks.to_host();
}

u64 refused(std::vector<void*> const& blocks) { return std::count(blocks.begin(), blocks.end(), nullptr); }

/// Whole warps on many multiprocessors, as on a GPU. A run with more steps than `steps_a_thread`
/// for each thread fails.
host::execution wide_machine(u64 seed, u64 steps_a_thread) {
  return {.mode = host::execution_mode::deterministic,
          .policy = seed % 2 ? host::schedule_policy::random_walk : host::schedule_policy::round_robin,
          .masks = host::mask_policy::maximal,
          .seed = seed,
          .sm_count = 16,
          .blocks_per_sm = 1,
          .step_cap = steps_a_thread * threads};
}

constexpr u64 steps_a_run = 100, steps_a_chunk = 4000;

// When each call searched under the mutex, 2^20 runs of two pages took 659 ms on an H200,
// with a search for each warp.
TEST(ScatterContention, TakesTheWholePoolInFewSearches) {
  for (u64 seed = 0; seed < 6; ++seed) {
    host::scoped_execution const use{wide_machine(seed, steps_a_run)};
    SCOPED_TRACE(seed);
    pool_type const pool{2 * threads};
    for (u32 turn = 0; turn < 3; ++turn) {
      u64 const before = searches_of(pool);
      auto blocks = allocate(pool, {threads / 256, 256}, 2 * page);
      EXPECT_EQ(refused(blocks), 0u);
      EXPECT_LE(searches_of(pool) - before, threads / 32 / 4) << "a quarter of the warps";
      std::sort(blocks.begin(), blocks.end());
      for (u32 i = 0; i < threads; ++i) ASSERT_EQ(pool.page_of(blocks[i]), 2 * i);
      EXPECT_EQ(refused(allocate(pool, {threads / 256, 256}, 2 * page)), threads) << "full";
      release(pool, blocks, {threads / 256, 256});
      pool.expect_empty();
    }
  }
}

/// A heap in which every second page is taken: there is room, but not for a run.
TEST(ScatterContention, IsRefusedTogetherWhereNoTwoPagesAreFree) {
  for (u64 seed = 0; seed < 4; ++seed) {
    host::scoped_execution const use{wide_machine(seed, steps_a_chunk)};
    SCOPED_TRACE(seed);
    pool_type const pool{2 * threads};
    auto chunks = allocate(pool, {2 * threads / 256, 256}, page);
    ASSERT_EQ(refused(chunks), 0u);
    std::sort(chunks.begin(), chunks.end());
    std::vector<void*> halves[2];
    for (u32 i = 0; i < 2 * threads; ++i) halves[i % 2].push_back(chunks[i]);
    release(pool, halves[0], {threads / 256, 256});
    u64 const before = searches_of(pool);
    {
      host::scoped_execution const short_run{wide_machine(seed, steps_a_run)};
      EXPECT_EQ(refused(allocate(pool, {threads / 256, 256}, 2 * page)), threads);
    }
    EXPECT_LE(searches_of(pool) - before, threads / 32 / 4);
    release(pool, halves[1], {threads / 256, 256});
    EXPECT_EQ(refused(allocate(pool, {threads / 256, 256}, 2 * page)), 0u) << "chunks gave all of it back";
  }
}

/// The smallest size that was refused; 0 if none was.
u64 smallest_refused(std::vector<void*> const& blocks, bool by_logarithm) {
  u64 smallest = 0;
  for (u64 i = 0; i < blocks.size(); ++i)
    if (u64 const bytes = drawn_size(i, by_logarithm); !blocks[i] && (smallest == 0 || bytes < smallest))
      smallest = bytes;
  return smallest;
}

TEST(ScatterContention, OfMixedSizesIsServedWhereThereIsRoom) {
  for (u64 seed = 0; seed < 8; ++seed) {
    host::scoped_execution const use{wide_machine(seed, steps_a_chunk)};
    for (bool const by_logarithm : {false, true}) {
      SCOPED_TRACE(testing::Message() << seed << (by_logarithm ? ", by logarithm" : ""));
      pool_type const pool{2 * threads};
      for (u32 turn = 0; turn < 2; ++turn) {
        auto const blocks = allocate_mixed(pool, by_logarithm);
        EXPECT_EQ(refused(blocks), 0u);
        pool.expect_quiet(threads);
        release(pool, blocks, {threads / 256, 256});
        pool.expect_empty();
      }
    }
  }
}

/// Nothing is freed, so a size that a call found nowhere at one instant is nowhere at the end.
TEST(ScatterContention, OfMixedSizesIsRefusedOnlyWhatIsNotThere) {
  for (u64 seed = 0; seed < 8; ++seed) {
    host::scoped_execution const use{wide_machine(seed, steps_a_chunk)};
    for (bool const by_logarithm : {false, true}) {
      SCOPED_TRACE(testing::Message() << seed << (by_logarithm ? ", by logarithm" : ""));
      pool_type const pool{by_logarithm ? threads / 4 : threads};
      auto const blocks = allocate_mixed(pool, by_logarithm);
      u64 const smallest = smallest_refused(blocks, by_logarithm);
      ASSERT_NE(smallest, 0u) << "everything fitted";
      EXPECT_GT(threads, refused(blocks));
      EXPECT_EQ(count_slots_by_grid(pool.allocator(), smallest), 0u) << smallest << " bytes";
      release(pool, blocks, {threads / 256, 256});
      pool.expect_empty();
      EXPECT_EQ(refused(allocate(pool, {pool.pages() / 2 / 32, 32}, 2 * page)), 0u);
    }
  }
}

}  // namespace scatter_contention_test
