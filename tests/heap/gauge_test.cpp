// SPDX-License-Identifier: Apache-2.0
// Readings of a heap: right at rest, possible at any time, and never of what is not there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "support/schedules.hpp"
#include "warpheap/heap/gauge.hpp"
#include "warpheap/heap/growing_heap.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/warpheap.hpp"

namespace gauge_test {

using namespace warpheap;
using namespace warpheap::literals;

/// Kernel: every thread takes one block; sizes are 16 bytes, 48, and so on up to runs.
struct take_sizes {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, void** blocks) const {
    u64 const me = global_thread_index();
    blocks[me] = heap.malloc((u64{16} << (me % 12)) * (1 + me % 3));
  }
};

struct free_each {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, void* const* blocks, u32 every) const {
    u64 const me = global_thread_index();
    if (me % every == 0) heap.free(blocks[me]);
  }
};

constexpr launch_shape shape{6, 64};
constexpr u32 threads = 6 * 64;

template <class Heap>
void expect_the_same(gauge_reading const& seen, Heap const& heap) {
  auto const counted = heap.statistics();
  EXPECT_EQ(seen.live_blocks, counted.live_blocks);
  EXPECT_EQ(seen.live_bytes, counted.live_bytes);
  EXPECT_EQ(seen.pool_bytes, heap.pool_bytes());
  EXPECT_EQ(seen.committed_bytes, counted.pool_bytes);
  EXPECT_EQ(seen.failures, counted.failures);
}

TEST(Gauge, ReadsAtRestWhatStatisticsCount) {
  warpheap::heap heap{16_MiB};
  gauge reader{heap};
  expect_the_same(reader.read(), heap);
  EXPECT_TRUE(reader.read().classes.empty());
  device_buffer<void*> const blocks(threads);
  launch(shape, take_sizes{}, heap.ref(), blocks.data());
  synchronize();
  auto const full = reader.read();
  EXPECT_GT(full.live_blocks, threads / 2);
  expect_the_same(full, heap);
  launch(shape, free_each{}, heap.ref(), static_cast<void* const*>(blocks.data()), 3u);
  synchronize();
  auto const less = reader.read();
  EXPECT_LT(less.live_bytes, full.live_bytes);
  EXPECT_EQ(less.highest_live_bytes, full.live_bytes);
  expect_the_same(less, heap);
  heap.reset();
  synchronize();
  expect_the_same(reader.read(), heap);
}

TEST(Gauge, TellsSizesApart) {
  warpheap::heap heap{16_MiB};
  gauge reader{heap};
  device_buffer<void*> const blocks(threads);
  launch({1, 36}, take_sizes{}, heap.ref(), blocks.data());
  synchronize();
  auto const seen = reader.read();
  u64 blocks_of_classes = 0, last = 0;
  for (auto const& each : seen.classes) {
    EXPECT_GT(each.bytes, last);
    last = each.bytes;
    blocks_of_classes += each.blocks;
  }
  EXPECT_EQ(seen.classes.front().bytes, 16u);
  EXPECT_EQ(seen.classes.front().blocks, 3u) << "threads 0, 12 and 24";
  EXPECT_LE(blocks_of_classes, seen.live_blocks) << "the others are runs";
}

TEST(Gauge, SeesWhatAGrowingPoolHas) {
  size_t const granule = reserve_pool::growing::granularity();
  growing_heap heap{growth{.initial = granule, .limit = 8 * granule, .chunk = granule}};
  gauge reader{heap};
  EXPECT_EQ(reader.read().pool_bytes, 8 * granule);
  EXPECT_EQ(reader.read().committed_bytes, granule);
  EXPECT_EQ(reader.read().live_blocks, 0u);
  heap.grow(2 * granule);
  synchronize();
  EXPECT_EQ(reader.read().committed_bytes, 3 * granule);
  EXPECT_EQ(heap.snapshot().largest_available, 3 * granule);
  expect_the_same(reader.read(), heap);
}

TEST(Gauge, CountsRefusals) {
  warpheap::heap heap{1_MiB};
  gauge reader{heap};
  device_buffer<void*> const blocks(threads);
  for (u32 i = 0; i < 4; ++i) launch(shape, take_sizes{}, heap.ref(), blocks.data());
  synchronize();
  EXPECT_GT(reader.read().failures, 0u);
  expect_the_same(reader.read(), heap);
}

/// Kernel: every thread asks for the bytes of its turn, and notes what it was refused.
struct ask_for {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 const* bytes, u32 sizes, u64* refused) const {
    u64 const me = global_thread_index();
    if (heap.malloc(bytes[me % sizes])) return;
    atomic_ref<u64>{refused[me % sizes]}.fetch_add(1, order::relaxed);
  }
};

/// What a refused request for `bytes` is counted as, of a pool of 1 MiB in slabs of `slab` bytes.
u64 counted_size(u64 bytes, u64 slab) {
  if (bytes <= slab) return class_bytes(size_class_of(bytes));
  return align_up(bytes, bytes <= 1_MiB ? slab : 16);
}

/// Asks `heap` for sizes by many threads; the largest size that any was refused, and calls refused.
std::pair<u64, u64> ask(warpheap::heap const& heap, std::vector<u64> const& sizes, u64 slab) {
  device_buffer<u64> const wanted{sizes}, refused(sizes.size());
  launch({4, 64}, ask_for{}, heap.ref(), static_cast<u64 const*>(wanted.data()), static_cast<u32>(sizes.size()),
         refused.data());
  synchronize();
  u64 largest = 0, calls = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (refused[i] != 0) largest = std::max(largest, counted_size(sizes[i], slab));
    calls += refused[i];
  }
  return {largest, calls};
}

TEST(Gauge, TellsTheLargestSizeThatWasRefused) {
  u64 all_refused = 0;
  test::for_each_schedule(60, [&] {
    warpheap::heap heap{1_MiB};
    u64 const slab = heap.ref().creation().geometry().slab_bytes();
    gauge reader{heap};
    EXPECT_EQ(reader.read().largest_failed_bytes, 0u);
    // Seven sizes up to half a slab, and three of runs: the pool has room for a part of them.
    auto const [first, refused] = ask(heap, {900, 33, 5000, 16, 40000, 100, 7000, 70000, 2000, 100001}, slab);
    EXPECT_GT(refused, 0u);
    EXPECT_EQ(reader.read().largest_failed_bytes, first);
    EXPECT_EQ(reader.read().failures, refused);
    EXPECT_EQ(heap.snapshot().largest_failed_bytes, first);
    // Small sizes that are refused later do not lower it; a larger one raises it.
    ask(heap, {100, 40}, slab);
    EXPECT_EQ(reader.read().largest_failed_bytes, first);
    EXPECT_EQ(ask(heap, {3_MiB + 5, 2_MiB}, slab).first, 3_MiB + 16);
    EXPECT_EQ(reader.read().largest_failed_bytes, 3_MiB + 16);
    ask(heap, {~u64{0} - 100}, slab);
    EXPECT_EQ(reader.read().largest_failed_bytes, align_up(~u64{0} - 100, 16));
    heap.reset();
    synchronize();
    EXPECT_EQ(reader.read().largest_failed_bytes, 0u);
    all_refused += refused;
  });
  EXPECT_GT(all_refused, 0u);
}

TEST(Gauge, CallsOneSizeWhatLanesThatAskTogetherAreRefused) {
  warpheap::heap heap{1_MiB};
  u64 const slab = heap.ref().creation().geometry().slab_bytes();
  ask(heap, {slab}, slab);
  gauge reader{heap};
  EXPECT_EQ(reader.read().largest_failed_bytes, slab) << "of one block, not of all lanes' together";
  EXPECT_EQ(reader.read().failures, 256 - 1_MiB / slab);
}

/// Kernel: every thread takes a block and gives it back, again and again.
struct take_and_free {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u32 rounds) const {
    for (u32 i = 0; i < rounds; ++i) heap.free(heap.malloc(100));
  }
};

TEST(Gauge, ReadsNoMoreThanThereCanBeWhileKernelsRun) {
  u64 seen_live = 0;
  test::for_each_schedule(100, [&] {
    warpheap::heap heap{1_MiB};
    gauge reader{heap};
    constexpr u32 lanes = 60;
    stream const ours;
    launch(ours, {3, 20}, take_and_free{}, heap.ref(), 6u);
    auto const seen = reader.read();
    // One block a lane, or one that the lane has given back and that is not subtracted yet, and
    // transients of a warp's requests.
    EXPECT_LE(seen.live_blocks, 3u * lanes + 3 * 32);
    seen_live += seen.live_blocks;
    synchronize();
    EXPECT_EQ(reader.read().live_blocks, 0u);
  });
  EXPECT_TRUE(test::on_gpu || seen_live > 0);
}

#if defined(__CUDACC__)
/// Kernel: takes a block, and waits until the host says so, two seconds at most.
struct take_and_wait {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64* told) const {
    heap.malloc(100);
    u64 const began = simt::nanoseconds();
    while (atomic_ref<u64, scope::system>{*told}.load(order::relaxed) == 0 &&
           simt::nanoseconds() - began < 2'000'000'000)
      simt::pause(1000);
  }
};

TEST(Gauge, ReadsWhileAKernelRuns) {
  warpheap::heap heap{64_MiB};
  gauge reader{heap};
  reader.read();
  backend::shared_words const words{1};
  stream const ours;
  launch(ours, {64, 256}, take_and_wait{}, heap.ref(), words.device());
  u64 live = 0;
  for (u32 i = 0; i < 100000 && live != 64 * 256; ++i) live = reader.read().live_blocks;
  bool const runs = cudaStreamQuery(ours) == cudaErrorNotReady;
  words.store(0, 1);
  synchronize(ours);
  EXPECT_EQ(live, 64u * 256u);
  EXPECT_TRUE(runs);
}
#endif

}  // namespace gauge_test
