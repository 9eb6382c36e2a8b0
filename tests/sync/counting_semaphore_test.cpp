// SPDX-License-Identifier: Apache-2.0
// The counting semaphore: its decisions without threads, and between real lanes no unit lost, no
// lane left asleep, one batch in the making at a time, contents seen.
#include <gtest/gtest.h>

#include <vector>
#include <warpheap/platform/device_buffer.hpp>
#include <warpheap/sync/counting_semaphore.hpp>
#include <warpheap/util/random.hpp>

#include "semaphore_fixture.hpp"
#include "support/schedules.hpp"

namespace {

using namespace warpheap;
using test::count;
using test::for_each_schedule;
using test::take_batch;
using test::tally;
using test::trade_batches;
namespace state = counting_semaphore_state;

TEST(CountingSemaphoreState, TakesWhatIsThereGrowsFromZeroUpAndSleepsBelow) {
  u32 takes = 0, grows = 0, sleeps = 0;
  for (u32 n = 1; n <= 5; ++n) {
    for (i64 s = -3; s <= 7; ++s) {
      auto const fixed = state::next_of_wait(s, n);
      auto const growing = state::next_of_wait_or_grow(s, n);
      if (s >= n) {
        EXPECT_EQ(fixed.what, state::step::take);
        EXPECT_EQ(growing.what, state::step::take);
        EXPECT_EQ(fixed.next, s - n);
        EXPECT_EQ(growing.next, s - n);
        EXPECT_EQ(growing.missing, 0u);
        ++takes;
        continue;
      }
      EXPECT_EQ(fixed.what, state::step::sleep);
      EXPECT_EQ(fixed.next, s);
      if (s < 0) {
        EXPECT_EQ(growing.what, state::step::sleep);
        EXPECT_EQ(growing.next, s);
        ++sleeps;
      } else {
        EXPECT_EQ(growing.what, state::step::grow);
        EXPECT_EQ(growing.next, -1);
        EXPECT_EQ(growing.missing, n - s);  // the s units are taken
        ++grows;
      }
    }
  }
  EXPECT_EQ(takes, 25u);
  EXPECT_EQ(grows, 15u);
  EXPECT_EQ(sleeps, 15u);
}

/// Every lane takes one unit and keeps it; makers write to `contents` before they settle.
template <class Semaphore>
struct take_one {
  WARPHEAP_DEVICE void operator()(u64* word, u32 batch, u32* contents, tally* total) const {
    Semaphore semaphore{*word};
    if (u32 const missing = semaphore.wait_or_grow(1)) {
      if (count(total->making, 1) > 0) count(total->beside, 1);
      atomic_ref<u32>{*contents}.store(1, order::relaxed);
      count(total->making, ~0u);
      semaphore.grown(batch - missing);
      count(total->made, 1);
    } else if (atomic_ref<u32>{*contents}.load(order::relaxed) == 0) {
      count(total->blind, 1);
    }
    count(total->acquired, 1);
  }
};

template <class Semaphore>
tally take_one_each(launch_shape shape, u32 batch, u64& left) {
  device_buffer<u64> word(1);
  device_buffer<u32> contents(1);
  device_buffer<tally> total(1);
  launch(shape, take_one<Semaphore>{}, word.data(), batch, contents.data(), total.data());
  synchronize();
  left = word[0];
  return total[0];
}

TEST(CountingSemaphore, MakesOneBatchAfterTheOtherAndNoMoreThanNeeded) {
  for (u32 const batch : {1u, 7u, 32u, 512u}) {
    for_each_schedule(50, [&] {
      u64 left = 0;
      auto const done = take_one_each<counting_semaphore>({2, 50}, batch, left);
      EXPECT_EQ(done.acquired, 100u);
      EXPECT_EQ(done.made, (100 + batch - 1) / batch);
      EXPECT_EQ(done.beside, 0u);
      EXPECT_EQ(left, u64{done.made} * batch - 100);
    });
  }
}

template <class Semaphore>
bool shows_contents() {
  u64 left = 0;
  auto const done = take_one_each<Semaphore>({2, 3}, 8, left);
  return done.acquired == 6 && done.blind == 0;
}

TEST(CountingSemaphore, WhatAMakerWroteHappensBeforeItsUnitsAreTaken) {
  for_each_schedule(200, [] { EXPECT_TRUE(shows_contents<counting_semaphore>()); });
}

/// Waits for n units, or makes a batch for them while any is left.
struct acquire {
  template <class Semaphore>
  WARPHEAP_DEVICE bool operator()(Semaphore& semaphore, u32 n, u32 batch, u32* supply, tally* total) const {
    u32 const missing = semaphore.wait_or_grow(n);
    if (missing == 0) return true;
    bool const made = take_batch(*supply);
    if (made) count(total->made, 1);
    semaphore.grown(made ? batch - missing : n - missing);
    return made;
  }
};

/// Whether units are conserved after lanes have traded with `supply` batches left.
template <class Semaphore>
bool conserves_units(u32 supply) {
  auto const seen = trade_batches<Semaphore, acquire>(supply);
  return seen.adds_up(supply) && seen.word + seen.done.held == u64{seen.done.made} * 8;
}

// counting.C3
TEST(CountingSemaphore, ConservesUnitsWhileBatchesSucceedAndFail) {
  for (u32 const supply : {0u, 1u, 5u, 1000u}) {
    for_each_schedule(200, [&] { EXPECT_TRUE(conserves_units<counting_semaphore>(supply)) << supply << " batches"; });
  }
}

/// Lanes share what there is: each takes n units, holds them for a while and gives them back.
template <class Semaphore>
struct take_turns {
  WARPHEAP_DEVICE void operator()(u64* word, u32 units, u32 rounds, u32* inside, tally* total) const {
    Semaphore semaphore{*word};
    random_sequence random{global_thread_index()};
    for (u32 round = 0; round < rounds; ++round) {
      u32 const n = 1 + random.below(units);
      semaphore.wait(n);
      if (count(*inside, n) + n > units) count(total->beside, 1);
      simt::pause(random.below(60));
      count(*inside, 0 - n);
      semaphore.signal(n);
      count(total->acquired, 1);
    }
  }
};

template <class Semaphore>
bool hands_out_what_there_is(launch_shape shape, u32 units) {
  device_buffer<u64> word(std::vector<u64>{units});
  device_buffer<u32> inside(1);
  device_buffer<tally> total(1);
  launch(shape, take_turns<Semaphore>{}, word.data(), units, 4u, inside.data(), total.data());
  synchronize();
  auto const done = total[0];
  return done.beside == 0 && done.acquired == shape.blocks * shape.threads * 4 && word[0] == units;
}

TEST(CountingSemaphore, HandsOutNoMoreThanThereIs) {
  for (launch_shape const shape : {launch_shape{1, 1}, {1, 31}, {2, 33}}) {
    for (u32 const units : {1u, 5u}) {
      for_each_schedule(100, [&] { EXPECT_TRUE(hands_out_what_there_is<counting_semaphore>(shape, units)); });
    }
  }
}

struct add_units {
  WARPHEAP_DEVICE void operator()(counting_semaphore& semaphore, u32 units) const { semaphore.signal(units); }
};

TEST(CountingSemaphore, WhatWasWrittenBeforeUnitsWereAddedIsThereForALaneThatTries) {
  for (launch_shape const shape : {launch_shape{2, 1}, {4, 1}, {2, 3}})
    for_each_schedule(
        60, [&] { EXPECT_TRUE((test::shows_contents_to_lanes_that_try<counting_semaphore, add_units>(shape))); });
}

// A lane that loses the exchange to another one tries again.
TEST(CountingSemaphore, ATryFailsOnlyIfUnitsAreMissing) {
  for (launch_shape const shape : {launch_shape{2, 1}, {3, 2}, {1, 33}})
    for_each_schedule(20, [&] { EXPECT_TRUE(test::serves_all_that_try<counting_semaphore>(shape, 3)); });
}

#if !defined(__CUDACC__)

using test::find_failing_schedule;

/// What is left out of a mutant.
enum class fault { none, growth_not_settled, failure_not_settled, relaxed_signal, signal_forgets_sleepers, take_apart };

template <fault Fault>
class broken_semaphore : public counting_semaphore {
 public:
  explicit broken_semaphore(u64& word) : counting_semaphore{word}, raw_{word} {}

  void wait(u32 n) const {
    if constexpr (Fault == fault::take_apart) {
      while (static_cast<i64>(raw_.load(order::relaxed)) < n) simt::pause(20);
      raw_.fetch_sub(n, order::acquire);
    } else {
      counting_semaphore::wait(n);
    }
  }

  void signal(u32 n) const {
    // Adds to the value that it read before: changes in between are lost, and a sleeper may wait
    // for them.
    if constexpr (Fault == fault::signal_forgets_sleepers) raw_.store(raw_.load(order::relaxed) + n, order::release);
    else counting_semaphore::signal(n);
  }

  void grown(u32 n) const {
    if constexpr (Fault == fault::growth_not_settled) raw_.fetch_add(n, order::release);
    else if constexpr (Fault == fault::failure_not_settled) n > 0 ? counting_semaphore::grown(n) : void();
    else if constexpr (Fault == fault::relaxed_signal) raw_.fetch_add(n + 1, order::relaxed);
    else counting_semaphore::grown(n);
  }

 private:
  atomic_ref<u64> raw_;
};

/// Whether some schedule makes `body` false, throw, or hang.
template <class Body>
bool fails_somewhere(Body body) {
  return find_failing_schedule(100,
                               [&] {
                                 auto run = host::current_execution();
                                 run.step_cap = 200'000;
                                 host::scoped_execution const use{run};
                                 return body();
                               })
      .has_value();
}

// counting.C1, counting.C2
TEST(CountingSemaphore, AGrowthThatIsNotSettledIsCaught) {
  EXPECT_TRUE(fails_somewhere([] { return conserves_units<broken_semaphore<fault::growth_not_settled>>(5); }));
}

TEST(CountingSemaphore, AFailureThatNobodyHearsOfIsCaught) {
  EXPECT_TRUE(fails_somewhere([] { return conserves_units<broken_semaphore<fault::failure_not_settled>>(1); }));
}

TEST(CountingSemaphore, ASignalThatForgetsSleepersIsCaught) {
  EXPECT_TRUE(fails_somewhere([] {
    return hands_out_what_there_is<broken_semaphore<fault::signal_forgets_sleepers>>({2, 8}, 3);
  }));
}

TEST(CountingSemaphore, AWaitThatTakesApartFromItsLookIsCaught) {
  EXPECT_TRUE(fails_somewhere([] { return hands_out_what_there_is<broken_semaphore<fault::take_apart>>({2, 8}, 3); }));
}

TEST(CountingSemaphore, ARelaxedSignalIsCaught) {
  EXPECT_TRUE(fails_somewhere(shows_contents<broken_semaphore<fault::relaxed_signal>>));
}

TEST(CountingSemaphore, ASoundSemaphoreIsNot) {
  EXPECT_FALSE(fails_somewhere([] {
    using sound = broken_semaphore<fault::none>;
    return conserves_units<sound>(1) && conserves_units<sound>(5) && hands_out_what_there_is<sound>({2, 8}, 3) &&
           shows_contents<sound>();
  }));
}

#endif

}  // namespace
