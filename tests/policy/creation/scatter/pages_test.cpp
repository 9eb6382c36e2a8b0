// SPDX-License-Identifier: Apache-2.0
// Which pages serve which requests: all access blocks, the last partial one too; sizes within the
// waste factor; pages that are reset when they are emptied, or keep their size.
#include <algorithm>
#include <set>

#include "pool_fixture.hpp"

namespace warpheap::test { namespace {

using creation::scatter;
using creation::scatter_config;

/// Pages in which some of `blocks` lie.
template <class Allocator>
std::set<u64> pages_of(scatter_pool<Allocator> const& pool, std::vector<void*> const& blocks) {
  std::set<u64> pages;
  for (void* const block : blocks)
    if (block) pages.insert(pool.page_of(block));
  return pages;
}

template <class Allocator>
void expect_all_pages_used(u32 pages, u64 bytes, u64 chunks_a_page) {
  scatter_pool<Allocator> const pool{pages};
  u32 const asked = static_cast<u32>(pages * chunks_a_page) + 40;
  auto const blocks = allocate(pool, {(asked - 1) / 96 + 1, 96}, bytes);
  auto const used = pages_of(pool, blocks);
  EXPECT_EQ(used.size(), pages);
  EXPECT_EQ(blocks.size() - std::count(blocks.begin(), blocks.end(), nullptr), pages * chunks_a_page);
  auto const& table = pool.allocator().table();
  std::set<u64> access_blocks;
  for (u64 const page : used) access_blocks.insert(page / table.access_block_pages());
  EXPECT_EQ(access_blocks.size(), table.access_blocks());
  for (auto const& line : pool.allocator().snapshot().check_invariants()) ADD_FAILURE() << line;
}

// The original used one access block less than it had.
TEST(ScatterPages, AllAccessBlocksAreUsed) {
  scatter_pool<scatter<>> const pool{8 * 32};
  EXPECT_EQ(pool.allocator().table().access_blocks(), 8u);
  for_each_schedule(6, [] { expect_all_pages_used<scatter<>>(8 * 32, 4096, 1); });
  for_each_schedule(4, [] { expect_all_pages_used<scatter<>>(8 * 16, 1024, 4); });
}

TEST(ScatterPages, TheLastPartialAccessBlockIsUsedToo) {
  scatter_pool<scatter<>> const pool{7 * 32 + 5};
  EXPECT_EQ(pool.allocator().table().access_blocks(), 8u);
  EXPECT_EQ(pool.allocator().table().regions_of(7), 1u);
  for (u32 const pages : {1u, 15u, 17u, 7 * 32u + 5, 127u, 255u})
    for_each_schedule(4, [&] { expect_all_pages_used<scatter<>>(pages, 2048, 2); });
}

TEST(ScatterPages, EverySlotOfEveryChunkSizeIsUsed) {
  for_each_schedule(3, [] {
    expect_all_pages_used<scatter<>>(5, 16, 254);
    expect_all_pages_used<scatter<>>(5, 112, 36);
    expect_all_pages_used<scatter<>>(5, 128, 32);
    expect_all_pages_used<scatter<>>(5, 144, 28);
  });
}

TEST(ScatterPages, ChunksUpToTheWasteFactorServe) {
  scatter_pool<scatter<>> const pool{1};
  auto const held = allocate(pool, {1, 1}, 512);
  EXPECT_NE(allocate(pool, {1, 1}, 256).front(), nullptr);
  EXPECT_NE(allocate(pool, {1, 1}, 300).front(), nullptr);
  EXPECT_EQ(allocate(pool, {1, 1}, 240).front(), nullptr) << "512 is more than twice as much";
  EXPECT_EQ(allocate(pool, {1, 1}, 528).front(), nullptr);
  EXPECT_EQ(count_slots_by_grid(pool.allocator(), 256), 5u);
  EXPECT_EQ(count_slots_by_grid(pool.allocator(), 240), 0u);
  EXPECT_EQ(pool.allocator().snapshot().statistics().live_bytes, 3 * 512u);
}

constexpr scatter_config exact{.waste_factor = 1};
using exact_scatter = scatter<exact>;
TEST(ScatterPages, WithoutWasteSizesAreAlignedToThemselves) {
  static_assert(exact_scatter::traits.self_aligned_up_to == 4096 && scatter<>::traits.self_aligned_up_to == 0);
  scatter_pool<exact_scatter> const pool{64};
  for (u64 bytes = 16; bytes <= 4096; bytes *= 2)
    for (u64 const other : {bytes, bytes + 16}) {
      if (other > 4096) continue;
      auto const blocks = allocate(pool, {1, 40}, other);
      for (void* const block : blocks)
        EXPECT_TRUE(other != bytes || reinterpret_cast<u64>(block) % bytes == 0) << block;
      EXPECT_NE(blocks.front(), nullptr);
      if (other > 64) release(pool, blocks);
    }
}

using kept_pages = scatter<keeping_sizes>;
TEST(ScatterPages, WithoutResetAnEmptiedPageKeepsItsSize) {
  static_assert(!kept_pages::traits.exact_out_of_memory && scatter<>::traits.exact_out_of_memory);
  scatter_pool<kept_pages> const pool{1};
  release(pool, allocate(pool, {1, 5}, 512));
  EXPECT_EQ(pool.allocator().snapshot().statistics().empty_slabs, 1u);
  EXPECT_EQ(allocate(pool, {1, 1}, 64).front(), nullptr);
  EXPECT_EQ(allocate(pool, {1, 1}, 4096).front(), nullptr);
  EXPECT_EQ(count_slots_by_grid(pool.allocator(), 64), 0u);
  auto const again = allocate(pool, {1, 9}, 400);
  EXPECT_EQ(std::count(again.begin(), again.end(), nullptr), 1);
  pool.expect_quiet(8);
}

TEST(ScatterPages, WithResetAnEmptiedPageServesAnySize) {
  scatter_pool<scatter<>> const pool{1};
  for (u64 const bytes : {512u, 64u, 4096u, 16u, 2048u}) {
    auto const blocks = allocate(pool, {1, 5}, bytes);
    EXPECT_EQ(pages_of(pool, blocks).size(), 1u) << bytes;
    release(pool, blocks);
    pool.expect_empty();
  }
}

/// Chunks of one page, freed together with a pointer into the page's middle and with one chunk
/// twice.
TEST(ScatterPages, MisuseOfOnePageIsCountedApart) {
  scatter_pool<scatter<>> const pool{1};
  auto const blocks = allocate(pool, {1, 8}, 512);
  auto* const inside = static_cast<u8*>(blocks[3]) + 16;
  release(pool, {blocks[0], blocks[1], blocks[1], inside, blocks[2]});
  auto const counts = pool.allocator().snapshot().statistics();
  EXPECT_EQ(counts.live_blocks, 5u);
  EXPECT_EQ(counts.double_frees, 1u);
  EXPECT_EQ(counts.foreign_frees, 1u);
  for (auto const& line : pool.allocator().snapshot().check_invariants()) ADD_FAILURE() << line;
}

struct count_slots_by_some {
  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, u32 lanes, u64 small, u64 large, u64* slots) const {
    if (((lanes >> simt::lane_id()) & 1) == 0) return;
    slots[simt::lane_id()] = heap.available_slots(simt::lane_id() % 3 == 0 ? large : small);
  }
};

TEST(ScatterPages, AnyLanesCountSlotsTogether) {
  for (u32 const lanes : {1u, 0x8000'0000u, 0x5555'5555u, 0x0001'0f70u, ~0u})
    for_each_schedule(20, [&] {
      scatter_pool<scatter<>> const pool{45};
      auto const blocks = allocate(pool, {1, 30}, 700);
      device_buffer<u64> slots(32);
      u64 const small = 600, large = 3 * 4096;
      launch({1, 32}, count_slots_by_some{}, pool.allocator(), lanes, small, large, slots.data());
      synchronize();
      for (u32 lane = 0; lane < 32; ++lane) {
        if (((lanes >> lane) & 1) == 0) continue;
        EXPECT_EQ(slots[lane], count_slots_by_grid(pool.allocator(), lane % 3 == 0 ? large : small)) << lane;
      }
      EXPECT_EQ(count_slots_by_grid(pool.allocator(), 600),
                // 5 chunks of 704 bytes where they lie, 6 of 608 elsewhere
                45 * 6 - 30 - pages_of(pool, blocks).size());
    });
}

}}  // namespace warpheap::test
