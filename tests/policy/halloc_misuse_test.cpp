// Halloc under misuse: frees of blocks that were freed before, while others ask and free, and pointers that reach the lane
// that frees them by ways that order nothing.
#include "halloc_pool.hpp"
#include "stray_frees.hpp"

namespace warpheap::test {
namespace {

constexpr u64 whole_slab = halloc_slab_bytes;

struct misuse {
  u32 slabs;
  launch_shape shape;
  sizes_between sizes;
};

void expect_whole_after(misuse const& of, u64 seed) {
  halloc_pool<> const pool{of.slabs};
  launch(of.shape, frees_twice{.rounds = 10, .sizes = of.sizes, .seed = seed}, pool.allocator());
  synchronize();
  EXPECT_EQ(fault_after_misuse(pool, of.sizes.least), "");
}

void expect_whole_after_warps(misuse const& of, u64 seed) {
  halloc_pool<> const pool{of.slabs};
  device_buffer<u64> const board(24);
  launch(of.shape, warps_free_twice{.rounds = 6, .sizes = of.sizes, .seed = seed}, pool.allocator(), board.data(), 24u);
  synchronize();
  EXPECT_EQ(fault_after_misuse(pool, of.sizes.least), "");
}

#if !defined(__CUDACC__)

/// Under one schedule, at which it once failed.
void replay(misuse const& of, std::initializer_list<u64> seeds) {
  for (u64 const seed : seeds) {
    auto const run = schedule_of(seed);
    SCOPED_TRACE(host::describe(run));
    host::scoped_execution const use{run};
    auto const body = [&] { expect_whole_after(of, seed); };
    detail::run_guarded(body);
  }
}

// A free that met a block of four chunks just being taken, before its joined bits were set, cleared one chunk of it.
TEST(HallocMisuse, SeedsAtWhichADoubleFreeLeftJoinedBitsWithoutABlock) {
  replay({2, {4, 2}, {1024, 1024}}, {8, 10, 35, 54});
  replay({2, {4, 2}, {256, 2048}}, {7, 19, 22, 28});
  replay({2, {3, 8}, {16, 256}}, {55, 56, 67});
  replay({2, {6, 1}, {16, 3072}}, {31, 71, 142, 186});
}

// A free of a large block that was freed meanwhile ended the slab that TBuddy's memory had become.
TEST(HallocMisuse, SeedsAtWhichADoubleFreeOfALargeBlockEndedASlab) {
  replay({4, {4, 2}, {512, 2 * whole_slab}}, {54, 59, 92, 107, 232, 255, 287});
}

#endif

TEST(HallocMisuse, DoubleFreesUnderTrafficLeaveTheHeapWhole) {
  u64 seed = 0;
  auto const sweep = [&](unsigned seeds, misuse const& of) {
    for_each_schedule(seeds, [&] { expect_whole_after(of, seed++); });
  };
  sweep(400, {2, {4, 2}, {1024, 1024}});
  sweep(300, {2, {4, 2}, {256, 2048}});
  sweep(60, {2, {3, 8}, {16, 256}});
  sweep(40, {3, {2, 33}, {24, 3072}});
  sweep(200, {2, {6, 1}, {16, 3072}});
}

TEST(HallocMisuse, DoubleFreesOfLargeBlocksLeaveTheHeapWhole) {
  u64 seed = 0;
  // Slabs and large blocks take each other's memory, so an old pointer to a large block leads into a slab.
  for_each_schedule(300, [&] { expect_whole_after({4, {4, 2}, {512, 2 * whole_slab}}, seed++); });
}

TEST(HallocMisuse, WarpsThatFreeTheSameBlocksTogetherLeaveTheHeapWhole) {
  u64 seed = 0;
  auto const sweep = [&](unsigned seeds, misuse const& of) {
    for_each_schedule(seeds, [&] { expect_whole_after_warps(of, seed++); });
  };
  sweep(100, {2, {2, 8}, {16, 256}});
  sweep(40, {3, {1, 31}, {16, 3072}});
  sweep(40, {3, {1, 33}, {256, 2048}});
  sweep(30, {4, {2, 40}, {64, 2 * whole_slab}});
}

TEST(HallocMisuse, TheSecondFreesOfAWarpAreCountedOneByOne) {
  for_each_schedule(50, [] {
    halloc_pool<> const pool{2};
    auto blocks = allocate(pool, {1, 31}, 48);
    release(pool, blocks);
    pool.expect_quiet(0);
    release(pool, blocks);
    pool.expect_quiet(0, 31);
    auto const one = allocate(pool, {1, 1}, 96);
    release(pool, std::vector<void*>(32, one[0]));
    pool.expect_quiet(0, 62);
  });
}

/// The first fills the heap with blocks of another kind, in slabs that a moment ago had chunks of the old one.
TEST(HallocMisuse, AnOldPointerFreesNothingOfAnotherKind) {
  halloc_pool<> const pool{2};
  auto const old = allocate(pool, {8, 32}, 48);
  for (size_t at = 0; at < old.size(); at += 32)
    release(pool, {old.begin() + static_cast<i64>(at), old.begin() + static_cast<i64>(at) + 32});
  auto const fresh = allocate(pool, {4, 32}, 384);
  u64 live = 0;
  std::vector<void*> stale;
  for (void* const block : fresh) live += block != nullptr;
  for (void* const block : old)
    if (block && std::find(fresh.begin(), fresh.end(), block) == fresh.end()) stale.push_back(block);
  release(pool, stale);
  ASSERT_GT(live, 64u);
  pool.expect_quiet(live, stale.size());
}

TEST(HallocMisuse, FreesWhatCameByAWayThatOrdersNothing) {
  for (u64 const bytes : {u64{48}, u64{1024}, u64{5000}})
    for (auto const how : {hand_over::by_shuffle, hand_over::by_shuffle_and_barrier, hand_over::by_relaxed_mailbox,
                           hand_over::by_release_and_acquire}) {
      SCOPED_TRACE(std::to_string(bytes) + " bytes, way " + std::to_string(static_cast<int>(how)));
      for_each_schedule(100, [&] { EXPECT_TRUE(frees_what_came(halloc_pool<>{4}, how, bytes)); });
    }
}

}  // namespace
}  // namespace warpheap::test
