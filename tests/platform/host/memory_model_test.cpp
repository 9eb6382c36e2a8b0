// SPDX-License-Identifier: Apache-2.0
// The parts of weak memory: views, histories, what a lane keeps; and what no litmus test says, that
// stores become visible and that a seed replays. What is allowed and forbidden is in litmus/.
#include <gtest/gtest.h>

#include <vector>

#include "warpheap/platform/device_buffer.hpp"

namespace memory_model_test {

using namespace warpheap;
using host::detail::location;
using host::detail::view_store;
using host::detail::word_history;

/// Under ThreadSanitizer there is no weak memory to test.
class WeakMemory : public testing::Test {
  void SetUp() override {
    if (host::detail::under_tsan) GTEST_SKIP();
  }
};

host::execution settings(u64 seed) {
  return {.mode = host::execution_mode::deterministic,
          .policy = seed % 4 == 0 ? host::schedule_policy::round_robin : host::schedule_policy::random_walk,
          .seed = seed,
          .weak_memory = true};
}

/// What `kernel(words)` leaves in two zeroed words under a seed.
template <class Kernel>
std::vector<u32> left_by(u64 seed, launch_shape shape, Kernel kernel) {
  host::scoped_execution const use{settings(seed)};
  device_buffer<u32> words(2);
  launch(shape, kernel, words.data());
  return words.to_host();
}

struct rereading {
  void operator()(u32* words) const {
    if (simt::block_index() == 0) {
      for (u32 value = 1; value < 8; ++value) atomic_ref<u32>{words[0]}.store(value, order::relaxed);
      return;
    }
    u32 last = 0;
    for (u32 i = 0; i < 8; ++i) {
      u32 const now = atomic_ref<u32>{words[0]}.load(order::relaxed);
      if (now < last) words[1] = 1;
      last = now;
    }
  }
};

TEST_F(WeakMemory, ALaneNeverGoesBackOnALocation) {
  for (u64 seed = 0; seed < 400; ++seed) EXPECT_EQ(left_by(seed, {2, 1}, rereading{}), (std::vector<u32>{7, 0}));
}

/// Many lanes count, and look at the count by operations that leave it as it was.
struct counting {
  void operator()(u32* words) const {
    atomic_ref<u32> const count{words[0]};
    count.fetch_or(0, order::relaxed);
    count.fetch_add(1, order::relaxed);
    u32 none = 1000;
    count.compare_exchange(none, 0, order::relaxed, order::relaxed);
    count.fetch_max(1, order::relaxed);
  }
};

// host.H2, host.H3
TEST_F(WeakMemory, NoUpdateIsLost) {
  for (u64 seed = 0; seed < 40; ++seed) EXPECT_EQ(left_by(seed, {4, 64}, counting{})[0], 256u);
}

/// A lane stores, and another one looks long after that.
struct look_later {
  void operator()(u32* words) const {
    if (simt::block_index() == 0) return atomic_ref<u32>{words[0]}.store(1, order::relaxed);
    for (u32 i = 0; i < 300; ++i) simt::pause(1);
    words[1] = atomic_ref<u32>{words[0]}.load(order::relaxed);
  }
};

TEST_F(WeakMemory, EveryStoreIsSeenInTheEnd) {
  for (u64 seed = 0; seed < 100; ++seed) EXPECT_EQ(left_by(seed, {2, 1}, look_later{}), (std::vector<u32>{1, 1}));
}

/// Every lane waits for a lock by read-modify-writes that mostly leave it as it was, and lets go of
/// it by a store.
struct take_turns {
  void operator()(u32* words) const {
    for (u32 i = 0; i < 4; ++i) {
      while (atomic_ref<u32>{words[0]}.exchange(1, order::acquire) == 1) simt::pause(1);
      ++words[1];
      atomic_ref<u32>{words[0]}.store(0, order::release);
    }
  }
};

TEST_F(WeakMemory, ALockThatAStoreOpensIsNeitherLostNorTakenTwice) {
  for (u64 seed = 0; seed < 200; ++seed) EXPECT_EQ(left_by(seed, {3, 2}, take_turns{}), (std::vector<u32>{0, 24}));
}

/// Every operation of a lane depends on what it has read.
struct wandering {
  void operator()(u32* words) const {
    for (u32 i = 0; i < 40; ++i) {
      atomic_ref<u32> const word{words[i % 2]};
      u32 const seen = word.load(order::relaxed);
      if (seen % 3 == 0) word.store(seen * 5 + simt::block_index(), order::release);
      else word.fetch_xor(seen + i, order::acq_rel);
    }
  }
};

TEST_F(WeakMemory, ASeedReplays) {
  for (u64 seed = 0; seed < 40; ++seed) {
    auto const once = left_by(seed, {4, 2}, wandering{});
    u64 const schedule = host::last_run().schedule_hash;
    EXPECT_EQ(left_by(seed, {4, 2}, wandering{}), once);
    EXPECT_EQ(host::last_run().schedule_hash, schedule);
  }
}

/// A failure after a late store, a stale read, and a stale read-modify-write.
struct failing_after_weak_steps {
  u32 outcome;

  void operator()(u32* words) const {
    atomic_ref<u32> const word{words[0]};
    if (simt::block_index() == 0) {
      for (u32 i = 1; i < 6; ++i) word.store(i, order::relaxed);
      return;
    }
    word.load(order::relaxed);
    if (outcome == 0) word.load(order::relaxed);
    if (outcome == 1) word.store(9, order::relaxed);
    if (outcome == 2) word.fetch_or(0, order::relaxed);
    simt::trap("enough");
  }
};

std::string reports_of(u32 outcome) {
  std::string reports;
  for (u64 seed = 0; seed < 60; ++seed) {
    try {
      left_by(seed, {2, 1}, failing_after_weak_steps{outcome});
    } catch (host::trap_error const& error) {
      reports += error.what();
    }
  }
  return reports;
}

TEST_F(WeakMemory, AReportMarksWhatInterleavingDoesNotExplain) {
  EXPECT_NE(reports_of(0).find("(stale)"), std::string::npos);
  EXPECT_NE(reports_of(1).find("(late)"), std::string::npos);
  EXPECT_NE(reports_of(2).find("fetch_or buffer"), std::string::npos);
  EXPECT_NE(reports_of(2).find("0x4 -> 0x4 (stale)"), std::string::npos);
}

// host.V2
TEST(View, ForgetsDetailNeverKnowledge) {
  host::detail::seen_stores known;
  for (u32 i = 1; i <= 10'000; ++i) known.raise(i % 997, i);
  EXPECT_LE(known.entries.size(), 256u);
  for (u32 i = 10'000 - 996; i <= 10'000; ++i) EXPECT_GE(known.known(i % 997), i);
}

// host.V1
TEST(View, JoinKnowsWhatEitherKnew) {
  host::detail::seen_stores left, right;
  left.raise(3, 10);
  left.raise(4, 20);
  right.raise(4, 15);
  right.raise(9, 30);
  right.raise_floor(12);
  EXPECT_FALSE(left.covers(right));
  left.join(right);
  EXPECT_EQ(left.known(3), 12u);
  EXPECT_EQ(left.known(4), 20u);
  EXPECT_EQ(left.known(9), 30u);
  EXPECT_TRUE(left.covers(right));
  EXPECT_FALSE(right.covers(left));
}

using numbers = std::vector<u64>;

numbers values_of(location const& place) {
  numbers values;
  for (u32 i = 0; i < place.count; ++i) values.push_back(place.messages[i].value);
  return values;
}

// host.H1
TEST(History, KeepsTheNewestInOrderOfTheirStamps) {
  view_store views;
  location place;
  for (u64 const stamp : {10, 40, 20, 30, 35}) {
    place.insert(views, {.value = stamp, .stamp = stamp});
  }
  EXPECT_EQ(values_of(place), (numbers{20, 30, 35, 40}));
  EXPECT_EQ(place.oldest_after(34), 1u);
  EXPECT_EQ(place.oldest_after(0), 0u);
}

TEST(History, HasRoomBehindAMessageUntilStampsRunOut) {
  view_store views;
  location place;
  place.insert(views, {.stamp = 256});
  place.insert(views, {.stamp = 512});
  u32 placed = 0;
  for (u64 stamp; (stamp = place.stamp_behind(place.count - 2, 0)) != 0; ++placed) {
    EXPECT_GT(stamp, place.messages[place.count - 2].stamp);
    EXPECT_LT(stamp, place.newest().stamp);
    place.insert(views, {.stamp = stamp});
  }
  EXPECT_GE(placed, 7u);
  EXPECT_EQ(place.stamp_behind(0, place.newest().stamp), 0u);
}

TEST(History, OfTwoHalvesBecomesThatOfTheWord) {
  view_store views;
  word_history word;
  word.accessed = word_history::width::narrow;
  word.parts[0].insert(views, {.value = 1, .stamp = 10});
  word.parts[1].insert(views, {.value = 2, .stamp = 20});
  word.parts[0].insert(views, {.value = 3, .stamp = 30});
  word.parts[1].insert(views, {.value = 4, .stamp = 40});
  word.mix(views);
  auto const& whole = word.parts[0];
  EXPECT_EQ(values_of(whole), (numbers{0x2'0000'0001, 0x2'0000'0003, 0x4'0000'0003}));
  EXPECT_EQ(whole.messages[0].stamp, 20u);
  EXPECT_EQ(whole.messages[1].stamp, 30u);
  EXPECT_EQ(whole.messages[2].stamp, 40u);
}

}  // namespace memory_model_test
