// SPDX-License-Identifier: Apache-2.0
// Copies shared by the active lanes: every lane's own bytes arrive, and no neighbouring byte is
// touched.
#include "warpheap/heap/warp_copy.hpp"

#include <gtest/gtest.h>

#include "support/schedules.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/util/random.hpp"

namespace warp_copy_test {

using namespace warpheap;

/// Room of one lane: what it copies, and bytes behind that must stay.
constexpr u64 room = 4096 + 64;

/// Lane t copies or zeroes bytes[t] bytes; with `divergent` set, lanes of three kinds from three
/// places.
template <size_t Alignment>
struct copy_or_zero {
  WARPHEAP_DEVICE void operator()(u8* to, u8 const* from, u64 const* bytes, bool zeroes, bool divergent) const {
    u64 const t = global_thread_index();
    u64 const kind = divergent ? mix(t) % 3 : 0;
    if (kind == 2) return;
    if (kind == 1) {
      for (u32 i = 0; i < simt::lane_id() % 4; ++i) simt::pause(10);
      run(to + t * room, from + t * room, bytes[t], zeroes);
    } else {
      run(to + t * room, from + t * room, bytes[t], zeroes);
    }
  }

  WARPHEAP_DEVICE static void run(u8* to, u8 const* from, u64 bytes, bool zeroes) {
    if (zeroes) warp_fill_zero<Alignment>(to, bytes);
    else warp_copy<Alignment>(to, from, bytes);
  }
};

/// From and to addresses that are aligned to `Alignment` and no more.
template <size_t Alignment>
void expect_copies(launch_shape shape, bool zeroes, bool divergent, u64 seed) {
  u64 const threads = u64{shape.blocks} * shape.threads;
  constexpr u64 sizes[] = {0, 1, 15, 16, 17, 255, 256, 257, 300, 1000, 1024, 4095, 4096};
  random_sequence random{seed};
  std::vector<u64> bytes(threads);
  for (auto& size : bytes) size = sizes[random.below(13)];
  constexpr u64 shift = Alignment % 16;
  std::vector<u8> source(threads * room + shift), before(threads * room + shift, 0xee);
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<u8>(1 + i % 253);
  device_buffer<u8> const from{source}, to{before};
  device_buffer<u64> const device_bytes{bytes};
  launch(shape, copy_or_zero<Alignment>{}, to.data() + shift, static_cast<u8 const*>(from.data()) + shift,
         static_cast<u64 const*>(device_bytes.data()), zeroes, divergent);
  synchronize();
  auto const after = to.to_host();
  for (u64 t = 0; t < threads; ++t) {
    u64 const moved = divergent && mix(t) % 3 == 2 ? 0 : bytes[t];
    for (u64 i = t * room; i < (t + 1) * room; ++i) {
      u8 const made = zeroes ? 0 : source[i + shift], wanted = i - t * room < moved ? made : 0xee;
      ASSERT_EQ(after[i + shift], wanted) << "thread " << t << " of " << moved << " bytes, at " << i - t * room;
    }
  }
}

TEST(WarpCopy, MovesEachLanesBytesAndNoOthers) {
  test::for_each_schedule(20, [&] {
    u64 const seed = test::schedule_seed() + 1;
    for (launch_shape const shape : {launch_shape{1, 32}, launch_shape{1, 1}, launch_shape{2, 45}})
      for (bool const divergent : {false, true}) {
        expect_copies<16>(shape, false, divergent, seed);
        expect_copies<8>(shape, false, divergent, seed);
      }
  });
}

TEST(WarpCopy, ZeroesEachLanesBytesAndNoOthers) {
  test::for_each_schedule(20, [&] {
    u64 const seed = test::schedule_seed() + 1;
    for (launch_shape const shape : {launch_shape{1, 32}, launch_shape{1, 31}})
      for (bool const divergent : {false, true}) {
        expect_copies<16>(shape, true, divergent, seed);
        expect_copies<8>(shape, true, divergent, seed);
      }
  });
}

}  // namespace warp_copy_test
