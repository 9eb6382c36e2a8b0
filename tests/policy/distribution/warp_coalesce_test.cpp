// SPDX-License-Identifier: Apache-2.0
// What the conformance suite does not cover of warp_coalesce: that requests are combined, when a
// block comes back, what happens when there is room for sub-blocks but not for all together, what
// misuse it notices, and what its memory costs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "support/schedules.hpp"
#include "warpheap/all.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/util/random.hpp"

namespace warp_coalesce_test {

using namespace warpheap;
using namespace warpheap::literals;

template <class Creation = creation::slab_bitmap<>, class Distribution = distribution::warp_coalesce>
using coalesced =
    allocator<Creation, Distribution, oom::return_null, reserve_pool::device_memory, alignment::shrink<16>>;
using coalesced_heap = basic_heap<coalesced<>>;

constexpr u64 largest = distribution::warp_coalesce::most_combined;
static_assert(largest == 4096 / 32 - 16);

/// Every thread asks with the whole of its warp, which has the lanes of its thread block alone.
struct ask_as_a_warp {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 const* bytes, void** blocks) const {
    u64 const i = global_thread_index();
    blocks[i] = heap.malloc_warp(lanes_before(simt::block_dim()), bytes[i]);
  }
};

/// Threads [first, last) free their block, in whatever groups they are active.
struct free_range {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, void* const* blocks, u64 first, u64 last) const {
    u64 const i = global_thread_index();
    if (i >= first && i < last) heap.free(blocks[i]);
  }
};

template <class Heap>
u64 created_blocks(Heap const& heap) {
  return heap.ref().creation().snapshot().statistics().live_blocks;
}

/// What 32 lanes a warp got for these sizes.
template <class Heap>
device_buffer<void*> ask(Heap const& heap, std::vector<u64> const& bytes) {
  device_buffer<u64> const sizes{bytes};
  device_buffer<void*> blocks(bytes.size());
  launch({static_cast<u32>(bytes.size() / 32), 32}, ask_as_a_warp{}, heap.ref(), static_cast<u64 const*>(sizes.data()),
         blocks.data());
  synchronize();
  return blocks;
}

template <class Heap>
void free_some(Heap const& heap, device_buffer<void*> const& blocks, u64 first, u64 last) {
  launch({static_cast<u32>(blocks.size() / 32), 32}, free_range{}, heap.ref(), static_cast<void* const*>(blocks.data()),
         first, last);
  synchronize();
}

template <class Heap>
void expect_sound(Heap const& heap, u64 live) {
  EXPECT_EQ(heap.statistics().live_blocks, live);
  EXPECT_THAT(heap.check_invariants(), testing::IsEmpty());
}

TEST(WarpCoalesce, AsksOnceForAWholeWarp) {
  test::for_each_schedule(50, [] {
    coalesced_heap const heap{1_MiB};
    std::vector<u64> bytes(32);
    u64 asked = 0;
    for (u64 i = 0; i < 32; ++i) asked += align_up(bytes[i] = 1 + i * 7 % largest, 16);
    auto const blocks = ask(heap, bytes);
    EXPECT_EQ(created_blocks(heap), 1u);
    EXPECT_EQ(heap.statistics().live_bytes, asked);
    expect_sound(heap, 32);
  });
}

TEST(WarpCoalesce, LeavesLargeRequestsAndNoneOutOfIt) {
  test::for_each_schedule(50, [] {
    coalesced_heap const heap{1_MiB};
    std::vector<u64> bytes(32, 64);
    bytes[0] = bytes[31] = 0;
    bytes[5] = largest + 1;
    bytes[6] = 5000;
    auto const blocks = ask(heap, bytes).to_host();
    EXPECT_EQ(created_blocks(heap), 3u) << "two large ones, and one for all that are small";
    for (u64 i = 0; i < 32; ++i) EXPECT_EQ(blocks[i] != nullptr, bytes[i] != 0);
    expect_sound(heap, 30);
  });
}

// coalesce.P2
TEST(WarpCoalesce, GivesTheBlockBackWithItsLastPart) {
  test::for_each_schedule(200, [] {
    coalesced_heap const heap{1_MiB};
    auto const blocks = ask(heap, std::vector<u64>(64, 40));
    EXPECT_EQ(created_blocks(heap), 2u);
    free_some(heap, blocks, 1, 32);
    EXPECT_EQ(created_blocks(heap), 2u) << "lane 0 of the first warp has its sub-block";
    expect_sound(heap, 33);
    free_some(heap, blocks, 0, 40);  // lanes 1 to 31 free theirs a second time
    EXPECT_EQ(created_blocks(heap), 1u);
    expect_sound(heap, 24);
    free_some(heap, blocks, 40, 64);
    EXPECT_EQ(created_blocks(heap), 0u);
    expect_sound(heap, 0);
  });
}

/// One thread fills the heap with blocks of `bytes`, and frees the first `back` of every `each`.
struct fill_and_thin_out {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 bytes, void** blocks, u64 each, u64 back, u64* live) const {
    u64 count = 0, freed = 0;
    while ((blocks[count] = heap.malloc(bytes))) ++count;
    for (u64 i = 0; i < count && freed < back; i += each, ++freed) heap.free(blocks[i]);
    *live = count - freed;
  }
};

TEST(WarpCoalesce, ServesEachAloneWhenThereIsNoRoomForAll) {
  test::for_each_schedule(30, [] {
    coalesced_heap const heap{1_MiB};
    device_buffer<void*> const held(8192 + 1);
    device_buffer<u64> const live(1);
    // Every slab serves blocks of 128 bytes now, and 40 of those are free: none that is larger.
    launch({1, 1}, fill_and_thin_out{}, heap.ref(), u64{112}, held.data(), u64{97}, u64{40}, live.data());
    synchronize();
    ASSERT_GT(live[0], 7000u);
    EXPECT_EQ(heap.available_slots(2000), 0u);
    auto const got = ask(heap, std::vector<u64>(64, 100)).to_host();
    EXPECT_EQ(std::count(got.begin(), got.end(), nullptr), 64 - 40);
    expect_sound(heap, live[0] + 40);
  });
}

/// What one thread finds out about freed blocks, and about addresses that never were one.
struct misuse_probe {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, void* const* blocks, u64* seen) const {
    auto* const block = static_cast<u8*>(blocks[3]);
    seen[0] = heap.usable_size(block) == 48 && heap.owns(block);
    heap.free(block + 16);
    heap.free(block - 16);
    heap.free(block + 1);
    seen[1] = heap.usable_size(block + 16) + heap.owns(block - 16) + heap.usable_size(nullptr) + heap.owns(nullptr);
    heap.free(&seen);
    heap.free(reinterpret_cast<void*>(16));
    seen[2] = heap.usable_size(&seen) + heap.owns(reinterpret_cast<void*>(16));
    heap.free(block);
    heap.free(block);
    seen[3] = heap.usable_size(block) + heap.owns(block);
  }
};

/// Frees an address outside the pool, right before it, and one that is no pointer.
struct free_foreign {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u8* before_the_pool, u64* seen) const {
    heap.free(before_the_pool);
    heap.free(reinterpret_cast<void*>(u64{4096}));
    seen[0] = heap.owns(before_the_pool) + heap.usable_size(before_the_pool);
    heap.free(heap.malloc(48));
  }
};

constexpr creation::random_walk_config pages{.page_bytes = 4096};

template <class Creation>
class WarpCoalesceOver : public testing::Test {};
using creations =
    testing::Types<creation::slab_bitmap<>, creation::scatter<>, creation::ring_buffer<>, creation::tbuddy<>,
                   creation::throughput<>, creation::rw_malloc<>, creation::random_walk<pages>>;
TYPED_TEST_SUITE(WarpCoalesceOver, creations, );

TYPED_TEST(WarpCoalesceOver, CountsFreesOfAddressesOutsideThePool) {
  basic_heap<coalesced<TypeParam>> const heap{8_MiB};
  auto* const pool = static_cast<u8*>(heap.memory().front().begin);
  device_buffer<u64> const seen(1);
  launch({1, 1}, free_foreign{}, heap.ref(), pool - 16, seen.data());
  synchronize();
  EXPECT_EQ(heap.statistics().foreign_frees, 2u);
  EXPECT_EQ(seen[0], 0u);
  expect_sound(heap, 0);
}

// coalesce.P1, coalesce.P3
TEST(WarpCoalesce, IgnoresASecondFreeAndWhatStartsNoPart) {
  test::for_each_schedule(50, [] {
    coalesced_heap const heap{1_MiB};
    auto const blocks = ask(heap, std::vector<u64>(32, 48));
    device_buffer<u64> const seen(4);
    launch({1, 1}, misuse_probe{}, heap.ref(), static_cast<void* const*>(blocks.data()), seen.data());
    synchronize();
    EXPECT_THAT(seen.to_host(), testing::ElementsAre(1, 0, 0, 0));
    EXPECT_EQ(heap.statistics().foreign_frees, 2u) << "those outside the pool are counted";
    expect_sound(heap, 31);
    free_some(heap, blocks, 0, 32);
    EXPECT_EQ(created_blocks(heap), 0u);
    expect_sound(heap, 0);
  });
}

/// Every thread frees every block.
struct free_all_by_all {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, void* const* blocks, u64 count) const {
    for (u64 i = 0; i < count; ++i) heap.free(blocks[i]);
  }
};

TEST(WarpCoalesce, CountsAPartOnceHoweverManyFreeIt) {
  test::for_each_schedule(200, [] {
    coalesced_heap const heap{1_MiB};
    auto const blocks = ask(heap, std::vector<u64>(32, 48));
    launch({2, 40}, free_all_by_all{}, heap.ref(), static_cast<void* const*>(blocks.data()), u64{31});
    synchronize();
    EXPECT_EQ(created_blocks(heap), 1u) << "lane 31's sub-block is live";
    expect_sound(heap, 1);
    launch({2, 40}, free_all_by_all{}, heap.ref(), static_cast<void* const*>(blocks.data()), u64{32});
    synchronize();
    EXPECT_EQ(heap.statistics().double_frees, 0u) << "the block went back once";
    EXPECT_EQ(created_blocks(heap), 0u);
  });
}

struct align_each {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64** blocks, u64* right) const {
    u64 const i = global_thread_index(), alignment = u64{1} << i % 13;
    auto* const block = static_cast<u64*>(heap.aligned_alloc(alignment, 8 * (i + 1)));
    blocks[i] = block;
    if (!block) return;
    for (u64 word = 0; word <= i; ++word) block[word] = i;
    bool const good = reinterpret_cast<u64>(block) % alignment == 0 && heap.usable_size(block) >= 8 * (i + 1);
    if (good && heap.owns(block)) atomic_ref<u64>{*right}.fetch_add(1, order::relaxed);
    if (i % 2) heap.free(block);
  }
};

// coalesce.P4
TEST(WarpCoalesce, ListsPartsWhereverTheyStartInTheirBlock) {
  test::for_each_schedule(50, [] {
    coalesced_heap const heap{2_MiB};
    device_buffer<u64*> const blocks(39);
    device_buffer<u64> const right(1);
    launch({1, 39}, align_each{}, heap.ref(), blocks.data(), right.data());
    synchronize();
    EXPECT_EQ(right[0], 39u);
    std::map<u64, u64> wanted, listed;
    auto const all = blocks.to_host();
    for (u64 i = 0; i < 39; i += 2) wanted[reinterpret_cast<u64>(all[i])] = align_up(8 * (i + 1), 16);
    u64 last = 0;
    heap.for_each_live([&](void* memory, size_t bytes) {
      EXPECT_GT(reinterpret_cast<u64>(memory), last);
      listed[last = reinterpret_cast<u64>(memory)] = bytes;
    });
    EXPECT_EQ(listed, wanted);
    expect_sound(heap, 20);
  });
}

/// In rounds: takes a sub-block, checks that the word that belongs to its place is as the last
/// owner left it, and frees the sub-block.
struct pass_on {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 rounds, u64 bytes, u64* words, u64 count, u64* raised) const {
    u64 mine = 0;
    for (u64 round = 0; round < rounds; ++round) {
      void* const memory = heap.malloc(bytes);
      if (!memory) continue;
      u64& word = words[reinterpret_cast<u64>(memory) / 16 % count];
      // relaxed: the heap alone orders owners; that is the claim.
      u64 const seen = atomic_ref<u64>{word}.load(order::relaxed);
      atomic_ref<u64>{word}.store(seen + 1, order::relaxed);
      ++mine;
      heap.free(memory);
    }
    atomic_ref<u64>{*raised}.fetch_add(mine, order::relaxed);
  }
};

TEST(WarpCoalesce, OrdersEveryPartsOwnerBeforeTheBlocksNext) {
  test::for_each_schedule(400, [] {
    coalesced_heap const heap{1_MiB};
    device_buffer<u64> const words(1_MiB / 16 * 2), raised(1);
    launch({3, 40}, pass_on{}, heap.ref(), u64{6}, largest, words.data(), u64{words.size()}, raised.data());
    synchronize();
    u64 sum = 0;
    for (u64 const word : words.to_host()) sum += word;
    EXPECT_EQ(raised[0], 3u * 40 * 6);
    EXPECT_EQ(sum, raised[0]);
    EXPECT_EQ(created_blocks(heap), 0u);
    expect_sound(heap, 0);
  });
}

/// What docs/design/warp_coalesce.md says: a warp's block of n (16 + b) bytes, rounded up to its
/// class, for one live sub-block.
TEST(WarpCoalesce, HoldsAWholeBlockForItsLastPart) {
  for (u64 const bytes : {16, 48, 64, 112}) {
    coalesced_heap const heap{8_MiB};
    constexpr u64 warps = 8;
    auto const blocks = ask(heap, std::vector<u64>(32 * warps, bytes));
    u64 const created = class_bytes(size_class_of(32 * (16 + bytes)));
    for (u64 live = 32; live >= 1; live /= 2) {
      EXPECT_EQ(heap.statistics().live_bytes, warps * live * bytes);
      EXPECT_EQ(heap.ref().creation().snapshot().statistics().live_bytes, warps * created)
          << live << " of 32 sub-blocks are live";
      for (u64 warp = 0; warp < warps; ++warp)
        free_some(heap, blocks, 32 * warp + live / 2 + (live == 1 ? 1 : 0), 32 * warp + live);
    }
    expect_sound(heap, warps);
  }
}

/// Lanes of one warp call at one place with two heaps.
struct alternate {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap even, Heap odd, u64* wrong) const {
    u64 const i = global_thread_index();
    Heap const mine = i % 2 ? odd : even, other = i % 2 ? even : odd;
    void* blocks[3];
    for (u64 round = 0; round < 3; ++round) {
      blocks[round] = mine.malloc(10 + 40 * round);
      if (!mine.owns(blocks[round]) || other.owns(blocks[round])) atomic_ref<u64>{*wrong}.fetch_add(1, order::relaxed);
    }
    for (auto* const block : blocks) mine.free(block);
  }
};

template <class Heap>
void expect_heaps_told_apart() {
  test::for_each_schedule(200, [] {
    Heap const even{1_MiB}, odd{1_MiB};
    device_buffer<u64> const wrong(1);
    launch({2, 33}, alternate{}, even.ref(), odd.ref(), wrong.data());
    synchronize();
    EXPECT_EQ(wrong[0], 0u);
    for (auto const* heap : {&even, &odd}) {
      EXPECT_EQ(heap->statistics().double_frees + heap->statistics().foreign_frees, 0u);
      expect_sound(*heap, 0);
    }
  });
}

TEST(WarpCoalesce, TellsHeapsApart) { expect_heaps_told_apart<basic_heap<coalesced<creation::slab_bitmap<>>>>(); }

TEST(SlabBitmap, TellsHeapsApart) { expect_heaps_told_apart<heap>(); }
TEST(Scatter, TellsHeapsApart) { expect_heaps_told_apart<scatter_heap>(); }
TEST(RingBuffer, TellsHeapsApart) { expect_heaps_told_apart<ring_buffer_heap>(); }
TEST(Tbuddy, TellsHeapsApart) { expect_heaps_told_apart<tbuddy_heap>(); }

constexpr distribution::warp_coalesce_config large_pages{.page_bytes = 65536};

TEST(WarpCoalesce, CombinesWhatFitsItsPage) {
  test::for_each_schedule(20, [] {
    basic_heap<coalesced<creation::slab_bitmap<>, distribution::basic_warp_coalesce<large_pages>>> const heap{4_MiB};
    std::vector<u64> bytes(32);
    for (u64 i = 0; i < 32; ++i) bytes[i] = 2032 - 61 * i;
    auto const blocks = ask(heap, bytes);
    EXPECT_EQ(created_blocks(heap), 1u);
    expect_sound(heap, 32);
    bytes.assign(32, 2033);
    auto const alone = ask(heap, bytes);
    EXPECT_EQ(created_blocks(heap), 33u);
  });
}

}  // namespace warp_coalesce_test
