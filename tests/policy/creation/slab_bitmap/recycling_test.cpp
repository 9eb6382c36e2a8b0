// SPDX-License-Identifier: Apache-2.0
// What happens to an empty slab whose bitmap is not zero after all: it is left as it is, whatever
// is asked for.
#include "pool_fixture.hpp"

namespace warpheap::test { namespace {

/// Sets one bit behind the allocator's back, and tries to recycle the slab for another class.
struct recycle_with_a_stray_bit {
  WARPHEAP_DEVICE void operator()(slab_table table, u64 stray, u32 size_class, u64* result) const {
    atomic_ref<u64>{table.blocks(0).words[0]}.fetch_or(stray, order::relaxed);
    result[0] = table.load(0).word;
    bool const taken = slab_lock::take(table, 0);
    if (taken) slab_lock::publish(table, 0, size_class, 1, slab_table::no_entry);
    result[1] = taken;
    result[2] = table.load(0).word;
    result[3] = table.blocks(0).load(0);
  }
};

// slab.D3
TEST(SlabBitmapRecycling, LeavesASlabWhoseWordsAreNotZero) {
  tiny_pool const pool{1};
  release(pool, allocate(pool, {1, 1}, 64));
  device_buffer<u64> result(4);
  u64 const stray = 0x100;
  launch({1, 1}, recycle_with_a_stray_bit{}, pool.allocator().table(), stray, size_class_of(1024), result.data());
  synchronize();
  EXPECT_EQ(result[1], 0u);
  // All but how often it was taken, and T, which only a fix-up sets.
  EXPECT_EQ(result[2] % slab_state::bump_unit, result[0] % slab_state::bump_unit & ~slab_state::reclaimable_bit);
  EXPECT_EQ(result[3], stray);
}

TEST(SlabBitmapRecycling, GivesACleanSlabToAnotherClass) {
  tiny_pool const pool{1};
  release(pool, allocate(pool, {1, 1}, 64));
  device_buffer<u64> result(4);
  launch({1, 1}, recycle_with_a_stray_bit{}, pool.allocator().table(), u64{0}, size_class_of(1024), result.data());
  synchronize();
  EXPECT_EQ(result[1], 1u);
  EXPECT_EQ(slab_state{result[2]}.size_class(), size_class_of(1024));
  EXPECT_EQ(slab_state{result[2]}.used(), 1u);
}

/// Tries to recycle an empty slab that is marked full and off its index, as one is whose last free
/// has yet to fix it up.
struct recycle_a_slab_not_fixed_up {
  WARPHEAP_DEVICE void operator()(slab_table table, u64 stray, u32 size_class, u32* taken) const {
    u32 const old_class = table.load(0).size_class();
    table.state(0).fetch_or(slab_state::unlisted_bit | slab_state::full_bit, order::relaxed);
    table.index(slab_table::partial(old_class)).xor_bit(0);
    table.index(slab_table::maybe_available(old_class)).clear(0, order::relaxed);
    atomic_ref<u64> const word{table.blocks(0).words[0]};
    word.fetch_or(stray, order::relaxed);
    *taken = slab_lock::take(table, 0);
    word.fetch_and(~stray, order::relaxed);
    if (*taken) slab_lock::publish(table, 0, size_class, 0, slab_table::no_entry);
  }
};

// A fix-up that meets the lock leaves the slab to the lane that holds it.
TEST(SlabBitmapRecycling, ListsASlabNotFixedUpThatItLeaves) {
  for (u64 const stray : {0x100, 0}) {
    tiny_pool const pool{1};
    release(pool, allocate(pool, {1, 1}, 64));
    device_buffer<u32> taken(1);
    launch({1, 1}, recycle_a_slab_not_fixed_up{}, pool.allocator().table(), stray, size_class_of(1024), taken.data());
    synchronize();
    EXPECT_EQ(taken[0], stray == 0 ? 1u : 0u);
    pool.expect_empty();
  }
}

}}  // namespace warpheap::test
