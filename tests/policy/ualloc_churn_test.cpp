// Bins that are made, listed, exhausted, emptied and reclaimed by a few lanes over a few pages, in one arena and in several; and
// nobody is refused what nobody holds.
#include "ualloc_pool.hpp"

namespace warpheap::test {
namespace {

using creation::ualloc;
using creation::ualloc_config;

using tight_ualloc = ualloc<tight>;

TEST(UallocChurn, OneChunkServesEverySize) { expect_clean_churn<tight_ualloc>({1, 2, 16, 8, 16, 6}, 250); }
TEST(UallocChurn, LargeBlocksEmptyTheirBinsAllTheTime) { expect_clean_churn<tight_ualloc>({1, 2, 17, 8, 256, 2}, 250); }
TEST(UallocChurn, OneSizeAlone) { expect_clean_churn<tight_ualloc>({1, 2, 33, 6, 1024, 0}, 150); }
TEST(UallocChurn, TailsBelongToTheirBins) { expect_clean_churn<tight_ualloc>({1, 2, 33, 6, 64, 1}, 100); }
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
TEST(UallocChurn, NobodyIsRefusedWhileABinIsKept) { expect_no_refusal<keeping_ualloc>(1, {7, 1}, 16, 1, 7, 100); }

/// All of the pool for one size, then all of it for another: nothing stays behind in bins, chunks or arenas.
TEST(UallocChurn, WhatWasOneSizeIsAnother) {
  for_each_schedule(15, [] {
    bin_pool<tight_ualloc> const pool{8 * small_chunk};
    constexpr u32 sizes_and_blocks_a_bin[][2] = {{1024, 3}, {512, 7}, {128, 32}, {1024, 3}};
    for (auto const& [bytes, blocks_a_bin] : sizes_and_blocks_a_bin) {
      u32 const slots = static_cast<u32>(pool.allocator().available_slots_on_host(bytes));
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

/// Even and odd lanes of a warp hold different heaps, and call at one place.
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

}  // namespace
}  // namespace warpheap::test
