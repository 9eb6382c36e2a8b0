// SPDX-License-Identifier: Apache-2.0
// The ring queue under many lanes: every item has one owner at a time, none is lost, every lane
// gets `none` when the queue is empty and no lane when it is not, and the indices may wrap.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>
#include <warpheap/platform/device_buffer.hpp>
#include <warpheap/structure/ring_queue.hpp>
#include <warpheap/util/random.hpp>

#include "support/schedules.hpp"

namespace {

using namespace warpheap;
using test::for_each_schedule;

static_assert(ring_queue::words_for(1) == ring_queue::index_words + 1);
static_assert(ring_queue::words_for(5) == ring_queue::index_words + 8);
static_assert(ring_queue::words_for(8) == ring_queue::index_words + 8);
static_assert(sizeof(ring_queue) == 16);

struct fill_queue {
  WARPHEAP_DEVICE void operator()(ring_queue view, u32 start) const {
    view.fill(start, global_thread_index(), u64{simt::block_dim()} * simt::grid_dim());
  }
};

/// A full queue in memory of its own, whose indices start at `start`.
class queue {
 public:
  explicit queue(u32 items, u32 start = 0) : words_(ring_queue::words_for(items)), items_{items} {
    launch({1, 32}, fill_queue{}, view(), start);
    synchronize();
  }

  ring_queue view() const { return {words_.data(), items_}; }

  /// What contradicts ring_queue.Q1, ring_queue.Q2, ring_queue.Q3, ring_queue.Q4 or ring_queue.Q5
  /// while the queue is quiet and holds all items but `missing`.
  void expect_sound(u32 missing = 0) const {
    auto const words = words_.to_host();
    u32 const pops = words[ring_queue::pops_word], pushes = words[ring_queue::pushes_word];
    EXPECT_EQ(words[ring_queue::available_word], items_ - missing);
    EXPECT_EQ(pushes - pops, items_ - missing);
    std::vector<u32> held;
    for (u32 i = 0; i < view().slot_count(); ++i) {
      u32 const slot = words[ring_queue::index_words + ((pops + i) & (view().slot_count() - 1))];
      EXPECT_EQ(slot != 0, i < pushes - pops) << "ticket " << pops + i;
      if (slot != 0) held.push_back(slot - 1);
    }
    std::sort(held.begin(), held.end());
    EXPECT_EQ(std::adjacent_find(held.begin(), held.end()), held.end()) << "an item is in two slots";
    EXPECT_TRUE(held.empty() || held.back() < items_);
  }

 private:
  device_buffer<u32> words_;
  u32 items_;
};

WARPHEAP_DEVICE void count(u32& counter) { atomic_ref<u32>{counter}.fetch_add(1, order::relaxed); }

/// What the lanes of a kernel saw.
struct report {
  u32 served = 0;
  u32 refused = 0;
  u32 shared = 0;  ///< items that came while another lane had them
  u32 stale = 0;   ///< items whose last owner's word was not seen
};

/// One item: its number of owners, and a word that its owner changes without a read-modify-write.
struct item_state {
  u32 owners;
  u32 word;
  u32 turns;
};

/// Rounds in which each lane keeps up to `Held` items and gives back a random one, or asks for one
/// more; lanes leave rounds out, so that they come apart. All items are given back.
template <u32 Held>
struct pass_items {
  u32 rounds;
  u64 seed;

  WARPHEAP_DEVICE void operator()(ring_queue items, item_state* states, report* seen) const {
    random_sequence random{seed + global_thread_index()};
    u32 held[Held] = {};
    u32 holds = 0;
    for (u32 round = 0; round < rounds; ++round) {
      u32 const chance = random.below(4);
      if (chance == 0) continue;
      if (holds == Held || (holds != 0 && chance == 1)) {
        give_back(items, states, held[--holds]);
        continue;
      }
      u32 const item = items.pop(group_of(simt::active_mask()));
      count(item == ring_queue::none ? seen->refused : seen->served);
      if (item == ring_queue::none) continue;
      welcome(states[item], seen);
      held[holds++] = item;
    }
    while (holds != 0) give_back(items, states, held[--holds]);
  }

 private:
  WARPHEAP_DEVICE static void welcome(item_state& state, report* seen) {
    if (atomic_ref<u32>{state.owners}.fetch_add(1, order::relaxed) != 0) count(seen->shared);
    // relaxed, in two steps: the queue alone orders owners.
    u32 const word = atomic_ref<u32>{state.word}.load(order::relaxed);
    if (word != atomic_ref<u32>{state.turns}.fetch_add(1, order::relaxed)) count(seen->stale);
    atomic_ref<u32>{state.word}.store(word + 1, order::relaxed);
  }
  WARPHEAP_DEVICE static void give_back(ring_queue items, item_state* states, u32 item) {
    atomic_ref<u32>{states[item].owners}.fetch_sub(1, order::relaxed);
    items.push(group_of(simt::active_mask()), item);
  }
};

struct pass_case {
  u32 items, blocks, threads, rounds;
};

template <u32 Held>
void expect_items_pass(pass_case shape, unsigned seeds, u32 start, u32 most_refusals) {
  for_each_schedule(seeds, [&] {
    queue const made{shape.items, start};
    device_buffer<item_state> states(shape.items);
    device_buffer<report> seen(1);
    launch({shape.blocks, shape.threads}, pass_items<Held>{shape.rounds, 977 * (test::schedule_seed() + 1)},
           made.view(), states.data(), seen.data());
    synchronize();
    auto const found = seen[0];
    EXPECT_GT(found.served, 0u);
    EXPECT_EQ(found.shared, 0u);
    EXPECT_EQ(found.stale, 0u);
    EXPECT_LE(found.refused, most_refusals);
    made.expect_sound();
  });
}

constexpr u32 any = ~0u;

TEST(RingQueue, PassesOneItemAmongManyLanes) { expect_items_pass<1>({1, 2, 33, 12}, 200, 0, any); }
TEST(RingQueue, PassesAFewItemsAmongManyLanes) { expect_items_pass<2>({3, 2, 40, 10}, 300, 0, any); }
TEST(RingQueue, PassesItemsWhoseNumberIsNoPowerOfTwo) { expect_items_pass<2>({37, 3, 31, 10}, 200, 0, any); }
TEST(RingQueue, PassesAsManyItemsAsThereAreSlots) { expect_items_pass<3>({16, 2, 32, 12}, 300, 0, any); }
TEST(RingQueue, PassesTwoItemsWithinOneWarp) { expect_items_pass<1>({2, 1, 32, 20}, 300, 0, any); }
TEST(RingQueue, ServesOneLane) { expect_items_pass<2>({2, 1, 1, 40}, 20, 0, 0); }
TEST(RingQueue, SurvivesTheWrapOfItsIndices) { expect_items_pass<2>({5, 2, 33, 10}, 300, 0u - 7, any); }
TEST(RingQueue, SurvivesTheWrapWithManyItems) { expect_items_pass<2>({64, 2, 64, 10}, 100, 0u - 33, any); }

// A lane that holds at most one item never meets an empty queue of as many items as there are
// lanes.
TEST(RingQueue, NeverRefusesWhatNobodyHolds) { expect_items_pass<1>({66, 2, 33, 12}, 1000, 0, 0); }
TEST(RingQueue, NeverRefusesWhatNobodyHoldsAmongTwo) { expect_items_pass<1>({2, 1, 2, 12}, 1000, 0, 0); }
TEST(RingQueue, NeverRefusesWhatNobodyHoldsAmongFour) { expect_items_pass<1>({4, 2, 2, 12}, 1000, 0u - 5, 0); }
TEST(RingQueue, NeverRefusesWhatNobodyHoldsInAWarp) { expect_items_pass<1>({5, 1, 5, 16}, 1000, 0, 0); }
TEST(RingQueue, NeverRefusesTheLastItemToTheOnlyLane) { expect_items_pass<1>({1, 1, 1, 30}, 20, 0u - 3, 0); }

/// Every lane asks once and keeps what it got.
struct ask_once {
  WARPHEAP_DEVICE void operator()(ring_queue items, u32* got) const {
    got[global_thread_index()] = items.pop(group_of(simt::active_mask()));
  }
};

/// Lane i gives back the i-th item.
struct give_back_once {
  WARPHEAP_DEVICE void operator()(ring_queue items, u32 const* held) const {
    u32 const item = held[global_thread_index()];
    if (item != ring_queue::none) items.push(group_of(simt::active_mask()), item);
  }
};

TEST(RingQueue, GivesEveryItemOnceAndTellsEverybodyElseThatItIsEmpty) {
  for_each_schedule(300, [&] {
    for (u32 const items : {1u, 31u, 95u, 96u, 97u, 120u}) {
      queue const made{items, 0u - 50};
      device_buffer<u32> first(96), second(96);
      launch({3, 32}, ask_once{}, made.view(), first.data());
      launch({3, 32}, ask_once{}, made.view(), second.data());
      synchronize();
      auto got = first.to_host();
      auto const after = second.to_host();
      got.insert(got.end(), after.begin(), after.end());
      std::sort(got.begin(), got.end());
      // All items in order, then `none` for the lanes that got no item.
      for (u32 i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], i < items ? i : ring_queue::none) << items << " items";
      made.expect_sound(items);
      launch({3, 32}, give_back_once{}, made.view(), static_cast<u32 const*>(first.data()));
      launch({3, 32}, give_back_once{}, made.view(), static_cast<u32 const*>(second.data()));
      synchronize();
      made.expect_sound();
    }
  });
}

/// The last lane takes the only item and gives it back; then all lanes ask.
struct ask_after_the_owner {
  WARPHEAP_DEVICE void operator()(ring_queue items, u32* got) const {
    u64 const i = global_thread_index();
    if (i == simt::block_dim() - 1) {
      auto const alone = group_of(lane_bit(simt::lane_id()));
      u32 const item = items.pop(alone);
      if (item != ring_queue::none) items.push(alone, item);
    }
    got[i] = items.pop(group_of(simt::active_mask()));
  }
};

// The leader asks for a lane that knows more than the leader does.
TEST(RingQueue, ServesAGroupOfWhomOneKnowsThatAnItemIsThere) {
  for_each_schedule(1000, [&] {
    queue const made{1};
    device_buffer<u32> got(3);
    launch({1, 3}, ask_after_the_owner{}, made.view(), got.data());
    synchronize();
    auto const each = got.to_host();
    EXPECT_EQ(std::count(each.begin(), each.end(), 0u), 1);
    made.expect_sound(1);
  });
}

/// In each warp of an empty queue, the lower half gives back an item a lane and the upper half asks
/// until it is served.
struct hand_over {
  WARPHEAP_DEVICE void operator()(ring_queue items, u32* held) const {
    u64 const i = global_thread_index();
    if (simt::lane_id() < 16) {
      items.push(group_of(simt::active_mask()), held[i]);
      held[i] = ring_queue::none;
      return;
    }
    backoff wait;
    while ((held[i] = items.pop(group_of(simt::active_mask()))) == ring_queue::none) wait.while_working();
  }
};

TEST(RingQueue, ServesWhoWaitsForALaneOfItsWarp) {
  for_each_schedule(300, [&] {
    queue const made{32, 0u - 20};
    device_buffer<u32> held(64), refused(64);
    launch({2, 32}, ask_once{}, made.view(), held.data());
    synchronize();
    // Items to the lower halves, none to the upper.
    auto const popped = held.to_host();
    std::vector<u32> spread(64, ring_queue::none), items;
    std::copy_if(popped.begin(), popped.end(), std::back_inserter(items), [](u32 i) { return i != ring_queue::none; });
    ASSERT_EQ(items.size(), 32u);
    for (u32 i = 0; i < 32; ++i) spread[i / 16 * 32 + i % 16] = items[i];
    device_buffer<u32> const start(spread);
    launch({2, 32}, hand_over{}, made.view(), start.data());
    synchronize();
    auto after = start.to_host();
    std::sort(after.begin(), after.end());
    for (u32 i = 0; i < 32; ++i) EXPECT_EQ(after[i], i);
    made.expect_sound(32);
  });
}

/// Warp 0 pushes 32 items, which lanes other than those that wrote their words put into slots; 32
/// lanes of warp 1 pop one each.
struct push_together {
  WARPHEAP_DEVICE void operator()(ring_queue items, u32 which, u32* words, u32* stale) const {
    u32 const lane = simt::lane_id();
    if (simt::warp_id() == 0) {
      // relaxed, here and below: the queue alone orders owners.
      if (lane < 32) atomic_ref<u32>{words[lane]}.store(lane + 1, order::relaxed);
      items.push_all(group_of(full_mask), 0, which);
      items.push_all(group_of(full_mask), 0, ~which);
      return;
    }
    if (lane >= 32) return;
    u32 item = ring_queue::none;
    while ((item = items.pop(group_of(simt::active_mask()))) == ring_queue::none) simt::pause(1);
    if (atomic_ref<u32>{words[item]}.load(order::relaxed) != item + 1) count(*stale);
    atomic_ref<u32>{words[item]}.store(0, order::relaxed);
  }
};

struct pop_all {
  WARPHEAP_DEVICE void operator()(ring_queue items) const { items.pop(group_of(full_mask)); }
};

TEST(RingQueue, PushesTheItemsOfAMaskWithWhatAnyLaneDidToThem) {
  for_each_schedule(300, [&] {
    queue const made{32, ~0u - 20};
    launch({1, warp_lanes}, pop_all{}, made.view());
    device_buffer<u32> words(32), stale(1);
    u32 const which = static_cast<u32>(mix(test::schedule_seed()));
    launch({1, 2 * warp_lanes}, push_together{}, made.view(), which, words.data(), stale.data());
    synchronize();
    EXPECT_EQ(stale[0], 0u);
    EXPECT_EQ(words.to_host(), std::vector<u32>(32)) << "an item was lost";
    made.expect_sound(32);
  });
}

}  // namespace
