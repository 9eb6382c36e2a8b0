// SPDX-License-Identifier: Apache-2.0
// The pure functions of halloc: sizes, words of chunks, states of slabs, and the division of a pool
// by a plan.
#include <gtest/gtest.h>

#include "warpheap/policy/creation/halloc/geometry.hpp"
#include "warpheap/util/random.hpp"

namespace warpheap::test { namespace {

using namespace halloc_parts;

TEST(HallocWords, TheSmallestSizeThatHoldsARequestIsFound) {
  for (u32 bytes = 1; bytes <= largest_bytes; ++bytes) {
    u32 size = 0;
    while (block_bytes(size) < bytes) ++size;
    ASSERT_EQ(size_for(bytes), size) << bytes;
  }
  for (u32 size = 0; size < sizes; ++size) {
    EXPECT_EQ(size_of(kind_of(size), length_of(size)), size);
    EXPECT_EQ(chunk_bytes(kind_of(size)) << length_of(size), block_bytes(size));
    EXPECT_EQ(block_bytes(size) % alignment_of(size), 0u);
    for (u32 alignment = 1; alignment <= 8192; alignment *= 2) {
      u32 const found = aligned_size_for(alignment, block_bytes(size));
      EXPECT_TRUE(found == sizes || (found >= size && alignment_of(found) >= alignment));
      EXPECT_TRUE(alignment > alignment_of(size) || found == size);
    }
  }
}

TEST(HallocWords, ChunksFillSlabsOfEverySize) {
  for (u32 slab_log2 = 14; slab_log2 <= 23; ++slab_log2)
    for (u32 kind = 0; kind < kinds; ++kind) {
      u64 const capacity = capacity_of(kind, slab_log2), slab = u64{1} << slab_log2;
      EXPECT_EQ(capacity % 8, 0u);
      EXPECT_LE(capacity * chunk_bytes(kind), slab);
      EXPECT_GE(capacity * chunk_bytes(kind), slab - slab / 16);
      EXPECT_LE((capacity + word_chunks - 1) / word_chunks, slab >> 9) << "words that a record has";
    }
}

/// Where blocks of 2^length could start, one by one.
u32 starts_slowly(u32 free, u32 length) {
  u32 starts = 0, count = 1u << length;
  for (u32 chunk = 0; chunk + count <= word_chunks; chunk += count) {
    u32 const block = static_cast<u32>(low_mask(count)) << chunk;
    if ((free & block) == block) starts |= 1u << chunk;
  }
  return starts;
}

// halloc.C3
TEST(HallocWords, StartsAreWhereAWholeBlockIsFree) {
  random_sequence random{11};
  for (u32 turn = 0; turn < 20'000; ++turn) {
    u32 const free = random.next() | (turn % 3 ? random.next() : 0) | (turn % 2 ? random.next() : 0);
    for (u32 length = 0; length < 4; ++length) {
      u32 const starts = starts_in(free, length);
      ASSERT_EQ(starts, starts_slowly(free, length)) << free;
      ASSERT_EQ(chunks_of(starts, length) & ~free, 0u);
      ASSERT_EQ(popcount(chunks_of(starts, length)), popcount(starts) << length);
    }
  }
}

/// A word filled with blocks of random lengths tells each of them, of its own kind alone, and loses
/// each as a whole.
/// halloc.C2, halloc.C5
TEST(HallocWords, AWordTellsItsBlocks) {
  random_sequence random{3};
  for (u32 turn = 0; turn < 5000; ++turn) {
    u32 const kind = random.below(4);
    u64 word = 0;
    u32 expected[word_chunks] = {}, starts = 0;
    for (u32 tries = 0; tries < 12; ++tries) {
      u32 const length = random.below(4), free = starts_in(~taken(word), length);
      if (free == 0) continue;
      u32 const at = nth_bit(free, random.below(popcount(free))), all = chunks_of(1u << at, length);
      word = with_blocks(word, all, length, kind);
      expected[at] = all;
      starts |= 1u << at;
    }
    u32 const asked = random.next();
    ASSERT_EQ(live_starts(word, asked, kind), starts & asked);
    ASSERT_EQ(live_starts(word, ~0u, (kind + 1) % 4), 0u);
    u32 both = 0;
    for (u32 rest = starts & asked; rest != 0; rest &= rest - 1) both |= expected[lowest_bit(rest)];
    ASSERT_EQ(chunks_at(word, starts & asked), both);
    u64 const left = without_blocks(word, both);
    ASSERT_EQ(taken(left), taken(word) & ~both);
    ASSERT_EQ(live_starts(left, ~0u, kind), starts & ~asked);
    for (u32 rest = starts & ~asked; rest != 0; rest &= rest - 1)
      ASSERT_EQ(chunks_at(left, rest & (0 - rest)), expected[lowest_bit(rest)]);
    ASSERT_EQ(without_blocks(left, taken(left)), 0u);
  }
}

// halloc.A5
TEST(HallocWords, AStateKeepsItsFieldsApart) {
  slab_state const state{slab_state::live_as(13) + 77 + slab_state::head_bit};
  EXPECT_TRUE(state.serves(3) && state.length() == 2 && state.head() && state.used() == 77);
  slab_state const left{state.word + slab_state::leaving(77)};
  EXPECT_TRUE(left.empty() && left.unused() && left.head() && left.version() == state.version() + 1);
  slab_state last{left.word | ~(slab_state::version_unit - 1)};
  last.word += slab_state::leaving(0);
  EXPECT_EQ(last.version(), 0u) << "counts around";
  EXPECT_EQ(last.word, left.word & (slab_state::version_unit - 1));
  slab_state const locked = state.locked();
  EXPECT_EQ(locked.word, slab_state::of(slab_phase::locked) + 77);
  EXPECT_EQ(slab_state{100}.room(100, 0), 0u);
  EXPECT_EQ(slab_state{101}.room(100, 0), 0u) << "transients";
  EXPECT_EQ(slab_state{93}.room(100, 2), 1u);
}

// halloc.A2
TEST(HallocWords, ANoteHoldsUntilRoomIsLeft) {
  slab_state const full{slab_state::live_as(0) + 100 + 5 * slab_state::version_unit};
  u64 const noted = full.noting_full(0, 2);
  for (u32 length = 0; length < 4; ++length) {
    EXPECT_FALSE(full.is_full_by(0, length));
    EXPECT_EQ(full.is_full_by(noted, length), length >= 2);
    EXPECT_TRUE(full.is_full_by(full.noting_full(noted, 0), length)) << "of the same version, both hold";
  }
  slab_state const promised{full.word + 8}, left{full.word + slab_state::leaving(1)};
  EXPECT_TRUE(promised.is_full_by(noted, 3));
  EXPECT_FALSE(left.is_full_by(noted, 3));
  EXPECT_FALSE(left.is_full_by(left.noting_full(noted, 3), 2)) << "what an old note said is gone";
}

TEST(HallocWords, APlanFitsThePool) {
  creation::halloc_config const standard{};
  auto const small = plan_for(size_t{1} << 20, standard, 132), large = plan_for(size_t{8} << 30, standard, 132);
  EXPECT_EQ(small.geometry.slab_log2(), 14u);
  EXPECT_EQ(small.geometry.slabs(), 64u);
  EXPECT_EQ(small.geometry.rows(), 1u);
  EXPECT_EQ(large.geometry.slab_log2(), 22u);
  EXPECT_EQ(large.geometry.slabs(), 2048u);
  EXPECT_EQ(large.geometry.rows(), 16u);
  EXPECT_LT(large.geometry.metadata_bytes(), (size_t{8} << 30) / 60);
  creation::halloc_config const split{.split_percent = 75};
  auto const apart = plan_for(size_t{512} << 20, split, 132);
  EXPECT_EQ(apart.geometry.slabs(), 96u);
  EXPECT_EQ(apart.large_bytes, size_t{128} << 20);
}

}}  // namespace warpheap::test
