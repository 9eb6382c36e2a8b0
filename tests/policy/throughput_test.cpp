// UAlloc and TBuddy as one: memory moves between them, whoever has it, and each frees what is its own.
#include <algorithm>

#include "ualloc_pool.hpp"

namespace warpheap::test {
namespace {

using creation::throughput;
using creation::ualloc_config;

using tight_throughput = throughput<tight>;
constexpr ualloc_config wide{.chunk_log2 = 17, .wide_bins = true, .idle_bins = 0};
using wide_throughput = throughput<wide>;
constexpr ualloc_config keeping{.chunk_log2 = 15, .idle_bins = 2};
using keeping_throughput = throughput<keeping>;

struct churn_case {
  u32 chunks, blocks, threads, rounds, least, doublings;
};

template <class Allocator = tight_throughput>
void expect_clean_churn(churn_case shape, unsigned seeds) {
  u64 seed = 0;
  for_each_schedule(seeds, [&] {
    bin_pool<Allocator> const pool{shape.chunks * small_chunk};
    device_buffer<bin_report> report(1);
    bin_churn const body{shape.rounds, shape.least, shape.doublings, 1000 * ++seed};
    launch({shape.blocks, shape.threads}, body, pool.allocator(), report.data());
    synchronize();
    EXPECT_EQ(report[0].broken, 0u);
    EXPECT_GT(report[0].served, 0u);
    pool.expect_quiet(0);
    u64 const bytes = pool.allocator().pool_bytes();
    if (is_power_of_two(bytes)) {
      EXPECT_EQ(pool.allocator().available_slots_on_host(bytes), 1u);
    }
  });
}

TEST(Throughput, SmallAndLargeTakeTurns) { expect_clean_churn({2, 2, 16, 8, 16, 11}, 200); }
TEST(Throughput, BlocksAboveAndBelowThePage) { expect_clean_churn({2, 2, 17, 8, 512, 4}, 200); }
TEST(Throughput, SeveralArenas) { expect_clean_churn({8, 4, 17, 6, 256, 8}, 100); }
TEST(Throughput, APoolThatIsNoPowerOfTwo) { expect_clean_churn({3, 2, 16, 8, 16, 11}, 100); }
TEST(Throughput, WideBins) { expect_clean_churn<wide_throughput>({8, 2, 17, 6, 256, 8}, 100); }
TEST(Throughput, IdleBinsAreBroughtBack) { expect_clean_churn<keeping_throughput>({2, 2, 17, 8, 64, 9}, 100); }

/// As many pieces as large as chunks as lanes, each of which holds one block at most: bins, pages and whole pieces, nobody is
/// ever refused.
template <class Allocator>
void expect_no_refusal(launch_shape shape, u64 least, u32 step_log2, u32 sizes, unsigned seeds) {
  u32 const lanes = shape.blocks * shape.threads;
  for_each_schedule(seeds, [&] {
    bin_pool<Allocator> const pool{lanes * small_chunk};
    device_buffer<bin_report> report(1);
    launch(shape, take_one_and_give_it_back{}, pool.allocator(), u32{5}, least, step_log2, sizes, report.data());
    synchronize();
    EXPECT_EQ(report[0].refused, 0u);
    EXPECT_EQ(report[0].served, 5 * lanes);
    pool.expect_quiet(0);
  });
}

TEST(Throughput, NobodyIsRefusedWhileAChunkIsFree) { expect_no_refusal<tight_throughput>({8, 1}, 64, 3, 4, 300); }
TEST(Throughput, NobodyIsRefusedWhileTwoTakeTurns) { expect_no_refusal<tight_throughput>({2, 1}, 1024, 5, 2, 400); }
TEST(Throughput, NobodyIsRefusedWhileAChunkIsKept) { expect_no_refusal<keeping_throughput>({2, 4}, 64, 3, 4, 100); }

/// All of the pool in small blocks, then in one piece, and again.
TEST(Throughput, AllOfThePoolIsSmallBlocksOrOneLargeOne) {
  for_each_schedule(20, [] {
    bin_pool<keeping_throughput> const pool{4 * small_chunk};
    u64 const bytes = pool.allocator().pool_bytes();
    device_buffer<void*> large(1);
    for (u32 round = 0; round < 2; ++round) {
      u32 const slots = static_cast<u32>(pool.allocator().available_slots_on_host(128));
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

/// The start of a chunk is a live block of TBuddy, and nobody's to free.
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
  EXPECT_EQ(pool.allocator().statistics().foreign_frees, 2u);
  EXPECT_EQ(pool.allocator().statistics().live_blocks, 1u);
  EXPECT_TRUE(pool.allocator().check_invariants().empty());
  launch({1, 1}, destroy_each{}, pool.allocator(), block.data());
  synchronize();
  EXPECT_EQ(pool.allocator().statistics().live_blocks, 0u);
}

}  // namespace
}  // namespace warpheap::test
