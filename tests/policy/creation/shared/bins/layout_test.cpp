// SPDX-License-Identifier: Apache-2.0
// Where blocks lie: arithmetic alone, for every class, bin and chunk size.
#include <gtest/gtest.h>

#include <vector>
#include <warpheap/policy/creation/shared/bins/page_store.hpp>
#include <warpheap/policy/creation/shared/bins/plan.hpp>

namespace warpheap::test { namespace {

using bins::chunk_shape;
using creation::ualloc_config;

constexpr ualloc_config papers{.least_bytes = 8};
constexpr ualloc_config wide{.wide_bins = true};
using paper_layout = bins::layout<papers>;
using chunk_layout = bins::layout<ualloc_config{.chunk_log2 = 18}>;
using wide_layout = bins::layout<wide>;

TEST(UallocLayout, ChunksHaveThePapersSpecialBins) {
  EXPECT_EQ(chunk_shape{18}.specials(), 2u);
  EXPECT_EQ(chunk_shape{18}.usable_pages(), 62u);
  EXPECT_EQ(chunk_shape{19}.specials(), 4u);
  EXPECT_EQ(chunk_shape{19}.usable_pages(), 124u);
  EXPECT_EQ(chunk_shape{16}.usable_pages(), 15u);
  EXPECT_EQ(chunk_shape{15}.usable_pages(), 7u);
}

TEST(UallocLayout, BinsHoldWhatThePaperSays) {
  EXPECT_EQ(paper_layout::classes, 8u);
  EXPECT_EQ(paper_layout::capacity(paper_layout::class_of(8)), 512u);
  EXPECT_EQ(paper_layout::capacity(paper_layout::class_of(128)), 32u);
  EXPECT_EQ(paper_layout::capacity(paper_layout::class_of(256)), 15u);
  EXPECT_EQ(paper_layout::capacity(paper_layout::class_of(512)), 7u);
  EXPECT_EQ(paper_layout::capacity(paper_layout::class_of(1024)), 3u);
}

TEST(UallocLayout, WideBinsLoseASixteenth) {
  for (u32 const bytes : {256, 512, 1024, 2048}) {
    u32 const size_class = wide_layout::class_of(bytes);
    EXPECT_EQ(wide_layout::capacity(size_class), 15u) << bytes;
    EXPECT_EQ(wide_layout::pages(size_class) * 4096, 16 * bytes) << bytes;
  }
}

template <class Layout>
void expect_classes() {
  EXPECT_EQ(Layout::class_bytes(0), Layout::config.least_bytes);
  EXPECT_EQ(Layout::class_bytes(Layout::classes - 1), Layout::largest_bytes);
  for (u32 bytes = 1; bytes <= Layout::largest_bytes; ++bytes) {
    u32 const size_class = Layout::class_of(bytes);
    EXPECT_GE(Layout::class_bytes(size_class), bytes);
    EXPECT_TRUE(size_class == 0 || Layout::class_bytes(size_class - 1) < bytes) << bytes;
  }
}

TEST(UallocLayout, ARequestGoesToTheSmallestClassThatHoldsIt) {
  expect_classes<paper_layout>();
  expect_classes<chunk_layout>();
  expect_classes<wide_layout>();
}

/// Bins of one class in all of a chunk: their blocks are apart, never at a multiple of 4 KiB,
/// aligned as said, in no header, and found again from their addresses and from no others.
template <class Layout>
void expect_blocks(chunk_shape chunk, u32 size_class) {
  std::vector<int> owner(chunk.bytes(), -1);
  std::vector<bool> starts(chunk.bytes());
  u32 const bytes = Layout::class_bytes(size_class), pages = Layout::pages(size_class);
  u32 taken = 0;
  for (u32 page = chunk.specials(); page + pages <= chunk.pages(); page += pages)
    for (u32 i = 0; i < Layout::capacity(size_class); ++i, ++taken) {
      u32 const at = Layout::chunk_offset(chunk, size_class, page, Layout::block_offset(size_class, i));
      ASSERT_LE(at + bytes, chunk.bytes());
      ASSERT_NE(at % 4096, 0u);
      ASSERT_EQ(at % (bytes <= Layout::self_aligned_up_to ? bytes : 128), 0u);
      for (u32 byte = at; byte < at + bytes; ++byte) {
        ASSERT_TRUE(byte % 4096 >= 128 || (pages > 1 && byte / 4096 != page)) << "in a header";
        ASSERT_EQ(owner[byte], -1) << "two blocks";
        owner[byte] = static_cast<int>(page);
      }
      starts[at] = true;
    }
  u32 found = 0;
  for (u32 offset = 0; offset < chunk.bytes(); ++offset) {
    auto const place = Layout::place_of(chunk, offset);
    if (place.page == bins::place::none) {
      ASSERT_FALSE(starts[offset]);
      continue;
    }
    u32 const first = chunk.specials() + (place.page - chunk.specials()) / pages * pages;
    if (first + pages > chunk.pages()) continue;
    if (place.offset >= 4096 && first != place.page) continue;  // the tail of a page inside a bin
    bool const is_start = Layout::block_at(size_class, place.offset + (place.page - first) * 4096) != Layout::no_block;
    ASSERT_EQ(is_start, starts[offset]) << offset;
    if (owner[offset] >= 0) {
      ASSERT_EQ(static_cast<int>(first), owner[offset]) << offset;
    }
    found += is_start;
  }
  EXPECT_EQ(found, taken);
  EXPECT_GT(found, 0u);
}

template <class Layout>
void expect_every_block() {
  for (u32 const log2 : {15u, 16u, 17u, 19u})
    for (u32 size_class = 0; size_class < Layout::classes; ++size_class) {
      if (Layout::pages(size_class) > chunk_shape{log2}.usable_pages()) continue;
      SCOPED_TRACE(std::to_string(log2) + ", class " + std::to_string(size_class));
      expect_blocks<Layout>(chunk_shape{log2}, size_class);
    }
}

// bins.L1, bins.L2, bins.L3
TEST(UallocLayout, EveryBlockIsApartAndFoundAgain) {
  expect_every_block<paper_layout>();
  expect_every_block<chunk_layout>();
  expect_every_block<wide_layout>();
}

TEST(UallocLayout, PagesAreChosenAmongThoseThatAreFree) {
  using namespace bins::page_bits;
  EXPECT_EQ(unusable(chunk_shape{15}, 0), ~u64{0xfe});
  EXPECT_EQ(unusable(chunk_shape{15}, 1), ~u64{0});
  EXPECT_EQ(unusable(chunk_shape{19}, 0), u64{0xf});
  EXPECT_EQ(unusable(chunk_shape{19}, 1), u64{0});
  EXPECT_EQ(choose(~u64{0}, 1, 5), 0u);
  EXPECT_EQ(choose(~u64{0b1011'0100}, 1, 3), u64{0b11'0100});
  EXPECT_EQ(choose(~u64{0b1011'0100}, 2, 1), u64{0b11'0000});
  EXPECT_EQ(choose(~u64{0b1011'0100}, 3, 1), 0u);
}

TEST(UallocLayout, PoolsAreCutSoThatArenasHaveTheirShare) {
  for (u64 const bytes : {u64{32} << 10, u64{1} << 20, (u64{3} << 20) - 16, u64{100} << 20, u64{128} << 30}) {
    auto const planned = bins::plan_pool(bytes, ualloc_config{}, 132);
    EXPECT_LE(planned.pool_bytes(), bytes);
    EXPECT_GE(planned.pool_bytes(), bytes < u64{1} << 20 ? bytes / 2 : bytes - bytes / 16);
    EXPECT_GE(planned.arenas, 1u);
    EXPECT_TRUE(planned.arenas == 1 || planned.chunks / planned.arenas >= 2);
  }
  EXPECT_EQ(bins::plan_pool(u64{8} << 20, ualloc_config{}, 132).chunk_log2, 17u);
  EXPECT_EQ(bins::plan_pool(u64{8} << 20, ualloc_config{}, 132).arenas, 32u);
  EXPECT_EQ(bins::plan_pool(u64{512} << 20, ualloc_config{}, 132).chunk_log2, 19u);
  EXPECT_EQ(bins::plan_pool(u64{1} << 20, ualloc_config{}, 132).chunk_log2, 16u);
  EXPECT_EQ(bins::plan_pool(u64{1} << 30, ualloc_config{}, 132).arenas, 132u);
  EXPECT_EQ(bins::plan_pool(u64{1} << 30, ualloc_config{.arenas = 7}, 132).arenas, 7u);
}

TEST(UallocLayout, TheRoleRemembersWhatABinWas) {
  bins::bin_role const role{1000, 7};
  EXPECT_TRUE(role.is_live() && role.was_bin());
  EXPECT_EQ(role.arena(), 1000u);
  EXPECT_EQ(role.size_class(), 7u);
  EXPECT_FALSE(role.ended().is_live());
  EXPECT_TRUE(role.ended().was_bin());
  EXPECT_EQ(role.ended().size_class(), 7u);
  EXPECT_FALSE(bins::bin_role{}.was_bin());
}

TEST(UallocLayout, TheFieldsOfARoomWordKeepApart) {
  using namespace bins::room_word;
  u64 const word = 5 * one_page + 3 * one_in_limbo + idle(0) + idle(8);
  EXPECT_EQ(free_pages(word), 5u);
  EXPECT_EQ(in_limbo(word), 3u);
  EXPECT_EQ(idle_classes(word), u64{0b1'0000'0001});
  EXPECT_EQ(free_pages(word - 5 * one_page), 0u);
  EXPECT_EQ(in_limbo(word - 5 * one_page - 3 * one_in_limbo), 0u);
}

// bins.K2, bins.Y4
TEST(UallocLayout, ABinStaysListedBetweenItsEnds) {
  using namespace bins::bin_life;
  bins::bin_role const role{1000, 7};
  EXPECT_FALSE(stays_listed(of(role, 0), 1, 3));
  EXPECT_TRUE(stays_listed(of(role, 1), 1, 3));
  EXPECT_FALSE(stays_listed(of(role, 1), 2, 3));
  EXPECT_FALSE(stays_listed(of(role, 2), 1, 3));
  EXPECT_EQ(taken_of(of(role, 2), 5), 2u);
  EXPECT_EQ(taken_of(of(role, 7), 5), 5u);
  EXPECT_EQ(taken_of(of(role, 0) | dead, 5), 0u);
  EXPECT_EQ(role_of(of(role, 512) - 3 * one_block).word, role.word);
  EXPECT_EQ(free_blocks(of(role, 512) - 3 * one_block), 509u);
}

// bins.W2
TEST(RoomWatch, EveryWatchThatEndsHasAValueOfItsOwn) {
  using namespace bins::room_watch_word;
  u64 word = 0;
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(is_watched(word));
    u64 const seen = watched(word);
    EXPECT_TRUE(is_watched(seen));
    EXPECT_EQ(watched(seen), seen);
    word = raised(seen);
    EXPECT_GT(word, seen);
  }
}

}}  // namespace warpheap::test
