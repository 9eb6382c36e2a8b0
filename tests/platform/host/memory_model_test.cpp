// Litmus tests of stale reads: results that the orders forbid never occur, and those that they
// allow are found by some seed.
#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "warpheap/platform/device_buffer.hpp"

namespace warpheap {
namespace {

/// Under ThreadSanitizer there are no stale reads to test.
class StaleReads : public testing::Test {
  void SetUp() override {
    if (host::detail::under_tsan) GTEST_SKIP();
  }
};

using outcomes = std::set<std::pair<u32, u32>>;

/// All results (r[0], r[1]) of `kernel(x, y, r)`, whose lanes live in warps of their own, over many
/// seeds.
template <class Kernel>
outcomes explore(Kernel kernel, launch_shape shape, unsigned seeds = 400) {
  outcomes seen;
  for (u64 seed = 0; seed < seeds; ++seed) {
    host::execution run{.mode = host::execution_mode::deterministic, .seed = seed, .stale_reads = true};
    if (seed % 4 == 0) run.policy = host::schedule_policy::round_robin;
    host::scoped_execution const use{run};
    device_buffer<u32> words(6);
    launch(shape, kernel, words.data(), words.data() + 1, words.data() + 2);
    seen.insert({words[2], words[3]});
  }
  return seen;
}

template <order Release, order Acquire>
struct message_passing {
  void operator()(u32* data, u32* flag, u32* result) const {
    if (simt::block_index() == 0) {
      atomic_ref<u32>{*data}.store(1, order::relaxed);
      atomic_ref<u32>{*flag}.store(1, Release);
    } else {
      result[0] = atomic_ref<u32>{*flag}.load(Acquire);
      result[1] = atomic_ref<u32>{*data}.load(order::relaxed);
    }
  }
};

TEST_F(StaleReads, MessagePassingFailsWhenRelaxed) {
  EXPECT_TRUE((explore(message_passing<order::relaxed, order::relaxed>{}, {2, 1}).count({1, 0})));
}

TEST_F(StaleReads, MessagePassingFailsWithHalfOfThePair) {
  EXPECT_TRUE((explore(message_passing<order::release, order::relaxed>{}, {2, 1}).count({1, 0})));
  EXPECT_TRUE((explore(message_passing<order::relaxed, order::acquire>{}, {2, 1}).count({1, 0})));
}

TEST_F(StaleReads, MessagePassingHoldsWithReleaseAndAcquire) {
  auto const seen = explore(message_passing<order::release, order::acquire>{}, {2, 1});
  EXPECT_FALSE((seen.count({1, 0})));
  EXPECT_TRUE((seen.count({1, 1})));
  EXPECT_TRUE((seen.count({0, 0})));
}

TEST_F(StaleReads, ALoadCannotReleaseNorAStoreAcquireSoTheyDoTheirHalf) {
  auto const both = explore(message_passing<order::acq_rel, order::acq_rel>{}, {2, 1});
  EXPECT_FALSE((both.count({1, 0})));
  EXPECT_TRUE((both.count({1, 1})));
  EXPECT_FALSE((explore(message_passing<order::acquire, order::release>{}, {2, 1}).count({1, 0})));
}

struct message_through_a_third {
  void operator()(u32* data, u32* flag, u32* result) const {
    if (simt::block_index() == 0) {
      atomic_ref<u32>{*data}.store(1, order::relaxed);
      atomic_ref<u32>{*flag}.store(1, order::release);
    } else if (simt::block_index() == 1) {
      atomic_ref<u32>{*flag}.fetch_add(1, order::relaxed);  // part of the release sequence
    } else {
      u32 const seen = atomic_ref<u32>{*flag}.load(order::acquire);
      result[0] = seen == 2;
      result[1] = atomic_ref<u32>{*data}.load(order::relaxed);
    }
  }
};

TEST_F(StaleReads, ReadModifyWritesCarryAReleaseOn) {
  auto const seen = explore(message_through_a_third{}, {3, 1}, 800);
  EXPECT_FALSE((seen.count({1, 0})));
  EXPECT_TRUE((seen.count({1, 1})));
}

template <order Store, order Load>
struct store_buffering {
  void operator()(u32* x, u32* y, u32* result) const {
    bool const first = simt::block_index() == 0;
    atomic_ref<u32>{first ? *x : *y}.store(1, Store);
    result[first ? 0 : 1] = atomic_ref<u32>{first ? *y : *x}.load(Load);
  }
};

TEST_F(StaleReads, StoreBufferingShowsUnlessSequentiallyConsistent) {
  EXPECT_TRUE((explore(store_buffering<order::release, order::acquire>{}, {2, 1}).count({0, 0})));
  EXPECT_FALSE((explore(store_buffering<order::seq_cst, order::seq_cst>{}, {2, 1}).count({0, 0})));
}

struct fenced_store_buffering {
  void operator()(u32* x, u32* y, u32* result) const {
    bool const first = simt::block_index() == 0;
    atomic_ref<u32>{first ? *x : *y}.store(1, order::relaxed);
    full_fence();
    result[first ? 0 : 1] = atomic_ref<u32>{first ? *y : *x}.load(order::relaxed);
  }
};

TEST_F(StaleReads, FencesForbidStoreBuffering) {
  EXPECT_FALSE((explore(fenced_store_buffering{}, {2, 1}).count({0, 0})));
}

void send_behind_a_fence(u32* data, u32* flag) {
  atomic_ref<u32>{*data}.store(1, order::relaxed);
  full_fence();
  atomic_ref<u32>{*flag}.store(1, order::relaxed);
}

struct fenced_message {
  void operator()(u32* data, u32* flag, u32* result) const {
    if (simt::block_index() == 0) {
      send_behind_a_fence(data, flag);
    } else {
      result[0] = atomic_ref<u32>{*flag}.load(order::relaxed);
      full_fence();
      result[1] = atomic_ref<u32>{*data}.load(order::relaxed);
    }
  }
};

TEST_F(StaleReads, FencesPassMessages) { EXPECT_FALSE((explore(fenced_message{}, {2, 1}).count({1, 0}))); }

struct fence_before_store {
  void operator()(u32* data, u32* flag, u32* result) const {
    if (simt::block_index() == 0) {
      send_behind_a_fence(data, flag);
    } else {
      result[0] = atomic_ref<u32>{*flag}.load(order::acquire);
      result[1] = atomic_ref<u32>{*data}.load(order::relaxed);
    }
  }
};

TEST_F(StaleReads, AStoreAfterAFencePassesToAnAcquire) {
  EXPECT_FALSE((explore(fence_before_store{}, {2, 1}).count({1, 0})));
}

/// Data before a fence, two flags behind it, one of them read; more data after the fence.
template <bool Fenced>
struct one_fence_for_two_stores {
  void operator()(u32* data, u32* flag, u32* result) const {
    if (simt::block_index() == 0) {
      atomic_ref<u32>{*data}.store(1, order::relaxed);
      if (Fenced) release_fence();
      atomic_ref<u32>{result[2]}.fetch_add(1, order::fenced);
      atomic_ref<u32>{*flag}.store(1, order::fenced);
    } else {
      result[0] = atomic_ref<u32>{*flag}.load(order::acquire);
      result[1] = atomic_ref<u32>{*data}.load(order::relaxed);
    }
  }
};

struct store_between_fence_and_flag {
  void operator()(u32* data, u32* flag, u32* result) const {
    if (simt::block_index() == 0) {
      release_fence();
      atomic_ref<u32>{*data}.store(1, order::relaxed);
      atomic_ref<u32>{*flag}.store(1, order::fenced);
    } else {
      result[0] = atomic_ref<u32>{*flag}.load(order::acquire);
      result[1] = atomic_ref<u32>{*data}.load(order::relaxed);
    }
  }
};

TEST_F(StaleReads, AReleaseFencePassesWhatCameBeforeItAndNoMore) {
  EXPECT_FALSE((explore(one_fence_for_two_stores<true>{}, {2, 1}).count({1, 0})));
  EXPECT_TRUE((explore(one_fence_for_two_stores<false>{}, {2, 1}).count({1, 0})));
  EXPECT_TRUE((explore(store_between_fence_and_flag{}, {2, 1}).count({1, 0})));
}

struct load_buffering {
  void operator()(u32* x, u32* y, u32* result) const {
    bool const first = simt::block_index() == 0;
    result[first ? 0 : 1] = atomic_ref<u32>{first ? *x : *y}.load(order::relaxed);
    atomic_ref<u32>{first ? *y : *x}.store(1, order::relaxed);
  }
};

TEST_F(StaleReads, NothingIsReadBeforeItIsStored) { EXPECT_FALSE((explore(load_buffering{}, {2, 1}).count({1, 1}))); }

struct rereading {
  void operator()(u32* x, u32*, u32* result) const {
    if (simt::block_index() == 0) {
      for (u32 value = 1; value < 8; ++value) atomic_ref<u32>{*x}.store(value, order::relaxed);
    } else {
      u32 last = 0;
      for (u32 i = 0; i < 8; ++i) {
        u32 const now = atomic_ref<u32>{*x}.load(order::relaxed);
        if (now < last) result[0] = 1;
        if (now != 7) result[1] = 1;
        last = now;
      }
    }
  }
};

TEST_F(StaleReads, ALaneNeverGoesBackOnALocation) {
  auto const seen = explore(rereading{}, {2, 1});
  for (auto const& [backwards, stale] : seen) EXPECT_EQ(backwards, 0u);
}

/// Four lanes: two writers, two readers that see the writes in opposite orders.
struct independent_reads {
  void operator()(u32* x, u32* y, u32* result) const {
    switch (simt::block_index()) {
      case 0: atomic_ref<u32>{*x}.store(1, order::release); break;
      case 1: atomic_ref<u32>{*y}.store(1, order::release); break;
      default: {
        bool const x_first = simt::block_index() == 2;
        u32 const one = atomic_ref<u32>{x_first ? *x : *y}.load(order::acquire);
        u32 const other = atomic_ref<u32>{x_first ? *y : *x}.load(order::acquire);
        result[x_first ? 0 : 1] = one == 1 && other == 0;
      }
    }
  }
};

TEST_F(StaleReads, ReadersMayDisagreeOnIndependentWrites) {
  EXPECT_TRUE((explore(independent_reads{}, {4, 1}, 2000).count({1, 1})));
}

struct counting {
  void operator()(u32* x, u32*, u32*) const { atomic_ref<u32>{*x}.fetch_add(1, order::relaxed); }
};

TEST_F(StaleReads, ReadModifyWritesReadTheNewest) {
  for (u64 seed = 0; seed < 20; ++seed) {
    host::scoped_execution const use{{.mode = host::execution_mode::deterministic, .seed = seed, .stale_reads = true}};
    device_buffer<u32> words(4);
    launch({4, 64}, counting{}, words.data(), words.data(), words.data());
    EXPECT_EQ(words[0], 256u);
  }
}

template <bool Warp>
struct barrier_message {
  void operator()(u32* data, u32*, u32* result) const {
    if (simt::thread_index() == 0) atomic_ref<u32>{*data}.store(1, order::relaxed);
    if constexpr (Warp) simt::sync_warp(3);
    else simt::sync_block();
    if (simt::thread_index() == 1) result[0] = atomic_ref<u32>{*data}.load(order::relaxed);
  }
};

TEST_F(StaleReads, BarriersPassMessages) {
  EXPECT_EQ(explore(barrier_message<true>{}, {1, 2}), (outcomes{{1, 0}}));
  EXPECT_EQ(explore(barrier_message<false>{}, {1, 2}), (outcomes{{1, 0}}));
}

struct ballot_message {
  void operator()(u32* data, u32*, u32* result) const {
    if (simt::thread_index() == 0) atomic_ref<u32>{*data}.store(1, order::relaxed);
    simt::ballot(3, true);
    if (simt::thread_index() == 1) result[0] = atomic_ref<u32>{*data}.load(order::relaxed);
  }
};

TEST_F(StaleReads, OtherCollectivesOrderNothing) {
  EXPECT_EQ(explore(ballot_message{}, {1, 2}), (outcomes{{0, 0}, {1, 0}}));
}

struct spin_until_set {
  void operator()(u32* flag, u32*, u32* result) const {
    if (simt::block_index() == 0) {
      atomic_ref<u32>{*flag}.store(1, order::relaxed);
    } else {
      while (!atomic_ref<u32>{*flag}.load(order::relaxed)) simt::pause(1);
      result[0] = 1;
    }
  }
};

TEST_F(StaleReads, EveryStoreIsSeenInTheEnd) { EXPECT_EQ(explore(spin_until_set{}, {2, 1}), (outcomes{{1, 0}})); }

template <scope Scope>
struct scoped_message {
  void operator()(u32* data, u32* flag, u32* result) const {
    if (simt::block_index() == 0) {
      atomic_ref<u32>{*data}.store(1, order::relaxed);
      atomic_ref<u32, Scope>{*flag}.store(1, order::release);
    } else {
      result[0] = atomic_ref<u32>{*flag}.load(order::acquire);
      result[1] = atomic_ref<u32>{*data}.load(order::relaxed);
    }
  }
};

TEST_F(StaleReads, ABlockScopedReleaseDoesNotReachAnotherBlock) {
  EXPECT_TRUE((explore(scoped_message<scope::block>{}, {2, 1}).count({1, 0})));
  EXPECT_FALSE((explore(scoped_message<scope::device>{}, {2, 1}).count({1, 0})));
}

/// A 4-byte half of an 8-byte word that is stored whole.
struct two_widths {
  void operator()(u32* x, u32* y, u32* result) const {
    auto& word = *reinterpret_cast<u64*>(x);
    if (simt::block_index() == 0) {
      atomic_ref<u64>{word}.store(0x0000'0002'0000'0001ull, order::release);
    } else {
      result[0] = atomic_ref<u32>{*x}.load(order::acquire);
      result[1] = atomic_ref<u32>{*y}.load(order::acquire);
    }
  }
};

TEST_F(StaleReads, MixedWidthsSeeTheNewest) {
  for (auto const& [low, high] : explore(two_widths{}, {2, 1})) {
    EXPECT_TRUE(low == 0 || (low == 1 && high == 2)) << low << " " << high;
  }
}

/// The flag is released as a half and acquired as a whole, or the other way round.
template <bool ReleaseWhole>
struct message_across_widths {
  void operator()(u32* data, u32*, u32* result) const {
    auto& whole = *reinterpret_cast<u64*>(data + 4);
    if (simt::block_index() == 0) {
      atomic_ref<u64>{whole}.store(0x2'0000'0000ull, order::relaxed);
      atomic_ref<u32>{*data}.store(1, order::relaxed);
      if constexpr (ReleaseWhole) atomic_ref<u64>{whole}.store(0x2'0000'0001ull, order::release);
      else atomic_ref<u32>{data[4]}.store(1, order::release);
    } else {
      if constexpr (ReleaseWhole) result[0] = atomic_ref<u32>{data[4]}.load(order::acquire);
      else result[0] = static_cast<u32>(atomic_ref<u64>{whole}.load(order::acquire));
      result[1] = atomic_ref<u32>{*data}.load(order::relaxed);
    }
  }
};

TEST_F(StaleReads, MessagesPassAcrossWidths) {
  EXPECT_FALSE((explore(message_across_widths<true>{}, {2, 1}).count({1, 0})));
  EXPECT_FALSE((explore(message_across_widths<false>{}, {2, 1}).count({1, 0})));
}

TEST(View, ForgetsDetailNeverKnowledge) {
  host::detail::view known;
  for (u32 i = 1; i <= 10'000; ++i) known.raise(i % 997, i);
  EXPECT_LE(known.entries.size(), 256u);
  for (u32 i = 10'000 - 996; i <= 10'000; ++i) EXPECT_GE(known.known(i % 997), i);
}

TEST(View, JoinKnowsWhatEitherKnew) {
  host::detail::view left, right;
  left.raise(3, 10);
  left.raise(4, 20);
  right.raise(4, 15);
  right.raise(9, 30);
  right.raise_floor(12);
  left.join(right);
  EXPECT_EQ(left.known(3), 12u);
  EXPECT_EQ(left.known(4), 20u);
  EXPECT_EQ(left.known(9), 30u);
}

}  // namespace
}  // namespace warpheap
