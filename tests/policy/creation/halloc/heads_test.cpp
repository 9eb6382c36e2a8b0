// SPDX-License-Identifier: Apache-2.0
// How rows get their heads: one ahead for a quiet row and more for one that ran dry, many slabs at
// a time from TBuddy while there are plenty, and all of them back when a large block needs them;
// and the counts of that.
#include "pool_fixture.hpp"

#include <algorithm>
#include <bit>
#include <type_traits>

namespace warpheap::test { namespace {

constexpr creation::halloc_config counting{.slab_bytes = 16384, .counts_work = true};
template <class Faults = halloc_parts::no_faults>
using counting_halloc = creation::halloc<counting, Faults>;

/// Next heads of all rows for a size.
template <class Allocator>
u32 heads_ahead(halloc_pool<Allocator> const& pool, u32 size) {
  auto const table = pool.allocator().table();
  using table_type = std::remove_const_t<decltype(table)>;
  device_buffer<u64> const words(table.geometry().records_offset() / 8);
  backend::copy_bytes(words.data(), table.metadata(), table.geometry().records_offset());
  auto const rows = words.to_host();
  u32 ahead = 0;
  for (u32 row = 0; row < table.geometry().rows(); ++row)
    for (u32 i = 0; i < table_type::most_ahead; ++i)
      ahead += rows[u64{row * halloc_parts::sizes + size} * halloc_parts::slab_geometry::spacing / 8 +
                    table_type::next_word + i] != 0;
  return ahead;
}

/// Slabs that are not TBuddy's.
template <class Allocator>
u64 slabs_taken(halloc_pool<Allocator> const& pool) {
  return pool.allocator().table().slabs() - count_slots_by_grid(pool.allocator().table().large(), halloc_slab_bytes);
}

/// One thread asks for blocks, one after the other.
struct ask_in_turn {
  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, u64 bytes, u64 count, void** blocks) const {
    for (u64 i = 0; i < count; ++i) blocks[i] = heap.create(bytes);
  }
};

template <class Allocator>
std::vector<void*> allocate_in_turn(halloc_pool<Allocator> const& pool, u64 bytes, u64 count) {
  device_buffer<void*> const blocks(count);
  launch({1, 1}, ask_in_turn{}, pool.allocator(), bytes, count, blocks.data());
  synchronize();
  return blocks.to_host();
}

TEST(HallocHeads, AQuietRowHasOneAhead) {
  halloc_pool<counting_halloc<>> const pool{256};
  allocate_in_turn(pool, 1024, 14 * 4);
  auto const work = pool.allocator().work();
  EXPECT_EQ(work.replacements, 5u);
  EXPECT_EQ(work.dry_rows, 0u);
  EXPECT_EQ(work.waits, 0u);
  EXPECT_EQ(heads_ahead(pool, halloc_parts::size_for(1024)), 1u);
  pool.expect_quiet(14 * 4);
}

TEST(HallocHeads, TimesWhatTheyCount) {
  halloc_pool<counting_halloc<>> const pool{256};
  allocate_in_turn(pool, 1024, 14 * 4);
  auto const work = pool.allocator().work();
  EXPECT_GT(work.longest_replacing_cycles, 0u);
  EXPECT_LT(work.longest_replacing_cycles, work.replacing_cycles);
  EXPECT_LT(work.replacing_cycles, work.caching_cycles);
  EXPECT_LT(work.longest_caching_cycles, work.caching_cycles);
  EXPECT_LE(work.caching_cycles, 5 * work.longest_caching_cycles);
}

TEST(HallocHeads, SlabsComeByTheDozenWhileThereArePlenty) {
  struct expectation {
    u32 slabs;
    u64 at_a_time;
  };
  for (auto const each : {expectation{32, 1}, {64, 2}, {128, 4}, {1024, 32}, {2048, 64}, {5000, 64}}) {
    halloc_pool<counting_halloc<>> const pool{each.slabs};
    auto const block = allocate_in_turn(pool, 16, 1);
    // A head and the next one.
    EXPECT_EQ(slabs_taken(pool), std::max<u64>(each.at_a_time, 2)) << each.slabs;
    pool.expect_quiet(1);
    release(pool, block);
    pool.expect_quiet(0);
    u64 const whole = std::bit_floor(u64{each.slabs}) * halloc_slab_bytes;
    auto const all = allocate_in_turn(pool, whole, 1);
    EXPECT_NE(all[0], nullptr) << "what was taken ahead comes back, heads too";
    pool.expect_quiet(1);
    release(pool, all);
    pool.expect_quiet(0);
  }
}

// Slabs are taken ahead only until a quarter of them is left. From then on a lane takes one when it
// needs one, one at a time.
TEST(HallocHeads, TheLastSlabsComeOneAtATime) {
  halloc_pool<counting_halloc<>> const pool{256};
  u64 blocks = 0, steps = 0;
  for (u64 taken = 0; taken < 256; ++steps) {
    auto const more = allocate_in_turn(pool, 1024, 4);  // less than a head
    blocks += more.size();
    ASSERT_EQ(std::count(more.begin(), more.end(), nullptr), 0);
    u64 const now = slabs_taken(pool);
    if (taken < 192) EXPECT_EQ(now % 8, 0u) << "there are plenty";
    else EXPECT_LE(now - taken, 2u) << "a head and the next one";
    taken = now;
  }
  EXPECT_GT(steps, 64u);
  pool.expect_quiet(blocks);
}

/// The outcome of contention: work, and next heads of the size.
struct contention_outcome {
  u64 dry = 0, ahead = 0;
  bool sound = false;
};
template <class Faults>
contention_outcome contend_in_a_fresh_heap() {
  halloc_pool<counting_halloc<Faults>> const pool{256};
  contention_outcome made;
  auto const blocks = allocate(pool, {4, 64}, 3072);
  made.sound = std::count(blocks.begin(), blocks.end(), nullptr) == 0 && pool.is_quiet(256);
  made.dry = pool.allocator().work().dry_rows;
  made.ahead = heads_ahead(pool, halloc_parts::size_for(3072));
  return made;
}

TEST(HallocHeads, ARowThatRanDryHasMoreAhead) {
  u64 deeper = 0, dry = 0;
  for_each_schedule(60, [&] {
    auto const made = contend_in_a_fresh_heap<halloc_parts::no_faults>();
    EXPECT_TRUE(made.sound);
    EXPECT_LE(made.ahead, 4u * 4) << "four rows, four each";
    deeper += made.ahead > 4;
    dry += made.dry;
  });
  EXPECT_GT(dry, 0u);
#if !defined(__CUDACC__)
  EXPECT_GT(deeper, 0u);
#endif
}

#if !defined(__CUDACC__)

/// Threads contend for several pools' worth: no lane searches a heap that has free slabs, as long
/// as a row's head is on its way.
TEST(HallocHeads, FirstBurstsWaitForTheRowsAndHardlySearch) {
  constexpr u64 bursts = 6;
  u64 searches = 0;
  for (u64 seed = 0; seed < bursts; ++seed) {
    auto run = schedule_of(2 * seed);
    run.policy = host::schedule_policy::random_walk;
    run.masks = host::mask_policy::maximal;
    run.sm_count = 16;
    run.blocks_per_sm = 2;
    host::scoped_execution const use{run};
    constexpr static creation::halloc_config larger{.slab_bytes = 65536, .counts_work = true};
    halloc_pool<creation::halloc<larger>> const pool{u64{1024} * 65536, 0};
    auto const blocks = allocate(pool, {32, 256}, 1024);
    EXPECT_EQ(std::count(blocks.begin(), blocks.end(), nullptr), 0);
    auto const work = pool.allocator().work();
    EXPECT_GE(work.replacements, 8192u / 64) << seed;
    searches += work.searches;
    pool.expect_quiet(8192);
  }
  EXPECT_LE(searches, bursts);  // of 8,192 calls each
}

// halloc.P3 left out: a lane that found a next head stores it over another one, which then has no
// owner.
struct overwrites_next_heads : halloc_parts::no_faults {
  static constexpr bool gives_to_empty_places = false;
};

TEST(HallocHeads, ANextHeadThatIsOverwrittenIsNoticed) {
  EXPECT_TRUE(find_failing_schedule(60, [] { return contend_in_a_fresh_heap<overwrites_next_heads>().sound; }));
}

#endif

}}  // namespace warpheap::test
