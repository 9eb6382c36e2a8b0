// SPDX-License-Identifier: Apache-2.0
// The semaphore's decisions without threads: compared with the paper's three separate counts, and
// in every interleaving of a few lanes.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>
#include <warpheap/sync/bulk_semaphore.hpp>

namespace {

using namespace warpheap;
using namespace warpheap::bulk_semaphore_state;

/// Available, expected, reserved: the counts that the word encodes.
struct counts {
  i64 available, expected, reserved;
  u64 word() const { return change(available, expected - reserved); }
};

// bulk.B4
TEST(BulkSemaphoreState, FieldsKeepTheirSignAndDoNotMix) {
  for (i64 const there : {-max_available - 1, i64{-1}, i64{0}, i64{1}, max_available}) {
    for (i64 const ahead : {i64{-1} << 27, i64{-3}, i64{0}, i64{5}, (i64{1} << 27) - 1}) {
      auto const word = change(there, ahead);
      EXPECT_EQ(balance(word), there);
      EXPECT_EQ(available(word), static_cast<u64>(std::max(there, i64{0})));
      EXPECT_EQ(outlook(word), ahead);
      EXPECT_EQ(check_at_rest(word), ahead == 0);
    }
  }
}

/// What a lane does by three separate counts.
decision by_counts(counts seen, u32 n, u32 batch, bool reserved) {
  auto const [c, e, r] = seen;
  i64 const others = r - (reserved ? n : 0);
  if (reserved && c >= n) return {step::take, counts{c - n, e, others}.word()};
  if (c + e - others < n) return {step::make, counts{c, e + batch - n, others}.word()};
  if (c >= n) return {step::take, counts{c - n, e, r}.word()};
  if (!reserved) return {step::sleep, counts{c, e, r + n}.word()};
  return {step::keep_sleeping, seen.word()};
}

std::vector<counts> small_counts() {
  std::vector<counts> all;
  for (i64 c = 0; c <= 6; ++c)
    for (i64 e = 0; e <= 8; ++e)
      for (i64 r = 0; r <= 8; ++r) all.push_back({c, e, r});
  return all;
}

TEST(BulkSemaphoreState, WaitDecidesAsThreeSeparateCountsWould) {
  u32 takes = 0, makes = 0, sleeps = 0;
  for (u32 batch = 1; batch <= 4; ++batch) {
    for (u32 n = 1; n <= batch; ++n) {
      for (auto const& seen : small_counts()) {
        for (bool const reserved : {false, true}) {
          if (reserved && seen.reserved < n) continue;
          auto const decided = next_of_wait(seen.word(), n, batch, reserved);
          auto const expected = by_counts(seen, n, batch, reserved);
          ASSERT_EQ(decided.what, expected.what);
          ASSERT_EQ(decided.next, expected.next);
          takes += decided.what == step::take;
          makes += decided.what == step::make;
          sleeps += decided.what == step::sleep;
        }
      }
    }
  }
  EXPECT_GT(std::min({takes, makes, sleeps}), 0u);
}

TEST(BulkSemaphoreState, SleepersMakeTheBatchesThatAreMissingAndNoMore) {
  for (u32 batch = 1; batch <= 4; ++batch) {
    for (u32 sleepers = 1; sleepers <= 5; ++sleepers) {
      for (i64 c = -3; c <= 3; ++c) {
        for (i64 x = -9; x <= 3; ++x) {
          u32 const makers = makers_among(change(c, x - c), sleepers, batch);
          // Enough, unless every sleeper is a maker; one maker less would be too few.
          EXPECT_TRUE(x + i64{makers} * batch >= 0 || makers == sleepers);
          EXPECT_TRUE(makers == 0 || x + (i64{makers} - 1) * batch < 0);
        }
      }
    }
  }
}

TEST(BulkSemaphoreState, WithdrawTakesThePromiseBackAndUnitsThatAreThere) {
  for (u32 batch = 1; batch <= 4; ++batch) {
    for (u32 n = 1; n <= batch; ++n) {
      for (i64 c = 0; c <= 6; ++c) {
        auto const seen = counts{c, batch, 3};
        auto const decided = next_of_withdraw(seen.word(), n, batch);
        EXPECT_EQ(decided.what, c >= n ? step::take : step::make);
        EXPECT_EQ(decided.next, (counts{c >= n ? c - n : c, n, 3}.word()));
      }
    }
  }
}

// --- every interleaving ---

constexpr u32 batch_units = 3;
constexpr u32 model_lanes = 4;

/// One lane: waits for n units, makes a batch when told and if one is left, holds its units, and
/// may give them back.
struct lane_state {
  enum where : u8 { arriving, asleep, making, holding, done, refused };
  u8 at = arriving;
  auto operator<=>(lane_state const&) const = default;
};

struct model_state {
  u64 word = 0;
  u32 batches_left = 0;
  lane_state lanes[model_lanes];
  auto operator<=>(model_state const&) const = default;
};

/// What can break in a mutant.
enum class fault { none, withdraw_dropped, sleeper_not_counted, promise_not_settled };

/// Explores all orders in which lanes asking for `wanted` units can take their atomic steps.
class explorer {
 public:
  explorer(std::vector<u32> wanted, bool returns, fault broken)
      : wanted_{std::move(wanted)}, returns_{returns}, broken_{broken} {}

  /// Whether every order ends with all lanes served or refused, the outlook settled and no unit
  /// lost.
  bool is_sound(u32 batches) {
    batches_ = batches;
    model_state start;
    start.batches_left = batches;
    return visit(start);
  }

  size_t states() const { return seen_.size(); }

 private:
  using where = lane_state::where;

  bool visit(model_state const& now) {
    if (!seen_.insert(now).second) return true;
    bool moved = false;
    for (u32 lane = 0; lane < wanted_.size(); ++lane) {
      auto next = now;
      if (!advance(next, lane)) continue;
      moved = true;
      if (!visit(next)) return false;
    }
    return moved || ends_well(now);
  }

  /// One atomic step of a lane; false if it has none to take.
  bool advance(model_state& now, u32 lane) const {
    auto const n = wanted_[lane];
    auto& at = now.lanes[lane].at;
    switch (at) {
      case where::arriving:
      case where::asleep: {
        auto const decided = next_of_wait(now.word, n, batch_units, at == where::asleep);
        if (decided.what == step::keep_sleeping) return false;
        if (decided.what != step::sleep || broken_ != fault::sleeper_not_counted) now.word = decided.next;
        if (decided.what == step::take) at = where::holding;
        else at = decided.what == step::make ? where::making : where::asleep;
        return true;
      }
      case where::making: {
        if (now.batches_left > 0) {
          --now.batches_left;
          i64 const settled = broken_ == fault::promise_not_settled ? 0 : batch_units - n;
          now.word += change(batch_units - n, -settled);
          at = where::holding;
          return true;
        }
        auto const decided = next_of_withdraw(now.word, n, batch_units);
        if (broken_ != fault::withdraw_dropped) now.word = decided.next;
        at = decided.what == step::take && broken_ != fault::withdraw_dropped ? where::holding : where::refused;
        return true;
      }
      case where::holding:
        if (!returns_) return false;
        now.word += change(n, 0);
        at = where::done;
        return true;
      default: return false;
    }
  }

  bool ends_well(model_state const& end) const {
    i64 held = 0;
    for (u32 lane = 0; lane < wanted_.size(); ++lane) {
      auto const at = end.lanes[lane].at;
      if (at == where::asleep) return false;
      if (at == where::holding) held += wanted_[lane];
    }
    auto const made = i64{batches_ - end.batches_left} * batch_units;
    return check_at_rest(end.word) && balance(end.word) + held == made;
  }

  std::vector<u32> wanted_;
  bool returns_;
  fault broken_;
  u32 batches_ = 0;
  std::set<model_state> seen_;
};

/// Calls `use(wanted, returns, batches)` for every choice of requests of up to four lanes.
template <class Use>
void for_each_model(Use use) {
  for (u32 code = 0; code < 27 * 4; ++code) {
    std::vector<u32> wanted{1 + code % 3, 1 + code / 3 % 3, 1 + code / 9 % 3};
    if (code / 27 > 0) wanted.push_back(code / 27);
    for (bool const returns : {false, true}) {
      for (u32 batches = 0; batches <= 4; ++batches) use(wanted, returns, batches);
    }
  }
}

TEST(BulkSemaphoreState, NoInterleavingStrandsALaneOrLosesAUnit) {
  size_t states = 0;
  for_each_model([&](std::vector<u32> const& wanted, bool returns, u32 batches) {
    explorer model{wanted, returns, fault::none};
    EXPECT_TRUE(model.is_sound(batches)) << wanted.size() << " lanes, " << batches << " batches";
    states += model.states();
  });
  EXPECT_GT(states, 10'000u);
}

/// Whether some model shows the fault.
bool is_caught(fault broken) {
  bool caught = false;
  for_each_model([&](std::vector<u32> const& wanted, bool returns, u32 batches) {
    caught = caught || !explorer{wanted, returns, broken}.is_sound(batches);
  });
  return caught;
}

TEST(BulkSemaphoreState, EachMutantIsCaught) {
  EXPECT_TRUE(is_caught(fault::withdraw_dropped));
  EXPECT_TRUE(is_caught(fault::sleeper_not_counted));
  EXPECT_TRUE(is_caught(fault::promise_not_settled));
}

}  // namespace
