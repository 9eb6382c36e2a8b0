// SPDX-License-Identifier: Apache-2.0
// Threads append together: what was served is there once, in whatever order, and the rest is
// counted.
#include "append_buffer.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "support/replay_steps.hpp"
#include "support/schedules.hpp"
#include "warpheap/adaptor/checked.hpp"
#include "warpheap/all.hpp"

namespace {

using namespace warpheap;
using namespace warpheap::literals;
using test::appending;
using test::entry;
using test::for_each_schedule;
using test::refusing_heap;
using test::replay_steps;

using small_buffer = append_buffer<entry, append_buffer_config{.first_page = 2}>;
using small_pages = small_buffer::layout;

/// Pages of a buffer with this many elements.
constexpr u32 pages_for(u64 elements) {
  return elements == 0 ? 0 : small_pages::place_of(static_cast<u32>(elements - 1)).page + 1;
}

/// One thread, the next multiples of three.
struct append_in_order {
  WARPHEAP_DEVICE void operator()(heap_ref heap, append_buffer<u32>* to, u32 count) const {
    for (u32 i = 0; i < count; ++i) to->append(heap, 3 * i);
  }
};

TEST(AppendBuffer, HoldsWhatOneThreadAppendsInOrder) {
  heap const memory{1_MiB};
  for (u32 const count : {0u, 1u, 31u, 32u, 33u, 64u, 65u, 1000u}) {
    device_buffer<append_buffer<u32>> const one(1);
    launch({1, 1}, append_in_order{}, memory.ref(), one.data(), count);
    synchronize();
    auto const elements = to_host(one.data());
    ASSERT_EQ(elements.size(), count);
    EXPECT_EQ(one[0].size(), count);
    EXPECT_EQ(one[0].dropped(), 0u);
    for (u32 i = 0; i < count; ++i) ASSERT_EQ(elements[i], 3 * i);
    destroy(memory.ref(), one.data(), 1);
    synchronize();
    EXPECT_EQ(memory.statistics().live_blocks, 0u);
    EXPECT_EQ(one[0].size(), 0u);
  }
}

// append.A1, append.A2
TEST(AppendBuffer, HoldsWhatManyThreadsAppend) {
  heap const memory{1_MiB};
  for (auto const shape : {launch_shape{1, 3}, {2, 40}, {3, 33}, {5, 100}})
    for_each_schedule(24, [&] {
      appending<small_buffer> round{1, shape};
      u32 const threads = shape.blocks * shape.threads;
      ASSERT_EQ(round.fault_of_round(memory.ref()), "");
      EXPECT_EQ(round[0].size(), threads);
      EXPECT_EQ(memory.statistics().live_blocks, pages_for(threads));
      round.destroy_all(memory.ref());
      EXPECT_EQ(memory.statistics().live_blocks, 0u);
    });
}

TEST(AppendBuffer, ServesPartialWarpsAndManyBuffersInOne) {
  heap const memory{1_MiB};
  for (u32 const buffers : {2u, 31u, 33u})
    for (u32 const out_of : {2u, 3u, 32u})
      for_each_schedule(12, [&] {
        appending<small_buffer> round{buffers, {2, 77}, out_of};
        ASSERT_EQ(round.fault_of_round(memory.ref()), "") << buffers << " buffers";
        round.destroy_all(memory.ref());
        EXPECT_EQ(memory.statistics().live_blocks, 0u);
      });
}

// append.A3, append.A4, append.A5
TEST(AppendBuffer, DropsAllBehindAPageThatIsRefused) {
  heap const memory{1_MiB};
  constexpr launch_shape shape{2, 40};
  constexpr u32 threads = shape.blocks * shape.threads, last = pages_for(threads) - 1;
  for (u32 refused = 0; refused <= last; ++refused)
    for_each_schedule(16, [&] {
      appending<small_buffer> round{1, shape};
      device_buffer<u32> const calls(1);
      refusing_heap<heap_ref> const refusing{memory.ref(), calls.data(), refused, refused + 1};
      ASSERT_EQ(round.fault_of_round(refusing), "") << refused;
      EXPECT_EQ(calls[0], refused + 1) << "nobody asks for pages behind";
      EXPECT_EQ(round[0].size(), small_pages::first_of(refused));
      EXPECT_EQ(round[0].dropped(), threads - small_pages::first_of(refused));
      EXPECT_EQ(memory.statistics().live_blocks, refused);
      round.clear_all();
      EXPECT_EQ(round[0].dropped(), 0u);
      ASSERT_EQ(round.fault_of_round(refusing), "") << "after a refusal";
      EXPECT_EQ(round[0].dropped(), 0u);
      EXPECT_EQ(calls[0], last + 2) << "the refused page once more, and those behind";
      round.destroy_all(memory.ref());
      EXPECT_EQ(memory.statistics().live_blocks, 0u);
    });
}

// Of twelve buffers seven or eight get a page of 128 KiB.
TEST(AppendBuffer, CountsWhatAFullHeapHasNoRoomFor) {
  for_each_schedule(12, [] {
    heap const memory{1_MiB};
    append_buffer_config constexpr large{.first_page = 8192};
    appending<append_buffer<entry, large>> round{12, {2, 120}};
    ASSERT_EQ(round.fault_of_round(memory.ref()), "");
    u64 dropped = 0, pages_there = 0;
    for (u32 i = 0; i < round.size(); ++i) {
      dropped += round[i].dropped();
      pages_there += round[i].size() != 0;
    }
    EXPECT_EQ(memory.statistics().live_blocks, pages_there);
    EXPECT_EQ(dropped, 20 * (12 - pages_there));
    EXPECT_LE(pages_there, 8u);
    EXPECT_GE(pages_there, 7u);
    round.destroy_all(memory.ref());
    EXPECT_EQ(memory.statistics().live_blocks, 0u);
  });
}

// append.A6
TEST(AppendBuffer, NeedsNoMemoryAfterClear) {
  heap const memory{1_MiB};
  constexpr u32 all_pages = 2 * pages_for(51) + pages_for(52);
  for_each_schedule(24, [&] {
    appending<small_buffer> rounds{3, {2, 77}};
    device_buffer<u32> const calls(1);
    refusing_heap<heap_ref> const counting{memory.ref(), calls.data(), 0, 0};
    for (u32 round = 0; round < 3; ++round) {
      ASSERT_EQ(rounds.fault_of_round(counting), "") << "round " << round;
      EXPECT_EQ(calls[0], all_pages) << "round " << round;
      rounds.clear_all();
      for (u32 i = 0; i < 3; ++i) EXPECT_EQ(rounds[i].size(), 0u);
    }
    rounds.destroy_all(memory.ref());
    EXPECT_EQ(memory.statistics().live_blocks, 0u);
    ASSERT_EQ(rounds.fault_of_round(counting), "") << "after destroy";
    EXPECT_EQ(calls[0], 2 * all_pages) << "all pages anew";
    rounds.destroy_all(memory.ref());
    EXPECT_EQ(memory.statistics().live_blocks, 0u);
  });
}

// append.A2
TEST(AppendBuffer, OrdersTheLastOwnersAccessesBeforeAppends) {
  for_each_schedule(200, [] { EXPECT_TRUE(test::orders_owners<small_buffer>()); });
}

struct append_at_the_end {
  WARPHEAP_DEVICE void operator()(append_buffer<u8>* to, u64* places, u64* dropped) const {
    test::first_fit_heap const no_heap{nullptr, nullptr};
    for (u32 i = 0; i < 4; ++i) places[i] = reinterpret_cast<u64>(to->append(no_heap));
    *dropped = to->dropped();
  }
};

/// A buffer with more elements than any memory: the test writes its words, as append_buffer.hpp
/// lists them. No thread follows the addresses.
TEST(AppendBuffer, EndsBefore2To32Elements) {
  using layout = append_buffer<u8>::layout;
  std::vector<u64> words(sizeof(append_buffer<u8>) / sizeof(u64));
  words[0] = layout::elements - 2;
  words[2] = layout::count;
  for (u64 page = 0; page < layout::count; ++page) words[3 + page] = (page + 1) << 40;
  device_buffer<u64> const nearly_full{words}, places(4), dropped(1);
  launch({1, 1}, append_at_the_end{}, reinterpret_cast<append_buffer<u8>*>(nearly_full.data()), places.data(),
         dropped.data());
  synchronize();
  u64 const behind = (u64{layout::count} << 40) + layout::size_of(layout::count - 1);
  EXPECT_EQ(places.to_host(), (std::vector<u64>{behind - 2, behind - 1, 0, 0}));
  EXPECT_EQ(dropped[0], 2u);
}

/// Threads of a launch append to buffers of any heap.
template <class Heap>
std::string fault_on_heap(Heap const& memory) {
  appending<append_buffer<entry>> round{5, {3, 70}};
  auto fault = round.fault_of_round(memory.ref());
  if (fault.empty() && round[0].dropped() != 0) fault = "a page was refused";
  round.destroy_all(memory.ref());
  if constexpr (requires { memory.statistics(); })
    if (fault.empty() && memory.statistics().live_blocks != 0) fault = "pages were not freed";
  return fault;
}

TEST(AppendBuffer, TakesPagesFromAnyHeap) {
  EXPECT_EQ(fault_on_heap(heap{16_MiB}), "");
  EXPECT_EQ(fault_on_heap(scatter_heap{16_MiB}), "");
  EXPECT_EQ(fault_on_heap(halloc_heap{16_MiB}), "");
  EXPECT_EQ(fault_on_heap(throughput_heap{16_MiB}), "");
  EXPECT_EQ(fault_on_heap(rw_malloc_heap{16_MiB}), "");
  EXPECT_EQ(fault_on_heap(checked<heap>{16_MiB}), "");
}

TEST(AppendBuffer, IsAsLargeAsItsDirectory) {
  EXPECT_EQ(sizeof(append_buffer<entry>), 440u);
  EXPECT_EQ(sizeof(append_buffer<u8, append_buffer_config{.first_page = 4096}>), 328u);
}

struct add_up_appended {
  WARPHEAP_DEVICE void operator()(append_buffer<u32> const* buffers, u64* sum) const {
    u64 const threads = u64{simt::grid_dim()} * simt::block_dim();
    buffers->for_each(global_thread_index(), threads,
                      [&](u32 each) { atomic_ref<u64>{*sum}.fetch_add(each, order::relaxed); });
  }
};

/// A buffer of more elements the later the step: every third of a thread's numbers up to the step.
struct append_in_step {
  WARPHEAP_DEVICE void operator()(heap_ref heap, append_buffer<u32>* to, u32* step) const {
    for (u32 i = 0; i <= *step % 7; ++i) to->append(heap, static_cast<u32>(global_thread_index()));
  }
};
struct begin_step {
  WARPHEAP_DEVICE void operator()(u32* step) const { ++*step; }
};

TEST(AppendBuffer, IsClearedFilledAndUsedInAGraph) {
  constexpr u32 steps = 1000, threads = 80;
  heap const memory{1_MiB};
  device_buffer<append_buffer<u32>> const one(1);
  device_buffer<u64> const sum(1);
  device_buffer<u32> const step(1);
  replay_steps(steps, [&](stream_view on) {
    launch(on, {1, 1}, begin_step{}, step.data());
    clear(one.data(), 1, on);
    launch(on, {2, 40}, append_in_step{}, memory.ref(), one.data(), step.data());
    launch(on, {1, 33}, add_up_appended{}, static_cast<append_buffer<u32> const*>(one.data()), sum.data());
  });
  u64 rounds = 0;
  for (u32 each = 1; each <= steps; ++each) rounds += each % 7 + 1;
  EXPECT_EQ(sum[0], rounds * (threads * (threads - 1) / 2));
  EXPECT_EQ(one[0].size(), threads * (steps % 7 + 1));
  destroy(memory.ref(), one.data(), 1);
  synchronize();
  EXPECT_EQ(memory.statistics().live_blocks, 0u);
}

}  // namespace
