// SPDX-License-Identifier: Apache-2.0
// Slabs that change their kind, one call at a time: which are taken, what they become, and in which
// indexes they are then.
#include "transitions_fixture.hpp"

namespace slab_bitmap_lock_test {

using namespace warpheap;
using namespace warpheap::slab_bitmap_parts;
using test::capacity_of;
using test::classes_tried;
using test::for_each_call;
using test::live;
using test::of_kind;
using test::slab_call;
using test::slab_outcome;
using test::slab_situation;

TEST(SlabBitmapLock, OnlyFreeAndEmptySlabsAreTaken) {
  u32 const size_class = 20;
  auto index_locked = live(size_class, 0, 3);
  index_locked.word |= slab_state::index_lock_bit;
  for_each_call({slab_call::take, size_class},
                {of_kind(slab_kind::locked), of_kind(slab_kind::run), live(size_class, 1, 1),
                 live(size_class, 15, 15, true), index_locked},
                [](slab_situation const& before, slab_situation const& after, slab_outcome const& got) {
                  EXPECT_FALSE(got.done);
                  EXPECT_EQ(after, before);
                });
  // Off its indexes, but in reclaimable until it is published.
  for_each_call({slab_call::take, size_class},
                {of_kind(slab_kind::free), live(size_class, 0, 9), of_kind(slab_kind::free, 2)},
                [](slab_situation const& before, slab_situation const& after, slab_outcome const& got) {
                  EXPECT_TRUE(got.done);
                  u32 const used = before.state().used();
                  u64 const next = (before.word & ~(slab_state::generation_unit - 1)) + slab_state::generation_unit;
                  u64 const locked = slab_state::of(slab_kind::locked, 0).word + slab_state::reservation(used) + next;
                  EXPECT_EQ(after, (slab_situation{locked, false, false, true, false}));
                });
  for_each_call({slab_call::take_free, size_class},
                {of_kind(slab_kind::free), live(size_class, 0, 3), of_kind(slab_kind::locked)},
                [&](slab_situation const& before, slab_situation const& after, slab_outcome const& got) {
                  EXPECT_EQ(got.done, before.is_free);
                  if (!before.is_free) EXPECT_EQ(after, before);
                  else EXPECT_FALSE(after.is_free);
                  EXPECT_EQ(after.reclaimable, before.reclaimable);
                });
}

TEST(SlabBitmapLock, ALockedSlabBecomesOneOfTheClass) {
  for (u32 const size_class : classes_tried) {
    slab_limits const limits{capacity_of(size_class)};
    for (u32 const wanted : {0u, 1u, 2u, 14u, 15u, 32u}) {
      auto locked = of_kind(slab_kind::locked), crowded = of_kind(slab_kind::locked, 2);
      locked.reclaimable = crowded.reclaimable = true;
      for_each_call({slab_call::publish, size_class, wanted}, {locked, crowded},
                    [&](slab_situation const& before, slab_situation const& after, slab_outcome const& got) {
                      u32 const reserved = std::min(wanted, limits.capacity);
                      bool const is_high = reserved >= limits.high;
                      slab_state const now = after.state();
                      EXPECT_TRUE(now.serves(size_class));
                      EXPECT_EQ(now.used(), before.state().used() + reserved);
                      EXPECT_EQ(now.bump(), before.state().bump() + reserved);
                      EXPECT_EQ(now.is_unlisted(), is_high);
                      EXPECT_EQ(after.partial, !is_high);
                      EXPECT_TRUE(after.maybe_available);
                      EXPECT_EQ(after.reclaimable, reserved == 0);
                      EXPECT_EQ(got.blocks, reserved);
                      EXPECT_EQ(got.place, 0u);
                      EXPECT_EQ(got.is_new, before.state().bump() == 0);
                      EXPECT_EQ(got.reaches_high, is_high);
                    });
    }
  }
}

}  // namespace slab_bitmap_lock_test
