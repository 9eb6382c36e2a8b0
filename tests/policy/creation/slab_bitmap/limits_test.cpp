// When a slab leaves the index of its class and when it comes back, and how many rows of hints a
// pool has.
#include "pool_fixture.hpp"

namespace warpheap::test {
namespace {

/// Takes `blocks` blocks of 1 KiB one after the other, gives them back, and says after each call
/// whether slab 0 was off the index. One lane.
struct fill_and_empty {
  WARPHEAP_DEVICE void operator()(slab_allocator heap, u32 blocks, void** held, u32* off) const {
    for (u32 i = 0; i < blocks; ++i) {
      held[i] = heap.create(1024);
      off[i] = heap.table().load(0).is_unlisted();
    }
    for (u32 i = 0; i < blocks; ++i) {
      heap.destroy(held[i]);
      off[blocks + i] = heap.table().load(0).is_unlisted();
    }
  }
};

// Words.
constexpr slab_state live_63{slab_state::of(slab_kind::live, 63).word + 1};
static_assert(live_63.is_settled(63) && !live_63.is_settled(62));
static_assert(!slab_state::of(slab_kind::live, 63).is_settled(63), "nothing is promised");
static_assert(!slab_state{slab_state::of(slab_kind::locked, 63).word + 1}.is_settled(63));
static_assert(!slab_state{live_63.word | slab_state::full_bit}.is_settled(63));
static_assert(slab_limits{1}.soft == 1 && slab_limits{1}.relist == 0);
static_assert(slab_limits{2}.relist < 2 && slab_limits{4}.relist < slab_limits{4}.soft && slab_limits{8}.relist == 6);
static_assert(slab_limits{5}.relist < slab_limits{5}.soft && slab_limits{64}.soft == 60);
static_assert(slab_role::of_class(0).index_at(16 * 77) == 77 && slab_role::of_class(2).index_at(48 * 5) == 5);
static_assert(slab_role::of_class(2).index_at(40) == slab_role::no_block && slab_role::of_class(63).size_class() == 63);

TEST(SlabBitmapLimits, ASlabIsLeftBeforeItIsFullAndListedAgainWithAGap) {
  u32 const blocks = 16;  // 16 KiB of 1 KiB each: soft at 15, listed again at 13
  tiny_pool const pool{1};
  device_buffer<void*> held(blocks);
  device_buffer<u32> off(2 * blocks);
  launch({1, 1}, fill_and_empty{}, pool.allocator(), blocks, held.data(), off.data());
  synchronize();
  for (u32 used = 1; used <= blocks; ++used) EXPECT_EQ(off[used - 1], used >= 15) << used << " blocks, growing";
  for (u32 used = 0; used < blocks; ++used)
    EXPECT_EQ(off[2 * blocks - 1 - used], used > 13) << used << " blocks, shrinking";
}

TEST(SlabBitmapLimits, APoolHasAsManyRowsOfHintsAsLeaveEightSlabsEachAndAMultiprocessorAtMostSixteen) {
  u32 const largest_slab = 18;
  for (u32 const multiprocessors : {1u, 5u, 132u})
    for (u64 pool_bytes = u64{1} << 20; pool_bytes <= u64{1} << 36; pool_bytes += pool_bytes / 4) {
      auto const geometry = slab_geometry_for(pool_bytes, multiprocessors, largest_slab);
      u64 const rows = geometry.rows(), most = u64{16} << log2_ceil(multiprocessors);
      ASSERT_LE(8 * rows, geometry.slabs()) << pool_bytes << " bytes, " << multiprocessors << " multiprocessors";
      ASSERT_TRUE(16 * rows > geometry.slabs() || rows == most) << pool_bytes << " bytes, " << rows << " rows";
    }
}

/// Asks for blocks until one is refused. One lane.
struct ask_until_refused {
  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, u64 bytes, u64* got) const {
    while (heap.create(bytes)) ++*got;
  }
};

// Of a pool with more slabs than are searched from the lowest on, one lane got 3,129 runs of 3,276.
TEST(SlabBitmapLimits, EqualRunsLeaveNoGapsInALargePool) {
  using allocator = creation::slab_bitmap<{.max_slab_log2 = 14}>;
  for (u32 const length : {3u, 5u, 77u}) {
    quiet_pool<allocator> const pool{u64{6000} << 14};
    auto const geometry = pool.allocator().geometry();
    ASSERT_EQ(geometry.slab_log2(), 14u);
    device_buffer<u64> const got(1);
    launch({1, 1}, ask_until_refused{}, pool.allocator(), length * geometry.slab_bytes(), got.data());
    synchronize();
    EXPECT_EQ(got[0], geometry.slabs() / length) << "runs of " << length << " slabs";
  }
}

}  // namespace
}  // namespace warpheap::test
