// SPDX-License-Identifier: Apache-2.0
// How tbuddy gets blocks from semaphores and tree: no lane is refused a block that has no owner,
// whatever is merged and split meanwhile, and all is one block again in the end. Without any one of
// the steps that ensure this, some schedule shows it.
#include "pool_fixture.hpp"

#include <algorithm>
#include <atomic>

namespace warpheap::test { namespace {

using table_type = tbuddy_parts::table<tbuddy_pool::page_bytes>;
using supply = tbuddy_parts::block_supply<table_type>;

struct supply_report {
  u32 served;
  u32 refused;
};

/// Every lane takes a block and gives it back, `rounds` times over: lane 0 of order `first`, the
/// others of order 0, whose refusals count.
template <class Supply>
struct take_in_rounds {
  WARPHEAP_DEVICE void operator()(table_type table, u32 first, u32 rounds, supply_report* report) const {
    Supply const blocks{table};
    u64 const me = global_thread_index();
    random_sequence random{me};
    for (u32 round = 0; round < rounds; ++round) {
      u32 const node = blocks.take(me == 0 ? first : 0);
      if (node == supply::none) {
        if (me != 0 || first == 0) atomic_ref<u32>{report->refused}.fetch_add(1, order::relaxed);
        continue;
      }
      atomic_ref<u32>{report->served}.fetch_add(1, order::relaxed);
      if (random.below(2)) simt::pause(50);
      blocks.release(node);
    }
  }
};

struct demand {
  u32 pages;
  launch_shape shape;
  u32 first;
};

/// There is a page for every lane, and two or four for lane 0 if it asks for as many.
constexpr demand demands[] = {{2, {2, 1}, 0}, {4, {2, 2}, 0}, {3, {1, 3}, 0}, {4, {3, 1}, 1},
                              {8, {5, 1}, 2}, {5, {2, 2}, 1}, {8, {2, 4}, 0}, {33, {1, 33}, 0}};

template <class Supply>
::testing::AssertionResult serves(demand const& with, u32 rounds) {
  tbuddy_pool const pool{with.pages};
  device_buffer<supply_report> const report(1);
  launch(with.shape, take_in_rounds<Supply>{}, pool.allocator().table(), with.first, rounds, report.data());
  synchronize();
  if (report[0].refused != 0) return ::testing::AssertionFailure() << report[0].refused << " refusals";
  if (report[0].served == 0) return ::testing::AssertionFailure() << "nobody was served";
  if (!pool.is_as_new()) return ::testing::AssertionFailure() << "the pool is not what it was";
  return ::testing::AssertionSuccess();
}

TEST(TbuddySupply, NeverRefusesAPageThatNobodyHas) {
  for (auto const& with : demands)
    for_each_schedule(with.pages > 8 ? 20 : 200,
                      [&] { EXPECT_TRUE(serves<supply>(with, 6)) << with.pages << " pages, order " << with.first; });
}

/// A table for a lane that is slow from one semaphore to the next, so that much happens while it
/// goes up and down.
struct slow_table : table_type {
  WARPHEAP_DEVICE explicit slow_table(table_type const& table) : table_type{table} {}

  WARPHEAP_DEVICE bulk_semaphore semaphore(u32 order) const {
    for (u32 turns = mix32(static_cast<u32>(simt::clock())) % 64; turns != 0; --turns) simt::pause(100);
    return table_type::semaphore(order);
  }
};

/// There are three pages. Thread 0 holds page 2 or the two others in turn, and gives back the one
/// before it takes the other. So at each instant some page is free, first of one order and then of
/// the other. Thread 1 asks for a page.
template <class Supply, class SlowSupply>
struct ask_while_room_moves {
  WARPHEAP_DEVICE void operator()(table_type table, u32 rounds, u32* done, supply_report* report) const {
    atomic_ref<u32> const stop{*done};
    if (global_thread_index() == 0) {
      Supply const blocks{table};
      u32 node = blocks.take(0);
      for (u32 of = 1; stop.load(order::relaxed) == 0; of = 1 - of) {
        if (node != supply::none) blocks.release(node);
        node = blocks.take(of);
      }
      if (node != supply::none) blocks.release(node);
      return;
    }
    SlowSupply const blocks{slow_table{table}};
    for (u32 round = 0; round < rounds; ++round) {
      u32 const node = blocks.take(0);
      atomic_ref<u32>{node != supply::none ? report->served : report->refused}.fetch_add(1, order::relaxed);
      if (node != supply::none) blocks.release(node);
    }
    stop.store(1, order::relaxed);
  }
};

template <class Supply, class SlowSupply>
bool finds_room_that_moves() {
  tbuddy_pool const pool{3};
  device_buffer<supply_report> const report(1);
  device_buffer<u32> const done(1);
  launch({1, 2}, ask_while_room_moves<Supply, SlowSupply>{}, pool.allocator().table(), 10u, done.data(), report.data());
  synchronize();
  return report[0].served == 10 && pool.is_as_new();
}

TEST(TbuddySupply, FindsRoomThatMovesFromOrderToOrder) {
  for_each_schedule(200,
                    [] { EXPECT_TRUE((finds_room_that_moves<supply, tbuddy_parts::block_supply<slow_table>>())); });
}

/// Lanes take whatever order they draw until one of them is refused, and keep it; then all give
/// back what they have.
struct take_until_refused {
  static constexpr u32 most = 16;

  WARPHEAP_DEVICE void operator()(table_type table, supply_report* report) const {
    supply const blocks{table};
    random_sequence random{global_thread_index()};
    u32 held[most], count = 0;
    for (bool served = true; served && count < most;) {
      u32 const node = blocks.take(random.below(3));
      served = node != supply::none;
      if (served) held[count++] = node;
    }
    atomic_ref<u32>{report->served}.fetch_add(count, order::relaxed);
    while (count != 0) blocks.release(held[--count]);
  }
};

// At rest: tbuddy.W3
TEST(TbuddySupply, MakesOneBlockOfAllThatIsGivenBack) {
  for (u32 const pages : {4u, 7u, 16u, 61u})
    for_each_schedule(100, [&] {
      tbuddy_pool const pool{pages};
      device_buffer<supply_report> const report(1);
      launch({2, 5}, take_until_refused{}, pool.allocator().table(), report.data());
      synchronize();
      EXPECT_GT(report[0].served, 0u);
      EXPECT_TRUE(pool.is_as_new()) << pages << " pages";
    });
}

/// Every lane asks once; a lane that is served keeps the block.
struct take_once {
  WARPHEAP_DEVICE void operator()(table_type table, u32 of, supply_report* report) const {
    bool const served = supply{table}.take(of) != supply::none;
    atomic_ref<u32>{served ? report->served : report->refused}.fetch_add(1, order::relaxed);
  }
};

TEST(TbuddySupply, ServesExactlyWhatIsThere) {
  for (u32 const pages : {1u, 6u, 8u, 31u})
    for (u32 const of : {0u, 1u, 2u}) {
      if (pages >> of == 0) continue;
      for_each_schedule(60, [&] {
        tbuddy_pool const pool{pages};
        device_buffer<supply_report> const report(1);
        launch({2, 20}, take_once{}, pool.allocator().table(), of, report.data());
        synchronize();
        EXPECT_EQ(report[0].served, std::min(pages >> of, 40u)) << pages << " pages, order " << of;
        EXPECT_EQ(count_slots_by_grid(pool.allocator(), tbuddy_pool::page_bytes << of), 0u);
      });
    }
}

/// Asks a full heap `calls` times, by one lane alone. That leaves the semaphores' words as they
/// were.
struct ask_in_vain {
  WARPHEAP_DEVICE void operator()(table_type table, u32 calls, supply_report* report) const {
    for (u32 call = 0; call < calls; ++call)
      if (supply{table}.take(0) == supply::none) ++report->refused;
  }
};

TEST(TbuddySupply, LeavesAnExhaustionNoteThatTheNextRoomEnds) {
  tbuddy_pool const pool{8};
  auto const blocks = allocate(pool, {1, 8}, tbuddy_pool::page_bytes);
  device_buffer<supply_report> const report(1);
  u64 exhausted_at = 0;
  auto const* const at = pool.allocator().table().metadata() + table_type::exhaustion_offset;
  for (u32 calls : {1u, 100u}) {
    launch({1, 1}, ask_in_vain{}, pool.allocator().table(), calls, report.data());
    synchronize();
    u64 const before = exhausted_at;
    backend::copy_bytes(&exhausted_at, at, sizeof exhausted_at);
    EXPECT_NE(exhausted_at, 0u);
    EXPECT_TRUE(before == 0 || exhausted_at == before) << "no search was needed";
  }
  EXPECT_EQ(report[0].refused, 101u);
  release(pool, {blocks[3]});
  launch({1, 1}, ask_in_vain{}, pool.allocator().table(), 1u, report.data());
  synchronize();
  EXPECT_EQ(report[0].refused, 101u) << "what was freed is served";
}

#if !defined(__CUDACC__)

/// Whether contending threads get their answers from a full pool in at most `steps` steps.
bool answers_within(tbuddy_pool const& pool, u64 steps) {
  host::scoped_execution const use{{.mode = host::execution_mode::deterministic, .step_cap = steps}};
  try {
    auto const got = allocate(pool, {8, 128}, tbuddy_pool::page_bytes);
    return std::count(got.begin(), got.end(), nullptr) == 1024;
  } catch (host::schedule_error const&) {
    return false;
  }
}

// A lane needs some forty steps at least to go up and down the 13 orders.
TEST(TbuddySupply, AnswersContendingThreadsAtAFullHeapByTheExhaustionNote) {
  tbuddy_pool const pool{4096};
  EXPECT_NE(allocate(pool, {1, 1}, 4096 * tbuddy_pool::page_bytes)[0], nullptr);
  EXPECT_TRUE(answers_within(pool, 1u << 20)) << "the first of them searches";
  EXPECT_TRUE(answers_within(pool, 1024 * 12));
}

/// A tree that counts the pages of blocks that lanes own or search for, together.
struct watched_tree : buddy_tree {
  using buddy_tree::buddy_tree;
  static inline std::atomic<u64> pages{0}, most{0};

  u32 take(u32 order, u32 seed) const {
    u64 const now = pages += u64{1} << order;
    for (u64 seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
    }
    return buddy_tree::take(order, seed);
  }

  u32 split(u32 node, u32 levels) const {
    u64 const all = u64{1} << order_of(node);
    pages -= all - (all >> levels);
    return buddy_tree::split(node, levels);
  }

  template <class Claims>
  u32 release(u32 node, Claims& claims) const {
    pages -= u64{1} << order_of(node);
    return buddy_tree::release(node, claims);
  }
};

using watched_supply = tbuddy_parts::block_supply<table_type, watched_tree>;

/// Searches the tree without a unit of the semaphore.
struct supply_without_semaphores : watched_supply {
  using watched_supply::watched_supply;
  u32 take(u32 order) const { return tree().take(order, scattered()); }
};

/// Whether lanes that take and give back blocks own, or search for, no more pages than there are.
template <class Supply>
bool searches_for_what_is_there(demand const& with) {
  watched_tree::pages = watched_tree::most = 0;
  tbuddy_pool const pool{with.pages};
  device_buffer<supply_report> const report(1);
  launch(with.shape, take_in_rounds<Supply>{}, pool.allocator().table(), with.first, 6u, report.data());
  synchronize();
  return report[0].served != 0 && watched_tree::pages == 0 && watched_tree::most <= with.pages;
}

// Most of the contending lanes are refused, and those search nothing.
TEST(TbuddySupply, LetsNoMoreLanesSearchTheTreeThanThereAreBlocksForThem) {
  constexpr demand demands[] = {{1, {5, 1}, 0}, {3, {2, 20}, 1}, {8, {2, 20}, 3}, {33, {3, 33}, 2}};
  for (auto const& with : demands)
    for_each_schedule(60, [&] {
      EXPECT_TRUE(searches_for_what_is_there<watched_supply>(with)) << watched_tree::most << " of " << with.pages;
    });
}

TEST(TbuddySupply, ASearchWithoutAUnitIsCaught) {
  EXPECT_TRUE(find_failing_schedule(20, [] {
                return searches_for_what_is_there<supply_without_semaphores>({1, {5, 1}, 0});
              }).has_value());
}

/// Takes the buddy's unit before it promises one to the order above.
struct supply_without_promise : supply {
  using supply::supply;

  void release(u32 node) const {
    struct : merge_claims {
      bool try_claim(u32 of) {
        if (table.semaphore(of).available() == 0) return false;
        return table.semaphore(of).try_wait(1);
      }
    } claims{{table(), false}};
    u32 const order = tree().order_of(tree().release(node, claims));
    table().semaphore(order).signal(1, 0);
    table().raise_epoch();
  }
};

/// Relies on a single pass up and down.
struct supply_that_looks_once : tbuddy_parts::block_supply<slow_table> {
  using block_supply::block_supply;
  u32 take(u32 order) const { return climb(order); }
};

/// Does not announce freed blocks.
struct supply_that_frees_in_silence : supply {
  using supply::supply;

  void release(u32 node) const {
    merge_claims claims{table(), false};
    u32 const order = tree().order_of(tree().release(node, claims));
    table().semaphore(order).signal(1, claims.merged ? 1 : 0);
  }
};

template <class Supply>
bool is_caught(u32 seeds) {
  auto const is_sound = [&] {
    auto run = host::current_execution();
    run.step_cap = 500'000;
    host::scoped_execution const use{run};
    for (auto const& with : demands)
      if (with.pages <= 8 && !serves<Supply>(with, 12)) return false;
    return true;
  };
  return find_failing_schedule(seeds, is_sound).has_value();
}

// tbuddy.W1
TEST(TbuddySupply, AMergeWithoutAPromiseIsCaught) { EXPECT_TRUE(is_caught<supply_without_promise>(300)); }

TEST(TbuddySupply, ASearchThatIsBelievedAtOnceIsCaught) {
  EXPECT_TRUE(find_failing_schedule(200, finds_room_that_moves<supply, supply_that_looks_once>).has_value());
}

// tbuddy.P2
TEST(TbuddySupply, AFreeInSilenceIsCaught) {
  EXPECT_TRUE(find_failing_schedule(
                  1000, finds_room_that_moves<supply_that_frees_in_silence, tbuddy_parts::block_supply<slow_table>>)
                  .has_value());
}

TEST(TbuddySupply, ASoundSupplyIsNot) { EXPECT_FALSE(is_caught<supply>(40)); }

#endif

}}  // namespace warpheap::test
