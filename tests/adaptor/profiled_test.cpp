// SPDX-License-Identifier: Apache-2.0
// Profiled heaps: each live block that is a sample is told with its place, samples stand for what
// is live, and refused calls are counted, the first with its place.
#include "warpheap/adaptor/profiled.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "support/schedules.hpp"
#include "warpheap/warpheap.hpp"

namespace profiled_test {

using namespace warpheap;
using namespace warpheap::literals;

constexpr profiled_config every_block{.one_in_log2 = 0, .places = 1 << 16}, one_in_16{.one_in_log2 = 4},
    few_places{.one_in_log2 = 0, .places = 256};
using all_sampled = profiled<heap, every_block>;
using refusing = profiled<heap, few_places>;

/// Kernel: each thread keeps one block of two places, and frees or moves others.
struct hold_blocks {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u32 threads, void** held) const {
    u64 const i = global_thread_index();
    if (i >= threads) return;
    void* const passing = heap.malloc(48, "passing");
    if (i % 3 == 0) held[i] = heap.malloc(100, "hundreds");
    else held[i] = heap.realloc(heap.malloc(16, "small"), 16, 40, "grown");
    heap.free(passing);
  }
};

struct free_blocks {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u32 threads, void** held) const {
    u64 const i = global_thread_index();
    if (i < threads) heap.free(held[i]);
  }
};

TEST(Profiled, TellsWhoHoldsWhat) {
  test::for_each_schedule(12, [] {
    constexpr u32 threads = 90;
    all_sampled const heap{1_MiB};
    device_buffer<void*> const held(threads);
    launch({3, 32}, hold_blocks{}, heap.ref(), threads, held.data());
    synchronize();
    auto const holders = heap.holders();
    ASSERT_EQ(holders.size(), 2u);
    for (auto const& each : holders) {
      bool const is_grown = each.file == "grown";
      EXPECT_TRUE(is_grown || each.file == "hundreds") << each.file;
      EXPECT_GE(each.samples, is_grown ? 58u : 28u);
      EXPECT_NEAR(each.blocks, is_grown ? 60 : 30, 2.5);
      EXPECT_NEAR(each.bytes, 2880, 250);
    }
    EXPECT_FALSE(heap.has_refused());
    launch({3, 32}, free_blocks{}, heap.ref(), threads, held.data());
    synchronize();
    EXPECT_TRUE(heap.holders().empty());  // profile.P1
  });
}

TEST(Profiled, EstimatesFromSamples) {
  constexpr u32 threads = 30'000;
  profiled<heap, one_in_16> const heap{16_MiB};
  device_buffer<void*> const held(threads);
  launch(shape_for(threads), hold_blocks{}, heap.ref(), threads, held.data());
  synchronize();
  auto const holders = heap.holders();
  ASSERT_EQ(holders.size(), 2u);
  for (auto const& each : holders) {
    bool const is_grown = each.file == "grown";
    EXPECT_NEAR(each.blocks, is_grown ? 20'000 : 10'000, 2'000);
    EXPECT_NEAR(each.bytes, 960'000, 150'000);
  }
}

TEST(Profiled, CountsSamplesThatOthersReplaced) {
  constexpr u32 threads = 200;
  profiled<heap, few_places> const heap{1_MiB};
  device_buffer<void*> const held(threads);
  launch(shape_for(threads), hold_blocks{}, heap.ref(), threads, held.data());
  synchronize();
  u64 samples = 0;
  double blocks = 0;
  for (auto const& each : heap.holders()) {
    samples += each.samples;
    blocks += each.blocks;
  }
  EXPECT_LT(samples, threads);
  EXPECT_NEAR(blocks, threads, 60);
}

/// Kernel: asks for more than there is.
struct ask_too_much {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap) const {
    if (heap.malloc(u64{1} << 40) != nullptr) simt::trap("served");
    if (heap.calloc(3, u64{1} << 20) != nullptr) simt::trap("served");
    heap.malloc(0);
  }
};

// profile.P2
TEST(Profiled, CountsRefusalsAndKeepsTheFirst) {
  test::for_each_schedule(20, [] {
    refusing heap{1_MiB};
    EXPECT_EQ(heap.refusals().calls(), 0u);
    launch({2, 40}, ask_too_much{}, heap.ref());
    synchronize();
    auto const refused = heap.refusals();
    EXPECT_EQ(refused.calls_of[40], 80u);
    EXPECT_EQ(refused.calls_of[21], 80u);
    EXPECT_EQ(refused.calls(), 160u);
    ASSERT_TRUE(refused.first);
    EXPECT_TRUE(refused.first->file.ends_with("profiled_test.cpp")) << refused.first->file;
    EXPECT_GT(refused.first->line, 90u);
    EXPECT_LT(refused.first->thread_block, 2u);
    EXPECT_NE(refused.describe().find("80 of 1099511627776 bytes or more; first "), std::string::npos)
        << refused.describe();
    EXPECT_TRUE(heap.has_refused());
    heap.reset();
    EXPECT_EQ(heap.refusals().calls(), 0u);
    EXPECT_FALSE(heap.has_refused());
  });
}

TEST(Profiled, TellsAWatchOfTheFirstRefusalOnce) {
  refusing const heap{1_MiB};
  std::atomic<u32> told{0};
  u64 calls = 0;
  {
    refusal_watch const watch{heap, [&](refusal_report const& report) {
                                calls = report.calls();
                                ++told;
                              }};
    for (u32 i = 0; i < 3; ++i) launch({1, 32}, ask_too_much{}, heap.ref());
    synchronize();
  }
  EXPECT_EQ(told, 1u);
  EXPECT_GT(calls, 0u);
}

TEST(Profiled, TellsNoWatchOfWhatWasServed) {
  refusing const heap{1_MiB};
  bool told = false;
  {
    refusal_watch const watch{heap, [&](refusal_report const&) { told = true; }};
  }
  EXPECT_FALSE(told);
}

}  // namespace profiled_test
