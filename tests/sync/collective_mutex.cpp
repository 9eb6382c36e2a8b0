// The collective mutex between real lanes: one group inside at a time, until its last member has left, whoever leaves when.
#include <gtest/gtest.h>

#include <warpheap/platform/device_buffer.hpp>
#include <warpheap/sync/bulk_semaphore.hpp>
#include <warpheap/sync/collective_mutex.hpp>
#include <warpheap/sync/spin_mutex.hpp>
#include <warpheap/util/random.hpp>

#include "support/schedules.hpp"

namespace {

using namespace warpheap;
using test::for_each_schedule;

constexpr launch_shape shapes[] = {{1, 1}, {2, 31}, {1, 33}, {3, 40}, {1, 64}};

/// What groups do inside. `count` is raised in two steps by one member; `owner` names the group.
struct protected_state {
  u32 word;
  u32 owner;
  u32 count;      // members that were inside
  u32 intruders;  // looks that found another group's name
  u32 largest;    // group
  u32 sections;   // groups that were inside
};

WARPHEAP_DEVICE void look(protected_state* state, u32 name) {
  // relaxed throughout: the mutex orders them.
  if (atomic_ref<u32>{state->owner}.load(order::relaxed) != name)
    atomic_ref<u32>{state->intruders}.fetch_add(1, order::relaxed);
}

/// One member raises the count for all of its group and leaves the group's name.
WARPHEAP_DEVICE void work(protected_state* state, u32 name, u32 members) {
  atomic_ref<u32> const count{state->count}, largest{state->largest}, sections{state->sections};
  atomic_ref<u32>{state->owner}.store(name, order::relaxed);
  u32 const before = count.load(order::relaxed);
  if (largest.load(order::relaxed) < members) largest.store(members, order::relaxed);
  sections.store(sections.load(order::relaxed) + 1, order::relaxed);
  simt::pause(20);
  count.store(before + members, order::relaxed);
}

/// How the members of a group go out.
enum class way_out { together, one_by_one, by_halves };

/// Lanes meet whom they find, lock together, work by one of them, look around by all, and leave one way or another.
template <class Mutex>
struct meet_inside {
  WARPHEAP_DEVICE void operator()(protected_state* states, u32 mutexes, u32 rounds, way_out how) const {
    random_sequence random{global_thread_index()};
    for (u32 round = 0; round < rounds; ++round) {
      auto& state = states[(simt::lane_id() + round) % mutexes];
      Mutex const mutex{state.word};
      auto const group = mutex.lock_with_company();
      // The last member works: what it does must get to the next group though the first one locked.
      // Lanes of a group may be in different rounds: the leader's names it.
      u32 const name = broadcast(group, 1 + round + rounds * static_cast<u32>(global_thread_index()));
      if (group.rank + 1 == group.size) work(&state, name, group.size);
      simt::sync_warp(group.mask);
      look(&state, name);
      leave(mutex, group, how, random, &state, name);
    }
  }

 private:
  WARPHEAP_DEVICE static void leave(Mutex const& mutex, lane_group const& group, way_out how, random_sequence& random,
                                    protected_state* state, u32 name) {
    if (how == way_out::together) return mutex.unlock(group.mask);
    if (how == way_out::by_halves) {
      u32 const odd = simt::ballot(group.mask, group.rank % 2 == 1);
      if (group.rank % 2 == 1) return mutex.unlock(odd);
      simt::pause(50);
      look(state, name);
      return mutex.unlock(group.mask & ~odd);
    }
    simt::pause(random.below(200));
    look(state, name);
    mutex.unlock();
  }
};

struct totals {
  u32 count = 0, intruders = 0, largest = 0, sections = 0;
  bool unlocked = true;
};

template <class Mutex>
totals run(launch_shape shape, u32 mutexes, u32 rounds, way_out how) {
  device_buffer<protected_state> states(mutexes);
  launch(shape, meet_inside<Mutex>{}, states.data(), mutexes, rounds, how);
  synchronize();
  totals sum;
  for (auto const& each : states.to_host()) {
    sum.count += each.count;
    sum.intruders += each.intruders;
    sum.sections += each.sections;
    if (sum.largest < each.largest) sum.largest = each.largest;
    sum.unlocked = sum.unlocked && each.word == 0;
  }
  return sum;
}

TEST(CollectiveMutex, AdmitsOneGroupUntilItsLastMemberLeaves) {
  constexpr u32 rounds = 3;
  for (auto const how : {way_out::together, way_out::one_by_one, way_out::by_halves}) {
    for (auto const shape : shapes) {
      u32 largest = 0;
      for_each_schedule(30, [&] {
        auto const end = run<collective_mutex>(shape, 1, rounds, how);
        EXPECT_TRUE(end.unlocked);
        EXPECT_EQ(end.intruders, 0u);
        EXPECT_EQ(end.count, shape.blocks * shape.threads * rounds);
        if (end.largest > largest) largest = end.largest;
      });
      EXPECT_EQ(largest > 1, shape.threads > 1) << "lanes never met";
    }
  }
}

TEST(CollectiveMutex, LanesOfOneWarpMayLockDifferentMutexes) {
  constexpr u32 rounds = 3;
  for (u32 const mutexes : {2u, 3u, 32u}) {
    for_each_schedule(30, [&] {
      auto const end = run<collective_mutex>({2, 40}, mutexes, rounds, way_out::one_by_one);
      EXPECT_TRUE(end.unlocked);
      EXPECT_EQ(end.intruders, 0u);
      EXPECT_EQ(end.count, 80 * rounds);
    });
  }
}

/// Whole thread blocks lock; their threads leave together or one by one.
template <class Mutex>
struct meet_as_blocks {
  WARPHEAP_DEVICE void operator()(protected_state* state, u32 rounds, way_out how) const {
    Mutex const mutex{state->word};
    random_sequence random{global_thread_index()};
    for (u32 round = 0; round < rounds; ++round) {
      mutex.lock_block();
      u32 const name = 1 + round + rounds * simt::block_index();
      if (simt::thread_index() + 1 == simt::block_dim()) work(state, name, simt::block_dim());
      simt::sync_block();
      look(state, name);
      if (how == way_out::together) {
        mutex.unlock_block();
      } else {
        simt::pause(random.below(200));
        look(state, name);
        mutex.unlock();
        simt::sync_block();  // who locks as a whole has nobody inside
      }
    }
  }
};

TEST(CollectiveMutex, AThreadBlockLocksAsOneAndLeavesAsItLikes) {
  constexpr u32 rounds = 3;
  for (auto const how : {way_out::together, way_out::one_by_one}) {
    for (auto const shape : shapes) {
      for_each_schedule(30, [&] {
        device_buffer<protected_state> state(1);
        launch(shape, meet_as_blocks<collective_mutex>{}, state.data(), rounds, how);
        synchronize();
        auto const end = state[0];
        EXPECT_EQ(end.word, 0u);
        EXPECT_EQ(end.intruders, 0u);
        EXPECT_EQ(end.sections, shape.blocks * rounds);
        EXPECT_EQ(end.count, shape.blocks * shape.threads * rounds);
      });
    }
  }
}

}  // namespace
