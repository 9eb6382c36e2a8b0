// SPDX-License-Identifier: Apache-2.0
// ring_buffer over a handful of frames: a full buffer is reported to every lane that meets it, a
// frame has one owner at a time whatever is freed, and geometries at their limits.
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "support/schedules.hpp"
#include "warpheap/all.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace warpheap::test { namespace {

constexpr creation::ring_buffer_config small_frames{.frame_bytes = 64};
using frames_of_64 = creation::ring_buffer<small_frames>;

/// Owns the memory of a ring_buffer of `frames` frames.
template <class Ring, size_t FrameBytes>
class tiny_ring {
 public:
  explicit tiny_ring(u32 frames)
      : memory_{Ring::required_bytes(frames * FrameBytes)}, ring_{Ring::place(memory_.data(), frames * FrameBytes)} {
    ring_.initialize({});
    synchronize();
  }

  Ring const& ring() const { return ring_; }

  void expect_sound(u64 live) const {
    for (auto const& line : ring_.snapshot().check_invariants()) ADD_FAILURE() << line;
    EXPECT_EQ(ring_.snapshot().statistics().live_blocks, live);
  }

 private:
  device_buffer<u8> memory_;
  Ring ring_;
};

struct ask_each {
  template <class Ring>
  WARPHEAP_DEVICE void operator()(Ring ring, void** got, u64 bytes) const {
    got[global_thread_index()] = ring.create(bytes);
  }
};

struct free_each {
  template <class Ring>
  WARPHEAP_DEVICE void operator()(Ring ring, void** got) const {
    ring.destroy(got[global_thread_index()]);
  }
};

// The original's buffer told only the next worker that it was full.
// ring_buffer.F2
TEST(RingBuffer, TellsEveryWorkerThatItIsFull) {
  for_each_schedule(300, [&] {
    for (u32 const frames : {1u, 20u, 63u, 64u, 65u, 95u}) {
      tiny_ring<frames_of_64, 64> const made{frames};
      device_buffer<void*> first(96), second(96);
      launch({2, 48}, ask_each{}, made.ring(), first.data(), u64{64});
      launch({2, 48}, ask_each{}, made.ring(), second.data(), u64{1});
      synchronize();
      auto got = first.to_host();
      std::sort(got.begin(), got.end());
      EXPECT_EQ(std::count(got.begin(), got.end(), nullptr), 96 - frames);
      EXPECT_EQ(std::adjacent_find(got.begin() + (96 - frames), got.end()), got.end()) << "a frame has two owners";
      for (void* const late : second.to_host()) EXPECT_EQ(late, nullptr);
      EXPECT_EQ(made.ring().snapshot().statistics().failures, 2u * 96 - frames);
      made.expect_sound(frames);
      launch({2, 48}, free_each{}, made.ring(), first.data());
      synchronize();
      made.expect_sound(0);
      EXPECT_EQ(count_slots_by_grid(made.ring(), 64), frames);
    }
  });
}

/// In every round the first lane of each warp takes a frame, and all lanes free it.
struct free_frames_by_all {
  template <class Ring>
  WARPHEAP_DEVICE void operator()(Ring ring, u32 rounds, void** shared) const {
    void*& taken = shared[simt::warp_id()];
    for (u32 round = 0; round < rounds; ++round) {
      if (simt::lane_id() == 0) taken = ring.create(64);
      simt::sync_warp(full_mask);
      ring.destroy(taken);
      simt::sync_warp(full_mask);
    }
  }
};

// ring_buffer.F1
TEST(RingBuffer, PutsAFrameThatAWholeWarpFreesIntoTheRingOnce) {
  constexpr u32 rounds = 4, warps = 3;
  for_each_schedule(200, [&] {
    // Enough frames that none is handed out again while it is still being freed.
    tiny_ring<frames_of_64, 64> const made{warps * rounds};
    device_buffer<void*> shared(warps);
    launch({1, 32 * warps}, free_frames_by_all{}, made.ring(), rounds, shared.data());
    synchronize();
    EXPECT_EQ(made.ring().snapshot().statistics().double_frees, 31u * warps * rounds);
    EXPECT_EQ(made.ring().snapshot().statistics().failures, 0u);
    made.expect_sound(0);
  });
}

TEST(RingBuffer, RefusesWhatIsLargerThanAFrame) {
  tiny_ring<frames_of_64, 64> const made{4};
  device_buffer<void*> got(2);
  for (u64 const bytes : {u64{0}, u64{65}, u64{1} << 32, ~u64{0}}) {
    launch({1, 2}, ask_each{}, made.ring(), got.data(), bytes);
    synchronize();
    EXPECT_EQ(got[0], nullptr) << bytes;
    EXPECT_EQ(count_slots_by_grid(made.ring(), bytes), 0u) << bytes;
  }
  EXPECT_EQ(made.ring().snapshot().statistics().failures, 6u) << "no bytes are no failure";
  made.expect_sound(0);
}

constexpr creation::ring_buffer_config odd_frames{.frame_bytes = 48};
constexpr creation::ring_buffer_config large_frames{.frame_bytes = 65536};
static_assert(creation::ring_buffer<>::traits.self_aligned_up_to == 4096);
static_assert(creation::ring_buffer<odd_frames>::traits.self_aligned_up_to == 16);
static_assert(creation::ring_buffer<large_frames>::traits.self_aligned_up_to == 4096);
static_assert(creation::ring_buffer<large_frames>::traits.largest_bytes == 65536);
static_assert(sizeof(creation::ring_buffer<>) == 16);

TEST(RingBuffer, TakesPoolsOfOneToABillionFrames) {
  using frames_of_8192 = creation::ring_buffer<>;
  EXPECT_THROW(frames_of_8192::required_bytes(8191), std::invalid_argument);
  EXPECT_THROW(frames_of_64::required_bytes((size_t{1} << 36) + 64), std::invalid_argument);
  EXPECT_GT(frames_of_64::required_bytes(size_t{1} << 36), size_t{1} << 36);
  // The whole of the largest GPUs, and what a ring adds to it.
  size_t const large = size_t{141} << 30;
  EXPECT_LT(frames_of_8192::required_bytes(large), large + large / 500);
  tiny_ring<frames_of_8192, 8192> const one{1};
  EXPECT_EQ(count_slots_by_grid(one.ring(), 8192), 1u);
  one.expect_sound(0);
}

TEST(RingBuffer, IsAHeapLikeOthers) {
  ring_buffer_heap const heap{(size_t{1} << 20) + 5000};
  EXPECT_EQ(heap.available_slots(1), 128u);
  EXPECT_NE(heap.info().find("creation ring_buffer"), std::string::npos);
  EXPECT_THROW(ring_buffer_heap{1000}, std::invalid_argument);
}

}}  // namespace warpheap::test
