// SPDX-License-Identifier: Apache-2.0
// Explorations themselves: a search tries every schedule within its bound and no schedule twice,
// and what fails is replayed by the fewest deviations.
#include <warpheap/explore/exploration.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>
#include <warpheap/platform/backoff.hpp>
#include <warpheap/platform/point.hpp>

namespace {

using namespace warpheap;
using explore::exploration;

/// A search under ThreadSanitizer would have the sanitizer watch the search.
class Exploration : public testing::Test {
  void SetUp() override {
    if (host::detail::under_tsan) GTEST_SKIP();
  }
};

/// Each lane writes its number behind the numbers that are there.
struct sign_log {
  u32 rounds;
  void operator()(u32* length, u32* log) const {
    for (u32 i = 0; i < rounds; ++i) log[atomic_ref<u32>{*length}.fetch_add(1, order::relaxed)] = simt::block_index();
  }
};

/// Orders in which `lanes` lanes can sign `rounds` times each with at most `preemptions`.
u32 orders_possible(u32 lanes, u32 rounds, u32 preemptions) {
  std::string order;
  for (u32 lane = 0; lane < lanes; ++lane) order.append(rounds, static_cast<char>('0' + lane));
  u32 possible = 0;
  do {
    u32 left = 0;
    for (size_t i = 1; i < order.size(); ++i) {
      bool const ended = order.find(order[i - 1], i) == std::string::npos;
      left += order[i] != order[i - 1] && !ended;
    }
    possible += left <= preemptions;
  } while (std::next_permutation(order.begin(), order.end()));
  return possible;
}

TEST_F(Exploration, ASearchTriesEveryOrderWithinItsBound) {
  struct signatures {
    u32 lanes, rounds;
  };
  for (auto const log_of : {signatures{2, 3}, {3, 2}, {4, 2}}) {
    u32 const lanes = log_of.lanes, rounds = log_of.rounds;
    for (u32 preemptions = 0; preemptions < 5; ++preemptions) {
      std::set<std::vector<u32>> orders;
      auto const found = explore::explore({.preemptions = preemptions}, [&] {
        device_buffer<u32> const length(1), log(lanes * rounds);
        launch({lanes, 1}, sign_log{rounds}, length.data(), log.data());
        orders.insert(log.to_host());
        return length[0] == lanes * rounds;
      });
      EXPECT_TRUE(found.ended);
      EXPECT_FALSE(found.fault);
      EXPECT_EQ(orders.size(), orders_possible(lanes, rounds, preemptions)) << lanes << " lanes, " << preemptions;
    }
  }
}

/// What a search of two lanes that add under a lock can end in: turns that lanes waited, in order.
std::set<std::vector<u32>> ends_of(exploration const& how) {
  struct wait_and_note {
    void operator()(u32* words) const {
      atomic_ref<u32> const lock{words[0]}, turns{words[1]};
      u32 const me = simt::block_index();
      while (lock.exchange(1, order::acquire)) {
        words[2 + me] = words[2 + me] * 10 + turns.load(order::relaxed);
        simt::pause(1);
      }
      turns.fetch_add(1, order::relaxed);
      lock.exchange(0, order::release);
      words[2 + me] = words[2 + me] * 10 + turns.fetch_add(1, order::relaxed);
    }
  };
  std::set<std::vector<u32>> ends;
  auto const found = explore::explore(how, [&] {
    device_buffer<u32> const words(5);
    launch({3, 1}, wait_and_note{}, words.data());
    ends.insert(words.to_host());
    return true;
  });
  EXPECT_TRUE(found.ended && !found.fault);
  return ends;
}

TEST_F(Exploration, KnownStatesLeadToNothingNew) {
  for (u32 preemptions = 0; preemptions < 4; ++preemptions) {
    auto const ends = ends_of({.preemptions = preemptions});
    EXPECT_GE(ends.size(), 2u);
    EXPECT_EQ(ends, ends_of({.preemptions = preemptions, .follows_known_states = true})) << preemptions;
  }
}

struct add_in_two_steps {
  void operator()(u32* word) const {
    u32 const seen = atomic_ref<u32>{*word}.load(order::relaxed);
    atomic_ref<u32>{*word}.store(seen + 1, order::relaxed);
  }
};

bool no_update_is_lost() {
  device_buffer<u32> const word(1);
  launch({2, 1}, add_in_two_steps{}, word.data());
  return word[0] == 2;
}

TEST_F(Exploration, FindsTheLostUpdateThatTakesOnePreemption) {
  auto const without = explore::explore({.preemptions = 0}, no_update_is_lost);
  EXPECT_TRUE(without.ended && !without.fault);
  for (auto const& how : {exploration{.preemptions = 1}, exploration{.schedules = 1000}}) {
    auto const found = explore::explore(how, no_update_is_lost);
    ASSERT_TRUE(found.fault);
    EXPECT_EQ(found.fault->deviations.size(), 1u);
    EXPECT_NE(explore::replay(how, *found.fault, no_update_is_lost), "");
    auto none = *found.fault;
    none.deviations.clear();
    EXPECT_EQ(explore::replay(how, none, no_update_is_lost), "");
  }
}

/// Test-and-set with a load and a store in place of the exchange, if it is broken.
template <bool Broken>
struct count_under_a_lock {
  void operator()(u32* words) const {
    atomic_ref<u32> const lock{words[0]}, counter{words[1]};
    for (u32 round = 0; round < 2; ++round) {
      backoff wait;
      if constexpr (Broken) {
        while (lock.load(order::acquire)) wait.while_working();
        lock.store(1, order::relaxed);
      } else {
        while (lock.exchange(1, order::acquire)) wait.while_working();
      }
      counter.store(counter.load(order::relaxed) + 1, order::relaxed);
      lock.store(0, order::release);
    }
  }
};

template <bool Broken>
bool lock_excludes() {
  device_buffer<u32> const words(2);
  launch({3, 1}, count_under_a_lock<Broken>{}, words.data());
  return words[1] == 6;
}

TEST_F(Exploration, TellsALockFromABrokenOne) {
  for (u32 preemptions = 0; preemptions < 5; ++preemptions) {
    auto const found = explore::explore({.preemptions = preemptions}, lock_excludes<false>);
    EXPECT_TRUE(found.ended && !found.fault) << preemptions;
  }
  EXPECT_FALSE(explore::explore({.preemptions = 1}, lock_excludes<true>).fault);
  EXPECT_TRUE(explore::explore({.preemptions = 2}, lock_excludes<true>).fault);
  EXPECT_TRUE(explore::explore({.schedules = 1000}, lock_excludes<true>).fault);
}

/// Waits for a flag that the other lane sets only if it comes first.
struct wait_for_what_may_not_come {
  void operator()(u32* words) const {
    atomic_ref<u32> const asleep{words[0]}, awake{words[1]};
    if (simt::block_index() == 0) {
      asleep.store(1, order::relaxed);
      while (awake.load(order::relaxed) == 0) simt::pause(1);
    } else if (asleep.load(order::relaxed) == 1) {
      awake.store(1, order::relaxed);
    }
  }
};

TEST_F(Exploration, ReportsAHangAtOnce) {
  auto const found = explore::explore({.preemptions = 1}, [] {
    device_buffer<u32> const words(2);
    launch({2, 1}, wait_for_what_may_not_come{}, words.data());
    return true;
  });
  ASSERT_TRUE(found.fault);
  EXPECT_THAT(found.fault->what, testing::HasSubstr("wait for a change"));
  EXPECT_LT(found.steps, 50'000u);
}

/// A lock whose lanes wait without a pause, and count their attempts or not.
template <bool CountsAttempts>
struct spin_for_a_lock {
  void operator()(u32* words) const {
    atomic_ref<u32> const lock{words[0]}, counter{words[1]}, attempts{words[2]};
    while (lock.exchange(1, order::acquire))
      if (CountsAttempts) attempts.fetch_add(1, order::relaxed);
    counter.store(counter.load(order::relaxed) + 1, order::relaxed);
    lock.store(0, order::release);
  }
};

template <bool CountsAttempts>
bool spinning_lock_excludes() {
  device_buffer<u32> const words(3);
  launch({3, 1}, spin_for_a_lock<CountsAttempts>{}, words.data());
  return words[1] == 3;
}

TEST_F(Exploration, LanesThatWaitWithoutAPauseGiveWay) {
  for (u32 preemptions = 0; preemptions < 3; ++preemptions) {
    auto const found = explore::explore({.preemptions = preemptions}, spinning_lock_excludes<false>);
    EXPECT_TRUE(found.ended && !found.fault) << preemptions;
  }
  auto const counting = explore::explore({.preemptions = 1, .schedules = 50}, spinning_lock_excludes<true>);
  EXPECT_FALSE(counting.fault) << counting.fault->what;
  EXPECT_FALSE(explore::explore({.schedules = 50}, spinning_lock_excludes<true>).fault);
}

TEST_F(Exploration, ReportsAHangOfLanesThatDoNotPause) {
  auto const found = explore::explore({.preemptions = 1}, [] {
    device_buffer<u32> const words(3);
    launch(
        {2, 1},
        [](u32* all) {
          atomic_ref<u32> const lock{all[0]};
          u32 free = 0;
          while (!lock.compare_exchange(free, 1, order::acquire, order::relaxed)) free = 0;
        },
        words.data());
    return true;
  });
  ASSERT_TRUE(found.fault);
  EXPECT_THAT(found.fault->what, testing::HasSubstr("look again and again at buffer 1 + 0x0"));
}

/// Two lanes hand a token to and fro for ever unless the third sets the flag that ends it.
struct hand_a_token_to_and_fro {
  void operator()(u32* words) const {
    atomic_ref<u32> const token{words[0]}, stop{words[1]};
    u32 const me = simt::block_index();
    if (me == 2) return stop.store(1, order::relaxed);
    while (stop.load(order::relaxed) == 0) {
      if (token.load(order::relaxed) == me) token.store(1 - me, order::relaxed);
      simt::pause(1);
    }
  }
};

// schedule.F1: two lanes that wake each other in turn do not keep out a third, so the
// search ends.
TEST_F(Exploration, FollowsFairSchedulesAlone) {
  auto const found = explore::explore({.preemptions = 2}, [] {
    device_buffer<u32> const words(2);
    launch({3, 1}, hand_a_token_to_and_fro{}, words.data());
    return true;
  });
  EXPECT_TRUE(found.ended && !found.fault);
}

/// As hand_a_token_to_and_fro, after all have counted; the third may lose that race.
struct count_first {
  void operator()(u32* words) const {
    atomic_ref<u32> const count{words[2]};
    backoff nap;
    for (u32 seen = count.load(order::relaxed);
         !count.compare_exchange(seen, seen + 1, order::relaxed, order::relaxed);)
      nap.after_race();
    hand_a_token_to_and_fro{}(words);
  }
};

/// The third waits for a flag, and looks at another word before it pauses. Then as above.
struct wait_for_a_flag_first {
  void operator()(u32* words) const {
    atomic_ref<u32> const flag{words[2]}, other{words[3]};
    if (simt::block_index() != 2) {
      flag.store(1, order::relaxed);
    } else {
      while (flag.load(order::relaxed) == 0) {
        static_cast<void>(other.load(order::relaxed));
        simt::pause(1);
      }
      other.store(1, order::relaxed);
    }
    hand_a_token_to_and_fro{}(words);
  }
};

template <class Kernel>
void expect_the_third_goes_on() {
  auto const found = explore::explore({.preemptions = 2, .step_cap = 10'000}, [] {
    device_buffer<u32> const words(4);
    launch({3, 1}, Kernel{}, words.data());
    return true;
  });
  EXPECT_FALSE(found.fault) << found.fault->what;
  EXPECT_TRUE(found.ended);
}

// Lanes that wake each other in turn do not keep out a lane whose next look will tell it something:
// it has lost a race, or what it waits for came between its look and its pause.
TEST_F(Exploration, ALaneThatLostARaceWaitsForNoChange) { expect_the_third_goes_on<count_first>(); }
TEST_F(Exploration, ALaneThatMissedAChangeWaitsForNoOther) { expect_the_third_goes_on<wait_for_a_flag_first>(); }

/// A lane that is held at its yield point undoes what the others do meanwhile.
struct pass_yield_points {
  void operator()(u32* words) const {
    for (u32 i = 0; i < 40; ++i) atomic_ref<u32>{words[1]}.fetch_add(1, order::relaxed);
    u32 const seen = atomic_ref<u32>{words[0]}.load(order::relaxed);
    WARPHEAP_POINT("between load and store");
    atomic_ref<u32>{words[0]}.store(seen + 1, order::relaxed);
    for (u32 i = 0; i < 40; ++i) atomic_ref<u32>{words[1]}.fetch_add(1, order::relaxed);
  }
};

TEST_F(Exploration, PreemptsAtYieldPoints) {
  auto const body = [] {
    device_buffer<u32> const words(2);
    launch({3, 1}, pass_yield_points{}, words.data());
    return words[0] != 1;
  };
  auto const found = explore::explore({.preemptions = 1, .at_yield_points_only = true}, body);
  ASSERT_TRUE(found.fault);
  EXPECT_LE(found.fault->deviations.size(), 2u);
  EXPECT_LT(found.schedules, 20u);
  EXPECT_FALSE(explore::explore({.preemptions = 0, .at_yield_points_only = true}, body).fault);
  EXPECT_TRUE(explore::explore({.schedules = 200}, body).fault);
}

TEST_F(Exploration, StopsAtItsLimits) {
  EXPECT_EQ(explore::explore({.schedules = 17}, lock_excludes<false>).schedules, 17u);
  auto const brief = explore::explore({.seconds = 0.05}, lock_excludes<false>);
  EXPECT_GT(brief.schedules, 1u);
  EXPECT_LT(brief.seconds, 5);
  u32 reports = 0;
  auto const stopped = explore::explore({.proceed = [&](auto const&) { return ++reports < 2; }}, lock_excludes<false>);
  EXPECT_EQ(reports, 2u);
  EXPECT_LT(stopped.seconds, 10);
}

TEST_F(Exploration, WritesAndReadsDeviations) {
  std::vector<explore::deviation> const some{{12, 1}, {40, 2}};
  EXPECT_EQ(explore::text_of(some), "12:1,40:2");
  EXPECT_EQ(explore::deviations_in("12:1,40:2"), some);
  EXPECT_EQ(explore::deviations_in(explore::text_of({})), std::vector<explore::deviation>{});
  for (auto const* const wrong : {"", "12", "12:", "12:1,", ":1", "12:1;40:2", "x:1", "12:99999999999"})
    EXPECT_FALSE(explore::deviations_in(wrong)) << wrong;
}

TEST_F(Exploration, ReportsWhatABodyThrows) {
  auto const found = explore::explore({.preemptions = 0}, []() -> bool { throw std::runtime_error{"no luck"}; });
  ASSERT_TRUE(found.fault);
  EXPECT_EQ(found.fault->what, "no luck");
}

TEST_F(Exploration, RefusesABodyThatDoesNotRepeatItself) {
  u32 executions = 0;
  auto const expect_refusal = [&](auto body) {
    EXPECT_THROW(static_cast<void>(explore::explore({.preemptions = 1}, body)), backend_error);
  };
  expect_refusal([&] {
    device_buffer<u32> const words(2);
    for (u32 i = ++executions % 2; i < 2; ++i) launch({2, 1}, add_in_two_steps{}, words.data());
    return true;
  });
  expect_refusal([&] {
    device_buffer<u32> const words(std::vector<u32>{++executions});
    launch({2, 1}, add_in_two_steps{}, words.data());
    return true;
  });
}

TEST_F(Exploration, RefusesWhatItCannotExplore) {
  auto const refusal = [](exploration const& how, auto body) {
    try {
      auto const found = explore::explore(how, body);
      return found.fault ? found.fault->what : std::string{};
    } catch (backend_error const& error) {
      return std::string{error.what()};
    }
  };
  auto const nothing = [] { return true; };
  EXPECT_THAT(refusal({.preemptions = 1, .weak_memory = true}, nothing), testing::HasSubstr("weak memory"));
  EXPECT_THAT(refusal({.preemptions = 1, .masks = host::mask_policy::random}, nothing), testing::HasSubstr("masks"));
  EXPECT_THAT(refusal({.preemptions = 16}, nothing), testing::HasSubstr("at most 15"));
  EXPECT_THAT(refusal({.preemptions = 1}, [&] { return refusal({.preemptions = 1}, nothing).empty(); }),
              testing::HasSubstr("check failed"));
  auto const many_lanes = [] {
    device_buffer<u32> const words(2);
    launch({3, 32}, add_in_two_steps{}, words.data());
    return true;
  };
  EXPECT_THAT(refusal({.preemptions = 1}, many_lanes), testing::HasSubstr("at most 64 lanes"));
  std::vector<u32*> kept;
  auto const keep = [&] {
    kept.push_back(static_cast<u32*>(host::allocate_bytes(4)));
    return true;
  };
  EXPECT_THAT(refusal({.schedules = 3}, keep), testing::HasSubstr("kept 1 allocations"));
}

}  // namespace
