// SPDX-License-Identifier: Apache-2.0
// Pointers that reach the lane that frees them in ways that order nothing, and in one that does.
#pragma once

#include <string>

#include "quiet_pool_fixture.hpp"

namespace warpheap::test {

/// How a pointer reaches the lane that frees it.
enum class hand_over { by_shuffle, by_shuffle_and_barrier, by_relaxed_mailbox, by_release_and_acquire };

/// Kernel: one lane asks, another frees: of its warp, or of another thread block. `mailbox` is 0.
struct frees_what_another_got {
  hand_over how;
  u64 bytes;
  bool asks_size;  ///< first, after which the lane knows what is newest

  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, u64* mailbox, u64* usable) const {
    u32 const lane = simt::lane_id();
    // The more lanes there are, the older the values that a lane may read.
    if (lane > 1) return pause_for(300);
    if (how == hand_over::by_shuffle || how == hand_over::by_shuffle_and_barrier) {
      void* block = lane == 0 ? heap.create(bytes) : nullptr;
      if (how == hand_over::by_shuffle_and_barrier) simt::sync_warp(3);
      block = simt::shuffle(3, block, 0);
      if (lane == 1) end(heap, block, usable);
      return;
    }
    bool const ordered = how == hand_over::by_release_and_acquire;
    atomic_ref<u64> const box{*mailbox};
    if (lane != 0) return;
    // release, acquire: pair with each other; relaxed: the case under test.
    if (simt::block_index() == 0)
      return box.store(reinterpret_cast<u64>(heap.create(bytes)), ordered ? order::release : order::relaxed);
    u64 block;
    while ((block = box.load(ordered ? order::acquire : order::relaxed)) == 0) simt::pause(1);
    end(heap, reinterpret_cast<void*>(block), usable);
  }

  template <class Allocator>
  WARPHEAP_DEVICE void end(Allocator heap, void* block, u64* usable) const {
    if (asks_size) *usable = heap.usable_size(block);
    heap.destroy(block);
  }
};

/// Expects that the size of blocks of `bytes` that another lane got is known, and that they can be
/// freed, whichever way they came.
template <class MakePool>
void expect_frees_what_came(unsigned seeds, MakePool make_pool, u64 bytes) {
  for (auto const how : {hand_over::by_shuffle, hand_over::by_shuffle_and_barrier, hand_over::by_relaxed_mailbox,
                         hand_over::by_release_and_acquire}) {
    SCOPED_TRACE(std::to_string(bytes) + " bytes, way " + std::to_string(static_cast<int>(how)));
    bool const in_warp = how == hand_over::by_shuffle || how == hand_over::by_shuffle_and_barrier;
    for (bool const asks_size : {false, true})
      for_each_schedule(seeds, [&] {
        auto const pool = make_pool();
        device_buffer<u64> const mailbox(1), usable(1);
        launch({in_warp ? 1u : 2u, 24}, frees_what_another_got{how, bytes, asks_size}, pool.allocator(), mailbox.data(),
               usable.data());
        synchronize();
        EXPECT_EQ(usable[0] >= bytes, asks_size);
        pool.expect_quiet(0);
      });
  }
}

}  // namespace warpheap::test
