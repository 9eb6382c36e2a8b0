// SPDX-License-Identifier: Apache-2.0
// The contract of a lane, on whichever backend this is compiled for.
#include "warpheap/platform/simt.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "tests/support/schedules.hpp"
#include "warpheap/platform/assert.hpp"
#include "warpheap/platform/backoff.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace warpheap { namespace {

using test::for_each_schedule;

constexpr unsigned seeds = 12;

struct write_identity {
  WARPHEAP_DEVICE void operator()(u32* identity) const {
    u32* const mine = identity + 8 * global_thread_index();
    mine[0] = simt::thread_index();
    mine[1] = simt::block_index();
    mine[2] = simt::block_dim();
    mine[3] = simt::grid_dim();
    mine[4] = simt::lane_id();
    mine[5] = simt::warp_id();
    mine[6] = simt::sm_id() < simt::sm_count();
    mine[7] = 1;
  }
};

TEST(Simt, EveryShapeRunsEachThreadOnceWithItsIdentity) {
  for_each_schedule(4, [] {
    for (u32 const threads : {1u, 31u, 32u, 33u, 64u, 1000u, 1024u}) {
      u32 const blocks = 5;
      device_buffer<u32> identity(8 * blocks * threads);
      launch({blocks, threads}, write_identity{}, identity.data());
      synchronize();
      auto const found = identity.to_host();
      for (u32 i = 0; i < blocks * threads; ++i) {
        u32 const thread = i % threads;
        std::vector<u32> const expected = {
            thread, i / threads, threads, blocks, thread % warp_lanes, thread / warp_lanes, 1, 1};
        ASSERT_EQ(std::vector<u32>(found.begin() + 8 * i, found.begin() + 8 * i + 8), expected);
      }
    }
  });
}

struct write_grid_id {
  WARPHEAP_DEVICE void operator()(u64* ids) const { ids[global_thread_index()] = simt::grid_id(); }
};

TEST(Simt, EveryLaunchHasAnIdThatItsThreadsShare) {
  for_each_schedule(4, [] {
    std::set<u64> seen;
    stream const other;
    for (u32 i = 0; i < 6; ++i) {
      device_buffer<u64> const ids(150);
      launch(i % 2 ? stream_view{other} : stream_view{}, {3, 50}, write_grid_id{}, ids.data());
      synchronize();
      auto const found = ids.to_host();
      EXPECT_EQ(std::set<u64>(found.begin(), found.end()).size(), 1u);
      seen.insert(found.front());
    }
    EXPECT_EQ(seen.size(), 6u);
  });
}

TEST(Simt, AGridOfNoBlocksDoesNothing) {
  device_buffer<u32> identity(8);
  launch({0, 32}, write_identity{}, identity.data());
  synchronize();
  EXPECT_EQ(identity[7], 0u);
}

/// The lanes of our warp in a thread block of `threads` threads.
WARPHEAP_DEVICE inline lane_mask existing_lanes() {
  u32 const left = simt::block_dim() - simt::warp_id() * warp_lanes;
  return left >= warp_lanes ? full_mask : lane_bit(left) - 1;
}

/// The lanes whose number leaves `rest` when divided by `divisor`.
WARPHEAP_HOST_DEVICE constexpr lane_mask lanes_with(u32 divisor, u32 rest) {
  lane_mask lanes = 0;
  for (u32 lane = rest; lane < warp_lanes; lane += divisor) lanes |= lane_bit(lane);
  return lanes;
}

struct collect_all {
  WARPHEAP_DEVICE void operator()(u64* results) const {
    lane_mask const mask = existing_lanes();
    u32 const lane = simt::lane_id();
    u64* const mine = results + 8 * global_thread_index();
    mine[0] = simt::ballot(mask, lane % 3 == 0);
    mine[1] = simt::match_any(mask, lane % 5);
    mine[2] = simt::match_any(mask, (static_cast<u64>(lane % 2) << 40) + 7);
    mine[3] = simt::shuffle(mask, 100 + lane, 0);
    mine[4] = simt::shuffle(mask, static_cast<u64>(lane) << 36, lane / 2) >> 36;
    mine[5] = simt::reduce_or(mask, 1u << lane % 7);
    mine[6] = simt::shuffle(mask, mine, 0) == results + 8 * (global_thread_index() - lane);
    mine[7] = mask;
  }
};

/// What collect_all notes in a lane of a warp whose lanes are `mask`.
std::vector<u64> expected_of(u32 lane, u64 mask) {
  u64 bits = 0;
  for (u32 other = 0; other < warp_lanes; ++other)
    if (mask >> other & 1) bits |= 1u << other % 7;
  u64 const thirds = mask & lanes_with(3, 0), same_fifth = mask & lanes_with(5, lane % 5);
  return {thirds, same_fifth, mask & lanes_with(2, lane % 2), 100, lane / 2, bits, 1, mask};
}

TEST(Simt, CollectivesComputeOverFullAndPartialWarps) {
  for_each_schedule(seeds, [] {
    for (u32 const threads : {1u, 17u, 32u, 70u}) {
      device_buffer<u64> results(8 * 2 * threads);
      launch({2, threads}, collect_all{}, results.data());
      synchronize();
      auto const found = results.to_host();
      for (u32 i = 0; i < 2 * threads; ++i) {
        auto const expected = expected_of(i % threads % warp_lanes, found[8 * i + 7]);
        ASSERT_EQ(std::vector<u64>(found.begin() + 8 * i, found.begin() + 8 * i + 8), expected) << threads << " " << i;
      }
    }
  });
}

struct collect_in_halves {
  WARPHEAP_DEVICE void operator()(u32* results) const {
    u32 const lane = simt::lane_id();
    u32 sum = 0;
    // Odd and even lanes go round different numbers of times, each with its own mask.
    lane_mask const mask = lanes_with(2, lane % 2);
    for (u32 turn = 0; turn < (lane % 2 ? 3u : 5u); ++turn) sum += simt::ballot(mask, turn % 2 == 0) == mask;
    simt::sync_warp(full_mask);
    results[global_thread_index()] = sum + 100 * (simt::reduce_or(full_mask, 1u << lane % 32) == ~0u);
  }
};

TEST(Simt, DivergentLanesMeetByMask) {
  for_each_schedule(seeds, [] {
    device_buffer<u32> results(2 * warp_lanes);
    launch({2, warp_lanes}, collect_in_halves{}, results.data());
    synchronize();
    auto const found = results.to_host();
    for (u32 i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], 100 + (i % 2 ? 2u : 3u));
  });
}

struct use_active_mask {
  WARPHEAP_DEVICE void operator()(u32* results) const {
    u32 const lane = simt::lane_id();
    if (lane % 3 == 0) return;
    for (u32 turn = 0; turn < 4; ++turn) {
      lane_mask const mask = simt::active_mask();
      lane_mask const met = simt::ballot(mask, true);
      bool const good = met == mask && mask >> lane & 1 && !(mask & lanes_with(3, 0));
      results[global_thread_index()] += good;
    }
  }
};

TEST(Simt, LanesOfAnActiveMaskMeetAndHaveNotLeft) {
  for_each_schedule(2 * seeds, [] {
    device_buffer<u32> results(3 * warp_lanes);
    launch({3, warp_lanes}, use_active_mask{}, results.data());
    synchronize();
    auto const found = results.to_host();
    for (u32 i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], i % warp_lanes % 3 == 0 ? 0u : 4u) << i;
  });
}

struct rotate_by_barrier {
  WARPHEAP_DEVICE void operator()(u32* values) const {
    u32* const own = values + simt::block_index() * simt::block_dim();
    u32 const thread = simt::thread_index(), count = simt::block_dim();
    for (u32 turn = 0; turn < 3; ++turn) {
      u32 const next = own[(thread + 1) % count];
      simt::sync_block();
      own[thread] = next;
      simt::sync_block();
    }
  }
};

TEST(Simt, SyncBlockOrdersMemoryOfTheBlock) {
  for_each_schedule(seeds, [] {
    for (u32 const threads : {1u, 33u, 200u}) {
      std::vector<u32> start(2 * threads);
      for (u32 i = 0; i < start.size(); ++i) start[i] = i;
      device_buffer<u32> values(start);
      launch({2, threads}, rotate_by_barrier{}, values.data());
      synchronize();
      auto const found = values.to_host();
      for (u32 i = 0; i < found.size(); ++i) {
        ASSERT_EQ(found[i], i / threads * threads + (i % threads + 3) % threads);
      }
    }
  });
}

struct exchange_by_sync_warp {
  WARPHEAP_DEVICE void operator()(u32* values) const {
    u32* const own = values + global_thread_index() - simt::lane_id();
    u32 const lane = simt::lane_id();
    own[lane] = 3 * lane;
    simt::sync_warp(full_mask);
    u32 const other = own[warp_lanes - 1 - lane];
    simt::sync_warp(full_mask);
    own[lane] = other;
  }
};

TEST(Simt, SyncWarpOrdersMemoryOfItsLanes) {
  for_each_schedule(seeds, [] {
    device_buffer<u32> values(128);
    launch({2, 64}, exchange_by_sync_warp{}, values.data());
    synchronize();
    auto const found = values.to_host();
    for (u32 i = 0; i < 128; ++i) EXPECT_EQ(found[i], 3 * (warp_lanes - 1 - i % warp_lanes));
  });
}

struct take_turns {
  WARPHEAP_DEVICE void operator()(u32* turn) const {
    backoff wait;
    while (atomic_ref<u32>{*turn}.load(order::acquire) != simt::thread_index()) wait.while_working();
    WARPHEAP_ASSERT(*turn == simt::thread_index(), "a turn was skipped");
    atomic_ref<u32>{*turn}.fetch_add(1, order::release);
  }
};

TEST(Simt, LanesOfAWarpMayWaitForEachOther) {
  for_each_schedule(seeds, [] {
    device_buffer<u32> turn(1);
    launch({1, 70}, take_turns{}, turn.data());
    synchronize();
    EXPECT_EQ(turn[0], 70u);
  });
}

struct read_clock {
  WARPHEAP_DEVICE void operator()(u32* later) const {
    u64 const before = simt::clock();
    simt::pause(100);
    *later = simt::clock() > before;
  }
};

TEST(Simt, TheClockAdvances) {
  for_each_schedule(4, [] {
    device_buffer<u32> later(1);
    launch({1, 1}, read_clock{}, later.data());
    synchronize();
    EXPECT_EQ(later[0], 1u);
  });
}

struct append {
  WARPHEAP_DEVICE void operator()(u32* log, u32 value) const {
    log[atomic_ref<u32>{log[0]}.fetch_add(1, order::relaxed) + 1] = value;
  }
};

TEST(Stream, WorkRunsInOrderWithinAStream) {
  for_each_schedule(seeds, [] {
    device_buffer<u32> log(4), other(4);
    stream first, second;
    launch(first, {1, 1}, append{}, log.data(), 10u);
    launch(second, {1, 1}, append{}, other.data(), 20u);
    launch(first, {1, 1}, append{}, log.data(), 11u);
    backend::fill_bytes(other.data(), 0, 8, second);
    launch(second, {1, 1}, append{}, other.data(), 21u);
    synchronize(first);
    synchronize(second);
    EXPECT_EQ(log.to_host(), (std::vector<u32>{2, 10, 11, 0}));
    EXPECT_EQ(other.to_host(), (std::vector<u32>{1, 21, 0, 0}));
  });
}

struct meet_other_kernel {
  WARPHEAP_DEVICE void operator()(u32* here, u32* there) const {
    atomic_ref<u32>{*here}.store(1, order::release);
    while (!atomic_ref<u32>{*there}.load(order::acquire)) simt::pause(32);
  }
};

TEST(Stream, KernelsOfTwoStreamsRunSideBySide) {
  for_each_schedule(seeds, [] {
#if !defined(__CUDACC__)
    if (backend::current_execution().sm_count * backend::current_execution().blocks_per_sm < 2) return;
#endif
    device_buffer<u32> flags(2);
    stream first, second;
    launch(first, {1, 1}, meet_other_kernel{}, flags.data(), flags.data() + 1);
    launch(second, {1, 1}, meet_other_kernel{}, flags.data() + 1, flags.data());
    synchronize();
    EXPECT_EQ(flags.to_host(), (std::vector<u32>{1, 1}));
  });
}

TEST(Stream, MovesWithItsWork) {
  for_each_schedule(4, [] {
    device_buffer<u32> log(4);
    stream first;
    launch(first, {1, 1}, append{}, log.data(), 5u);
    stream moved = std::move(first);
    launch(moved, {1, 1}, append{}, log.data(), 6u);
    synchronize(moved);
    EXPECT_EQ(log.to_host(), (std::vector<u32>{2, 5, 6, 0}));
  });
}

}}  // namespace warpheap
