// SPDX-License-Identifier: Apache-2.0
// Requests larger than a page: runs from the end of the heap, as many as fit, beside chunks at the
// front. Contention for them is in host/contention_test.cpp.
#include <algorithm>

#include "pool_fixture.hpp"

namespace warpheap::test { namespace {

using creation::scatter;

constexpr u64 page = 4096;

TEST(ScatterRuns, ComeFromTheEndWithoutGaps) {
  for_each_schedule(100, [] {
    scatter_pool<scatter<>> const pool{40};
    auto blocks = allocate(pool, {3, 5}, 3 * page - 100);
    EXPECT_EQ(std::count(blocks.begin(), blocks.end(), nullptr), 2);
    std::erase(blocks, nullptr);
    std::sort(blocks.begin(), blocks.end());
    for (size_t i = 0; i < blocks.size(); ++i) EXPECT_EQ(pool.page_of(blocks[i]), 1 + 3 * i);
    pool.expect_quiet(13);
    release(pool, blocks);
    pool.expect_empty();
  });
}

TEST(ScatterRuns, MayTakeTheWholePool) {
  for (u32 const pages : {2u, 16u, 17u, 130u}) {
    scatter_pool<scatter<>> const pool{pages};
    for (u32 const length : {pages, pages - 1, pages / 2 + 1}) {
      if (length < 2) continue;
      auto blocks = allocate(pool, {1, 2}, length * page);
      EXPECT_EQ(std::count(blocks.begin(), blocks.end(), nullptr), 1);
      blocks.push_back(allocate(pool, {1, 1}, 16).front());
      EXPECT_EQ(blocks.back() == nullptr, length == pages);
      release(pool, blocks);
      pool.expect_empty();
    }
    EXPECT_EQ(allocate(pool, {1, 1}, pages * page + 1).front(), nullptr);
  }
}

TEST(ScatterRuns, FindWhatChunksLeave) {
  scatter_pool<scatter<>> const pool{8};
  auto blocks = allocate(pool, {1, 8}, page);
  std::sort(blocks.begin(), blocks.end());
  release(pool, {blocks[1], blocks[2], blocks[4], blocks[5], blocks[6]});
  auto const pair = allocate(pool, {1, 3}, 2 * page);
  EXPECT_EQ(std::count(pair.begin(), pair.end(), nullptr), 1);
  EXPECT_EQ(std::max(pair[0], std::max(pair[1], pair[2])), blocks[5]) << "at the upper end of the stretch";
  pool.expect_quiet(5);
}

// scatter.R1
TEST(ScatterRuns, AreFreedOnceAndAsAWhole) {
  for_each_schedule(200, [] {
    scatter_pool<scatter<>> const pool{12};
    auto const run = allocate(pool, {1, 1}, 5 * page).front();
    device_buffer<void*> const list{std::vector<void*>(40, run)};
    launch({2, 20}, destroy_each{}, pool.allocator(), list.data());
    synchronize();
    auto const counts = pool.allocator().snapshot().statistics();
    EXPECT_EQ(counts.double_frees + counts.foreign_frees, 39u);
    EXPECT_EQ(counts.free_slabs, 12u);
    for (auto const& line : pool.allocator().snapshot().check_invariants()) ADD_FAILURE() << line;
  });
}

/// Lanes of a warp with runs of several lengths, against lanes with chunks.
struct mixed_traffic {
  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, lanes_report* report) const {
    u32 const me = static_cast<u32>(global_thread_index());
    for (u32 round = 0; round < 5; ++round) {
      u32 const pages = (me + round) % 4, bytes = pages != 0 ? pages * 4096 : 64;
      auto* const block = static_cast<u32*>(heap.create(bytes));
      atomic_ref<u32>{block ? report->served : report->refused}.fetch_add(1, order::relaxed);
      if (!block) continue;
      for (u32 at = 0; at < bytes / 4; at += 1024) block[at] = me;
      block[bytes / 4 - 1] = me;
      simt::pause(20);
      bool whole = block[bytes / 4 - 1] == me;
      for (u32 at = 0; at < bytes / 4; at += 1024) whole = whole && block[at] == me;
      if (!whole) atomic_ref<u32>{report->broken}.fetch_add(1, order::relaxed);
      heap.destroy(block);
    }
  }
};

// At rest: scatter.F1, scatter.R2, scatter.S2, scatter.S3
TEST(ScatterRuns, AndChunksShareAPool) {
  for (u32 const pages : {4u, 21u})
    for_each_schedule(300, [&] {
      scatter_pool<scatter<>> const pool{pages};
      auto const report = report_of(pool, {2, 19}, mixed_traffic{});
      EXPECT_EQ(report.broken, 0u);
      EXPECT_GT(report.served, 0u);
      pool.expect_empty();
    });
}

/// Two lanes want two pages each of three, and each may hold one: one lane must be served.
TEST(ScatterRuns, OneOfTwoIsServedWhereOneFits) {
  for_each_schedule(300, [] {
    scatter_pool<scatter<>> const pool{3};
    auto const blocks = allocate(pool, {2, 1}, 2 * page);
    EXPECT_EQ(std::count(blocks.begin(), blocks.end(), nullptr), 1);
    pool.expect_quiet(1);
  });
}

// The hint says where runs were freed, not where chunks were.
TEST(ScatterRuns, AreFoundFarFromTheHint) {
  u32 const pages = 300;
  scatter_pool<scatter<>> const pool{pages};
  auto chunks = allocate(pool, {3, 100}, page);
  std::sort(chunks.begin(), chunks.end());
  EXPECT_EQ(allocate(pool, {1, 1}, 2 * page).front(), nullptr) << "the hint is at the front now";
  release(pool, {chunks[200], chunks[201]});
  EXPECT_EQ(allocate(pool, {1, 1}, 2 * page).front(), chunks[200]);
  EXPECT_EQ(allocate(pool, {1, 1}, 2 * page).front(), nullptr);
}

/// Kernel: one lane asks for a run at a multiple of an alignment while the others of its warp ask
/// for runs of two pages.
struct create_aligned_beside {
  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, u64 alignment, void** blocks) const {
    u64 const me = global_thread_index();
    blocks[me] = me % 32 == 5 ? heap.create_aligned(alignment, 3 * page) : heap.create(2 * page);
  }
};

TEST(ScatterRuns, AlignedOnesAndOthersAreAskedForTogether) {
  for_each_schedule(60, [] {
    scatter_pool<scatter<>> const pool{300};
    device_buffer<void*> const blocks(96);
    launch({3, 32}, create_aligned_beside{}, pool.allocator(), u64{4 * page}, blocks.data());
    synchronize();
    auto const got = blocks.to_host();
    EXPECT_EQ(std::count(got.begin(), got.end(), nullptr), 0);
    for (u32 const warp : {0, 1, 2}) EXPECT_EQ(reinterpret_cast<u64>(got[32 * warp + 5]) % (4 * page), 0u);
    pool.expect_quiet(96);
    release(pool, got);
    pool.expect_empty();
  });
}

TEST(ScatterRuns, AFailedSearchSpeaksOnlyForThoseWhoWaited) {
  u32 const pages = 300;
  scatter_pool<scatter<>> const pool{pages};
  auto chunks = allocate(pool, {3, 100}, page);
  std::sort(chunks.begin(), chunks.end());
  EXPECT_EQ(allocate(pool, {1, 1}, 2 * page).front(), nullptr);
  release(pool, {chunks[0], chunks[1]});
  EXPECT_EQ(allocate(pool, {1, 1}, 2 * page).front(), chunks[0]) << "farther from the end than the hint looks";
}

}}  // namespace warpheap::test
