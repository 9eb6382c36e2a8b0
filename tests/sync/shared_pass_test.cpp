// SPDX-License-Identifier: Apache-2.0
// Passes that are shared: what an outcome covers, and for which searches.
#include <gtest/gtest.h>

#include <warpheap/platform/device_buffer.hpp>
#include <warpheap/sync/shared_pass.hpp>

#include "support/schedules.hpp"

namespace {

using namespace warpheap;
using pass_type = shared_pass<35>;

TEST(PassSize, SaysWhatAnOutcomeCovers) {
  for (u64 const units : {u64{1}, u64{2}, u64{63}, u64{64}, u64{1} << 20, (u64{1} << 21) - 1, (u64{1} << 33) + 12345}) {
    auto const published = pass_size::of_run(units, true);
    if (published.rest >> pass_size::rest_bits != 0) continue;
    u64 const outcome = u64{7} << pass_size::rest_bits | published.rest;
    auto const smaller = pass_size::of_run(units - (units > 1), false),
               larger = pass_size::of_run(2 * units - 1, false);
    EXPECT_TRUE(larger.size_class != published.size_class || larger.covered_by(outcome)) << units;
    EXPECT_TRUE(units == 1 || smaller.size_class != published.size_class || !smaller.covered_by(outcome)) << units;
    EXPECT_FALSE(published.covered_by(0)) << "nobody has said anything";
    if (units < u64{1} << 21) {
      EXPECT_TRUE(pass_size::of_run(units, false).covered_by(outcome)) << units;
    }
  }
}

/// One lane: the answers of a pass to searches that began before and after it, for sizes below and
/// above.
struct ask_around {
  WARPHEAP_DEVICE void operator()(u64* words, u32* answers) const {
    pass_type const pass{words};
    u64 const first = pass.begin(1), second = pass.begin(1), third = pass.begin(1);
    auto const size = [](u64 units) { return pass_size::of_run(units, false); };
    answers[0] = pass.answers(first, size(12)) || pass.ever_failed(3);
    pass.publish(second, pass_size::of_run(12, true));
    answers[1] = pass.answers(first, size(12)) && pass.answers(first, size(15));
    answers[2] = pass.answers(second, size(12)) || pass.answers(third, size(12));
    answers[3] = pass.answers(first, size(11)) || pass.answers(first, size(16));
    answers[4] = pass.ever_failed(3) && !pass.ever_failed(4);
  }
};

// pass.P2
TEST(SharedPass, AnswersThoseWhoBeganBeforeIt) {
  device_buffer<u64> const words(pass_type::bytes / 8);
  device_buffer<u32> const answers(5);
  launch({1, 1}, ask_around{}, words.data(), answers.data());
  synchronize();
  EXPECT_EQ(answers.to_host(), (std::vector<u32>{0, 1, 0, 0, 1}));
}

/// Even lanes clear a word each, by a relaxed operation, publish nothing, and begin a pass. Odd
/// lanes begin a pass and look at all words. A lane sees a word cleared if the lane that cleared it
/// drew a smaller number afterwards.
struct clear_and_look {
  WARPHEAP_DEVICE void operator()(u64* words, u32* rooms, u64* numbers, u32* unseen) const {
    u32 const me = static_cast<u32>(global_thread_index()), lanes = simt::grid_dim() * simt::block_dim();
    pass_type const pass{words};
    simt::pause(1 + me % 3);
    lane_mask const active = simt::active_mask();
    if (me % 2 == 0) atomic_ref<u32>{rooms[me]}.store(1, order::relaxed);
    u64 const number = pass.begin(active);
    for (u32 i = 0; i < lanes; ++i) {
      u64 const theirs = atomic_ref<u64>{numbers[i]}.load(order::relaxed);
      bool const is_earlier = theirs != 0 && theirs <= number;
      if (is_earlier && i % 2 == 0 && atomic_ref<u32>{rooms[i]}.load(order::relaxed) == 0)
        atomic_ref<u32>{*unseen}.fetch_add(1, order::relaxed);
    }
    atomic_ref<u64>{numbers[me]}.store(number, order::relaxed);
  }
};

// pass.P1
TEST(SharedPass, SeesWhatWasFreeBeforeEarlierPasses) {
  constexpr launch_shape shapes[] = {{6, 1}, {2, 5}, {1, 9}};
  u64 which = 0;
  test::for_each_schedule(600, [&] {
    auto const shape = shapes[which++ % 3];
    u32 const lanes = shape.blocks * shape.threads;
    device_buffer<u64> const words(pass_type::bytes / 8), numbers(lanes);
    device_buffer<u32> const rooms(lanes), unseen(1);
    launch(shape, clear_and_look{}, words.data(), rooms.data(), numbers.data(), unseen.data());
    synchronize();
    EXPECT_EQ(unseen[0], 0u);
  });
}

}  // namespace
