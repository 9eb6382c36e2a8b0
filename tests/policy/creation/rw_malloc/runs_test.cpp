// SPDX-License-Identifier: Apache-2.0
// rw_malloc over a handful of words, compared with a list of the blocks. Runs are found wherever
// they are, joined across words and windows, whatever their length and alignment; nullptr comes
// only where there is none; and parts, ends and extents are as they should be.
#include "pool_fixture.hpp"

namespace warpheap::test { namespace {

using small_heap = creation::rw_malloc<tiny_units>;
using two_words_a_lane = creation::rw_malloc<tiny_wide_units<2>>;
using four_words_a_lane = creation::rw_malloc<tiny_wide_units<4>>;
static_assert(is_valid(tiny_wide_units<1>) && is_valid(tiny_wide_units<4>));
static_assert(!is_valid(tiny_wide_units<0>) && !is_valid(tiny_wide_units<3>) && !is_valid(tiny_wide_units<8>));
static_assert(sizeof(small_heap) == 16 && sizeof(creation::rw_malloc<>) == 16);

/// The longest run of units that no block of the heap has.
template <class Heap>
u64 longest_free_run(unit_pool<Heap> const& pool, u64 units) {
  u8* const start = pool.allocator().table().pool();
  u64 longest = 0, last = 0;
  auto const note = [&](u64 first) { longest = std::max(longest, first - last); };
  pool.allocator().snapshot().for_each_live([&](void* memory, size_t bytes) {
    u64 const first = static_cast<u64>(static_cast<u8*>(memory) - start) / 16;
    note(first);
    last = first + bytes / 16;
  });
  note(units);
  return longest;
}

/// Whether blocks are apart, in the pool, and as long as asked for.
template <class Heap>
void expect_apart(unit_pool<Heap> const& pool, std::vector<void*> const& blocks, std::vector<u64> const& units) {
  std::vector<std::pair<u8*, u64>> list;
  for (size_t i = 0; i < blocks.size(); ++i)
    if (blocks[i]) list.emplace_back(static_cast<u8*>(blocks[i]), units[i] * 16);
  std::sort(list.begin(), list.end());
  for (size_t i = 1; i < list.size(); ++i) EXPECT_LE(list[i - 1].first + list[i - 1].second, list[i].first);
  for (auto const& [memory, bytes] : list)
    EXPECT_TRUE(pool.allocator().table().contains(memory) && pool.allocator().table().contains(memory + bytes - 1));
  EXPECT_TRUE(pool.is_quiet(list.size()));
}

template <class Heap>
void expect_runs_found(u64 schedules) {
  for_each_schedule(schedules, [] {
#if !defined(__CUDACC__)
    u64 const seed = host::current_execution().seed;
#else
    u64 const seed = 7;
#endif
    random_sequence random{seed};
    u64 const units = 60 + random.below(700);
    unit_pool<Heap> const pool{units};
    std::vector<u64> sizes(48);
    for (auto& size : sizes) size = 1 + random.below(random.below(3) ? 12 : 90);
    auto const blocks = ask(pool, {2, 24}, sizes);
    expect_apart(pool, blocks, sizes);
    std::vector<void*> gone;
    for (auto* const block : blocks)
      if (block && random.below(2)) gone.push_back(block);
    release(pool, gone);
    // A request as long as the longest run is served, and no longer one is, by a lane alone and by
    // a warp.
    for (u32 const lanes : {1u, 32u}) {
      u64 const longest = longest_free_run(pool, units);
      if (longest == 0) return;
      std::vector<u64> wanted(lanes, longest + 1);
      for (void* const none : ask(pool, {1, lanes}, wanted)) EXPECT_EQ(none, nullptr) << longest;
      wanted.assign(lanes, longest + 1);
      wanted[lanes / 2] = longest;
      auto const got = ask(pool, {1, lanes}, wanted);
      EXPECT_NE(got[lanes / 2], nullptr) << "a run of " << longest << " units was not found";
      EXPECT_EQ(std::count(got.begin(), got.end(), nullptr), lanes - 1);
      release(pool, {got[lanes / 2]});
    }
    EXPECT_TRUE(pool.allocator().snapshot().check_invariants().empty());
  });
}

// At rest: rw.U3
TEST(RwMalloc, FindsARunOfAnyLengthWhereverItIs) {
  expect_runs_found<small_heap>(120);
  expect_runs_found<two_words_a_lane>(60);
  expect_runs_found<four_words_a_lane>(120);
}

TEST(RwMalloc, JoinsRunsAcrossWordsAndWindows) {
  for_each_schedule(60, [] {
    // A lane alone sees eight words of 32 units at once.
    unit_pool<small_heap> const pool{1500};
    auto const ends = ask(pool, {1, 1}, {1500});
    ASSERT_NE(ends[0], nullptr);
    EXPECT_EQ(ask(pool, {1, 3}, {1, 1, 1}), (std::vector<void*>{nullptr, nullptr, nullptr}));
    release(pool, ends);
    for (u64 const units : {33u, 64u, 257u, 700u, 1499u, 1500u}) {
      auto const got = ask(pool, {1, 1}, {units});
      EXPECT_NE(got[0], nullptr) << units;
      EXPECT_TRUE(pool.is_quiet(1)) << units;
      release(pool, got);
      EXPECT_TRUE(pool.is_quiet(0)) << units;
    }
  });
}

template <class Heap>
void expect_filled_pools() {
  for (u64 const units : {1u, 3u, 5u, 8u, 31u, 32u, 33u, 63u, 100u})
    for_each_schedule(8, [&] {
      u64 const pool_units = 2000, room = pool_units / units;
      unit_pool<Heap> const pool{pool_units};
      u64 served = 0;
      for (u64 const share : {room / 2, room}) {  // more than there is the second time
        u32 const blocks = static_cast<u32>(share / 31 + 1);
        auto const got = ask(pool, {blocks, 31}, std::vector<u64>(u64{blocks} * 31, units));
        served += got.size() - static_cast<u64>(std::count(got.begin(), got.end(), nullptr));
      }
      EXPECT_EQ(served, room) << units << " units";
      EXPECT_TRUE(pool.is_quiet(room));
    });
}

TEST(RwMalloc, FillsThePoolWithBlocksOfOneLength) {
  expect_filled_pools<small_heap>();
  expect_filled_pools<four_words_a_lane>();
}

TEST(RwMalloc, AlignsToWhatIsAsked) {
  for_each_schedule(60, [] {
    unit_pool<small_heap> const pool{2048};
    for (u64 const alignment : {u64{16}, u64{64}, u64{256}, u64{4096}, u64{8192}}) {
      auto const got = ask(pool, {1, 3}, {1, 5, 70}, alignment);
      for (void* const block : got) EXPECT_EQ(reinterpret_cast<u64>(block) % alignment, 0u) << alignment;
      if (alignment <= 4096) {
        EXPECT_EQ(std::count(got.begin(), got.end(), nullptr), 0) << alignment;
      }
      release(pool, got);
      EXPECT_TRUE(pool.is_quiet(0));
    }
    EXPECT_EQ(ask(pool, {1, 1}, {1}, u64{1} << 46)[0], nullptr);
  });
}

template <class Heap>
void expect_parts() {
#if !defined(__CUDACC__)
  host::scoped_execution const use{{.mode = host::execution_mode::deterministic, .masks = host::mask_policy::maximal}};
#endif
  unit_pool<Heap> const pool{1024};
  std::vector<u64> const units{1, 4, 2, 3, 4, 1, 1, 2};
  auto const parts = ask(pool, {1, 8}, units);
  for (size_t i = 1; i < parts.size(); ++i)
    EXPECT_EQ(static_cast<u8*>(parts[i]), static_cast<u8*>(parts[i - 1]) + 16 * units[i - 1]) << "not one run";
  EXPECT_TRUE(pool.is_quiet(8));
  release(pool, {parts[1], parts[6]});
  EXPECT_TRUE(pool.is_quiet(6));
  auto const taken = pool.allocator().steps_taken();
  EXPECT_EQ(taken.threads, 8u);
  EXPECT_EQ(taken.thread_steps, 8 * taken.warp_steps) << "lanes that walk together take the same steps";
}

TEST(RwMalloc, LetsLanesAskAsOneAndFreeTheirPartsAlone) {
  expect_parts<small_heap>();
  expect_parts<four_words_a_lane>();
}

template <class Heap>
void expect_pools_of_any_size() {
  for (u64 units = 1; units <= 70; ++units) {
    unit_pool<Heap> const pool{units};
    EXPECT_EQ(count_slots_by_grid(pool.allocator(), 16), units);
    auto const got = ask(pool, {1, 1}, {units});
    EXPECT_NE(got[0], nullptr);
    EXPECT_EQ(count_slots_by_grid(pool.allocator(), 16), 0u);
    release(pool, got);
    EXPECT_TRUE(pool.is_quiet(0));
  }
}

TEST(RwMalloc, TakesPoolsOfAnySize) {
  EXPECT_THROW(creation::rw_malloc<>::required_bytes(15), std::invalid_argument);
  expect_pools_of_any_size<small_heap>();
  expect_pools_of_any_size<four_words_a_lane>();
  rw_malloc_heap const heap{size_t{1} << 20};
  EXPECT_EQ(heap.available_slots(16), 65536u);
  EXPECT_NE(heap.info().find("creation rw_malloc"), std::string::npos);
}

TEST(RwMalloc, LooksAtEachGroupOnceHoweverOthersChurn) {
  // More lanes than places, each alone, in a pool of groups of 128 units.
  u64 looks = 0, calls = 0;
  for (u64 const units : {8u, 40u, 64u})
    for_each_schedule(60, [&] {
      u64 const groups = 24, blocks = groups * 128 / units;
      unit_pool<small_heap> const pool{groups * 128};
      auto const kept = ask(pool, {static_cast<u32>(blocks), 1}, std::vector<u64>(blocks, units));
      release(pool, {kept[0], kept[blocks / 3], kept[blocks / 2]});
      pool.allocator().forget_steps();
      launch({8, 1}, unit_churn{}, pool.allocator(), 10u, static_cast<u32>(units), false, schedule_seed(),
             device_buffer<unit_report>(1).data());
      synchronize();
      auto const taken = pool.allocator().steps_taken();
      // A window and a glance or two, and each group by itself; those at the start twice.
      EXPECT_LE(taken.thread_steps, taken.threads * (4 + groups + 4));
      looks += taken.thread_steps;
      calls += taken.threads;
      EXPECT_TRUE(pool.is_quiet(blocks - 3));
    });
  EXPECT_GT(looks, 3 * calls) << "hardly anybody searched";
}

/// Windows that a warp whose lanes want `units` units each looks at, in an empty pool.
template <u32 WordsPerLane>
u64 windows_for(u64 units) {
  using heap = creation::rw_malloc<creation::rw_malloc_config{.words_per_lane = WordsPerLane, .counts_steps = true}>;
  unit_pool<heap> const pool{64 * 1024};
  auto const got = ask(pool, {1, 32}, std::vector<u64>(32, units));
  EXPECT_EQ(std::count(got.begin(), got.end(), nullptr), 0);
  EXPECT_TRUE(pool.is_quiet(32));
  return pool.allocator().steps_taken().warp_steps;
}

TEST(RwMalloc, NeedsFewerWindowsOfMoreWordsForLongBlocks) {
  u64 narrow = 0, wide = 0;
  for_each_schedule(6, [&] {
#if !defined(__CUDACC__)
    host::scoped_execution const use{
        {.mode = host::execution_mode::deterministic, .masks = host::mask_policy::maximal, .seed = schedule_seed()}};
#endif
    narrow += windows_for<1>(512);
    wide += windows_for<4>(512);
    EXPECT_EQ(windows_for<1>(1), 1u);
    EXPECT_EQ(windows_for<4>(1), 1u);
  });
  // 1 or 2 blocks of 512 units in a window of 1,024 units, 7 or 8 in one of 4,096.
  EXPECT_LT(3 * wide, narrow);
}

template <u32 Words>
void expect_row_like_bits(random_sequence& random) {
  rw_malloc_parts::unit_row<Words> row{};
  for (u32& word : row.word) {
    u32 const drawn = random.below(4);
    if (drawn == 1) word = full_mask;
    else if (drawn == 2) word = full_mask << random.below(32);
    else if (drawn == 3) word = random.next();
  }
  auto const is_free = [&](u32 unit) { return unit < row.units && (row.word[unit / 32] >> unit % 32 & 1) != 0; };
  u32 start = 0;
  while (start < row.units && !is_free(start)) ++start;
  u32 end = start, at_start = 0;
  while (is_free(end)) ++end;
  while (is_free(at_start)) ++at_start;
  EXPECT_EQ(row.any(), end != start);
  EXPECT_EQ(row.full(), at_start == row.units);
  EXPECT_EQ(row.at_start(), at_start);
  EXPECT_EQ(row.lowest_run().length, end - start);
  if (row.any()) {
    EXPECT_EQ(row.lowest_run().start, start);
  }
}

TEST(UnitRow, FindsTheLowestRunAcrossItsWords) {
  random_sequence random{11};
  for (u32 i = 0; i < 2000; ++i) {
    expect_row_like_bits<1>(random);
    expect_row_like_bits<2>(random);
    expect_row_like_bits<4>(random);
  }
}

}}  // namespace warpheap::test
