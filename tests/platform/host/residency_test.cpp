// SPDX-License-Identifier: Apache-2.0
// How many thread blocks and lanes live at a time, and what becomes of those beyond.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/support/schedules.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace warpheap { namespace {

struct count_residents {
  void operator()(u32* now, u32* most) const {
    u32 const here = atomic_ref<u32>{*now}.fetch_add(1, order::relaxed) + 1;
    for (u32 i = 0; i < 20; ++i) simt::pause(10);
    u32 seen = atomic_ref<u32>{*most}.load(order::relaxed);
    while (seen < here && !atomic_ref<u32>{*most}.compare_exchange(seen, here, order::relaxed, order::relaxed)) {
    }
    atomic_ref<u32>{*now}.fetch_sub(1, order::relaxed);
  }
};

TEST(Residency, NoMoreThreadBlocksLiveThanThereArePlaces) {
  for (u32 const blocks_per_sm : {1u, 2u, 5u}) {
    for (auto const mode : {host::execution_mode::deterministic, host::execution_mode::parallel}) {
      host::scoped_execution const use{{.mode = mode, .sm_count = 3, .blocks_per_sm = blocks_per_sm, .os_threads = 2}};
      device_buffer<u32> counts(2);
      launch({40, 1}, count_residents{}, counts.data(), counts.data() + 1);
      EXPECT_EQ(counts[0], 0u);
      EXPECT_LE(counts[1], 3 * blocks_per_sm);
      bool const deterministic = mode == host::execution_mode::deterministic;
      EXPECT_GE(counts[1], deterministic ? 3 * blocks_per_sm : 1);
    }
  }
}

struct wait_for_last_block {
  void operator()(u32* flag) const {
    if (simt::block_index() == simt::grid_dim() - 1) atomic_ref<u32>{*flag}.store(1, order::release);
    while (!atomic_ref<u32>{*flag}.load(order::acquire)) simt::pause(10);
  }
};

TEST(Residency, WaitingForAResidentThreadBlockSucceeds) {
  for (auto const mode : {host::execution_mode::deterministic, host::execution_mode::parallel}) {
    host::scoped_execution const use{{.mode = mode, .sm_count = 2, .blocks_per_sm = 2, .os_threads = 2}};
    device_buffer<u32> flag(1);
    launch({4, 2}, wait_for_last_block{}, flag.data());
    EXPECT_EQ(flag[0], 1u);
  }
}

TEST(Residency, WaitingForAThreadBlockThatHasNotStartedFails) {
  for (auto const mode : {host::execution_mode::deterministic, host::execution_mode::parallel}) {
    host::scoped_execution const use{
        {.mode = mode, .sm_count = 2, .blocks_per_sm = 2, .os_threads = 2, .step_cap = 100'000}};
    device_buffer<u32> flag(1);
    EXPECT_THROW(launch({5, 2}, wait_for_last_block{}, flag.data()), host::schedule_error);
  }
}

struct store_sm {
  void operator()(u32* sms) const {
    for (u32 i = 0; i < 40; ++i) simt::pause(10);
    sms[simt::block_index()] = simt::sm_id();
  }
};

TEST(Residency, ThreadBlocksSpreadOverAllMultiprocessors) {
  host::scoped_execution const use{{.mode = host::execution_mode::deterministic, .sm_count = 5, .blocks_per_sm = 2}};
  device_buffer<u32> sms(10);
  launch({10, 1}, store_sm{}, sms.data());
  auto const found = sms.to_host();
  for (u32 sm = 0; sm < 5; ++sm) EXPECT_EQ(std::count(found.begin(), found.end(), sm), 2);
}

/// Every lane waits for every other: all live at once.
struct meet_grid {
  void operator()(u32* arrived, u32 lanes) const {
    atomic_ref<u32>{*arrived}.fetch_add(1, order::relaxed);
    while (atomic_ref<u32>{*arrived}.load(order::relaxed) < lanes) simt::pause(1000);
  }
};

void all_live_at_once(host::execution_mode mode, u32 blocks) {
  host::scoped_execution const use{
      {.mode = mode, .policy = host::schedule_policy::round_robin, .sm_count = blocks, .blocks_per_sm = 1}};
  device_buffer<u32> arrived(1);
  u32 const lanes = blocks * 1024;
  launch({blocks, 1024}, meet_grid{}, arrived.data(), lanes);
  EXPECT_EQ(arrived[0], lanes);
  EXPECT_EQ(host::last_run().lanes, lanes);
}

#if defined(__SANITIZE_THREAD__)
TEST(Residency, MoreLanesThanThreadSanitizerAllowsIsAClearError) {
  host::scoped_execution const use{{.mode = host::execution_mode::deterministic, .sm_count = 8, .blocks_per_sm = 1}};
  device_buffer<u32> arrived(1);
  try {
    launch({8, 1024}, meet_grid{}, arrived.data(), 8192u);
    ADD_FAILURE();
  } catch (backend_error const& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("ThreadSanitizer allows 8000 resident lanes"));
  }
  all_live_at_once(host::execution_mode::deterministic, 2);
}
#else
TEST(Residency, HoldsOneHundredAndThirtyOneThousandLanes) {
  u32 const blocks = host::detail::under_asan ? 8 : 128;
  all_live_at_once(host::execution_mode::deterministic, blocks);
  all_live_at_once(host::execution_mode::parallel, blocks);
}
#endif

struct touch {
  void operator()(u32* words) const { atomic_ref<u32>{words[global_thread_index() % 64]}.fetch_add(1, order::relaxed); }
};

TEST(Residency, StacksServeManyMoreLanesThanThereAre) {
  test::for_each_schedule(3, [] {
    device_buffer<u32> words(64);
    launch({1000, 64}, touch{}, words.data());
    for (u32 const word : words.to_host()) EXPECT_EQ(word, 1000u);
  });
}

}}  // namespace warpheap
