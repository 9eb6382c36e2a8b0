// SPDX-License-Identifier: Apache-2.0
// Clean-up of pages against their set-up: the lane that gives back a page's last chunk frees the
// page in that step, while other lanes take chunks of the same page, or of another size there. The
// thesis tells of chunks lost exactly here.
#include <algorithm>

#include "pool_fixture.hpp"

namespace warpheap::test { namespace {

using creation::scatter;
using creation::scatter_config;

using scatter_parts::chunk_request;
using scatter_parts::path;
using default_search = scatter<>::search_type;

struct churn_case {
  u32 pages, blocks, threads, rounds, min_bytes, max_bytes;
};

template <class Allocator = scatter<>>
void expect_clean_pages(churn_case shape, unsigned seeds) {
  using pool_type = scatter_pool<Allocator>;
  test::expect_clean_churn(
      seeds, [&] { return pool_type{shape.pages}; }, {shape.blocks, shape.threads}, shape.rounds,
      sizes_between{shape.min_bytes, shape.max_bytes}, [](pool_type const& pool) { pool.expect_empty(); });
}

TEST(ScatterCleanup, OneChunkAPageComesAndGoes) { expect_clean_pages({1, 2, 16, 10, 2050, 4096}, 400); }
TEST(ScatterCleanup, FewChunksAPage) { expect_clean_pages({2, 2, 17, 10, 400, 4096}, 400); }
TEST(ScatterCleanup, FlatPagesOfManySizes) { expect_clean_pages({3, 3, 33, 8, 128, 1024}, 200); }
TEST(ScatterCleanup, HierarchicalPagesOfManySizes) { expect_clean_pages({1, 4, 40, 8, 16, 112}, 300); }
TEST(ScatterCleanup, FlatAndHierarchicalTakeTurns) { expect_clean_pages({1, 2, 33, 10, 16, 2048}, 400); }
TEST(ScatterCleanup, RunsTakeWhatWasCleanedUp) { expect_clean_pages({5, 2, 16, 8, 600, 12000}, 400); }
TEST(ScatterCleanup, OneLane) { expect_clean_pages({2, 1, 1, 40, 16, 8000}, 50); }
TEST(ScatterCleanup, ManyWarpsOnAFewRegions) { expect_clean_pages({40, 6, 64, 4, 16, 4096}, 60); }

constexpr scatter_config odd{
    .page_bytes = 1024, .access_blocks = 3, .open_blocks = 2, .region_pages = 3, .waste_factor = 3};
using odd_scatter = scatter<odd>;
TEST(ScatterCleanup, SmallPagesInOddRegions) { expect_clean_pages<odd_scatter>({11, 3, 33, 8, 16, 3000}, 200); }

constexpr scatter_config large{.page_bytes = 65536, .region_pages = 1};
using large_scatter = scatter<large>;
TEST(ScatterCleanup, ThirtyTwoSegmentsAPage) { expect_clean_pages<large_scatter>({1, 3, 40, 8, 16, 4000}, 150); }

using kept_scatter = scatter<keeping_sizes>;
TEST(ScatterCleanup, PagesThatKeepTheirSize) { expect_clean_pages<kept_scatter>({4, 2, 33, 8, 16, 600}, 200); }

/// Every lane takes and gives back one chunk of the only page, again and again. Sizes go by lane,
/// so the page changes its size whenever all chunks are back. No lane holds more than one chunk, so
/// a refused lane was refused in favour of another size.
struct take_and_give_back {
  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, u32 rounds, u32 least, u32 sizes, u32* owners,
                                  lanes_report* report) const {
    u32 const me = static_cast<u32>(global_thread_index());
    u32 const bytes = least << me % sizes;
    for (u32 round = 0; round < rounds; ++round) {
      auto* const block = static_cast<u8*>(heap.create(bytes));
      atomic_ref<u32>{block ? report->served : report->refused}.fetch_add(1, order::relaxed);
      if (!block) continue;
      // Every unit of the block is ours alone: a page of two sizes at a time would hand one out
      // twice.
      u64 const first = (reinterpret_cast<u64>(block) - reinterpret_cast<u64>(heap.table().pool())) / 16;
      for (u32 i = 0; i < bytes / 16; ++i)
        if (atomic_ref<u32>{owners[first + i]}.exchange(me + 1, order::relaxed) != 0)
          atomic_ref<u32>{report->broken}.fetch_add(1, order::relaxed);
      for (u32 i = 0; i < bytes / 16; ++i) atomic_ref<u32>{owners[first + i]}.exchange(0, order::relaxed);
      heap.destroy(block);
    }
  }
};

void expect_one_owner(launch_shape shape, u32 least, u32 sizes, unsigned seeds) {
  for_each_schedule(seeds, [&] {
    scatter_pool<scatter<>> const pool{1};
    device_buffer<u32> owners(256);
    device_buffer<lanes_report> report(1);
    launch(shape, take_and_give_back{}, pool.allocator(), u32{6}, least, sizes, owners.data(), report.data());
    synchronize();
    EXPECT_EQ(report[0].broken, 0u);
    EXPECT_GT(report[0].served, 0u);
    EXPECT_TRUE(sizes != 1 || report[0].refused == 0) << report[0].refused;
    pool.expect_empty();
  });
}

TEST(ScatterCleanup, APageThatChangesItsSizeHasOneSizeAtATime) { expect_one_owner({2, 16}, 64, 6, 500); }
TEST(ScatterCleanup, AHierarchicalPageIsSetUpAndCleanedUpAllTheTime) { expect_one_owner({2, 2}, 64, 1, 400); }
TEST(ScatterCleanup, NobodyIsRefusedWhileChunksOfHisSizeAreFree) { expect_one_owner({2, 31}, 64, 1, 100); }
TEST(ScatterCleanup, AWarpThatFreesAllChunksOfAFullPageGetsThemAgain) { expect_one_owner({1, 32}, 128, 1, 300); }

struct take_a_page_and_give_it_back {
  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, u32 rounds, u64* refused) const {
    for (u32 round = 0; round < rounds; ++round) {
      void* const block = heap.create(2100 + 16 * ((round + global_thread_index()) * 7 % 32));
      if (!block) atomic_ref<u64>{*refused}.fetch_add(1, order::relaxed);
      heap.destroy(block);
    }
  }
};

/// With as many pages as lanes, each of which holds at most one page, no lane is ever refused,
/// whatever page is being cleaned up.
TEST(ScatterCleanup, NobodyIsRefusedWhileAPageIsFree) {
  for_each_schedule(500, [&] {
    scatter_pool<scatter<>> const pool{6};
    device_buffer<u64> refused(1);
    launch({3, 2}, take_a_page_and_give_it_back{}, pool.allocator(), u32{6}, refused.data());
    synchronize();
    EXPECT_EQ(refused[0], 0u);
    pool.expect_empty();
  });
}

/// Thread block 0 searches for a page. The others are full except for two, of which one is free at
/// every instant: thread block 1 frees the one that it holds and then takes the other. The search
/// passes by both, again and again, in the moments when they are held. Thread block 1 rests at
/// times: a search in step with it would meet neither a free page nor an instant of quiet.
struct search_while_the_free_page_moves {
  WARPHEAP_DEVICE void operator()(scatter<> heap, u32 last, u32 searches, u32* done, u32* misses) const {
    auto const& table = heap.table();
    chunk_request const page{256, 256, 1, 1};
    if (simt::block_index() == 0) {
      bool certain = false;
      for (u32 i = 0; i < searches; ++i) *misses += default_search{table}.sweep(1, 0, page, 0, certain) == ~0u;
      atomic_ref<u32>{*done}.store(1, order::relaxed);
      return;
    }
    u32 held = 0, moves = 0;
    // relaxed: ends the test, and orders nothing.
    while (atomic_ref<u32>{*done}.load(order::relaxed) == 0) {
      table.give_back({held, 256, 1}, table.load(held));
      held = held == 0 ? last : 0;
      while (table.take<path::called>(held, table.load(held), page, 1).bits == 0) simt::pause(1);
      if (++moves % 8 == 0)
        for (u32 i = 0; i != 200; ++i) simt::pause(1);
    }
    table.give_back({held, 256, 1}, table.load(held));
  }
};

TEST(ScatterCleanup, ASearchIsNotBelievedWhileTheFreePageMoves) {
  for_each_schedule(100, [&] {
    u32 const pages = 67;
    scatter_pool<scatter<>> const pool{pages};
    auto fillers = allocate(pool, {1, pages}, 4096);
    std::sort(fillers.begin(), fillers.end());
    // An earlier search that found nothing: its answer must not serve later callers.
    EXPECT_EQ(allocate(pool, {1, 1}, 4096), std::vector<void*>{nullptr});
    release(pool, {fillers.back()});
    device_buffer<u32> done(1), misses(1);
    launch({2, 1}, search_while_the_free_page_moves{}, pool.allocator(), pages - 1, u32{6}, done.data(), misses.data());
    synchronize();
    EXPECT_EQ(misses[0], 0u);
    release(pool, std::vector<void*>(fillers.begin() + 1, fillers.end() - 1));
    pool.expect_empty();
  });
}

/// Every lane takes blocks of 16 to 16 << sizes - 1 bytes, and adds 1 to a word for each 16 bytes
/// that it owns, without a read-modify-write. A lane that does not see what the last owner did, of
/// a block of this size or of another, loses a count.
struct count_ownerships {
  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, u32 rounds, u32 least, u32 sizes, u32* words, u32* owned) const {
    u32 const me = static_cast<u32>(global_thread_index());
    for (u32 round = 0; round < rounds; ++round) {
      u32 const bytes = least << (me + round) % sizes;
      auto* const block = static_cast<u8*>(heap.create(bytes));
      if (!block) continue;
      u64 const first = (reinterpret_cast<u64>(block) - reinterpret_cast<u64>(heap.table().pool())) / 16;
      for (u32 i = 0; i < bytes / 16; ++i) {
        // relaxed: the heap alone orders owners; that is the claim.
        u32 const seen = atomic_ref<u32>{words[first + i]}.load(order::relaxed);
        atomic_ref<u32>{words[first + i]}.store(seen + 1, order::relaxed);
      }
      atomic_ref<u32>{*owned}.fetch_add(bytes / 16, order::relaxed);
      heap.destroy(block);
    }
  }
};

template <class Allocator = scatter<>>
void expect_no_lost_ownership(u32 pages, launch_shape shape, u32 least, u32 sizes, unsigned seeds) {
  for_each_schedule(seeds, [&] {
    scatter_pool<Allocator> const pool{pages};
    device_buffer<u32> words(pages * Allocator::config.page_bytes / 16), owned(1);
    launch(shape, count_ownerships{}, pool.allocator(), u32{8}, least, sizes, words.data(), owned.data());
    synchronize();
    u32 sum = 0;
    for (u32 const word : words.to_host()) sum += word;
    EXPECT_EQ(sum, owned[0]);
    EXPECT_GT(sum, 0u);
    pool.expect_empty();
  });
}

TEST(ScatterContents, PassFromOwnerToOwnerInFlatPages) { expect_no_lost_ownership(1, {3, 5}, 2048, 1, 200); }
TEST(ScatterContents, PassFromOwnerToOwnerInHierarchicalPages) { expect_no_lost_ownership(1, {3, 5}, 16, 1, 300); }
TEST(ScatterContents, PassToOwnersOfAnotherSize) { expect_no_lost_ownership(1, {4, 2}, 32, 7, 400); }
TEST(ScatterContents, PassFromRunToRun) { expect_no_lost_ownership(2, {3, 1}, 8192, 1, 100); }
TEST(ScatterContents, PassFromRunsToChunks) { expect_no_lost_ownership(2, {4, 1}, 2048, 3, 200); }

/// A step that makes room raises its page's version, and no other step does. Notes the sum of both
/// pages' versions.
struct watch_versions {
  WARPHEAP_DEVICE void operator()(scatter<> heap, u64* versions) const {
    auto const note = [&] { *versions++ = heap.table().load(0).version() + heap.table().load(1).version(); };
    void* const whole = heap.create(4096);
    note();  // 0: taken
    heap.destroy(whole);
    note();  // 1: emptied, and was full
    void* const first = heap.create(2048);
    void* const second = heap.create(2048);
    note();  // 1: taken again
    heap.destroy(first);
    note();  // 2: was full
    heap.destroy(second);
    note();  // 3: emptied
    void* const small[3] = {heap.create(16), heap.create(16), heap.create(16)};
    heap.destroy(small[0]);
    heap.destroy(small[1]);
    note();  // 3: neither
    heap.destroy(small[2]);
    note();  // 4: emptied
    void* const run = heap.create(8192);
    note();  // 4: taken
    heap.destroy(run);
    note();  // 6: two pages are free
  }
};

TEST(ScatterCleanup, StepsThatMakeRoomRaiseTheVersion) {
  scatter_pool<scatter<>> const pool{2};
  device_buffer<u64> versions(9);
  launch({1, 1}, watch_versions{}, pool.allocator(), versions.data());
  synchronize();
  EXPECT_EQ(versions.to_host(), (std::vector<u64>{0, 1, 1, 2, 3, 3, 4, 4, 6}));
}

}}  // namespace warpheap::test
