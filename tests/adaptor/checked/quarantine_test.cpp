// SPDX-License-Identifier: Apache-2.0
// The ring of freed blocks: each block goes back once, no more bytes are held than allowed, and
// when empty() returns, every block that was held before has gone back, by whichever lane.
#include "warpheap/adaptor/checked/quarantine.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "support/schedules.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace quarantine_test {

using namespace warpheap;
using checked_parts::quarantine;

constexpr u64 block_bytes = 16;

/// The upstream heap: how often each block went back, and whether what its owner wrote was there
/// then. Block i has the address 16 * (i + 1).
struct freed_blocks {
  u32* returned;
  u32* written = nullptr;
  u32* unseen = nullptr;

  WARPHEAP_DEVICE u64 operator()(void* address) const {
    // relaxed, in two steps: a block goes back once, and the ring orders what comes after.
    u64 const block = reinterpret_cast<u64>(address) / block_bytes - 1;
    atomic_ref<u32> const times{returned[block]};
    if (written && atomic_ref<u32>{written[block]}.load(order::relaxed) == 0)
      atomic_ref<u32>{*unseen}.fetch_add(1, order::relaxed);
    times.store(times.load(order::relaxed) + 1, order::relaxed);
    return block_bytes;
  }
};

WARPHEAP_HOST_DEVICE inline void* block(u32 i) { return reinterpret_cast<void*>(block_bytes * (i + 1)); }

/// Lane 0 frees blocks and tells the others, which empty the ring, all at once, and look whether
/// all blocks are back.
struct empty_together {
  WARPHEAP_DEVICE void operator()(quarantine* ring, u32* returned, u32 blocks, u32* done, u32* missing) const {
    atomic_ref<u32> const told{*done};
    if (simt::block_index() == 0) {
      for (u32 i = 0; i < blocks; ++i) ring->hold(block(i), block_bytes, freed_blocks{returned});
      // release: the frees come before; pairs with the acquire below.
      told.store(1, order::release);
      return;
    }
    while (told.load(order::acquire) == 0) simt::pause(1);
    ring->empty(freed_blocks{returned});
    for (u32 i = 0; i < blocks; ++i)
      if (atomic_ref<u32>{returned[i]}.load(order::relaxed) != 1)
        atomic_ref<u32>{*missing}.fetch_add(1, order::relaxed);
  }
};

TEST(Quarantine, IsEmptyForEveryLaneThatEmptiedIt) {
  for (u32 const slots : {1u, 2u, 5u})
    for (u32 const blocks : {1u, 3u, 9u})
      test::for_each_schedule(100, [&] {
        device_buffer<u64> const words(slots);
        device_buffer<quarantine> const ring(std::vector<quarantine>{{words.data(), slots, u64{1} << 40}});
        device_buffer<u32> const returned(blocks), done(1), missing(1);
        launch({4, 1}, empty_together{}, ring.data(), returned.data(), blocks, done.data(), missing.data());
        synchronize();
        EXPECT_EQ(missing[0], 0u) << slots << " slots, " << blocks << " blocks";
        EXPECT_EQ(words.to_host(), std::vector<u64>(slots));
      });
}

/// Every lane frees blocks of its own, and some empty the ring in between.
struct hold_and_empty {
  WARPHEAP_DEVICE void operator()(quarantine* ring, freed_blocks upstream, u32 blocks) const {
    u32 const me = static_cast<u32>(global_thread_index());
    for (u32 i = 0; i < blocks; ++i) {
      // relaxed: the ring orders it.
      atomic_ref<u32>{upstream.written[me * blocks + i]}.store(1, order::relaxed);
      ring->hold(block(me * blocks + i), block_bytes, upstream);
      if ((me + i) % 5 == 0) ring->empty(upstream);
    }
  }
};

struct empty_alone {
  WARPHEAP_DEVICE void operator()(quarantine* ring, u32* returned) const { ring->empty(freed_blocks{returned}); }
};

void expect_each_back_once(launch_shape shape, u32 slots, u32 most_blocks) {
  constexpr u32 blocks_a_lane = 4;
  u32 const lanes = shape.blocks * shape.threads, blocks = lanes * blocks_a_lane;
  device_buffer<u64> const words(slots);
  device_buffer<quarantine> const ring(std::vector<quarantine>{{words.data(), slots, most_blocks * block_bytes}});
  device_buffer<u32> const returned(blocks), written(blocks), unseen(1);
  freed_blocks const upstream{returned.data(), written.data(), unseen.data()};
  launch(shape, hold_and_empty{}, ring.data(), upstream, blocks_a_lane);
  synchronize();
  EXPECT_EQ(unseen[0], 0u) << "a block went back before its owner's writes";
  auto const back = returned.to_host();
  u32 held = 0;
  for (u64 const word : words.to_host()) {
    if (word == 0) continue;
    ++held;
    ASSERT_EQ(word % block_bytes, 0u) << "nobody is leaving";
    ASSERT_EQ(back[word / block_bytes - 1], 0u);
  }
  u32 returns = 0;
  for (u32 const times : back) {
    EXPECT_LE(times, 1u);
    returns += times;
  }
  EXPECT_EQ(returns + held, blocks);
  if (lanes == 1) {
    EXPECT_LE(held, most_blocks);
  }
  launch({1, 1}, empty_alone{}, ring.data(), returned.data());
  synchronize();
  for (u32 const times : returned.to_host()) EXPECT_EQ(times, 1u);
}

TEST(Quarantine, GivesEachBlockBackOnceAndHoldsNoMoreThanItMay) {
  for (u32 const slots : {1u, 3u, 16u})
    for (u32 const most_blocks : {1u, 2u, 100u})
      for (launch_shape const shape : {launch_shape{1, 1}, {3, 1}, {2, 4}})
        test::for_each_schedule(20, [&] { expect_each_back_once(shape, slots, most_blocks); });
}

}  // namespace quarantine_test
