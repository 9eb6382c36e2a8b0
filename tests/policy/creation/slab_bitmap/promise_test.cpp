// SPDX-License-Identifier: Apache-2.0
// nullptr means that no suitable block stayed free during the whole call (slab.N1). So a block that
// no other lane touches is found, whatever others do beside the scan, and on a heap at rest the
// answer is exact.
#include <algorithm>
#include <vector>

#include "pool_fixture.hpp"

namespace slab_bitmap_promise_test {

using namespace warpheap;
using namespace slab_bitmap_parts;

constexpr size_t slab_bytes = test::tiny_pool::slab_bytes;

/// One lane takes blocks until it is refused.
struct take_until_refused {
  WARPHEAP_DEVICE void operator()(test::slab_allocator heap, u64 bytes, u32 most, void** blocks, u32* count) const {
    *count = 0;
    while (void* const block = heap.create(bytes)) {
      if (*count < most) blocks[*count] = block;
      ++*count;
    }
  }
};

/// Takes all blocks of `bytes` that there are. There must be `expected`.
std::vector<void*> take_all(test::tiny_pool const& pool, u64 bytes, u32 expected) {
  device_buffer<void*> const blocks(expected + 1);
  device_buffer<u32> const count(1);
  launch({1, 1}, take_until_refused{}, pool.allocator(), bytes, expected, blocks.data(), count.data());
  synchronize();
  EXPECT_EQ(count[0], expected) << "blocks of " << bytes << " bytes";
  auto taken = blocks.to_host();
  taken.resize(expected);
  return taken;
}

/// Thread 0 asks once, after a wait of its own, for `bytes`; all others churn on blocks of `others`
/// bytes.
struct ask_beside_churn {
  WARPHEAP_DEVICE void operator()(test::slab_allocator heap, u64 bytes, u64 others, u64 seed, void** got) const {
    random_sequence random{seed * 64 + global_thread_index()};
    for (u32 wait = random.below(30); wait != 0; --wait) simt::pause(1);
    if (global_thread_index() == 0) {
      *got = heap.create(bytes);
      return;
    }
    for (u32 round = 0; round < 4; ++round) {
      heap.destroy(heap.create(others));
      for (u32 wait = random.below(4); wait != 0; --wait) simt::pause(1);
    }
  }
};

/// Thread blocks and threads by the seed, from the first `shapes_used` shapes.
void* ask_beside(test::tiny_pool const& pool, u64 bytes, u64 others, u32 shapes_used = 5) {
  constexpr launch_shape shapes[] = {{4, 1}, {2, 2}, {1, 4}, {2, 33}, {1, 31}};
  device_buffer<void*> const got(1);
  u64 const seed = test::schedule_seed();
  launch(shapes[seed % shapes_used], ask_beside_churn{}, pool.allocator(), bytes, others, seed, got.data());
  synchronize();
  return got[0];
}

// The churning lanes are refused, and make over-reservations at the full slabs that are active.
TEST(SlabBitmapPromise, TheOneFreeBlockIsFoundBesideThoseWhoAreRefused) {
  for (u64 const others : {64u, 1024u, 40000u}) {
    test::for_each_schedule(400, [&] {
      test::tiny_pool const pool{2};
      auto const blocks = take_all(pool, slab_bytes / 2, 4);
      void* const free = blocks[test::schedule_seed() % 4];
      test::release(pool, std::vector<void*>{free});
      EXPECT_EQ(ask_beside(pool, slab_bytes / 2, others), free);
    });
  }
}

// The churning lanes have a slab of their own, with room for ten times as many.
TEST(SlabBitmapPromise, TheOneFreeSlabIsFoundBesideChurn) {
  for (u64 const bytes : {u64{64}, u64{1000}, u64{slab_bytes}}) {
    test::for_each_schedule(400, [&] {
      test::tiny_pool const pool{3};
      auto const small = test::allocate(pool, {1, 1}, 512);
      auto const full = take_all(pool, slab_bytes, 2);
      test::release(pool, std::vector<void*>{full[test::schedule_seed() % 2]});
      EXPECT_NE(ask_beside(pool, bytes, 512, 3), nullptr);
    });
  }
}

// Others take runs of the slabs around it, and give them back.
TEST(SlabBitmapPromise, TheOneFreeRunIsFoundBesideOtherRuns) {
  test::for_each_schedule(400, [&] {
    test::tiny_pool const pool{7};
    auto slabs = take_all(pool, slab_bytes, 7);
    std::sort(slabs.begin(), slabs.end());
    // Three slabs for the others, and two for the one, with a slab between them.
    test::release(pool, std::vector<void*>{slabs[0], slabs[1], slabs[2], slabs[4], slabs[5]});
    EXPECT_NE(ask_beside(pool, 2 * slab_bytes, 3 * slab_bytes), nullptr);
  });
}

TEST(SlabBitmapPromise, AtRestTheAnswerIsExact) {
  for (u64 const bytes : {16u, 48u, 1000u, 4096u, 8192u, 16384u}) {
    test::tiny_pool const pool{3};
    u32 const most = 3 * pool.allocator().geometry().capacity(size_class_of(bytes));
    auto const blocks = take_all(pool, bytes, most);
    std::vector<void*> freed;
    for (u32 i = 0; i < most; i += 3) freed.push_back(blocks[i]);
    test::release(pool, freed);
    take_all(pool, bytes, static_cast<u32>(freed.size()));
  }
}

/// Asks once while `reserved` blocks of the slab of `block` are reserved without an owner.
struct ask_behind_reservations {
  WARPHEAP_DEVICE void operator()(test::slab_allocator heap, u64 bytes, void* block, u32 reserved, void** got) const {
    u32 const slab = static_cast<u32>((static_cast<u8*>(block) - heap.table().pool()) >> heap.geometry().slab_log2());
    heap.table().reserve(slab, reserved);
    *got = heap.create(bytes);
    heap.table().release(slab, reserved);
  }
};

// Counts hold reservations that will be released. So a slab that is full by count, however far, may
// have a free block.
TEST(SlabBitmapPromise, AFreeBlockBehindReservationsIsFound) {
  for (u64 const bytes : {16u, 1000u, 4096u, 8192u, 16384u})
    for (u32 const reserved : {1u, 2u, 31u, 500u}) {
      test::tiny_pool const pool{2};
      u32 const most = 2 * pool.allocator().geometry().capacity(size_class_of(bytes));
      auto const blocks = take_all(pool, bytes, most);
      test::release(pool, std::vector<void*>{blocks[most / 3]});
      device_buffer<void*> const got(1);
      launch({1, 1}, ask_behind_reservations{}, pool.allocator(), bytes, blocks[most / 3], reserved, got.data());
      synchronize();
      EXPECT_EQ(got[0], blocks[most / 3]) << bytes << " bytes, " << reserved << " reserved";
      pool.expect_quiet(most);
    }
}

// Lanes of a group look at words of their own. Lanes that are served leave, and the words that were
// theirs must still be looked at. A slab of which one block of sixteen is free is in no list: only
// the scan finds it.
TEST(SlabBitmapPromise, AGroupFindsBlocksThatLieInManyWordsOfTheIndex) {
  constexpr u32 slabs = 640, blocks_a_slab = 16;
  for (u32 const lanes : {2u, 5u, 31u, 32u}) {
    test::for_each_schedule(lanes < 32 ? 12 : 16, [&] {
      test::tiny_pool const pool{slabs};
      auto blocks = take_all(pool, slab_bytes / blocks_a_slab, blocks_a_slab * slabs);
      std::sort(blocks.begin(), blocks.end());
      std::vector<void*> freed;
      for (u32 i = 0; i < lanes; ++i)
        freed.push_back(blocks[blocks_a_slab * ((test::schedule_seed() * 77 + i * 119) % slabs) + i % blocks_a_slab]);
      test::release(pool, freed);
      auto got = test::allocate(pool, {1, lanes}, slab_bytes / blocks_a_slab);
      std::sort(freed.begin(), freed.end());
      std::sort(got.begin(), got.end());
      EXPECT_EQ(got, freed);
    });
  }
}

// A slab that is empty, of another class, is in no list either. It serves four lanes of the group.
TEST(SlabBitmapPromise, AGroupFindsSlabsThatLieInManyWordsOfTheIndex) {
  constexpr u32 slabs = 640, blocks_a_slab = 4;
  for (u32 const found : {1u, 2u, 3u, 8u}) {
    test::for_each_schedule(8, [&] {
      test::tiny_pool const pool{slabs};
      auto blocks = take_all(pool, slab_bytes, slabs);
      std::sort(blocks.begin(), blocks.end());
      std::vector<void*> freed;
      for (u32 i = 0; i < found; ++i) freed.push_back(blocks[(test::schedule_seed() * 77 + i * 119) % slabs]);
      test::release(pool, freed);
      auto const got = test::allocate(pool, {1, blocks_a_slab * found}, slab_bytes / blocks_a_slab);
      EXPECT_EQ(std::count(got.begin(), got.end(), nullptr), 0) << found << " slabs";
      pool.expect_quiet(slabs - found + blocks_a_slab * found);
    });
  }
}

/// Lane 0 takes and frees the one block of a slab again and again; the others ask for a slab, and
/// give it back.
struct empty_a_slab_beside_scans {
  WARPHEAP_DEVICE void operator()(test::slab_allocator heap, u32 rounds) const {
    u64 const bytes = global_thread_index() == 0 ? 64 : heap.geometry().slab_bytes();
    for (u32 round = 0; round < rounds; ++round) heap.destroy(heap.create(bytes));
  }
};

// A scan clears the index bit of a slab that is in use again, while the slab becomes empty once
// more (slab.I2, slab.I3).
TEST(SlabBitmapPromise, ASlabThatEmptiesBesideAScanIsThereAfterwards) {
  for (launch_shape const shape : {launch_shape{2, 2}, {3, 1}, {1, 4}})
    test::for_each_schedule(700, [&] {
      test::tiny_pool const pool{1};
      launch(shape, empty_a_slab_beside_scans{}, pool.allocator(), 8u);
      synchronize();
      pool.expect_empty();
      EXPECT_EQ(test::allocate(pool, {1, 1}, slab_bytes).size(), 1u);
    });
}

/// Every lane fills and empties places of its own, in a heap that holds much less.
struct churn_at_the_brim {
  WARPHEAP_DEVICE void operator()(test::slab_allocator heap, u32 rounds, u64 seed) const {
    random_sequence random{seed * 100003 + global_thread_index()};
    void* held[4] = {};
    for (u32 i = 0; i < rounds; ++i) {
      u32 const place = random.below(4);
      if (held[place]) {
        heap.destroy(held[place]);
        held[place] = nullptr;
      } else {
        held[place] = heap.create(4096 + random.below(4096));
      }
    }
    for (auto const block : held) heap.destroy(block);
  }
};

// A slab is marked full, unmarked, and marked again, with as many blocks reserved each time. A free
// that saw the first mark must not lift the second one, for which the slab's bit in the index was
// cleared (slab.D5, slab.I1).
TEST(SlabBitmapPromise, ASlabThatIsMarkedFullAgainKeepsItsMark) {
  test::for_each_schedule(300, [&] {
    test::tiny_pool const pool{6};
    launch({2, 33}, churn_at_the_brim{}, pool.allocator(), 30u, test::schedule_seed());
    synchronize();
    pool.expect_empty();
  });
}

/// Reserves blocks of slab 0 without an owner, or releases them, and makes it the active slab of
/// its class.
struct hold_reservations {
  WARPHEAP_DEVICE void operator()(test::slab_allocator heap, u32 size_class, u32 blocks, bool releases) const {
    if (releases) return heap.table().release(0, blocks);
    heap.table().reserve(0, blocks);
    heap.table().set_active(heap.table().cache_entry(size_class, 0), 0);
  }
};

/// Two lanes of the first warp ask together. A lane of the second looks at the slab as a scan
/// does that sees it full by count, only for longer: it marks the slab full if it has seen each bit
/// set.
struct ask_for_two_beside_a_long_look {
  WARPHEAP_DEVICE void operator()(test::slab_allocator heap, u64 bytes, void** got) const {
    if (simt::block_index() == 0) {
      got[simt::lane_id()] = heap.create(bytes);
    } else if (simt::lane_id() == 0) {
      u32 const capacity = heap.geometry().capacity(size_class_of(bytes)), words = capacity / 64, most_looks = 100;
      slab_state seen = heap.table().newest(0);
      for (u32 look = 0; seen.used() != capacity && look < most_looks; ++look) seen = heap.table().newest(0);
      u32 word = 0;
      for (u32 look = 0; word < words && look < most_looks; ++look)
        if (~heap.table().blocks(0).load_newest(word, order::relaxed) == 0) ++word;
      if (seen.used() == capacity && word == words) heap.table().mark_full(0, seen);
    }
  }
};

// A group found one block where it wanted two, gave that one back, and took two others. A thread
// that looked meanwhile saw each block of the slab taken, although one was free all the time except
// for a moment. Now the group keeps what it has claimed.
TEST(SlabBitmapPromise, ABlockThatWasTakenForAMomentIsNoReasonToMarkItsSlabFull) {
  u64 const bytes = 64;
  u32 const size_class = size_class_of(bytes);
  test::for_each_schedule(4000, [&] {
    test::tiny_pool const pool{1};
    u32 const capacity = pool.allocator().geometry().capacity(size_class);
    auto blocks = take_all(pool, bytes, capacity);
    std::sort(blocks.begin(), blocks.end());
    test::release(pool, std::vector<void*>{blocks[3], blocks[64 + 7], blocks[128 + 60]});
    launch({1, 1}, hold_reservations{}, pool.allocator(), size_class, 1u, false);
    device_buffer<void*> const got(2);
    launch({2, 2}, ask_for_two_beside_a_long_look{}, pool.allocator(), bytes, got.data());
    launch({1, 1}, hold_reservations{}, pool.allocator(), size_class, 1u, true);
    synchronize();
    u32 const served = (got[0] != nullptr) + (got[1] != nullptr);
    EXPECT_EQ(served, 2u);
    pool.expect_quiet(capacity - 3 + served);
  });
}

}  // namespace slab_bitmap_promise_test
