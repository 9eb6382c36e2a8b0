// SPDX-License-Identifier: Apache-2.0
// Bins that are made, listed, exhausted, emptied and reclaimed by a few lanes over a few pages, in
// one arena and in several. No lane is refused a block that has no owner.
#include "pool_fixture.hpp"

namespace warpheap::test { namespace {

using creation::ualloc;
using creation::ualloc_config;

using tight_ualloc = ualloc<tight>;

// At rest: bins.A3, bins.A4, bins.K1, bins.N3, bins.N4, bins.N5, bins.P1, bins.P2
TEST(UallocChurn, OneChunkServesEverySize) { expect_clean_churn<tight_ualloc>({1, 2, 16, 8, 16, 6}, 250); }
TEST(UallocChurn, LargeBlocksEmptyTheirBinsAllTheTime) { expect_clean_churn<tight_ualloc>({1, 2, 17, 8, 256, 2}, 250); }
TEST(UallocChurn, OneSizeAlone) { expect_clean_churn<tight_ualloc>({1, 2, 33, 6, 1024, 0}, 150); }
TEST(UallocChurn, TailsBelongToTheirBins) { expect_clean_churn<tight_ualloc>({1, 2, 33, 6, 64, 1}, 100); }
// At rest: ualloc.T2
TEST(UallocChurn, SeveralArenasShareThePool) { expect_clean_churn<tight_ualloc>({8, 4, 17, 6, 128, 3}, 150); }
TEST(UallocChurn, OneLane) { expect_clean_churn<tight_ualloc>({1, 1, 1, 40, 16, 6}, 30); }

using keeping_ualloc = ualloc<keeping>;
TEST(UallocChurn, BinsThatAreKeptComeBackForOthers) { expect_clean_churn<keeping_ualloc>({2, 2, 17, 8, 128, 3}, 80); }

using wide_ualloc = ualloc<tight_and_wide>;
TEST(UallocChurn, BinsOfSeveralPages) { expect_clean_churn<wide_ualloc>({4, 2, 17, 8, 256, 3}, 150); }

constexpr ualloc_config bytewise{.chunk_log2 = 15, .least_bytes = 8, .idle_bins = 0};
using bytewise_ualloc = ualloc<bytewise>;
TEST(UallocChurn, BlocksOfEightBytes) { expect_clean_churn<bytewise_ualloc>({1, 2, 33, 6, 8, 1}, 60); }

// As many bins as lanes, or as many blocks.
TEST(UallocChurn, NobodyIsRefusedWhileABinIsFree) { expect_no_refusal<tight_ualloc>(1, {7, 1}, 16, 1, 7, 500); }
TEST(UallocChurn, NobodyIsRefusedWhileABlockIsFree) { expect_no_refusal<tight_ualloc>(1, {3, 7}, 1024, 0, 1, 1000); }
TEST(UallocChurn, NobodyIsRefusedWhileAnotherArenaHasABin) {
  expect_no_refusal<tight_ualloc>(8, {7, 8}, 16, 3, 3, 100);
}
// bins.A1, bins.Y3
TEST(UallocChurn, NobodyIsRefusedWhileABinIsKept) { expect_no_refusal<keeping_ualloc>(1, {7, 1}, 16, 1, 7, 100); }

/// All of the pool for one size, then all of it for another: nothing stays behind in bins, chunks
/// or arenas.
TEST(UallocChurn, WhatWasOneSizeIsAnother) {
  for_each_schedule(15, [] {
    bin_pool<tight_ualloc> const pool{8 * small_chunk};
    constexpr u32 sizes_and_blocks_a_bin[][2] = {{1024, 3}, {512, 7}, {128, 32}, {1024, 3}};
    for (auto const& [bytes, blocks_a_bin] : sizes_and_blocks_a_bin) {
      u32 const slots = static_cast<u32>(count_slots_by_grid(pool.allocator(), bytes));
      EXPECT_EQ(slots, 8 * 7 * blocks_a_bin);
      u32 const lanes = 32 * ((slots + 63) / 32);
      device_buffer<void*> blocks(lanes);
      launch({lanes / 32, 32}, create_each{}, pool.allocator(), u64{bytes}, blocks.data());
      synchronize();
      pool.expect_quiet(slots);
      launch({lanes / 32, 32}, destroy_each{}, pool.allocator(), blocks.data());
      synchronize();
      pool.expect_quiet(0);
    }
  });
}

/// Even and odd lanes of a warp use different heaps, and call at one place.
struct call_two_heaps {
  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator even, Allocator odd, void** blocks) const {
    u64 const me = global_thread_index();
    Allocator const heap = me % 2 ? odd : even;
    blocks[me] = heap.create(me % 3 ? 64 : 512);
    if (me % 5 == 0) heap.destroy(blocks[me]);
  }
};

TEST(UallocChurn, LanesOfAWarpMayHoldDifferentHeaps) {
  for_each_schedule(30, [] {
    bin_pool<tight_ualloc> const even{2 * small_chunk}, odd{2 * small_chunk};
    device_buffer<void*> blocks(60);
    launch({2, 30}, call_two_heaps{}, even.allocator(), odd.allocator(), blocks.data());
    synchronize();
    even.expect_quiet(24);
    odd.expect_quiet(24);
  });
}

/// Kernel of one lane: makes every page of the first chunk look like an old bin of 1 KiB blocks.
struct write_bins_of_before {
  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap) const {
    auto const& table = heap.table();
    bins::bin_role const role{0, bins::layout<tight>::class_of(1024)};
    for (u32 page = table.chunk().specials(); page < table.chunk().pages(); ++page)
      table.bin(page).life().store(bins::bin_life::of(role, 3), order::relaxed);
  }
};

/// Kernel of one lane: counts the pages of the first chunk that look like such bins.
struct count_bins_of_before {
  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, lanes_report* report) const {
    auto const& table = heap.table();
    for (u32 page = table.chunk().specials(); page < table.chunk().pages(); ++page) {
      bins::bin_role const role = table.bin(page).role();
      report->broken += role.is_live() && role.size_class() == bins::layout<tight>::class_of(1024);
      report->served += role.is_live() && role.size_class() == bins::layout<tight>::class_of(64);
    }
  }
};

// A chunk comes with whatever its last owner has written, and the lanes that need it clear it
// together.
TEST(UallocChurn, ANewChunkHasNoBinsOfBefore) {
  for (u32 const lanes : {1u, 2u, 5u, 7u, 32u})
    for_each_schedule(30, [&] {
      bin_pool<tight_ualloc> const pool{small_chunk};
      launch({1, 1}, write_bins_of_before{}, pool.allocator());
      auto const blocks = allocate(pool, {1, lanes}, 64);
      device_buffer<lanes_report> const report(1);
      launch({1, 1}, count_bins_of_before{}, pool.allocator(), report.data());
      synchronize();
      EXPECT_EQ(report[0].broken, 0u) << lanes << " lanes";
      EXPECT_GE(report[0].served, 1u);
      pool.expect_quiet(lanes);
    });
}

}}  // namespace warpheap::test
