// SPDX-License-Identifier: Apache-2.0
// halloc over a few slabs: sizes and places of blocks, block lengths side by side in one slab,
// heads that change, memory that goes from slabs to large blocks and back, what frees of the wrong
// address do, and the options.
#include "halloc/pool_fixture.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>

namespace warpheap::test { namespace {

static_assert(sizeof(small_halloc) == 40);

u64 slab_of(halloc_pool<> const& pool, u64 address) {
  return pool.allocator().table().slab_at(pool.allocator().table().offset_of(reinterpret_cast<void*>(address)));
}

TEST(Halloc, RoundsUpToAQuarterOfTwoDoublings) {
  halloc_pool<> const pool{64};
  std::vector<u64> const bytes{1, 16, 17, 24, 25, 48, 49, 64, 96, 100, 192, 193, 257, 384, 700, 1024, 1500, 2049, 3072};
  std::vector<u64> const usable{16,  16,  24,  24,  32,  48,   64,   64,   96,  128,
                                192, 256, 384, 384, 768, 1024, 1536, 3072, 3072};
  auto const answers = ask(pool, bytes);
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_EQ(answers[i].usable, usable[i]) << bytes[i];
    EXPECT_EQ(answers[i].address % (usable[i] & -usable[i]), 0u) << bytes[i];
  }
  auto const large = ask(pool, {3073, 4096, 5000, 20'000});
  EXPECT_EQ(large[0].usable, 4096u);
  EXPECT_EQ(large[3].usable, 32768u);
  pool.expect_quiet(bytes.size() + 4);
}

TEST(Halloc, AlignsWhatIsAskedFor) {
  halloc_pool<> const pool{64};
  std::vector<u64> const alignments{16, 64, 256, 1024, 2048, 2048, 4096, 65536};
  std::vector<u64> const bytes{20, 20, 24, 2500, 2048, 2500, 100, 100};
  auto const answers = ask(pool, bytes, alignments);
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_NE(answers[i].address, 0u);
    EXPECT_EQ(answers[i].address % alignments[i], 0u) << alignments[i];
    EXPECT_GE(answers[i].usable, bytes[i]);
  }
  pool.expect_quiet(bytes.size());
}

/// Every slab gives as many blocks of a size as it has chunks for, and all of a full pool are
/// apart.
TEST(Halloc, FillsEverySlabWithEverySize) {
  for (u32 size = 0; size < halloc_parts::sizes; ++size) {
    halloc_pool<> const pool{3};
    u64 const bytes = halloc_parts::block_bytes(size);
    u64 const each = halloc_parts::capacity_of(halloc_parts::kind_of(size), 14) >> halloc_parts::length_of(size);
    EXPECT_EQ(count_slots_by_grid(pool.allocator(), bytes), 3 * each);
    auto blocks = allocate(pool, {static_cast<u32>(3 * each / 50 + 2), 50}, bytes);
    std::erase(blocks, nullptr);
    EXPECT_EQ(blocks.size(), 3 * each) << bytes;
    std::sort(blocks.begin(), blocks.end());
    for (size_t i = 1; i < blocks.size(); ++i)
      ASSERT_GE(reinterpret_cast<u64>(blocks[i]), reinterpret_cast<u64>(blocks[i - 1]) + bytes);
    EXPECT_GE(3 * each * bytes, 3 * halloc_slab_bytes * 15 / 16);
    pool.expect_quiet(3 * each);
    EXPECT_EQ(count_slots_by_grid(pool.allocator(), bytes), 0u);
    for (auto* const block : blocks) release(pool, {block});
    pool.expect_quiet(0);
    EXPECT_EQ(count_slots_by_grid(pool.allocator(), bytes), 3 * each);
    EXPECT_EQ(count_slots_by_grid(pool.allocator(), 2 * halloc_slab_bytes), 1u) << "in one piece again";
  }
}

TEST(Halloc, PutsBlocksOfAllLengthsIntoOneSlab) {
  halloc_pool<> const pool{1};
  auto const first = ask(pool, {16, 128, 32, 64, 16, 128});
  std::set<u64> slabs;
  for (auto const& block : first) {
    ASSERT_NE(block.address, 0u);
    slabs.insert(slab_of(pool, block.address));
  }
  EXPECT_EQ(slabs.size(), 1u);
  for (u32 i = 0; i < 6; ++i) EXPECT_EQ(first[i].usable, (std::vector<u64>{16, 128, 32, 64, 16, 128})[i]);
  EXPECT_EQ(ask(pool, {256})[0].address, 0u) << "no slab is left for another kind";
  free_addresses(pool, {first[1].address, first[0].address, first[3].address});
  pool.expect_quiet(3);
  free_addresses(pool, {first[2].address, first[4].address, first[5].address});
  pool.expect_quiet(0);
  EXPECT_NE(ask(pool, {256})[0].address, 0u) << "an empty slab serves any kind, be it a head or not";
}

TEST(Halloc, FindsTheOneHoleThatIsLargeEnough) {
  for_each_schedule(20, [] {
    halloc_pool<> const pool{2};
    auto small = allocate(pool, {33, 63}, 16);
    std::erase(small, nullptr);
    ASSERT_EQ(small.size(), 2048u);
    // All blocks but one of each eight are freed, and of one eight all.
    std::sort(small.begin(), small.end());
    std::vector<void*> freed, kept;
    for (size_t i = 0; i < small.size(); ++i) (i % 8 != 3 || i / 8 == 77 ? freed : kept).push_back(small[i]);
    for (size_t at = 0; at < freed.size(); at += 512)
      release(pool, {freed.begin() + static_cast<i64>(at),
                     freed.begin() + static_cast<i64>(std::min(at + 512, freed.size()))});
    auto const found = allocate(pool, {1, 33}, 128);
    EXPECT_EQ(std::count(found.begin(), found.end(), nullptr), 32);
    EXPECT_EQ(std::count(found.begin(), found.end(), small[77 * 8]), 1);
    pool.expect_quiet(kept.size() + 1);
    EXPECT_EQ(count_slots_by_grid(pool.allocator(), 64), 255u) << "four in a row of each other eight";
  });
}

TEST(Halloc, LeavesAHeadBeforeItIsFull) {
  constexpr creation::halloc_config counting{.slab_bytes = 16384, .counts_work = true};
  halloc_pool<creation::halloc<counting>> const pool{64};
  // Sixteen blocks a slab, of which 13.36 are 83.5%: the fourteenth brings the next head.
  std::vector<u64> const bytes(14 * 4, 1024);
  auto const answers = ask(pool, bytes);
  auto const& table = pool.allocator().table();
  std::vector<u32> used(64);
  for (auto const& block : answers) ++used[table.slab_at(table.offset_of(reinterpret_cast<void*>(block.address)))];
  EXPECT_EQ(std::count(used.begin(), used.end(), 14u), 4);
  EXPECT_EQ(pool.allocator().work().replacements, 5u) << "the first one, and four";
  EXPECT_EQ(pool.allocator().work().searches, 0u);
}

TEST(Halloc, SpreadsAWarpOverRuns) {
#if !defined(__CUDACC__)
  host::scoped_execution const use{{.mode = host::execution_mode::deterministic, .masks = host::mask_policy::maximal}};
#endif
  halloc_pool<> const pool{2};
  auto const blocks = allocate(pool, {1, 32}, 16);
  for (u32 lane = 0; lane < 32; ++lane) {
    u64 const run = reinterpret_cast<u64>(blocks[lane / 8 * 8]);
    EXPECT_EQ(reinterpret_cast<u64>(blocks[lane]), run + lane % 8 * 16);
    EXPECT_EQ(run, reinterpret_cast<u64>(blocks[0]) + lane / 8 * 11 * 8 * 16);
  }
  EXPECT_EQ(pool.allocator().work().probes, 0u) << "no two met";
}

TEST(Halloc, MovesMemoryBetweenSlabsAndLargeBlocks) {
  halloc_pool<> const pool{8};
  for (u32 round = 0; round < 3; ++round) {
    auto small = allocate(pool, {32, 40}, 128);
    std::erase(small, nullptr);
    ASSERT_EQ(small.size(), 8 * 128u);
    EXPECT_EQ(ask(pool, {5000})[0].address, 0u);
    for (auto* const block : small) release(pool, {block});
    auto const whole = ask(pool, {8 * halloc_slab_bytes})[0];
    ASSERT_NE(whole.address, 0u) << "heads and free slabs came back";
    EXPECT_EQ(ask(pool, {16})[0].address, 0u);
    pool.expect_quiet(1);
    free_addresses(pool, {whole.address});
    pool.expect_quiet(0);
  }
}

TEST(Halloc, KnowsABlockFromItsParts) {
  halloc_pool<> const pool{16};
  auto const live = ask(pool, {128, 48, 16, 3072, 20'000});
  std::vector<u64> inside;
  for (auto const& block : live)
    for (u64 offset = 8; offset < std::min<u64>(block.usable, 3072); offset += 8)
      inside.push_back(block.address + offset);
  free_addresses(pool, inside);
  auto const counts = pool.allocator().snapshot().statistics();
  EXPECT_EQ(counts.double_frees + counts.foreign_frees, inside.size());
  EXPECT_EQ(counts.live_blocks, 5u);
  for (auto const& line : pool.allocator().snapshot().check_invariants()) ADD_FAILURE() << line;
  for (u32 i = 0; i < 5; ++i) free_addresses(pool, {live[i].address, live[i].address});
  EXPECT_EQ(pool.allocator().snapshot().statistics().double_frees, counts.double_frees + 5);
  EXPECT_EQ(pool.allocator().snapshot().statistics().live_blocks, 0u);
}

TEST(Halloc, IsAsNewAfterAReset) {
  halloc_pool<> const pool{5};
  allocate(pool, {2, 64}, 100);
  ask(pool, {5000, 300, 20});
  pool.allocator().initialize({});
  synchronize();
  pool.expect_quiet(0);
  EXPECT_EQ(count_slots_by_grid(pool.allocator(), 16), 5 * 1024u);
  EXPECT_EQ(pool.allocator().snapshot().statistics().failures, 0u);
}

TEST(Halloc, KeepsASplitPoolApart) {
  constexpr creation::halloc_config three_quarters{.slab_bytes = 16384, .split_percent = 75};
  halloc_pool<creation::halloc<three_quarters>> const pool{16};
  EXPECT_EQ(pool.allocator().pool_bytes(), 16 * halloc_slab_bytes);
  EXPECT_EQ(count_slots_by_grid(pool.allocator(), 128), 12 * 128u);
  EXPECT_EQ(count_slots_by_grid(pool.allocator(), 4096), 16u);
  auto small = allocate(pool, {64, 32}, 128);
  std::erase(small, nullptr);
  EXPECT_EQ(small.size(), 12 * 128u) << "a quarter is left, and not for these";
  auto large = allocate(pool, {1, 20}, 4096);
  std::erase(large, nullptr);
  EXPECT_EQ(large.size(), 16u);
  pool.expect_quiet(small.size() + large.size());
  for (auto* const block : small) release(pool, {block});
  release(pool, large);
  pool.expect_quiet(0);
  EXPECT_EQ(pool.allocator().snapshot().statistics().free_slabs + pool.allocator().snapshot().statistics().empty_slabs,
            12u);
  EXPECT_EQ(count_slots_by_grid(pool.allocator(), 384), 12 * 40u);
}

TEST(Halloc, HasRoomForAllOfALargeGpu) {
  using halloc = creation::halloc<>;
  constexpr size_t bytes = size_t{141} << 30;
  EXPECT_LT(halloc::required_bytes(bytes) - bytes, bytes / 50);
  auto const heap = halloc::place(reinterpret_cast<void*>(u64{1} << 40), bytes);
  EXPECT_EQ(heap.pool_bytes(), bytes);
  EXPECT_EQ(heap.table().slabs(), bytes >> 22);
  EXPECT_EQ(heap.table().geometry().slab_log2(), 22u);
  EXPECT_EQ(heap.table().geometry().capacity(1) % 64, 0u);
  EXPECT_THROW(halloc::required_bytes(16383), std::invalid_argument);
}

}}  // namespace warpheap::test
