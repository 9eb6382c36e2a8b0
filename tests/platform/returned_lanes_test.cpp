// SPDX-License-Identifier: Apache-2.0
// Collectives and barriers meet without the lanes that have returned or do not exist.
#include <gtest/gtest.h>

#include "support/schedules.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/util/bits.hpp"

namespace returned_lanes_test {

using namespace warpheap;

/// Threads from `stays` on return, at once or after the others may wait for them. The others name
/// all lanes of their warps, and count what they got that is not from the lanes that are left.
struct meet_without_the_others {
  WARPHEAP_DEVICE void operator()(u32 stays, bool late, u32* words, u32* wrong) const {
    u32 const thread = simt::thread_index(), lane = simt::lane_id();
    if (thread >= stays) {
      for (u32 i = 0; late && i < 20; ++i) simt::pause(100);
      return;
    }
    lane_mask const left = thread - lane + warp_lanes <= stays ? full_mask : lanes_before(stays % warp_lanes);
    lane_mask const even = full_mask / 3, mine = lane % 2 ? ~even : even;
    u32* const own = words + simt::block_index() * stays;
    // relaxed: the barriers order them.
    atomic_ref<u32>{own[thread]}.store(thread + 1, order::relaxed);
    u32 faults = simt::ballot(full_mask, true) != left;
    faults += simt::match_any(full_mask, lane % 2) != (left & mine);
    faults += simt::reduce_or(full_mask, 1u << lane % 32) != static_cast<u32>(left | left >> (warp_lanes - 32));
    faults += simt::shuffle(full_mask, thread, 0) != thread - lane;
    simt::sync_warp(full_mask);
    faults += atomic_ref<u32>{own[thread - lane]}.load(order::relaxed) != thread - lane + 1;
    simt::sync_block();
    u32 const next = (thread + 1) % stays;
    faults += atomic_ref<u32>{own[next]}.load(order::relaxed) != next + 1;
    if (faults != 0) atomic_ref<u32>{*wrong}.fetch_add(faults, order::relaxed);
  }
};

void expect_meets(u32 stays) {
  for (bool const late : {false, true}) {
    device_buffer<u32> const words(2 * stays), wrong(1);
    launch({2, 75}, meet_without_the_others{}, stays, late, words.data(), wrong.data());
    EXPECT_EQ(wrong[0], 0u) << stays << " threads stay, the others return " << (late ? "late" : "at once");
  }
}

TEST(ReturnedLanes, AreNotWaitedFor) {
  test::for_each_schedule(64, [] {
#if !defined(__CUDACC__)
    auto lenient = host::current_execution();
    lenient.refuses_returned_lanes = false;
    host::scoped_execution const use{lenient};
#endif
    for (u32 const stays : {1u, 31u, 32u, 50u, 64u, 74u, 75u}) expect_meets(stays);
  });
}

}  // namespace returned_lanes_test
