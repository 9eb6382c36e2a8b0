// SPDX-License-Identifier: Apache-2.0
// A heap that publishes itself: what others see of it, while its program works and afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "support/message_of.hpp"
#include "warpheap/heap/growing_heap.hpp"
#include "warpheap/heap/published_gauge.hpp"
#include "warpheap/warpheap.hpp"

namespace published_gauge_test {

using namespace warpheap;
using namespace warpheap::literals;
using std::chrono::milliseconds;

/// What this program publishes under a name.
std::vector<published_heap> published_as(std::string const& name) {
  std::vector<published_heap> mine;
  for (auto const& each : read_published_heaps().heaps)
    if (each.process == static_cast<u64>(getpid()) && each.name == name) mine.push_back(each);
  return mine;
}

/// Kernel: every thread takes a block.
struct take_blocks_of {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 bytes) const {
    heap.malloc(bytes);
  }
};

/// Kernel: every thread takes a block and gives it back, again and again.
struct take_and_free {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u32 rounds) const {
    for (u32 i = 0; i < rounds; ++i) heap.free(heap.malloc(100));
  }
};

TEST(PublishedGauge, ShowsWhatAReadingTells) {
  warpheap::heap heap{1_MiB};
  published_gauge published{heap, "reading", milliseconds{0}};
  ASSERT_EQ(published_as("reading").size(), 1u);
  EXPECT_EQ(published_as("reading")[0].figures.live_blocks, 0u);
  launch({2, 32}, take_blocks_of{}, heap.ref(), 100);
  launch({1, 1}, take_blocks_of{}, heap.ref(), 2_MiB);
  synchronize();
  EXPECT_EQ(published_as("reading")[0].figures.live_blocks, 0u) << "nobody has read it since";
  auto const read = published.publish();
  auto const seen = published_as("reading")[0];
  EXPECT_EQ(seen.allocator, "slab_bitmap");
  EXPECT_EQ(seen.device.empty(), false);
  EXPECT_EQ(seen.program.substr(0, 4), std::string{program_invocation_short_name}.substr(0, 4));
  EXPECT_LT(seen.age_seconds, 60);
  EXPECT_EQ(seen.figures.pool_bytes, heap.pool_bytes());
  EXPECT_EQ(seen.figures.committed_bytes, heap.pool_bytes());
  EXPECT_EQ(seen.figures.live_blocks, 64u);
  EXPECT_EQ(seen.figures.live_bytes, heap.statistics().live_bytes);
  EXPECT_EQ(seen.figures.highest_live_bytes, read.live_bytes);
  EXPECT_EQ(seen.figures.failures, 1u);
  EXPECT_EQ(seen.figures.largest_failed_bytes, 2_MiB);
}

TEST(PublishedGauge, ShowsWhatAGrowingPoolHas) {
  size_t const granule = reserve_pool::growing::granularity();
  growing_heap heap{growth{.initial = granule, .limit = 8 * granule, .chunk = granule}};
  published_gauge published{heap, "growing", milliseconds{0}};
  heap.grow(granule);
  synchronize();
  published.publish();
  EXPECT_EQ(published_as("growing")[0].figures.pool_bytes, 8 * granule);
  EXPECT_EQ(published_as("growing")[0].figures.committed_bytes, 2 * granule);
}

TEST(PublishedGauge, IsGoneWithItsObject) {
  warpheap::heap heap{1_MiB};
  {
    published_gauge const first{heap, "twice"}, second{heap, "twice"};
    EXPECT_EQ(published_as("twice").size(), 2u);
  }
  EXPECT_TRUE(published_as("twice").empty());
}

TEST(PublishedGauge, ReadsByItselfWhileItsProgramLaunchesKernels) {
  warpheap::heap heap{4_MiB};
  published_gauge const published{heap, "busy", milliseconds{1}};
  stream const first, second;
  u64 last = 0, readings = 0;
  for (u32 round = 0; round < 10'000 && readings < 20; ++round) {
    launch(first, {2, 64}, take_and_free{}, heap.ref(), 20u);
    launch(second, {2, 64}, take_and_free{}, heap.ref(), 20u);
    synchronize();
    auto const seen = published_as("busy");
    ASSERT_EQ(seen.size(), 1u);
    ASSERT_LE(seen[0].figures.live_blocks, 4u * 64 + 8 * 32) << "a block a thread, and transients of a warp's";
    readings += seen[0].figures.read_at != last;
    last = seen[0].figures.read_at;
  }
  EXPECT_EQ(readings, 20u);
  EXPECT_EQ(published.failure(), nullptr);
}

TEST(PublishedGauge, SeesAtLastWhatTheHeapHasAtRest) {
  warpheap::heap heap{1_MiB};
  published_gauge const published{heap, "rest", milliseconds{1}};
  launch({3, 32}, take_blocks_of{}, heap.ref(), 50);
  synchronize();
  u64 live = 0;
  for (u32 i = 0; i < 10'000 && live == 0; ++i) {
    std::this_thread::sleep_for(milliseconds{1});
    live = published_as("rest")[0].figures.live_blocks;
  }
  EXPECT_EQ(live, 96u);
}

TEST(PublishedGauge, RefusesNamesThatThePageHasNoRoomFor) {
  warpheap::heap heap{1_MiB};
  auto const refusal = [&](std::string const& name) {
    return test::message_of<std::invalid_argument>([&] { published_gauge{heap, name}; });
  };
  EXPECT_EQ(refusal(""), "a published heap's name has 0 bytes: 1 to 63 are possible");
  EXPECT_EQ(refusal(std::string(64, 'x')), "a published heap's name has 64 bytes: 1 to 63 are possible");
  published_gauge const longest{heap, std::string(63, 'x')};
  EXPECT_EQ(published_as(std::string(63, 'x')).size(), 1u);
}

}  // namespace published_gauge_test
