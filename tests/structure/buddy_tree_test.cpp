// SPDX-License-Identifier: Apache-2.0
// The tree alone: what a fresh tree of any size says, that blocks taken and given back by many
// lanes never have two owners, that no two buddies are ever free, and that everything given back is
// one block again.
#include <gtest/gtest.h>

#include "buddy_tree_fixture.hpp"
#include "support/schedules.hpp"

namespace warpheap::test { namespace {

TEST(BuddyRecord, KeepsTheOrdersOfBothChildrenApart) {
  using namespace buddy_record;
  u32 const all = low_mask32(child_bits);
  u64 const both = with(with(0, 6, 0x1234), 7, all);
  EXPECT_EQ(orders_of(both, 6), 0x1234u);
  EXPECT_EQ(orders_of(both, 7), all);
  EXPECT_EQ(below(with(with(0, 0, 5), 1, 8)), 13u);
  EXPECT_EQ(with(with(both, 6, 0), 7, 0), 0u);
  EXPECT_EQ(both & locked, 0u);
  EXPECT_EQ(orders_of(both | locked, 7), all);
}

struct fill_tree {
  WARPHEAP_DEVICE void operator()(buddy_tree tree, u32 free) const {
    tree.fill(free, simt::thread_index(), simt::block_dim());
  }
};

// buddy.T2
TEST(BuddyTree, IsMadeOfTheFewestBlocksForAnyNumberOfPages) {
  for (u32 const pages : {1u, 2u, 3u, 4u, 5u, 7u, 8u, 9u, 31u, 33u, 63u, 64u, 65u, 100u, 127u, 1000u, 4097u}) {
    owned_tree const expected{pages};
    EXPECT_EQ(expected.fault(pages), "") << pages;
    device_buffer<u64> const records(buddy_tree::records_for(pages));
    for (u32 const threads : {1u, 32u}) {
      launch({1, threads}, fill_tree{}, buddy_tree{records.data(), pages}, pages);
      synchronize();
      EXPECT_EQ(records.to_host(), expected.to_host()) << pages;
    }
  }
}

TEST(BuddyTree, MayBeginWithItsFirstPagesAlone) {
  for (u32 const pages : {1u, 2u, 3u, 8u, 13u, 64u, 100u, 1000u})
    for (u32 const free : {0u, 1u, pages / 3, pages / 2, pages - 1}) {
      device_buffer<u64> const records(buddy_tree::records_for(pages));
      launch({1, 32}, fill_tree{}, buddy_tree{records.data(), pages}, free);
      synchronize();
      EXPECT_EQ(fault_of(records.to_host(), pages, free), "") << free << " of " << pages;
    }
}

TEST(BuddyTree, NumbersNodesByLevels) {
  buddy_tree const tree{nullptr, 13};
  EXPECT_EQ(tree.height(), 4u);
  EXPECT_EQ(tree.top_order(), 3u);
  EXPECT_EQ(tree.node_of(0, 4), 1u);
  EXPECT_EQ(tree.node_of(12, 0), 28u);
  for (u32 order = 0; order <= 4; ++order)
    for (u32 page = 0; page < 16; page += 1u << order) {
      u32 const node = tree.node_of(page, order);
      EXPECT_EQ(tree.order_of(node), order);
      EXPECT_EQ(tree.first_page(node), page);
      EXPECT_EQ(tree.node_of(page, 0), node << order);
    }
}

TEST(BuddyTree, ReachesTheLargestPool) {
  buddy_tree const tree{nullptr, buddy_tree::max_pages};
  EXPECT_EQ(tree.node_of(buddy_tree::max_pages - 1, 0), 2 * buddy_tree::max_pages - 1);
  EXPECT_EQ(tree.first_page(2 * buddy_tree::max_pages - 1), buddy_tree::max_pages - 1);
  EXPECT_EQ(tree.fresh_orders(1, buddy_tree::max_pages), buddy_tree::max_pages);
  EXPECT_EQ(buddy_tree::records_for(buddy_tree::max_pages), u64{buddy_tree::max_pages});
}

TEST(BuddyTree, IsOneBlockAgainWhenEverythingIsGivenBack) {
  for (u32 const pages : {1u, 2u, 3u, 8u, 13u, 64u})
    for_each_schedule(60, [&] { EXPECT_TRUE((survives<buddy_tree>(pages, {2, 5}, 20))) << pages << " pages"; });
}

TEST(BuddyTree, ServesWarpsOfAnyShape) {
  for (launch_shape const shape : {launch_shape{1, 1}, {1, 31}, {1, 33}, {3, 32}, {2, 40}})
    for_each_schedule(
        10, [&] { EXPECT_TRUE((survives<buddy_tree>(40, shape, 6))) << shape.blocks << " x " << shape.threads; });
}

#if !defined(__CUDACC__)

/// The last thread reads every record by read-modify-write until all others are done, and counts
/// buddies that are both available (buddy.T1).
struct watch_buddies {
  WARPHEAP_DEVICE void operator()(u64* records, u64* units, u32 pages, u32* done, u32* pairs, u32* marks,
                                  tree_report* report) const {
    u32 const others = simt::block_dim() * simt::grid_dim() - 1;
    if (global_thread_index() != others) {
      come_and_go<buddy_tree>{}(records, units, pages, 12, marks, report);
      atomic_ref<u32>{*done}.fetch_add(1, order::relaxed);
      return;
    }
    buddy_tree const tree{records, pages};
    while (atomic_ref<u32>{*done}.fetch_add(0, order::relaxed) != others) {
      for (u32 node = 1; node < buddy_tree::records_for(pages); ++node) {
        u64 const seen = atomic_ref<u64>{records[node]}.fetch_or(0, order::relaxed);
        u32 const half = 1u << (tree.order_of(node) - 1);
        if (buddy_record::orders_of(seen, 0) == half && buddy_record::orders_of(seen, 1) == half) ++*pairs;
      }
      simt::pause(32);
    }
  }
};

TEST(BuddyTree, NeverHasTwoBuddiesAvailable) {
  for_each_schedule(150, [] {
    owned_tree const tree{8};
    device_buffer<u32> const done(1), pairs(1), marks(8);
    device_buffer<tree_report> const report(1);
    launch({1, 7}, watch_buddies{}, tree.records(), tree.units(), 8u, done.data(), pairs.data(), marks.data(),
           report.data());
    synchronize();
    EXPECT_EQ(pairs[0], 0u);
    EXPECT_GT(report[0].taken, 0u);
    EXPECT_TRUE(tree.is_as_fresh());
  });
}

/// All units are promised to others. Counts its calls, under the record's lock.
struct refusing_claims {
  u32* asked;

  WARPHEAP_DEVICE static bool may_claim(u32) { return false; }
  WARPHEAP_DEVICE bool try_claim(u32) const {
    atomic_ref<u32>{*asked}.fetch_add(1, order::relaxed);
    return false;
  }
};

/// Thread 0 gives page 0 back, and may not take page 1, which thread 1 is slow to take.
struct take_the_buddy_late {
  WARPHEAP_DEVICE void operator()(u64* records, u32* asked, u32* freed) const {
    buddy_tree const tree{records, 2};
    atomic_ref<u32> const count{*asked};
    if (global_thread_index() == 0) {
      u32 const node = tree.split(tree.take(1, 0), 1);
      refusing_claims claims{asked};
      *freed = tree.release(node, claims);
      return;
    }
    while (count.load(order::relaxed) == 0) simt::pause(100);
    for (u32 turns = 200; turns != 0; --turns) simt::pause(1000);
    static_cast<void>(tree.take(0, 0));
  }
};

// Naps of a GPU's threads end in step. A release that locked the record for each look found it free
// each time, and the thread that was to take the buddy never did.
TEST(BuddyTree, AReleaseThatWaitsForItsBuddyLeavesTheRecordUnlocked) {
  for_each_schedule(50, [] {
    owned_tree const tree{2};
    device_buffer<u32> const asked(1), freed(1);
    launch({1, 2}, take_the_buddy_late{}, tree.records(), asked.data(), freed.data());
    synchronize();
    EXPECT_EQ(asked[0], 1u);
    EXPECT_EQ(freed[0], 2u);
  });
}

/// Says that a block is free without a second look at its buddy once it may not take that. So two
/// buddies that are given back at once stay two.
struct tree_without_second_look : buddy_tree {
  using buddy_tree::buddy_tree;

  template <class Claims>
  u32 release(u32 node, Claims& claims) const {
    struct impatient {
      Claims& claims;
      bool refused = false;
      bool may_claim(u32 of) const { return claims.may_claim(of); }
      bool try_claim(u32 of) { return !refused && !(refused = !claims.try_claim(of)); }
    } once{claims};
    u32 const above = node / 2, order = order_of(node);
    u64 const seen = lock(above);
    bool const free = buddy_record::orders_of(seen, node ^ 1) == 1u << order;
    if (!free || once.try_claim(order)) {
      if (!free) {
        settle(above, seen, buddy_record::with(seen, node, 1u << order));
        return node;
      }
      unlock(above, 0);
      return release(above, claims);
    }
    settle(above, seen, buddy_record::with(seen, node, 1u << order));
    return node;
  }
};

/// Unlocks a record before the one above says what follows from it, so that of two lanes that
/// follow each other one may overtake.
struct tree_that_unlocks_early : buddy_tree {
  using buddy_tree::buddy_tree;

  u32 take(u32 order, u32 seed) const {
    for (;; seed = mix32(seed + 1), simt::pause(32)) {
      u32 const node = find(order, seed);
      if (node == 0) continue;
      u64 const seen = lock(node / 2);
      bool const ours = buddy_record::orders_of(seen, node) == 1u << order;
      settle_early(node / 2, seen, ours ? buddy_record::with(seen, node, 0) : seen);
      if (ours) return node;
    }
  }

  template <class Claims>
  u32 release(u32 node, Claims& claims) const {
    for (u32 order = order_of(node);;) {
      u32 const above = node / 2;
      u64 const seen = lock(above);
      if (buddy_record::orders_of(seen, node ^ 1) != 1u << order) {
        settle_early(above, seen, buddy_record::with(seen, node, 1u << order));
        return node;
      }
      if (claims.try_claim(order)) {
        unlock(above, 0);
        node = above;
        ++order;
      } else {
        settle_early(above, seen, buddy_record::with(seen, node, 0));
        simt::pause(32);
      }
    }
  }

 private:
  void settle_early(u32 node, u64 seen, u64 next) const {
    while (node != 0 && buddy_record::below(seen) != buddy_record::below(next)) {
      unlock(node, next);
      u64 const seen_above = lock(node / 2);
      next = buddy_record::with(seen_above, node, buddy_record::below(next));
      seen = seen_above;
      node /= 2;
    }
    unlock(node, next);
  }
};

/// Passes blocks on without ordering what was done to them.
struct tree_that_releases_relaxed : buddy_tree {
  using buddy_tree::buddy_tree;

  template <class Claims>
  u32 release(u32 node, Claims&) const {
    u32 const mine = node;
    node /= 2;
    u64 seen = lock(node), next = buddy_record::with(seen, mine, 1u << order_of(mine));
    while (node != 0 && buddy_record::below(seen) != buddy_record::below(next)) {
      u64 const seen_above = lock(node / 2);
      record(node).store(next, order::relaxed);
      next = buddy_record::with(seen_above, node, buddy_record::below(next));
      seen = seen_above;
      node /= 2;
    }
    record(node).store(next, order::relaxed);
    return mine;
  }
};

template <class Tree>
bool is_caught(u32 seeds, u32 pages, launch_shape shape) {
  auto const is_sound = [&] {
    auto run = host::current_execution();
    run.step_cap = 300'000;
    host::scoped_execution const use{run};
    return survives<Tree>(pages, shape, 20);
  };
  return find_failing_schedule(seeds, is_sound).has_value();
}

TEST(BuddyTree, ATreeThatDoesNotLookAgainIsCaught) {
  EXPECT_TRUE((is_caught<tree_without_second_look>(300, 8, {2, 5})));
}

// buddy.T3
TEST(BuddyTree, ATreeThatUnlocksEarlyIsCaught) { EXPECT_TRUE((is_caught<tree_that_unlocks_early>(300, 8, {2, 5}))); }

TEST(BuddyTree, ASoundTreeIsNot) { EXPECT_FALSE((is_caught<buddy_tree>(60, 8, {2, 5}))); }

/// Lanes hand a page on; the lane that takes it looks for what the last owner wrote.
template <class Tree>
struct pass_on {
  WARPHEAP_DEVICE void operator()(u64* records, u64* units, u32* marks, u32* stale) const {
    Tree const tree{records, 3};  // page 2 has no buddy that exists: nothing is merged
    unit_counts claims{units};
    for (u32 round = 0; round < 8; ++round) {
      while (!claims.try_claim(0)) simt::pause(100);
      u32 const node = tree.take(0, 0);
      atomic_ref<u32> const mark{marks[0]};
      u32 const seen = mark.load(order::relaxed);
      // The count of rounds tells a late value from the newest.
      atomic_ref<u32> const rounds{marks[8]};
      if (rounds.fetch_add(1, order::relaxed) != seen) atomic_ref<u32>{*stale}.fetch_add(1, order::relaxed);
      mark.store(seen + 1, order::relaxed);
      u32 const free = tree.release(node, claims);
      // relaxed: the tree alone passes the contents on.
      atomic_ref<u64>{units[tree.order_of(free)]}.fetch_add(1, order::relaxed);
    }
  }
};

template <class Tree>
bool passes_contents_on() {
  owned_tree const tree{3};
  device_buffer<u32> const marks(16), stale(1);
  launch({2, 3}, pass_on<Tree>{}, tree.records(), tree.units(), marks.data(), stale.data());
  synchronize();
  return stale[0] == 0 && marks[0] == 48;
}

TEST(BuddyTree, WhatAnOwnerWroteHappensBeforeTheNextOwnersUse) {
  for_each_schedule(200, [] { EXPECT_TRUE(passes_contents_on<buddy_tree>()); });
}

TEST(BuddyTree, ARelaxedReleaseIsCaught) {
  EXPECT_TRUE(find_failing_schedule(300, passes_contents_on<tree_that_releases_relaxed>).has_value());
}

#endif

}}  // namespace warpheap::test
