// SPDX-License-Identifier: Apache-2.0
// active_mask() as an adversary: each policy gives what it says, and no policy waits for lanes that
// could come.
#include <gtest/gtest.h>

#include <set>

#include "tests/support/schedules.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace warpheap { namespace {

host::execution with_masks(host::mask_policy masks, u64 seed = 1) {
  return {.mode = host::execution_mode::deterministic, .masks = masks, .seed = seed};
}

struct store_mask {
  void operator()(lane_mask* masks) const { masks[global_thread_index()] = simt::active_mask(); }
};

std::vector<lane_mask> masks_of(host::execution const& run, launch_shape shape) {
  host::scoped_execution const use{run};
  device_buffer<lane_mask> masks(shape.blocks * shape.threads);
  launch(shape, store_mask{}, masks.data());
  return masks.to_host();
}

TEST(ActiveMask, SingletonGivesEachLaneItself) {
  auto const masks = masks_of(with_masks(host::mask_policy::singleton), {2, warp_lanes});
  for (u32 i = 0; i < masks.size(); ++i) EXPECT_EQ(masks[i], lane_bit(i % warp_lanes));
}

TEST(ActiveMask, MaximalGivesTheWholeWarp) {
  for (u64 seed = 0; seed < 10; ++seed) {
    auto const masks = masks_of(with_masks(host::mask_policy::maximal, seed), {2, warp_lanes + 8});
    for (u32 i = 0; i < masks.size(); ++i)
      EXPECT_EQ(masks[i], i % (warp_lanes + 8) < warp_lanes ? full_mask : lane_mask{0xff});
  }
}

TEST(ActiveMask, ParallelModeGivesTheWholeWarp) {
  for (lane_mask const mask : masks_of(host::execution{}, {50, 64})) EXPECT_EQ(mask, full_mask);
}

TEST(ActiveMask, RandomPartitionsTheWarp) {
  std::set<size_t> sizes;
  for (u64 seed = 0; seed < 50; ++seed) {
    auto const masks = masks_of(with_masks(host::mask_policy::random, seed), {1, warp_lanes});
    std::set<lane_mask> const parts(masks.begin(), masks.end());
    lane_mask all = 0;
    for (lane_mask const part : parts) {
      EXPECT_EQ(all & part, 0u);
      all |= part;
    }
    EXPECT_EQ(all, full_mask);
    for (u32 lane = 0; lane < warp_lanes; ++lane) EXPECT_TRUE(masks[lane] >> lane & 1);
    sizes.insert(parts.size());
  }
  EXPECT_GT(sizes.size(), 3u);
}

TEST(ActiveMask, MixedDrawsAllThree) {
  std::set<bool> whole, alone;
  for (u64 seed = 0; seed < 30; ++seed) {
    auto const masks = masks_of(with_masks(host::mask_policy::mixed, seed), {1, warp_lanes});
    whole.insert(masks[0] == full_mask);
    alone.insert(masks[0] == 1);
  }
  EXPECT_EQ(whole.size(), 2u);
  EXPECT_EQ(alone.size(), 2u);
}

constexpr lane_mask even_lanes = full_mask / 3;

struct mask_at_two_sites {
  void operator()(lane_mask* masks) const {
    if (simt::lane_id() % 2) masks[simt::lane_id()] = simt::active_mask();
    else masks[simt::lane_id()] = ~simt::active_mask();
  }
};

TEST(ActiveMask, LanesOfTwoCallSitesAreApart) {
  test::for_each_schedule(30, [] {
    device_buffer<lane_mask> masks(warp_lanes);
    launch({1, warp_lanes}, mask_at_two_sites{}, masks.data());
    auto const found = masks.to_host();
    for (u32 lane = 0; lane < warp_lanes; ++lane) {
      EXPECT_EQ(lane % 2 ? found[lane] & even_lanes : ~found[lane] & ~even_lanes, 0u);
    }
  });
}

[[gnu::noinline]] lane_mask shared_helper() {
  lane_mask const mask = simt::active_mask();
  asm volatile("" ::: "memory");  // not a tail call: the call site is in here
  return mask;
}

/// A second caller with a frame of another depth.
[[gnu::noinline]] lane_mask deeper_caller() {
  lane_mask volatile room[64] = {};
  room[simt::lane_id()] = shared_helper();
  return room[simt::lane_id()];
}

struct mask_through_two_callers {
  void operator()(lane_mask* masks) const {
    if (simt::lane_id() % 2) masks[simt::lane_id()] = shared_helper();
    else masks[simt::lane_id()] = ~deeper_caller();
  }
};

TEST(ActiveMask, OneCallSiteReachedAtTwoDepthsIsTwo) {
  test::for_each_schedule(30, [] {
    device_buffer<lane_mask> masks(warp_lanes);
    launch({1, warp_lanes}, mask_through_two_callers{}, masks.data());
    auto const found = masks.to_host();
    for (u32 lane = 0; lane < warp_lanes; lane += 2) EXPECT_EQ(~found[lane] & ~even_lanes, 0u);
  });
}

/// Lane 0 waits, with pauses or without, for a step that lane 1 makes after its active_mask().
template <bool Pauses>
struct wait_for_parked_lane {
  void operator()(u32* flag) const {
    if (simt::lane_id() == 0) {
      while (!atomic_ref<u32>{*flag}.load(order::acquire)) {
        if constexpr (Pauses) simt::pause(10);
      }
    } else {
      simt::active_mask();
      atomic_ref<u32>{*flag}.store(1, order::release);
    }
  }
};

TEST(ActiveMask, NeverWaitsForALaneThatWaitsForUs) {
  test::for_each_schedule(24, [] {
    device_buffer<u32> flags(2);
    launch({2, 2}, wait_for_parked_lane<true>{}, flags.data());
    launch({2, 2}, wait_for_parked_lane<false>{}, flags.data() + 1);
    EXPECT_EQ(flags.to_host(), (std::vector<u32>{1, 1}));
  });
}

/// Two lanes name each other in a ballot that a third has not joined. The third must not hold back
/// the parked two.
struct park_while_others_meet {
  void operator()(u32* met) const {
    if (simt::lane_id() < 2) {
      simt::active_mask();
      simt::sync_warp(7);
    } else {
      simt::sync_warp(7);
      *met = 1;
    }
  }
};

// host.W2
TEST(ActiveMask, LanesInACollectiveDoNotHoldItUp) {
  test::for_each_schedule(24, [] {
    device_buffer<u32> met(1);
    launch({1, 3}, park_while_others_meet{}, met.data());
    EXPECT_EQ(met[0], 1u);
  });
}

/// The mistake that the adversary is for: taking the active mask for the lanes that will come.
struct trusts_full_warp {
  void operator()(u32* count) const {
    if (simt::active_mask() == full_mask) {
      if (simt::lane_id() == 0) atomic_ref<u32>{*count}.fetch_add(warp_lanes, order::relaxed);
    } else if (simt::lane_id() == 0) {
      atomic_ref<u32>{*count}.fetch_add(1, order::relaxed);  // forgets the others
    }
  }
};

TEST(ActiveMask, FindsCodeThatTrustsConvergence) {
  EXPECT_TRUE(test::find_failing_schedule(20, [] {
    device_buffer<u32> count(1);
    launch({1, warp_lanes}, trusts_full_warp{}, count.data());
    return count[0] == warp_lanes;
  }));
}

}}  // namespace warpheap
