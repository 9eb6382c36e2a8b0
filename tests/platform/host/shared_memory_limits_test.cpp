// SPDX-License-Identifier: Apache-2.0
// Shared memory that is not written yet holds a pattern. An access past its end ends the kernel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/platform/shared_memory.hpp"

namespace warpheap { namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

struct look_then_write {
  void operator()(u32* unwritten, float* as_float) const {
    WARPHEAP_SHARED(number, u32);
    auto const all = dynamic_shared<float>();
    if (number == 0xd5d5'd5d5) atomic_ref<u32>{*unwritten}.fetch_add(1, order::relaxed);
    atomic_ref<float>{*as_float}.store(all[2], order::relaxed);
    number = 4;
    all[2] = 1;
  }
};

TEST(SharedMemoryLimits, AThreadBlockFindsAPatternAndNotWhatTheLastOneLeft) {
  for (u32 const places : {1u, 3u}) {
    host::scoped_execution const use{
        {.mode = host::execution_mode::deterministic, .sm_count = places, .blocks_per_sm = 1}};
    device_buffer<u32> const unwritten(1);
    device_buffer<float> const as_float(1);
    launch({.blocks = 20, .shared_bytes = 12}, look_then_write{}, unwritten.data(), as_float.data());
    EXPECT_EQ(unwritten[0], 20u);
    EXPECT_LT(as_float[0], -1e13F);
  }
}

struct index_past_the_end {
  void operator()() const {
    auto const all = dynamic_shared<u32>();
    all[all.size()] = 1;
  }
};
struct misaligned_part {
  void operator()() const { dynamic_shared<u64>(4)[0] = 1; }
};

TEST(SharedMemoryLimits, WhatIsPastTheEndOfDynamicMemoryEndsTheKernel) {
  EXPECT_THAT([] { launch({.shared_bytes = 16}, index_past_the_end{}); },
              ThrowsMessage<host::trap_error>(HasSubstr("an index past the end of dynamic shared memory")));
  EXPECT_THAT([] { launch({}, index_past_the_end{}); }, ThrowsMessage<host::trap_error>(HasSubstr("past the end")));
  EXPECT_THAT([] { launch({.shared_bytes = 16}, misaligned_part{}); },
              ThrowsMessage<host::trap_error>(HasSubstr("an offset that dynamic shared memory does not have")));
}

struct declare_too_much {
  void operator()(bool second) const {
    WARPHEAP_SHARED(most, u32[12'000]);
    most[0] = 1;
    if (!second) return;
    WARPHEAP_SHARED(more, u32[289]);
    more[0] = 1;
  }
};

TEST(SharedMemoryLimits, MoreThanAThreadBlockHasIsRefused) {
  device_buffer<u32> const nothing(1);
  launch({2, 1}, declare_too_much{}, false);
  EXPECT_THAT(
      [] {
        launch({2, 1}, declare_too_much{}, true);
      },
      ThrowsMessage<host::schedule_error>(HasSubstr("declares 49156 bytes of shared memory beside 0 dynamic")));
  EXPECT_THAT([] { launch({.shared_bytes = 200'000}, declare_too_much{}, false); },
              ThrowsMessage<host::schedule_error>(HasSubstr("48000 bytes of shared memory beside 200000 dynamic")));
  EXPECT_THAT([] { launch({.shared_bytes = 232'449}, declare_too_much{}, false); },
              ThrowsMessage<backend_error>(HasSubstr("at most 232448 are possible")));
}

struct wait_for_a_word {
  void operator()() const {
    WARPHEAP_SHARED(words, u32[4]);
    atomic_ref<u32, scope::block>{words[1]}.store(3, order::relaxed);
    simt::trap("here");
  }
};

TEST(SharedMemoryLimits, AReportNamesSharedMemory) {
  host::scoped_execution const use{{.mode = host::execution_mode::deterministic}};
  EXPECT_THAT([] { launch({}, wait_for_a_word{}); },
              ThrowsMessage<host::trap_error>(HasSubstr("store shared memory + 0x4: 0xd5d5d5d5 -> 0x3")));
}

TEST(SharedMemoryLimits, ExtentsMustDivideWhatTheyAreOf) {
  EXPECT_THAT(
      [] {
        launch({.threads = 12, .block_extent = {5, 2}}, misaligned_part{});
      },
      ThrowsMessage<backend_error>(HasSubstr("extents")));
  EXPECT_THAT(
      [] {
        launch({.blocks = 3, .grid_extent = {0, 3}}, misaligned_part{});
      },
      ThrowsMessage<backend_error>(HasSubstr("extents")));
}

}}  // namespace warpheap
