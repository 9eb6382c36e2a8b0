// SPDX-License-Identifier: Apache-2.0
// UAlloc and TBuddy as one: memory moves between the two, whichever has it, and each frees its own
// blocks.
#include <algorithm>

#include "ualloc/pool_fixture.hpp"

namespace warpheap::test { namespace {

using creation::throughput;

using tight_throughput = throughput<tight>;
using wide_throughput = throughput<tight_and_wide>;
using keeping_throughput = throughput<keeping>;

// At rest: throughput.H1
TEST(Throughput, SmallAndLargeTakeTurns) { expect_clean_churn<tight_throughput>({2, 2, 16, 8, 16, 11}, 200); }
TEST(Throughput, BlocksAboveAndBelowThePage) { expect_clean_churn<tight_throughput>({2, 2, 17, 8, 512, 4}, 200); }
TEST(Throughput, SeveralArenas) { expect_clean_churn<tight_throughput>({8, 4, 17, 6, 256, 8}, 100); }
TEST(Throughput, APoolThatIsNoPowerOfTwo) { expect_clean_churn<tight_throughput>({3, 2, 16, 8, 16, 11}, 100); }
TEST(Throughput, WideBins) { expect_clean_churn<wide_throughput>({8, 2, 17, 6, 256, 8}, 100); }
TEST(Throughput, IdleBinsAreBroughtBack) { expect_clean_churn<keeping_throughput>({2, 2, 17, 8, 64, 9}, 100); }

// As many chunk-sized pieces as lanes.
TEST(Throughput, NobodyIsRefusedWhileAChunkIsFree) { expect_no_refusal<tight_throughput>(8, {8, 1}, 64, 3, 4, 300); }
TEST(Throughput, NobodyIsRefusedWhileTwoTakeTurns) { expect_no_refusal<tight_throughput>(2, {2, 1}, 1024, 5, 2, 400); }
TEST(Throughput, NobodyIsRefusedWhileAChunkIsKept) { expect_no_refusal<keeping_throughput>(8, {2, 4}, 64, 3, 4, 100); }

/// All of the pool in small blocks, then in one piece, and again.
TEST(Throughput, AllOfThePoolIsSmallBlocksOrOneLargeOne) {
  for_each_schedule(20, [] {
    bin_pool<keeping_throughput> const pool{4 * small_chunk};
    u64 const bytes = pool.allocator().pool_bytes();
    device_buffer<void*> large(1);
    for (u32 round = 0; round < 2; ++round) {
      u32 const slots = static_cast<u32>(count_slots_by_grid(pool.allocator(), 128));
      EXPECT_EQ(slots, 4u * 7 * 32);
      device_buffer<void*> small(slots + 8);
      launch({(slots + 8) / 8, 8}, create_each{}, pool.allocator(), u64{100}, small.data());
      launch({1, 1}, create_each{}, pool.allocator(), u64{4096}, large.data());
      synchronize();
      EXPECT_EQ(large[0], nullptr);
      pool.expect_quiet(slots);
      launch({(slots + 8) / 8, 8}, destroy_each{}, pool.allocator(), small.data());
      launch({1, 1}, create_each{}, pool.allocator(), bytes, large.data());
      synchronize();
      EXPECT_NE(large[0], nullptr);
      pool.expect_quiet(1);
      launch({1, 1}, destroy_each{}, pool.allocator(), large.data());
      synchronize();
    }
  });
}

/// One warp asks as a whole, another lane by lane; both get blocks that lie as the address says.
TEST(Throughput, TheAddressSaysWhoseABlockIs) {
  for_each_schedule(50, [] {
    bin_pool<tight_throughput> const pool{16 * small_chunk};
    for (u64 const bytes : {16, 100, 1024, 1025, 5000}) {
      device_buffer<void*> blocks(41);
      launch({1, 41}, create_each{}, pool.allocator(), bytes, blocks.data());
      synchronize();
      for (void* const block : blocks.to_host()) {
        ASSERT_NE(block, nullptr);
        EXPECT_EQ(reinterpret_cast<u64>(block) % 4096 == 0, bytes > 1024);
      }
      launch({1, 41}, destroy_each{}, pool.allocator(), blocks.data());
      synchronize();
      pool.expect_quiet(0);
    }
  });
}

/// The start of a chunk is a live block of TBuddy, and no caller may free it.
TEST(Throughput, FreeingAChunkIsCountedAndIgnored) {
  bin_pool<tight_throughput> const pool{4 * small_chunk};
  device_buffer<void*> block(1);
  launch({1, 1}, create_each{}, pool.allocator(), u64{64}, block.data());
  synchronize();
  u64 const inside = reinterpret_cast<u64>(block[0]);
  u64 const start = reinterpret_cast<u64>(pool.allocator().table().pool());
  u64 const chunk = start + align_down(inside - start, small_chunk);
  device_buffer<void*> const wild{{reinterpret_cast<void*>(chunk), reinterpret_cast<void*>(chunk + 4096)}};
  launch({1, 2}, destroy_each{}, pool.allocator(), wild.data());
  synchronize();
  EXPECT_EQ(pool.allocator().snapshot().statistics().foreign_frees, 2u);
  EXPECT_EQ(pool.allocator().snapshot().statistics().live_blocks, 1u);
  EXPECT_TRUE(pool.allocator().snapshot().check_invariants().empty());
  launch({1, 1}, destroy_each{}, pool.allocator(), block.data());
  synchronize();
  EXPECT_EQ(pool.allocator().snapshot().statistics().live_blocks, 0u);
}

}}  // namespace warpheap::test
