// SPDX-License-Identifier: Apache-2.0
// The collective mutex between real lanes: one group is inside at a time, until its last member has
// left, in whatever order members leave.
#include <gtest/gtest.h>

#include <algorithm>

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

/// How the members of a group leave.
enum class way_out { together, one_by_one, by_halves };

/// Active lanes lock together, one of them works, all look around, and they leave one way or
/// another.
template <class Mutex>
struct meet_inside {
  WARPHEAP_DEVICE void operator()(protected_state* states, u32 mutexes, u32 rounds, way_out how) const {
    random_sequence random{global_thread_index()};
    for (u32 round = 0; round < rounds; ++round) {
      auto& state = states[(simt::lane_id() + round) % mutexes];
      Mutex const mutex{state.word};
      auto const group = mutex.lock_converged();
      // The last member works, so that its writes must reach the next group though the first member
      // locked. Lanes of a group may be in different rounds: the leader's round names the group.
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
      lane_mask const odd = simt::ballot(group.mask, group.rank % 2 == 1);
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
    u32 largest = 0;
    for (auto const shape : shapes) {
      for_each_schedule(100, [&] {
        auto const end = run<collective_mutex>(shape, 1, rounds, how);
        EXPECT_TRUE(end.unlocked);
        EXPECT_EQ(end.intruders, 0u);
        EXPECT_EQ(end.count, shape.blocks * shape.threads * rounds);
        if (end.largest > largest) largest = end.largest;
      });
      EXPECT_LE(largest, std::min(shape.threads, warp_lanes));
    }
    EXPECT_GT(largest, 1u) << "lanes never met";
  }
}

TEST(CollectiveMutex, LanesOfOneWarpMayLockDifferentMutexes) {
  constexpr u32 rounds = 3;
  for (u32 const mutexes : {2u, 3u, 32u}) {
    for_each_schedule(100, [&] {
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
        simt::sync_block();  // a block that locks as a whole has no thread inside
      }
    }
  }
};

TEST(CollectiveMutex, AThreadBlockLocksAsOneAndLeavesAsItLikes) {
  constexpr u32 rounds = 3;
  for (auto const how : {way_out::together, way_out::one_by_one}) {
    for (auto const shape : shapes) {
      for_each_schedule(100, [&] {
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

/// Lanes come from two branches of one warp, hold the mutex while they are apart, and meet again
/// only outside.
struct part_inside {
  WARPHEAP_DEVICE void operator()(protected_state* state) const {
    collective_mutex const mutex{state->word};
    lane_mask const mask = simt::active_mask();
    mutex.lock(mask);
    auto const group = group_of(mask);
    if (group.leads) work(state, 7, group.size);
    if (group.rank % 3 == 0) {
      simt::pause(300);
      mutex.unlock();
    } else if (group.rank % 3 == 1) {
      mutex.unlock();
    } else {
      simt::pause(100);
      // The lanes inside see that no other lane has come.
      if (mutex.members() == 0) atomic_ref<u32>{state->intruders}.fetch_add(1, order::relaxed);
      mutex.unlock();
    }
  }
};

TEST(CollectiveMutex, MembersMayLeaveFromDifferentBranches) {
  for (auto const shape : shapes) {
    for_each_schedule(100, [&] {
      device_buffer<protected_state> state(1);
      launch(shape, part_inside{}, state.data());
      synchronize();
      EXPECT_EQ(state[0].word, 0u);
      EXPECT_EQ(state[0].intruders, 0u);
      EXPECT_EQ(state[0].count, shape.blocks * shape.threads);
    });
  }
}

/// The general form over a spin mutex, as warps and as thread blocks.
struct meet_by_any_lock {
  WARPHEAP_DEVICE void operator()(protected_state* state, u32 rounds, bool as_block) const {
    collective<spin_mutex> const mutex{spin_mutex{state->word}};
    for (u32 round = 0; round < rounds; ++round) {
      if (as_block) {
        mutex.lock_block();
        if (simt::thread_index() + 1 == simt::block_dim()) work(state, round, simt::block_dim());
        mutex.unlock_block();
        continue;
      }
      auto const group = group_of(simt::active_mask());
      mutex.lock(group.mask);
      u32 const name = broadcast(group, 1 + round + rounds * static_cast<u32>(global_thread_index()));
      if (group.rank + 1 == group.size) work(state, name, group.size);
      simt::sync_warp(group.mask);
      look(state, name);
      mutex.unlock(group.mask);
    }
  }
};

TEST(Collective, HoldsAnyLockAsAGroup) {
  for (bool const as_block : {false, true}) {
    for (auto const shape : shapes) {
      for_each_schedule(60, [&] {
        device_buffer<protected_state> state(1);
        launch(shape, meet_by_any_lock{}, state.data(), 3u, as_block);
        synchronize();
        EXPECT_EQ(state[0].word, 0u);
        EXPECT_EQ(state[0].intruders, 0u);
        EXPECT_EQ(state[0].count, shape.blocks * shape.threads * 3);
      });
    }
  }
}

struct shared_units {
  u64 word;
  u32 contents;  // written by makers before they signal
  u32 made, taken, blind;
};

/// A group waits for as many units as it has lanes, by one call of one lane; all of them see the
/// contents.
struct acquire_units_together {
  WARPHEAP_DEVICE void operator()(shared_units* shared, u32 batch) const {
    bulk_semaphore semaphore{shared->word};
    auto const group = group_of(simt::active_mask());
    auto const outcome =
        collective_acquire(group.mask, [&] { return static_cast<u32>(semaphore.wait(group.size, batch)); });
    bool const makes = outcome == static_cast<u32>(wait_result::make_batch);
    // Every lane does its part of the batch; the signal comes when all have.
    if (makes) atomic_ref<u32>{shared->contents}.fetch_or(1u << simt::lane_id() % 32, order::relaxed);
    if (makes) {
      collective_release(group.mask, [&] { semaphore.signal(batch - group.size, batch - group.size); });
      if (group.leads) atomic_ref<u32>{shared->made}.fetch_add(1, order::relaxed);
    } else if (atomic_ref<u32>{shared->contents}.load(order::relaxed) == 0) {
      atomic_ref<u32>{shared->blind}.fetch_add(1, order::relaxed);
    }
    if (group.leads) atomic_ref<u32>{shared->taken}.fetch_add(group.size, order::relaxed);
  }
};

TEST(Collective, AcquiresUnitsOfASemaphoreForAGroup) {
  for (auto const shape : shapes) {
    for_each_schedule(100, [&] {
      device_buffer<shared_units> shared(1);
      launch(shape, acquire_units_together{}, shared.data(), warp_lanes);
      synchronize();
      auto const end = shared[0];
      EXPECT_EQ(end.taken, shape.blocks * shape.threads);
      EXPECT_GT(end.made, 0u);
      EXPECT_EQ(end.blind, 0u);
      EXPECT_EQ(end.word, u64{end.made} * warp_lanes - end.taken);
    });
  }
}

#if !defined(__CUDACC__)

using test::find_failing_schedule;

/// What is wrong with a mutant.
enum class fault {
  none,
  first_opens,   // the first member that leaves opens the mutex
  two_admitted,  // a group looks whether another is inside, and goes in later
  nobody_waits,  // members go in though the lane that locks has not
  relaxed_admission,
  relaxed_leave
};

template <fault Fault>
class broken_mutex {
 public:
  explicit broken_mutex(u32& word) : word_{word} {}

  lane_group lock_converged() const {
    auto const group = group_of(simt::active_mask());
    if (group.leads) admit(group.size);
    if (Fault != fault::nobody_waits) simt::sync_warp(group.mask);
    return group;
  }

  void unlock() const { leave(1); }
  void unlock(lane_mask mask) const {
    simt::sync_warp(mask);
    if (group_of(mask).leads) leave(group_of(mask).size);
  }

 private:
  void admit(u32 size) const {
    auto const how = Fault == fault::relaxed_admission ? order::relaxed : order::acquire;
    for (backoff nap;; nap.while_working()) {
      u32 seen = word_.load(Fault == fault::two_admitted ? order::acquire : order::relaxed);
      if (seen != 0) continue;
      if (Fault == fault::two_admitted) return static_cast<void>(word_.fetch_add(size, order::acquire));
      if (word_.compare_exchange(seen, size, how, order::relaxed)) return;
    }
  }

  void leave(u32 leaving) const {
    if (Fault == fault::first_opens) word_.store(0, order::release);
    else word_.fetch_sub(leaving, Fault == fault::relaxed_leave ? order::relaxed : order::release);
  }

  atomic_ref<u32> word_;
};

template <fault Fault>
bool is_caught() {
  auto const is_sound = [] {
    auto execution = host::current_execution();
    execution.step_cap = 500'000;
    host::scoped_execution const use{execution};
    auto const end = run<broken_mutex<Fault>>({2, 5}, 1, 3, way_out::one_by_one);
    return end.unlocked && end.intruders == 0 && end.count == 30;
  };
  return find_failing_schedule(300, is_sound).has_value();
}

// collective.G2
TEST(CollectiveMutex, OneThatTheFirstMemberOpensIsCaught) { EXPECT_TRUE(is_caught<fault::first_opens>()); }

// collective.G1
TEST(CollectiveMutex, OneThatAdmitsTwoGroupsIsCaught) { EXPECT_TRUE(is_caught<fault::two_admitted>()); }

TEST(CollectiveMutex, MembersThatDoNotWaitForTheOneWhoLocksAreCaught) { EXPECT_TRUE(is_caught<fault::nobody_waits>()); }

TEST(CollectiveMutex, AnAdmissionWithoutAcquireIsCaught) { EXPECT_TRUE(is_caught<fault::relaxed_admission>()); }

// collective.G3
TEST(CollectiveMutex, ALeaveWithoutReleaseIsCaught) { EXPECT_TRUE(is_caught<fault::relaxed_leave>()); }

TEST(CollectiveMutex, ASoundOneIsNot) { EXPECT_FALSE(is_caught<fault::none>()); }

struct leave_what_nobody_entered {
  void operator()(u32* word) const { collective_mutex{*word}.unlock(); }
};

TEST(CollectiveMutex, AMemberThatNeverEnteredIsTrapped) {
  device_buffer<u32> word(1);
  EXPECT_THROW((launch({1, 1}, leave_what_nobody_entered{}, word.data()), synchronize()), host::trap_error);
}

#endif

}  // namespace
