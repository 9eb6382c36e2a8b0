// SPDX-License-Identifier: Apache-2.0
// tbuddy over a handful of pages: sizes, places and alignments of blocks, warps served with shared
// blocks, what frees of wrong addresses do, and pools of every size.
#include "tbuddy/pool_fixture.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>

namespace warpheap::test { namespace {

constexpr u64 page_bytes = tbuddy_pool::page_bytes;

static_assert(sizeof(small_tbuddy) == 16 && sizeof(tbuddy_allocator) == 16);

TEST(Tbuddy, RoundsUpToAPowerOfTwoOfPagesAndAlignsToIt) {
  tbuddy_pool const pool{1024};
  std::vector<u64> const bytes{1, 63, 64, 65, 128, 129, 200, 256, 257, 1000, 1024, 1025, 4096, 5000, 8192, 8193};
  auto const answers = ask(pool, bytes);
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_EQ(answers[i].usable, std::max(page_bytes, u64{1} << log2_ceil(bytes[i]))) << bytes[i];
    EXPECT_EQ(answers[i].address % answers[i].usable, 0u) << bytes[i];
  }
  pool.expect_quiet(bytes.size());
}

TEST(Tbuddy, AlignsBeyondASizeAndGivesTheRestBack) {
  tbuddy_pool const pool{64};
  auto const answers = ask(pool, {64, 64, 100, 300}, {1024, 1024, 2048, 64});
  u64 expected[] = {1024, 1024, 2048, 512};
  for (u32 i = 0; i < 4; ++i) {
    EXPECT_NE(answers[i].address, 0u);
    EXPECT_EQ(answers[i].address % expected[i], 0u);
  }
  EXPECT_EQ(answers[0].usable, 64u);
  EXPECT_EQ(answers[2].usable, 128u);
  EXPECT_EQ(count_slots_by_grid(pool.allocator(), 64), 64u - 1 - 1 - 2 - 8);
  pool.expect_quiet(4);
  // More than the pool has, and more than its start is aligned to.
  for (u64 const alignment : {u64{8192}, u64{1} << 40, u64{1} << 63})
    EXPECT_EQ(ask(pool, {1}, {alignment})[0].address, 0u);
  pool.expect_quiet(4);
}

TEST(Tbuddy, UsesEveryPageOfAPoolOfAnySize) {
  for (u32 pages = 1; pages <= 70; ++pages) {
    tbuddy_pool const pool{pages};
    EXPECT_TRUE(pool.is_as_new()) << pages;
    auto const blocks = allocate(pool, {1, pages + 2}, page_bytes);
    std::set<void*> const distinct{blocks.begin(), blocks.end()};
    EXPECT_EQ(distinct.size(), pages + 1u) << "every page once, and nullptr";
    EXPECT_EQ(pool.allocator().snapshot().statistics().failures, 2u);
    pool.expect_quiet(pages);
    release(pool, blocks);
    EXPECT_TRUE(pool.is_as_new()) << pages;
    // The largest blocks that this many pages make.
    for (u32 order = 0; pages >> order != 0; ++order) {
      bool const served = pages >> order & 1 && ask(pool, {page_bytes << order})[0].address != 0;
      EXPECT_EQ(served, pages >> order & 1) << pages;
    }
    EXPECT_EQ(count_slots_by_grid(pool.allocator(), 1), 0u);
  }
}

TEST(Tbuddy, ServesAWarpWithWhateverThereIs) {
  for (u32 const pages : {20u, 32u, 47u})
    for_each_schedule(60, [&] {
      tbuddy_pool const pool{pages};
      for (launch_shape const shape : {launch_shape{1, 32}, {1, 7}, {2, 33}}) {
        auto blocks = allocate(pool, shape, page_bytes);
        std::sort(blocks.begin(), blocks.end());
        u64 const served = static_cast<u64>(std::count_if(blocks.begin(), blocks.end(), [](void* p) { return p; }));
        EXPECT_EQ(served, std::min(u64{pages}, u64{shape.blocks} * shape.threads));
        EXPECT_EQ(std::adjacent_find(blocks.end() - static_cast<i64>(served), blocks.end()), blocks.end());
        pool.expect_quiet(served);
        release(pool, blocks);
        EXPECT_TRUE(pool.is_as_new());
      }
    });
}

TEST(Tbuddy, LetsLanesOfAWarpShareABlock) {
#if !defined(__CUDACC__)
  host::scoped_execution const use{{.mode = host::execution_mode::deterministic, .masks = host::mask_policy::maximal}};
#endif
  tbuddy_pool const pool{64};
  auto const blocks = allocate(pool, {1, 16}, page_bytes);
  u64 const first = pool.page_of(blocks[0]);
  EXPECT_EQ(first % 16, 0u);
  for (u32 lane = 0; lane < 16; ++lane) EXPECT_EQ(pool.page_of(blocks[lane]), first + lane);
  pool.expect_quiet(16);
  // Each is a block of its own.
  release(pool, {blocks[5], blocks[6]});
  pool.expect_quiet(14);
  EXPECT_EQ(count_slots_by_grid(pool.allocator(), 2 * page_bytes), 24u) << "no buddies were freed";
}

/// Every lane keeps up to three blocks of random sizes, writes a tag into both ends of each, and
/// checks the tags before it frees. All are freed at the end.
struct churn {
  WARPHEAP_DEVICE void operator()(small_tbuddy heap, u32 rounds, u32 most_bytes, u64 seed, lanes_report* report) const {
    u32 const me = static_cast<u32>(global_thread_index());
    random_sequence random{seed + me};
    u32* held[3] = {};
    u32 words[3] = {};
    for (u32 round = 0; round < rounds + 3; ++round) {
      u32 const slot = round % 3, tag = me * 64 + slot;
      if (held[slot]) {
        if (held[slot][0] != tag || held[slot][words[slot] - 1] != tag)
          atomic_ref<u32>{report->broken}.fetch_add(1, order::relaxed);
        if (random.below(8) == 0) heap.destroy_alone(held[slot]);
        else heap.destroy(held[slot]);
      }
      held[slot] = nullptr;
      if (round >= rounds || random.below(4) == 0) continue;
      u32 const bytes = 8 + random.below(random.below(8) ? 100 : most_bytes);
      words[slot] = bytes / 4;
      u32 const kind = random.below(8);
      void* made;
      if (kind == 0) made = heap.create_aligned(512, bytes);
      else if (kind == 1) made = heap.create_order(small_tbuddy::order_for(bytes));
      else made = heap.create(bytes);
      held[slot] = static_cast<u32*>(made);
      atomic_ref<u32>{held[slot] ? report->served : report->refused}.fetch_add(1, order::relaxed);
      if (!held[slot]) continue;
      held[slot][0] = held[slot][words[slot] - 1] = tag;
    }
  }
};

TEST(Tbuddy, SurvivesAChurnThatRunsOut) {
  u32 refused = 0;
  for (u32 const pages : {13u, 64u, 100u})
    for (launch_shape const shape : {launch_shape{1, 1}, {1, 31}, {1, 33}, {2, 40}})
      for_each_schedule(30, [&] {
        tbuddy_pool const pool{pages};
        device_buffer<lanes_report> const report(1);
        launch(shape, churn{}, pool.allocator(), 6u, 700u, u64{pages}, report.data());
        synchronize();
        EXPECT_GT(report[0].served, 0u);
        EXPECT_EQ(report[0].broken, 0u);
        EXPECT_TRUE(pool.is_as_new());
        refused += report[0].refused;
      });
  EXPECT_GT(refused, 0u);
}

/// Every lane has a page, and in each round gives it back and asks for one, with the other active
/// lanes.
struct change_pages {
  WARPHEAP_DEVICE void operator()(small_tbuddy heap, u32 rounds, u32* refused) const {
    void* page = heap.create(page_bytes);
    for (u32 round = 0; round < rounds; ++round) {
      heap.destroy(page);
      page = heap.create(page_bytes);
      if (!page) atomic_ref<u32>{*refused}.fetch_add(1, order::relaxed);
    }
    heap.destroy(page);
  }
};

TEST(Tbuddy, GivesAPageBackBeforeAnyOfTheLanesThatFreeTogetherReturns) {
  for (u32 const lanes : {2u, 4u, 7u, 32u})
    for_each_schedule(100, [&] {
      tbuddy_pool const pool{lanes};
      device_buffer<u32> const refused(1);
      launch({1, lanes}, change_pages{}, pool.allocator(), 5u, refused.data());
      synchronize();
      EXPECT_EQ(refused[0], 0u) << lanes << " lanes";
      EXPECT_TRUE(pool.is_as_new());
    });
}

/// The pool is full, and marked as such. Lane 0 of warp 1 frees a page and says so to lane 1 of
/// warp 0, which then asks with lane 0 for one page each.
struct ask_as_three {
  WARPHEAP_DEVICE void operator()(small_tbuddy heap, void* page, u32* freed, void** got) const {
    if (simt::warp_id() == 0 && simt::lane_id() > 1) return;
    if (simt::warp_id() == 1) {
      // By now lane 0 of warp 0 has seen the full heap.
      simt::pause(1000);
      heap.destroy_alone(page);
      // release: pairs with the acquire below.
      return atomic_ref<u32>{*freed}.store(1, order::release);
    }
    if (simt::lane_id() == 0) got[2] = heap.create_order(1);
    // acquire: the free happens before what lane 1 asks.
    if (simt::lane_id() == 1)
      while (atomic_ref<u32>{*freed}.load(order::acquire) == 0) simt::pause(100);
    simt::ballot(3, true);  // no happens-before
    got[simt::lane_id()] = heap.create_warp(3, page_bytes);
  }
};

TEST(Tbuddy, ServesWhatAnyOfTheLanesThatAskTogetherKnowsToBeFree) {
  for_each_schedule(300, [&] {
    tbuddy_pool const pool{8};
    auto blocks = allocate(pool, {1, 8}, page_bytes);
    EXPECT_EQ(allocate(pool, {1, 1}, page_bytes)[0], nullptr) << "so there is an exhaustion note";
    device_buffer<u32> const freed(1);
    device_buffer<void*> const got(3);
    launch({1, 33}, ask_as_three{}, pool.allocator(), blocks[2], freed.data(), got.data());
    synchronize();
    EXPECT_EQ((got[0] == blocks[2]) + (got[1] == blocks[2]), 1);
    EXPECT_EQ(got[2], nullptr);
    pool.expect_quiet(8);
  });
}

TEST(Tbuddy, KnowsABlockFromItsParts) {
  tbuddy_pool const pool{16};
  u64 const whole = ask(pool, {8 * page_bytes})[0].address;
  std::vector<u64> inside;
  for (u64 offset = 8; offset < 8 * page_bytes; offset += 8) inside.push_back(whole + offset);
  free_addresses(pool, inside);
  auto const counts = pool.allocator().snapshot().statistics();
  EXPECT_EQ(counts.double_frees, 7u) << "where a page starts, but no block";
  EXPECT_EQ(counts.foreign_frees, inside.size() - 7);
  pool.expect_quiet(1, inside.size());
  free_addresses(pool, {whole, whole, 0});
  EXPECT_EQ(pool.allocator().snapshot().statistics().double_frees, 8u);
  EXPECT_TRUE(pool.is_as_new(inside.size() + 1));
}

/// One thread takes a block for an allocator, makes it four, and has an old pointer to each.
struct free_what_is_kept {
  WARPHEAP_DEVICE void operator()(small_tbuddy heap, u64* usable) const {
    u8* const block = static_cast<u8*>(heap.create_kept(4));
    heap.divide_kept(block, 4, 2);
    for (u32 part = 0; part < 4; ++part) {
      usable[part] = heap.usable_size(block + part * 4 * page_bytes);
      heap.destroy(block + part * 4 * page_bytes);
      heap.destroy_alone(block + part * 4 * page_bytes);
    }
  }
};

struct give_back_what_is_kept {
  WARPHEAP_DEVICE void operator()(small_tbuddy heap, void* block) const { heap.destroy_kept(block); }
};

// tbuddy.P1
TEST(Tbuddy, LetsNobodyFreeWhatAnAllocatorKeeps) {
  tbuddy_pool const pool{32};
  device_buffer<u64> const usable(4);
  launch({1, 1}, free_what_is_kept{}, pool.allocator(), usable.data());
  synchronize();
  EXPECT_EQ(usable.to_host(), (std::vector<u64>{0, 0, 0, 0}));
  pool.expect_quiet(4, 8);
  std::vector<void*> parts;
  pool.allocator().snapshot().for_each_live([&](void* block, size_t bytes) {
    EXPECT_EQ(bytes, 4 * page_bytes);
    parts.push_back(block);
  });
  for (u32 const part : {3u, 0u, 2u, 1u}) launch({1, 1}, give_back_what_is_kept{}, pool.allocator(), parts.at(part));
  synchronize();
  EXPECT_TRUE(pool.is_as_new(8));
}

TEST(Tbuddy, IsAsNewAfterAReset) {
  tbuddy_pool const pool{37};
  allocate(pool, {1, 50}, page_bytes);
  pool.allocator().initialize({});
  synchronize();
  EXPECT_TRUE(pool.is_as_new());
  EXPECT_EQ(pool.allocator().snapshot().statistics().failures, 0u);
}

TEST(Tbuddy, HasRoomForAllOfALargeGpu) {
  using tbuddy = creation::tbuddy<>;
  constexpr size_t bytes = size_t{141} << 30;
  EXPECT_LT(tbuddy::required_bytes(bytes) - bytes, bytes / 256);
  auto const heap = tbuddy::place(reinterpret_cast<void*>(u64{1} << 40), bytes);
  EXPECT_EQ(heap.pool_bytes(), bytes);
  auto const& pages = heap.table();
  u32 const last = pages.pages() - 1;
  EXPECT_EQ(pages.page_of(pages.address(last)), last);
  EXPECT_EQ(reinterpret_cast<u64>(pages.address(last)), (u64{1} << 40) + bytes - 4096);
  EXPECT_EQ(heap.top_order(), 25u);
  EXPECT_THROW(tbuddy::required_bytes(4095), std::invalid_argument);
  EXPECT_THROW(tbuddy::required_bytes((size_t{1} << 42) + 4096), std::invalid_argument);
}

#if !defined(__CUDACC__)

/// Takes the order of a freed block to be the smallest whose node at its address is busy, as the
/// tree alone suggests.
TEST(Tbuddy, AFreeThatIgnoresTheOrderByteIsCaught) {
  tbuddy_pool const pool{16};
  auto const pages = pool.allocator().table();
  u64 const whole = ask(pool, {4 * page_bytes})[0].address;
  auto const page = pages.page_of(reinterpret_cast<void*>(whole));
  struct free_by_tree {
    void operator()(tbuddy_parts::table<page_bytes> of, u32 page) const {
      u32 order = 0;
      while (order < of.tree().top_order() && page % (2u << order) == 0) {
        u32 const node = of.tree().node_of(page, order);
        if (buddy_record::orders_of(of.tree().records()[node / 2], node) == 0) break;
        ++order;
      }
      static_cast<void>(of.disown(page, tbuddy_parts::block_owner::caller));
      tbuddy_parts::block_supply<tbuddy_parts::table<page_bytes>>{of}.release(of.tree().node_of(page, order));
    }
  };
  launch({1, 1}, free_by_tree{}, pages, page);
  synchronize();
  EXPECT_FALSE(pool.is_as_new());
}

#endif

}}  // namespace warpheap::test
