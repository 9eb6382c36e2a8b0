// SPDX-License-Identifier: Apache-2.0
// Shared memory belongs to one thread block: an object for each place in the source, and the bytes
// that the launch gives.
#include "warpheap/platform/shared_memory.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "support/schedules.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace shared_memory_test {

using namespace warpheap;

/// Reverses the elements of each thread block through a tile, and adds what another tile of the
/// same type, at another place, has: nothing if the two are apart.
struct reverse_in_tiles {
  WARPHEAP_DEVICE void operator()(u32* elements) const {
    u32 const thread = simt::thread_index(), mine = simt::block_index() * 64 + thread;
    WARPHEAP_SHARED(tile, u32[8][9]);
    WARPHEAP_SHARED(zeros, u32[8][9]);
    tile[thread / 8][thread % 8] = elements[mine];
    zeros[thread / 8][thread % 8] = 0;
    simt::sync_block();
    u32 const from = 63 - thread;
    elements[mine] = tile[from / 8][from % 8] + zeros[from / 8][from % 8];
  }
};

TEST(SharedMemory, IsAnObjectForEachThreadBlockAndPlaceInTheSource) {
  test::for_each_schedule(32, [] {
    std::vector<u32> numbers(6 * 64);
    std::iota(numbers.begin(), numbers.end(), 1u);
    device_buffer<u32> const elements{numbers};
    launch({6, 64}, reverse_in_tiles{}, elements.data());
    auto const made = elements.to_host();
    for (u32 i = 0; i < numbers.size(); ++i) ASSERT_EQ(made[i], numbers[i / 64 * 64 + 63 - i % 64]) << i;
  });
}

/// One object, wherever the call is from.
WARPHEAP_DEVICE inline u32& number_of_function() {
  WARPHEAP_SHARED(number, u32);
  return number;
}

/// Counts the threads, half of them by one call and half by another.
struct count_threads {
  WARPHEAP_DEVICE void operator()(u32* counted) const {
    u32 const thread = simt::thread_index();
    if (thread == 0) number_of_function() = 0;
    simt::sync_block();
    // NOLINTNEXTLINE(misc-redundant-expression): two places that call
    atomic_ref<u32, scope::block> const number{thread % 2 == 0 ? number_of_function() : number_of_function()};
    number.fetch_add(1, order::relaxed);
    simt::sync_block();
    if (thread == 5) counted[simt::block_index()] = number.load(order::relaxed);
  }
};

TEST(SharedMemory, OfAFunctionIsTheSameForAllItsCalls) {
  test::for_each_schedule(32, [] {
    device_buffer<u32> const counted(5);
    launch({5, 75}, count_threads{}, counted.data());
    EXPECT_EQ(counted.to_host(), std::vector<u32>(5, 75));
  });
}

/// A histogram of `bins` bins, by atomics of block scope in dynamic memory.
struct count_in_bins {
  WARPHEAP_DEVICE void operator()(u32 const* keys, u32* bins, u32* sizes) const {
    auto const local = dynamic_shared<u32>();
    u32 const thread = simt::thread_index();
    for (u32 i = thread; i < local.size(); i += simt::block_dim()) local[i] = 0;
    simt::sync_block();
    atomic_ref<u32, scope::block>{local[keys[global_thread_index()] % local.size()]}.fetch_add(1, order::relaxed);
    simt::sync_block();
    for (u32 i = thread; i < local.size(); i += simt::block_dim())
      atomic_ref<u32>{bins[i]}.fetch_add(local[i], order::relaxed);
    if (thread == 0) sizes[simt::block_index()] = local.size();
  }
};

TEST(SharedMemory, HasTheDynamicBytesOfTheLaunch) {
  for (u32 const size : {1u, 7u, 33u, 20'000u}) {
    test::for_each_schedule(size < 100 ? 16 : 4, [size] {
      std::vector<u32> keys(4 * 96);
      std::iota(keys.begin(), keys.end(), 0u);
      device_buffer<u32> const on_device{keys}, bins(size), sizes(4);
      launch({.blocks = 4, .threads = 96, .shared_bytes = 4 * size}, count_in_bins{}, on_device.data(), bins.data(),
             sizes.data());
      EXPECT_EQ(sizes.to_host(), std::vector<u32>(4, size));
      auto const made = bins.to_host();
      for (u32 i = 0; i < size; ++i)
        ASSERT_EQ(made[i], std::count_if(keys.begin(), keys.end(), [&](u32 key) { return key % size == i; })) << i;
    });
  }
}

struct find_two_parts {
  WARPHEAP_DEVICE void operator()(u64* sizes) const {
    auto const floats = dynamic_shared<float>();
    auto const wide = dynamic_shared<u64>(16);
    sizes[0] = floats.size();
    sizes[1] = wide.size();
    sizes[2] = static_cast<u64>(reinterpret_cast<u8*>(wide.data()) - reinterpret_cast<u8*>(floats.data()));
    sizes[3] = static_cast<u64>(wide.end() - wide.begin());
  }
};

TEST(SharedMemory, IsCutIntoPartsByOffsets) {
  device_buffer<u64> const sizes(4);
  launch({.shared_bytes = 44}, find_two_parts{}, sizes.data());
  EXPECT_EQ(sizes.to_host(), (std::vector<u64>{11, 3, 16, 3}));
}

/// The first lane passes a number on by a flag; both lie in shared memory.
template <order Store, order Load>
struct pass_a_number {
  WARPHEAP_DEVICE void operator()(u32* stale) const {
    WARPHEAP_SHARED(words, u32[2]);
    atomic_ref<u32, scope::block> const number{words[0]}, flag{words[1]};
    if (simt::thread_index() == 0) {
      number.store(0, order::relaxed);
      flag.store(0, order::relaxed);
    }
    simt::sync_block();
    if (simt::thread_index() == 0) {
      number.store(7, order::relaxed);
      flag.store(1, Store);
    } else if (flag.load(Load) == 1 && number.load(order::relaxed) != 7) {
      atomic_ref<u32>{*stale}.fetch_add(1, order::relaxed);
    }
  }
};

TEST(SharedMemory, HasTheMemoryModelOfBlockScope) {
  u32 stale_without_orders = 0;
  test::for_each_schedule(300, [&] {
    device_buffer<u32> const stale(2);
    launch({3, 33}, pass_a_number<order::release, order::acquire>{}, stale.data());
    EXPECT_EQ(stale[0], 0u);
    launch({3, 33}, pass_a_number<order::relaxed, order::relaxed>{}, stale.data() + 1);
    stale_without_orders += stale[1];
  });
  // Elsewhere memory is as strong as the machine's.
#if !defined(__CUDACC__) && !defined(__SANITIZE_THREAD__)
  EXPECT_GT(stale_without_orders, 0u);
#endif
}

TEST(SharedMemory, OrExtentsThatThereCannotBeAreRefusedAtTheLaunch) {
  device_buffer<u64> const sizes(4);
  for (launch_shape const shape :
       {launch_shape{.threads = 12, .block_extent = {5, 2}}, launch_shape{.blocks = 3, .grid_extent = {0, 3}},
        launch_shape{.shared_bytes = 1u << 20}})
    EXPECT_ANY_THROW(launch(shape, find_two_parts{}, sizes.data()));
  launch({.shared_bytes = 44}, find_two_parts{}, sizes.data());
  EXPECT_EQ(sizes[0], 11u) << "and then the next one works";
}

}  // namespace shared_memory_test
