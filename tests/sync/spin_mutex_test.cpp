// SPDX-License-Identifier: Apache-2.0
// The mutex between real lanes: one inside at a time, alone or beside the holder in its warp, and
// what the last holder wrote is seen.
#include <gtest/gtest.h>

#include <warpheap/platform/device_buffer.hpp>
#include <warpheap/sync/spin_mutex.hpp>

#include "support/schedules.hpp"

namespace {

using namespace warpheap;
using test::for_each_schedule;

/// One lane, partial warps, a warp and a lane, two warps; on one multiprocessor or several, as the
/// seed says.
constexpr launch_shape shapes[] = {{1, 1}, {2, 31}, {1, 33}, {3, 17}, {1, 64}};

/// What lanes do inside: the count is raised in two steps, so that two at once, or one that sees an
/// old value, lose one.
struct protected_state {
  u32 word;
  u32 count;    // sections
  u32 inside;   // lanes
  u32 crowded;  // sections in which another lane was inside
  u32 refused;  // try_lock
};

WARPHEAP_DEVICE void section(protected_state* state) {
  atomic_ref<u32> const count{state->count}, inside{state->inside};
  // relaxed throughout: the mutex orders them.
  u32 const before = count.load(order::relaxed);
  if (inside.fetch_add(1, order::relaxed) != 0) atomic_ref<u32>{state->crowded}.fetch_add(1, order::relaxed);
  simt::pause(20);
  inside.fetch_sub(1, order::relaxed);
  count.store(before + 1, order::relaxed);
}

template <class Mutex>
struct count_with_lock {
  WARPHEAP_DEVICE void operator()(protected_state* state, u32 rounds) const {
    Mutex const mutex{state->word};
    for (u32 round = 0; round < rounds; ++round) {
      mutex.lock();
      section(state);
      mutex.unlock();
    }
  }
};

template <class Mutex>
struct count_with_try_lock {
  WARPHEAP_DEVICE void operator()(protected_state* state, u32 rounds) const {
    Mutex const mutex{state->word};
    u32 refused = 0;
    for (u32 round = 0; round < rounds;) {
      if (!mutex.try_lock()) {
        ++refused;
        simt::pause(100);
        continue;
      }
      section(state);
      mutex.unlock();
      ++round;
    }
    atomic_ref<u32>{state->refused}.fetch_add(refused, order::relaxed);
  }
};

struct count_with_guard {
  WARPHEAP_DEVICE void operator()(protected_state* state, u32 rounds) const {
    for (u32 round = 0; round < rounds; ++round) count_once(state, round);
  }

 private:
  WARPHEAP_DEVICE static void count_once(protected_state* state, u32 round) {
    scoped_lock const held{spin_mutex{state->word}};
    section(state);
    if (round % 2 == 0) return;  // another way out
    simt::pause(10);
  }
};

template <class Kernel>
protected_state run(Kernel kernel, launch_shape shape, u32 rounds) {
  device_buffer<protected_state> state(1);
  launch(shape, kernel, state.data(), rounds);
  synchronize();
  return state[0];
}

template <class Kernel>
bool admits_one(Kernel kernel, launch_shape shape) {
  constexpr u32 rounds = 3;
  auto const end = run(kernel, shape, rounds);
  return end.word == 0 && end.crowded == 0 && end.count == shape.blocks * shape.threads * rounds;
}

TEST(SpinMutex, AdmitsOneLaneAtATime) {
  for (auto const shape : shapes) {
    for_each_schedule(60, [&] {
      EXPECT_TRUE(admits_one(count_with_lock<spin_mutex>{}, shape)) << shape.blocks << " x " << shape.threads;
    });
  }
}

TEST(SpinMutex, TryLockRefusesWhatIsHeldAndTakesWhatIsFree) {
  u32 refused = 0;
  for (auto const shape : shapes) {
    for_each_schedule(40, [&] {
      auto const end = run(count_with_try_lock<spin_mutex>{}, shape, 3);
      EXPECT_EQ(end.crowded, 0u);
      EXPECT_EQ(end.count, shape.blocks * shape.threads * 3);
      EXPECT_TRUE(shape.threads > 1 || end.refused == 0);
      refused += end.refused;
    });
  }
  EXPECT_GT(refused, 0u);
}

TEST(SpinMutex, AGuardUnlocksOnEveryWayOut) {
  for_each_schedule(40, [] { EXPECT_TRUE(admits_one(count_with_guard{}, {2, 33})); });
}

#if !defined(__CUDACC__)

using test::find_failing_schedule;

/// A mutex with one order, or its test, left out.
enum class fault { none, relaxed_lock, relaxed_unlock, test_apart_from_set };

template <fault Fault>
class broken_mutex {
 public:
  explicit broken_mutex(u32& word) : word_{word} {}

  bool try_lock() const {
    if constexpr (Fault == fault::test_apart_from_set) {
      if (word_.load(order::acquire) != 0) return false;
      word_.store(1, order::relaxed);
      return true;
    } else {
      u32 seen = 0;
      return word_.compare_exchange(seen, 1, Fault == fault::relaxed_lock ? order::relaxed : order::acquire,
                                    order::relaxed);
    }
  }
  void lock() const {
    for (backoff nap; !try_lock();) nap.while_working();
  }
  void unlock() const { word_.store(0, Fault == fault::relaxed_unlock ? order::relaxed : order::release); }

 private:
  atomic_ref<u32> word_;
};

template <fault Fault>
bool is_caught() {
  return find_failing_schedule(200,
                               [] {
                                 return admits_one(count_with_lock<broken_mutex<Fault>>{}, {2, 5});
                               })
      .has_value();
}

// spin.M2
TEST(SpinMutex, ALockWithoutAcquireIsCaught) { EXPECT_TRUE(is_caught<fault::relaxed_lock>()); }

TEST(SpinMutex, AnUnlockWithoutReleaseIsCaught) { EXPECT_TRUE(is_caught<fault::relaxed_unlock>()); }

// spin.M1
TEST(SpinMutex, ATestApartFromItsSetIsCaught) { EXPECT_TRUE(is_caught<fault::test_apart_from_set>()); }

TEST(SpinMutex, ASoundMutexIsNot) { EXPECT_FALSE(is_caught<fault::none>()); }

struct unlock_what_nobody_holds {
  void operator()(u32* word) const { spin_mutex{*word}.unlock(); }
};

TEST(SpinMutex, AnUnlockOfWhatNobodyHoldsIsTrapped) {
  device_buffer<u32> word(1);
  EXPECT_THROW((launch({1, 1}, unlock_what_nobody_holds{}, word.data()), synchronize()), host::trap_error);
}

#endif

}  // namespace
