// SPDX-License-Identifier: Apache-2.0
// How pages are divided, and where requests are sent: formulas, without threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "pool_fixture.hpp"

namespace warpheap::test { namespace {

using creation::scatter_config;

// The defaults except for the regions, which neither layout nor hash uses: nvcc has no name for a
// value that equals a default.
constexpr scatter_config defaults{.region_pages = 32}, largest{.page_bytes = 262144};
using default_layout = scatter_parts::page_layout<defaults>;
using search = scatter_parts::search<defaults>;
using largest_layout = scatter_parts::page_layout<largest>;

/// The formulas of the paper, mended, in signed 64-bit numbers. `c` is a chunk's size in bytes.
i64 chunks_in_page(i64 page, i64 c) {
  i64 const threshold = (page - 8) / 33;
  if (c > threshold) return std::min<i64>(page / c, 32);
  i64 const f = page / (32 * c + 4);
  i64 const a = (page - 4 * f - 32 * c * f - 4) / c;
  return std::min<i64>(32 * f + std::max<i64>(a, 0), 1024);
}

template <u32 PageBytes>
void expect_the_papers_layout() {
  static constexpr scatter_config config{.page_bytes = PageBytes};
  using layout = scatter_parts::page_layout<config>;
  SCOPED_TRACE("pages of " + std::to_string(PageBytes));
  for (u32 units = 1; units <= layout::page_units; ++units) {
    u32 const c = 16 * units, capacity = layout::capacity(units);
    ASSERT_EQ(capacity, chunks_in_page(PageBytes, c)) << c;
    ASSERT_EQ(layout::is_flat(units), c > (PageBytes - 8) / 33) << c;
    ASSERT_LE(u64{capacity} * c, PageBytes) << c;
    ASSERT_LE(capacity, layout::is_flat(units) ? 32u : 32 * layout::fields) << c;
    u32 valid = 0;
    for (u32 segment = 0; segment < std::max(layout::fields, 1u); ++segment)
      valid += popcount(layout::valid_mask(capacity, segment));
    ASSERT_EQ(valid, capacity) << c;
    for (u32 const i : {0u, 1u, capacity / 2, capacity - 1}) {
      if (i >= capacity) continue;
      ASSERT_EQ(layout::index_at(i * c, units), i) << c;
      if (c > 16) {
        ASSERT_EQ(layout::index_at(i * c + 16, units), layout::no_chunk) << c;
      }
    }
    if (PageBytes / c > 32 && layout::is_flat(units)) {
      ASSERT_EQ(layout::index_at(32 * c, units), layout::no_chunk);
    }
  }
}

TEST(ScatterLayout, DividesPagesAsThePaperDoes) {
  expect_the_papers_layout<512>();
  expect_the_papers_layout<1024>();
  expect_the_papers_layout<2048>();
  expect_the_papers_layout<4096>();
  expect_the_papers_layout<8192>();
  expect_the_papers_layout<16384>();
  expect_the_papers_layout<32768>();
  expect_the_papers_layout<65536>();
  expect_the_papers_layout<131072>();
  expect_the_papers_layout<262144>();
}

TEST(ScatterLayout, KnowsThePapersNumbersAt4096) {
  using layout = default_layout;
  EXPECT_EQ((layout::page_bytes - 8) / 33, 123u);
  EXPECT_EQ(layout::capacity(1), 254u);
  EXPECT_EQ(layout::fields, 8u);
  EXPECT_FALSE(layout::is_flat(7));
  EXPECT_TRUE(layout::is_flat(8));
  EXPECT_EQ(layout::capacity(8), 32u);
}

/// The GPU divides approximately; what it computes must be the same.
struct compute_capacities {
  WARPHEAP_DEVICE void operator()(u32* small, u32* large, u32* indexes) const {
    u32 const units = static_cast<u32>(global_thread_index()) + 1;
    if (units > largest_layout::page_units) return;
    large[units] = largest_layout::capacity(units);
    indexes[units] = largest_layout::index_at((largest_layout::page_units / units - 1) * units * 16, units);
    if (units <= default_layout::page_units) small[units] = default_layout::capacity(units);
  }
};

TEST(ScatterLayout, IsTheSameOnTheDevice) {
  u32 const most = 262144 / 16;
  device_buffer<u32> small(most + 1), large(most + 1), indexes(most + 1);
  launch(shape_for(most, 128), compute_capacities{}, small.data(), large.data(), indexes.data());
  synchronize();
  auto const small_host = small.to_host(), large_host = large.to_host(), found = indexes.to_host();
  for (u32 units = 1; units <= most; ++units) {
    ASSERT_EQ(large_host[units], chunks_in_page(262144, 16 * i64{units})) << units;
    u32 const last = most / units - 1, bits = 16 * units > (262144 - 8) / 33 ? 32 : 1024;
    ASSERT_EQ(found[units], last < bits ? last : default_layout::no_chunk) << units;
    if (units <= 256) {
      ASSERT_EQ(small_host[units], chunks_in_page(4096, 16 * i64{units})) << units;
    }
  }
}

constexpr scatter_config by_size{.hash_multiprocessor = 0, .hash_warp = 0};
using search_by_size = scatter_parts::search<by_size>;

TEST(ScatterHash, SendsManyWarpsToPagesOfTheirOwn) {
  u32 const pages = 1 << 21, block_pages = pages / 8;
  std::set<u32> homes;
  for (u32 warp = 0; warp < 32768; ++warp)
    homes.insert(search::page_at(search::place_of(1, 0, warp), 0, pages, block_pages));
  // The golden ratio keeps this many apart; as many at random would leave about 32,260.
  EXPECT_EQ(homes.size(), 32768u);
  EXPECT_LT(*homes.rbegin(), defaults.open_blocks * block_pages) << "only the open access blocks are scattered over";
}

TEST(ScatterHash, ReachesEveryPageOfTheOpenBlocks) {
  for (u32 const pages : {1u, 2u, 31u, 33u, 256u, 1000u, 4096u}) {
    u32 const block_pages = (pages - 1) / 8 / 16 * 16 + 16, open = std::min(pages, defaults.open_blocks * block_pages);
    std::set<u32> homes;
    for (u32 warp = 0; warp < 16 * open; ++warp)
      homes.insert(search::page_at(search::place_of(3, warp % 132, warp), warp % 32, pages, block_pages));
    EXPECT_EQ(homes.size(), open) << pages;
    EXPECT_LT(*homes.rbegin(), open) << pages;
  }
}

TEST(ScatterHash, DependsOnSizeMultiprocessorAndWarp) {
  u32 const place = search::place_of(1, 1, 1);
  EXPECT_NE(place, search::place_of(2, 1, 1));
  EXPECT_NE(place, search::place_of(1, 2, 1));
  EXPECT_NE(place, search::place_of(1, 1, 2));
  EXPECT_EQ(search_by_size::place_of(5, 1, 2), search_by_size::place_of(5, 3, 4));
}

TEST(ScatterCounts, ComeBackToOldValuesOnlyWithoutWithdrawals) {
  using scatter_parts::fill_count;
  fill_count const full{16};
  fill_count const less{full.word + fill_count::withdrawing(1)};
  EXPECT_EQ(less.count(), 15);
  EXPECT_TRUE(fill_count{less.word + 1}.counts_all(16));
  EXPECT_NE(less.word + 1, full.word);  // scatter.F2
}

}}  // namespace warpheap::test
