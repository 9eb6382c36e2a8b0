// Readings of a heap: right at rest, possible at any time, and never of what is not there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
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
  EXPECT_EQ(seen.pool_bytes, counted.pool_bytes);
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
  EXPECT_EQ(reader.read().pool_bytes, granule);
  EXPECT_EQ(reader.read().live_blocks, 0u);
  heap.grow(2 * granule);
  synchronize();
  EXPECT_EQ(reader.read().pool_bytes, 3 * granule);
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
