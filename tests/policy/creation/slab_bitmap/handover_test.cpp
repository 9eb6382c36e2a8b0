// SPDX-License-Identifier: Apache-2.0
// Pointers that reach the lane that frees them by a shuffle or a relaxed mailbox, which orders
// nothing. So that lane's first look at a slab may be older than the block. Only a model with stale
// reads, as the host backend's, shows it.
#include <warpheap/util/random.hpp>

#include "pool_fixture.hpp"

namespace slab_bitmap_handover_test {

using namespace warpheap;
using test::tiny_pool;

/// What receivers saw of blocks that were theirs.
struct verdicts {
  u32 received, disowned;
};

WARPHEAP_DEVICE void receive(test::slab_allocator heap, void* block, u64 bytes, verdicts* seen) {
  if (!heap.owns(block) || heap.usable_size(block) < bytes)
    atomic_ref<u32>{seen->disowned}.fetch_add(1, order::relaxed);
  atomic_ref<u32>{seen->received}.fetch_add(1, order::relaxed);
  heap.destroy(block);
}

/// Lane 0 asks and lane 1 frees.
struct by_shuffle {
  WARPHEAP_DEVICE void operator()(test::slab_allocator heap, u64 bytes, u64*, verdicts* seen) const {
    void* const block = simt::lane_id() == 0 ? heap.create(bytes) : nullptr;
    void* const received = simt::shuffle(3u, block, 0);
    if (simt::lane_id() == 1) receive(heap, received, bytes, seen);
  }
};

/// One thread block asks and another frees.
struct by_mailbox {
  WARPHEAP_DEVICE void operator()(test::slab_allocator heap, u64 bytes, u64* mail, verdicts* seen) const {
    atomic_ref<u64> const box{*mail};
    if (simt::lane_id() != 0) return;
    if (simt::block_index() == 0) return box.store(reinterpret_cast<u64>(heap.create(bytes)), order::relaxed);
    u64 received = 0;
    while ((received = box.load(order::relaxed)) == 0) simt::pause(1);
    receive(heap, reinterpret_cast<void*>(received), bytes, seen);
  }
};

template <class Body>
void expect_arrives(launch_shape shape, Body body) {
  for (u64 const bytes : {16u, 1024u, 16384u, 40000u}) {
    test::for_each_schedule(100, [&] {
      tiny_pool const pool{4};
      device_buffer<u64> const mail(1);
      device_buffer<verdicts> const seen(1);
      launch(shape, body, pool.allocator(), bytes, mail.data(), seen.data());
      synchronize();
      EXPECT_EQ(seen[0].received, 1u);
      EXPECT_EQ(seen[0].disowned, 0u);
      pool.expect_empty();
    });
  }
}

TEST(SlabBitmapHandover, FreesWhatCameByAShuffle) { expect_arrives({1, 2}, by_shuffle{}); }
TEST(SlabBitmapHandover, FreesWhatCameByARelaxedMailbox) { expect_arrives({2, 2}, by_mailbox{}); }

/// The only slab changes class from 64 to 256 bytes for the first eight lanes, and the ninth frees
/// the block at `place`: by the old class that would be another block. At the same time an owner
/// frees its own block.
struct by_shuffle_from_a_recycled_slab {
  static constexpr u32 owners = 8;

  WARPHEAP_DEVICE void operator()(test::slab_allocator heap, u64 place, void** freed) const {
    constexpr u32 all = low_mask(owners + 1);
    u32 const lane = simt::lane_id();
    if (lane == 0) heap.destroy(heap.create(64));
    simt::ballot(all, true);
    void* block = lane < owners ? heap.create(256) : nullptr;
    u32 const giver = lowest_bit(simt::ballot(all, block == heap.table().pool() + place));
    void* const given = simt::shuffle(all, block, giver);
    if (lane == owners) block = given;
    else if (lane != (giver + 1) % owners) block = nullptr;
    heap.destroy(block);
    if (block) freed[lane == owners] = block;
  }
};

TEST(SlabBitmapHandover, TakesNoOtherBlockOfARecycledSlab) {
  using body = by_shuffle_from_a_recycled_slab;
  for (u64 const place : {256u, 0u}) {
    test::for_each_schedule(300, [&] {
      tiny_pool const pool{1};
      device_buffer<void*> const freed(2);
      launch({1, body::owners + 1}, body{}, pool.allocator(), place, freed.data());
      synchronize();
      ASSERT_NE(freed[1], nullptr);
      pool.expect_quiet(body::owners - 2);
      pool.allocator().snapshot().for_each_live(
          [&](void const* block, size_t) { EXPECT_TRUE(block != freed[0] && block != freed[1]); });
    });
  }
}

/// Lane 0 fills a slab with blocks of 256 bytes, and gives it the header that it would have had
/// with blocks of 64 before. Then it frees its second block, and by the old header clears the bit
/// of the fifth, which lane 1 takes if it comes in time.
struct free_by_an_old_header {
  static constexpr u32 blocks = tiny_pool::slab_bytes / 256;

  WARPHEAP_DEVICE void operator()(test::slab_allocator heap, u32* stolen) const {
    auto const table = heap.table();
    u64 const fifth = u64{1} << 4;
    if (simt::lane_id() == 0)
      for (u32 i = 0; i < blocks; ++i) heap.create(256);
    simt::sync_warp(3);
    u64 const now = table.header(0).load(order::relaxed);
    simt::sync_warp(3);
    if (simt::lane_id() == 0) {
      table.header(0).store(test::slab_header::of_class(size_class_of(64)).word, order::relaxed);
      heap.destroy(table.pool() + 256);
      table.header(0).store(now, order::relaxed);
    } else {
      table.reserve(0, 1);
      for (u32 turn = 0; turn < 40 && *stolen == 0; ++turn)
        if (table.blocks(0).try_claim(0, fifth, order::acquire) != 0) *stolen = 1;
      if (*stolen == 0) table.release(0, 1);
    }
  }
};

// slab.F3: the bit cannot be set again if another thread has claimed the block; then that thread's
// reservation counts, and not the free's.
TEST(SlabBitmapHandover, CountsABlockOnceThatWasTakenBeforeItsBitIsSetAgain) {
  u32 taken = 0;
  test::for_each_schedule(300, [&] {
    tiny_pool const pool{1};
    device_buffer<u32> const stolen(1);
    launch({1, 2}, free_by_an_old_header{}, pool.allocator(), stolen.data());
    synchronize();
    taken += stolen[0];
    pool.expect_quiet(free_by_an_old_header::blocks - 1);
  });
  EXPECT_TRUE(test::on_gpu || taken > 0);
}

/// One lane fills a slab with blocks of 256 bytes, and frees by the header of blocks of 64 what
/// starts no block now: by that header the bit is that of another block.
struct misuse_an_old_header {
  WARPHEAP_DEVICE void operator()(test::slab_allocator heap) const {
    auto const table = heap.table();
    for (u32 i = 0; i < free_by_an_old_header::blocks; ++i) heap.create(256);
    u64 const now = table.header(0).load(order::relaxed);
    table.header(0).store(test::slab_header::of_class(size_class_of(64)).word, order::relaxed);
    heap.destroy(table.pool() + 5 * 64);
    table.header(0).store(now, order::relaxed);
  }
};

TEST(SlabBitmapHandover, GivesBackWhatAMisuseTookByAnOldHeader) {
  tiny_pool const pool{1};
  launch({1, 1}, misuse_an_old_header{}, pool.allocator());
  synchronize();
  pool.expect_quiet(free_by_an_old_header::blocks, 1);
}

/// Slabs go from blocks of `before` bytes to blocks of `bytes`, and the ninth lane asks how large
/// the one at `place` in its slab is, which another lane owns.
struct ask_about_a_recycled_slab {
  static constexpr u32 owners = 8;

  WARPHEAP_DEVICE void operator()(test::slab_allocator heap, u64 before, u64 bytes, u64 place, u64* usable) const {
    constexpr u32 all = low_mask(owners + 1);
    u32 const lane = simt::lane_id();
    if (lane == 0) heap.destroy(heap.create(before));
    simt::ballot(all, true);
    void* const block = lane < owners ? heap.create(bytes) : nullptr;
    u64 const offset = reinterpret_cast<u64>(block) - reinterpret_cast<u64>(heap.table().pool());
    u32 const giver = lowest_bit(simt::ballot(all, block && offset % tiny_pool::slab_bytes == place));
    void* const given = simt::shuffle(all, block, giver);
    if (lane == owners) *usable = heap.usable_size(given);
  }
};

// By the header that a slab had before, another block's bit, or a run, would be taken for the
// owner's block: too small, and then realloc moves it, or too large, and it is resized over its
// neighbours. slab.F4
TEST(SlabBitmapHandover, KnowsTheSizeOfABlockInARecycledSlab) {
  struct change {
    u64 before, bytes, place;
  };
  for (change const each : {change{64, 256, 256},
                            {256, 64, 256},
                            {256, 64, 0},
                            {1024, 16, 0},
                            {32768, 64, 0},
                            {64, 32768, 0},
                            {16400, 16384, 0}}) {
    SCOPED_TRACE(testing::Message() << "from " << each.before << " to " << each.bytes << " bytes, at " << each.place);
    test::for_each_schedule(200, [&] {
      tiny_pool const pool{each.before <= tiny_pool::slab_bytes && each.bytes <= tiny_pool::slab_bytes ? 1u : 2u};
      device_buffer<u64> const usable(1);
      launch({1, ask_about_a_recycled_slab::owners + 1}, ask_about_a_recycled_slab{}, pool.allocator(), each.before,
             each.bytes, each.place, usable.data());
      synchronize();
      EXPECT_EQ(usable[0], each.bytes);
    });
  }
}

/// Every lane takes blocks of drawn sizes one after the other, and says when one is its own.
struct own_in_turn {
  WARPHEAP_DEVICE void operator()(test::slab_allocator heap, u64 const* sizes, u32 count, u32 rounds, u64 seed,
                                  u32* served) const {
    random_sequence random{seed * 1000 + global_thread_index()};
    for (u32 round = 0; round < rounds; ++round) {
      u64 const bytes = sizes[random.below(count)];
      void* const block = heap.create(bytes);
      if (!block) continue;
      contents::acquire(block, bytes);
      atomic_ref<u32>{*served}.fetch_add(1, order::relaxed);
      test::pause_for(random.below(3));
      contents::release(block, bytes);
      heap.destroy(block);
    }
  }
};

// What an owner did to its block happens before the next owner of any part of it has it.
TEST(SlabBitmapHandover, WhatAnOwnerDidIsThereForTheNextOne) {
  std::vector<std::vector<u64>> const mixes{
      {8192}, {16384}, {32768}, {64, 16384}, {1024, 40000}, {16384, 32768}, {48, 3000, 8192, 20000}};
  u32 served = 0;
  for (auto const& sizes : mixes)
    for (launch_shape const shape : {launch_shape{3, 1}, {2, 3}})
      test::for_each_schedule(60, [&] {
        tiny_pool const pool{3};
        device_buffer<u64> const list{sizes};
        device_buffer<u32> const count(1);
        launch(shape, own_in_turn{}, pool.allocator(), static_cast<u64 const*>(list.data()),
               static_cast<u32>(sizes.size()), 8u, test::schedule_seed(), count.data());
        synchronize();
        served += count[0];
        pool.expect_empty();
      });
  EXPECT_GT(served, 0u);
}

/// One lane frees a run of two slabs, and asks for one of three, which is at the same place.
/// Another has looked at the first, and frees the second.
struct run_by_mailbox {
  WARPHEAP_DEVICE void operator()(test::slab_allocator heap, u64* mail) const {
    if (simt::lane_id() == 0) {
      void* const first = heap.create(2 * tiny_pool::slab_bytes);
      put(mail[0], first);
      take(mail[1]);
      heap.destroy(first);
      put(mail[2], heap.create(3 * tiny_pool::slab_bytes));
    } else {
      void* const first = take(mail[0]);
      if (heap.usable_size(first) == 2 * tiny_pool::slab_bytes) put(mail[1], first);
      heap.destroy(take(mail[2]));
    }
  }

 private:
  WARPHEAP_DEVICE static void put(u64& box, void* block) {
    atomic_ref<u64>{box}.store(reinterpret_cast<u64>(block), order::relaxed);
  }
  WARPHEAP_DEVICE static void* take(u64& box) {
    u64 taken = 0;
    while ((taken = atomic_ref<u64>{box}.load(order::relaxed)) == 0) simt::pause(1);
    return reinterpret_cast<void*>(taken);
  }
};

// slab.F1: a run is freed by its newest length, whatever the freeing lane saw there before.
TEST(SlabBitmapHandover, FreesARunOfAnotherLengthThanTheLastOneThere) {
  test::for_each_schedule(2000, [] {
    tiny_pool const pool{3};
    device_buffer<u64> const mail(3);
    launch({1, 2}, run_by_mailbox{}, pool.allocator(), mail.data());
    synchronize();
    pool.expect_empty();
  });
}

/// Every lane asks for a small block or a run, and frees what its neighbour asked for, all at once.
struct by_neighbours {
  WARPHEAP_DEVICE void operator()(test::slab_allocator heap, u32 rounds, u64 seed) const {
    lane_mask const all = lanes_before(simt::block_dim());
    random_sequence random{seed * 1000 + global_thread_index()};
    for (u32 round = 0; round < rounds; ++round) {
      void* const block = heap.create(random.below(3) == 0 ? 20000 : 512);
      heap.destroy(simt::shuffle(all, block, (simt::lane_id() + 1) % simt::block_dim()));
    }
  }
};

TEST(SlabBitmapHandover, LosesNothingOfWhatNeighboursFree) {
  for (u32 const lanes : {2u, 5u, warp_lanes}) {
    test::for_each_schedule(lanes == warp_lanes ? 60 : 300, [&] {
      tiny_pool const pool{4};
      launch({2, lanes}, by_neighbours{}, pool.allocator(), 10u, test::schedule_seed());
      synchronize();
      pool.expect_empty();
    });
  }
}

}  // namespace slab_bitmap_handover_test
