// SPDX-License-Identifier: Apache-2.0
// The packed words: each field reads back what was put in and leaves the others alone, and
// questions about a word depend on the fields that they name alone.
#include "warpheap/policy/creation/slab_bitmap/words.hpp"

#include <gtest/gtest.h>

#include "warpheap/util/random.hpp"

namespace slab_bitmap_words_test {

using namespace warpheap;
using namespace slab_bitmap_parts;

/// A descriptor, field by field.
struct fields {
  u32 used, size_class, kind;
  bool is_in_reclaimable, is_index_locked, is_unlisted, is_full;
  u32 bump, generation;

  slab_state word() const {
    return {u64{used} | u64{size_class} << 20 | u64{is_in_reclaimable} << 26 | u64{is_index_locked} << 27 |
            u64{kind} << 28 | u64{is_unlisted} << 30 | u64{is_full} << 31 | u64{bump} << 32 | u64{generation} << 52};
  }
};

/// Calls visit(fields) for words with every field at its ends and in between.
template <class Visitor>
void for_each_word(Visitor visit) {
  for (u32 const used : {0u, 1u, 5u, (1u << 20) - 1})
    for (u32 const size_class : {0u, 1u, 62u, 63u})
      for (u32 kind = 0; kind < 4; ++kind)
        for (u32 flags = 0; flags < 16; ++flags)
          for (u32 const bump : {0u, 1u, (1u << 20) - 1})
            for (u32 const generation : {0u, 1u, 4095u})
              visit(fields{used, size_class, kind, (flags & 8) != 0, (flags & 1) != 0, (flags & 2) != 0,
                           (flags & 4) != 0, bump, generation});
}

TEST(SlabBitmapWords, ADescriptorReadsBackEachField) {
  for_each_word([](fields const& are) {
    slab_state const word = are.word();
    ASSERT_EQ(word.used(), are.used);
    ASSERT_EQ(word.size_class(), are.size_class);
    ASSERT_EQ(static_cast<u32>(word.kind()), are.kind);
    ASSERT_EQ(word.is_in_reclaimable(), are.is_in_reclaimable);
    ASSERT_EQ(word.is_index_locked(), are.is_index_locked);
    ASSERT_EQ(word.is_unlisted(), are.is_unlisted);
    ASSERT_EQ(word.is_full(), are.is_full);
    ASSERT_EQ(word.bump(), are.bump);
  });
}

TEST(SlabBitmapWords, QuestionsAboutADescriptorTakeEachFieldIntoAccount) {
  for_each_word([](fields const& are) {
    slab_state const word = are.word();
    bool const is_live = are.kind == 2, has_flags = are.is_index_locked || are.is_unlisted || are.is_full;
    ASSERT_EQ(word.is_live(), is_live);
    ASSERT_EQ(word.is_reclaimable(), are.kind == 0 || (is_live && are.used == 0));
    for (u32 const size_class : {0u, 1u, 62u, 63u}) {
      ASSERT_EQ(word.serves(size_class), is_live && size_class == are.size_class);
      ASSERT_EQ(word.is_in_order(size_class), is_live && size_class == are.size_class && are.used != 0 && !has_flags);
    }
  });
}

TEST(SlabBitmapWords, ChangesOfADescriptorLeaveOtherFieldsAlone) {
  for_each_word([](fields const& are) {
    fields next = are;
    next.is_full = false;
    ASSERT_EQ(are.word().without_full().word, next.word().word);
    next = are;
    next.bump = 0;
    next.generation = (are.generation + 1) % 4096;
    ASSERT_EQ(are.word().next_generation(), next.word().word);
    next = are;
    if (are.used + 3 < 1u << 20 && are.bump + 3 < 1u << 20) {
      next.used += 3;
      next.bump += 3;
      ASSERT_EQ(are.word().word + slab_state::reservation(3), next.word().word);
    }
  });
  for (u32 kind = 0; kind < 4; ++kind)
    for (u32 const size_class : {0u, 5u, 63u})
      EXPECT_EQ(slab_state::of(static_cast<slab_kind>(kind), size_class).word,
                (fields{0, size_class, kind, false, false, false, false, 0, 0}.word().word));
}

TEST(SlabBitmapWords, TheLimitsOfASlabLeaveAGap) {
  for (u32 capacity = 1; capacity <= 1u << 17; capacity += 1 + capacity / 16) {
    slab_limits const limits{capacity};
    // A sixteenth of the blocks is left where a slab leaves the index, and more than an eighth
    // where it comes back.
    ASSERT_EQ(limits.capacity, capacity);
    ASSERT_EQ(capacity - limits.high, capacity / 16);
    ASSERT_EQ(capacity - limits.low, capacity / 8 + 1);
    ASSERT_LT(limits.low, limits.high);
  }
}

TEST(SlabBitmapWords, AHeaderKnowsWhichBlockStartsAtEachOffset) {
  for (u32 size_class = 0; size_class < size_class_count; ++size_class) {
    slab_header const header = slab_header::of_class(size_class);
    ASSERT_FALSE(header.is_none() || header.is_run());
    ASSERT_EQ(header.size_class(), size_class);
    for (u32 other = 0; other < size_class_count; ++other) ASSERT_EQ(header.is_of(other), other == size_class);
    u32 const bytes = class_bytes(size_class);
    // The largest slab has 2 MiB. Every offset of a small one, and those around all its blocks.
    for (u32 offset = 0; offset < 1u << 14; ++offset)
      ASSERT_EQ(header.index_at(offset), offset % bytes == 0 ? offset / bytes : slab_header::no_block);
    for (u32 index = 1; u64{index} * bytes < 2u << 20; ++index) {
      ASSERT_EQ(header.index_at(index * bytes), index);
      ASSERT_EQ(header.index_at(index * bytes - 1), slab_header::no_block);
      ASSERT_TRUE(bytes == 16 || header.index_at(index * bytes - 16) == slab_header::no_block);
    }
  }
}

TEST(SlabBitmapWords, AHeaderOfARunKnowsItsLength) {
  EXPECT_TRUE(slab_header{}.is_none());
  for (u32 const slabs : {1u, 2u, 64u, (1u << 24) - 1}) {
    slab_header const header = slab_header::of_run(slabs);
    EXPECT_TRUE(header.is_run() && !header.is_none());
    EXPECT_EQ(header.length(), slabs);
    for (u32 size_class = 0; size_class < size_class_count; ++size_class) EXPECT_FALSE(header.is_of(size_class));
  }
}

TEST(SlabBitmapWords, ACacheEntryKeepsItsSlabAndTheDemand) {
  EXPECT_EQ(sm_cache_entry{}.active(), 0u);
  for (u32 const slab : {0u, 1u, (1u << 24) - 1})
    for (u32 const demand : {0u, 1u, ~0u}) {
      sm_cache_entry const entry{sm_cache_entry::of(slab).word + sm_cache_entry::demand_of(demand)};
      EXPECT_EQ(entry.active(), slab + 1);
      EXPECT_EQ(entry.demand(), demand);
    }
}

TEST(SlabBitmapWords, AReservationReadsBackEachField) {
  for (u32 const slab : {0u, 1u, (1u << 24) - 1})
    for (u32 const blocks : {0u, 1u, 32u})
      for (u32 const place : {0u, 1u, 64u, (1u << 20) - 1, slab_reservation::nowhere})
        for (u32 flags = 0; flags < 4; ++flags) {
          bool const is_new = (flags & 1) != 0, reaches_high = (flags & 2) != 0;
          auto const made = slab_reservation{slab, blocks, place}.with({is_new, reaches_high});
          ASSERT_EQ(made.slab(), slab);
          ASSERT_EQ(made.blocks(), blocks);
          ASSERT_EQ(made.place(), place);
          ASSERT_EQ(made.is_new(), is_new);
          ASSERT_EQ(made.reaches_high(), reaches_high);
        }
  EXPECT_EQ(slab_reservation{}.blocks(), 0u);
}

}  // namespace slab_bitmap_words_test
