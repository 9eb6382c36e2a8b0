// SPDX-License-Identifier: Apache-2.0
// Arenas: blocks of all threads are disjoint and keep their contents, dropping gives every chunk
// back, and refusals leave the arena as it was.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/replay_steps.hpp"
#include "support/schedules.hpp"
#include "warpheap/adaptor/checked.hpp"
#include "warpheap/all.hpp"
#include "warpheap/container/arena.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/policy/creation/refuse_some.hpp"
#include "warpheap/util/random.hpp"

namespace arena_test {

using namespace warpheap;
using namespace warpheap::literals;

using small = arena<64>;
using wide = arena<256, 3>;
constexpr creation::refuse_some_config one_in_3{.seed = 5, .one_in = 3};

/// A block that a thread got.
struct block {
  u64 address, bytes;
};

/// Bytes of a thread's request `round`: mostly alike in a warp, at times larger than a chunk.
WARPHEAP_HOST_DEVICE inline u64 size_of(u64 seed, u64 thread, u32 round) {
  u64 const drawn = mix(seed ^ (thread << 8 | round));
  if (drawn % 16 == 0) return 1 + drawn / 16 % 700;
  return 8 + 8 * (thread % 3);
}

/// Kernel: each thread makes blocks in its thread block's arena and fills them.
struct make_blocks {
  template <class Heap, class Arena>
  WARPHEAP_DEVICE void operator()(Heap heap, Arena* arenas, u32 threads, u32 rounds, u64 seed, block* made) const {
    u64 const mine = global_thread_index();
    if (mine >= threads) return;
    arena_ref const from{heap, arenas[simt::block_index()]};
    for (u32 round = 0; round < rounds; ++round) {
      u64 const bytes = size_of(seed, mine, round);
      auto* const memory = static_cast<u8*>(from.malloc(bytes));
      for (u64 i = 0; memory && i < bytes; ++i) memory[i] = static_cast<u8>(mix(mine << 8 | round) >> 8);
      made[mine * rounds + round] = {reinterpret_cast<u64>(memory), bytes};
    }
  }
};

/// Kernel: counts the bytes of blocks that are not as they were filled.
struct look_at_blocks {
  WARPHEAP_DEVICE void operator()(block const* made, u32 threads, u32 rounds, u64* damaged) const {
    u64 const mine = global_thread_index();
    if (mine >= threads) return;
    for (u32 round = 0; round < rounds; ++round) {
      auto const& each = made[mine * rounds + round];
      for (u64 i = 0; each.address && i < each.bytes; ++i)
        if (reinterpret_cast<u8 const*>(each.address)[i] != static_cast<u8>(mix(mine << 8 | round) >> 8))
          atomic_ref<u64>{*damaged}.fetch_add(1, order::relaxed);
    }
  }
};

/// Blocks of an odd number of threads in the arenas of three thread blocks.
template <class Heap, class Arena>
struct job {
  static constexpr u32 blocks = 3, threads = 45, all = blocks * threads - 7, rounds = 4;

  explicit job(Heap const& over) : heap{over}, arenas(blocks), made(size_t{all} * rounds) {}

  void make(u64 seed) {
    launch({blocks, threads}, make_blocks{}, heap.ref(), arenas.data(), all, rounds, seed, made.data());
    device_buffer<u64> const damaged(1);
    launch({blocks, threads}, look_at_blocks{}, static_cast<block const*>(made.data()), all, rounds, damaged.data());
    synchronize();
    EXPECT_EQ(damaged[0], 0u);
  }

  /// Expects blocks that are disjoint and aligned; returns how many there are.
  u64 expect_disjoint() const {
    auto seen = made.to_host();
    std::erase_if(seen, [](block const& each) { return each.address == 0; });
    std::sort(seen.begin(), seen.end(), [](block const& a, block const& b) { return a.address < b.address; });
    for (size_t i = 0; i < seen.size(); ++i) {
      EXPECT_EQ(seen[i].address % 16, 0u);
      if (i > 0) {
        EXPECT_LE(seen[i - 1].address + seen[i - 1].bytes, seen[i].address);
      }
    }
    return seen.size();
  }

  void reset() { reset_arenas(stream_view{}, heap.ref(), arenas.data(), arenas.size()); }
  void drop() {
    drop_arenas(stream_view{}, heap.ref(), arenas.data(), arenas.size());
    synchronize();
  }

  Heap const& heap;
  device_buffer<Arena> arenas;
  device_buffer<block> made;
};

template <class Heap>
void expect_empty(Heap const& heap) {
  EXPECT_EQ(heap.statistics().live_blocks, 0u);
  for (auto const& violated : heap.check_invariants()) ADD_FAILURE() << violated;
}

template <class Arena>
void expect_serves_all() {
  warpheap::heap const heap{4_MiB};
  job<warpheap::heap, Arena> work{heap};
  for (u64 round = 0; round < 2; ++round) {  // again after drop()
    work.make(test::schedule_seed() + round);
    EXPECT_EQ(work.expect_disjoint(), u64{work.all} * work.rounds);
    work.reset();
    work.make(test::schedule_seed() + round);  // in chunks that it has
    EXPECT_EQ(work.expect_disjoint(), u64{work.all} * work.rounds);
    work.drop();
    expect_empty(heap);
  }
}

// arena.A1, arena.A4
TEST(Arena, ServesEveryThreadWithADisjointBlock) {
  test::for_each_schedule(60, [] { expect_serves_all<small>(); });
}

TEST(Arena, ServesEveryThreadFromRegions) {
  test::for_each_schedule(30, [] { expect_serves_all<wide>(); });
}

TEST(Arena, LosesNothingWhenTheHeapRefusesChunks) {
  using refusing = basic_heap<plain_allocator<creation::refuse_some<creation::slab_bitmap<>, one_in_3>>>;
  u64 served = 0, asked = 0;
  for (u32 run = 0; run < (test::on_gpu ? 20u : 1u); ++run)
    test::for_each_schedule(60, [&] {
      refusing const heap{4_MiB};
      job<refusing, small> work{heap};
      work.make(test::schedule_seed() + run);
      served += work.expect_disjoint();
      asked += u64{work.all} * work.rounds;
      work.drop();
      expect_empty(heap);
    });
  EXPECT_LT(served, asked);
  EXPECT_GT(served, asked / 2);
}

TEST(Arena, RefusesWhenTheHeapIsFullAndServesAfterDrop) {
  test::for_each_schedule(20, [] {
    warpheap::heap const heap{warpheap::heap::minimum_bytes};
    job<warpheap::heap, arena<1 << 16>> work{heap};
    u64 first = 0;
    for (u32 round = 0; round < 64; ++round) {
      work.make(round);
      first = work.expect_disjoint();
      if (first < u64{work.all} * work.rounds) break;
    }
    EXPECT_LT(first, u64{work.all} * work.rounds);
    work.drop();
    expect_empty(heap);
    work.make(1);
    EXPECT_GT(work.expect_disjoint(), 0u);
    work.drop();
  });
}

TEST(Arena, IsFilledResetAndDroppedInAGraph) {
  warpheap::heap const heap{4_MiB};
  using small_job = job<warpheap::heap, small>;
  constexpr launch_shape shape{small_job::blocks, small_job::threads};
  constexpr u32 all = small_job::all, rounds = small_job::rounds;
  small_job work{heap};
  device_buffer<u64> const damaged(1);
  test::replay_steps(test::on_gpu ? 300u : 10u, [&](stream_view on) {
    for (u32 round = 0; round < 2; ++round) {
      launch(on, shape, make_blocks{}, heap.ref(), work.arenas.data(), all, rounds, u64{round}, work.made.data());
      launch(on, shape, look_at_blocks{}, static_cast<block const*>(work.made.data()), all, rounds, damaged.data());
      if (round == 0) reset_arenas(on, heap.ref(), work.arenas.data(), work.arenas.size());
    }
    drop_arenas(on, heap.ref(), work.arenas.data(), work.arenas.size());
  });
  EXPECT_EQ(damaged[0], 0u);
  EXPECT_EQ(work.expect_disjoint(), u64{all} * rounds);
  expect_empty(heap);
}

/// Kernel: warps fill arenas of their own and drop them together, again and again.
struct pass_chunks_on {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, small* arenas, u64* served) const {
    u64 const warp = global_thread_index() / warp_lanes;
    arena_ref const mine{heap, arenas[warp]};
    for (u32 round = 0; round < 3; ++round) {
      auto* const memory = static_cast<u64*>(mine.malloc(64));
      if (memory) {
        contents::acquire(memory, 64);
        *memory = warp;
        contents::release(memory, 64);
        atomic_ref<u64>{*served}.fetch_add(1, order::relaxed);
      }
      mine.drop_warp(full_mask);
    }
  }
};

TEST(Arena, PassesItsChunksOnWithWhatAllLanesDid) {
  test::for_each_schedule(60, [] {
    warpheap::heap const heap{warpheap::heap::minimum_bytes};
    device_buffer<small> const arenas(4);
    device_buffer<u64> const served(1);
    launch({2, 2 * warp_lanes}, pass_chunks_on{}, heap.ref(), arenas.data(), served.data());
    synchronize();
    EXPECT_EQ(served[0], 3u * 4 * warp_lanes);
    expect_empty(heap);
  });
}

/// Kernel: one thread tries what is at the borders.
struct try_borders {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, small* state, u32* failed) const {
    using ref = arena_ref<Heap, 64>;
    ref const from{heap, *state};
    auto const expect = [&](bool holds, u32 which) {
      if (!holds) *failed |= 1u << which;
    };
    expect(from.malloc(0) == nullptr && from.bytes() == 0, 0);
    expect(from.malloc(~size_t{0}) == nullptr && from.malloc(ref::largest_bytes + 1) == nullptr, 1);
    expect(from.calloc(~size_t{0} / 2, 3) == nullptr, 2);
    auto* const first = static_cast<u8*>(from.malloc(1));
    auto* const second = static_cast<u8*>(from.malloc(1));
    expect(second == first + 16, 3);
    auto* const large = static_cast<u8*>(from.malloc(1000));
    expect(large != nullptr && from.bytes() == 64 + 1024, 4);
    // More is left of the first chunk than of the large one.
    expect(from.malloc(16) == first + 32, 5);
    auto const* const zeroed = static_cast<u8 const*>(from.calloc(300, 1));
    u32 sum = 0;
    for (u32 i = 0; i < 300; ++i) sum += zeroed[i];
    expect(sum == 0, 6);
    first[0] = 77;
    expect(from.realloc(first, 1, 16) == first, 7);
    auto const* const moved = static_cast<u8 const*>(from.realloc(first, 16, 100));
    expect(moved != first && moved[0] == 77 && first[0] == 77, 8);
    expect(from.realloc(first, 16, 0) == nullptr, 9);
    expect(reinterpret_cast<u64>(from.aligned_alloc(512, 40)) % 512 == 0, 10);
    expect(from.aligned_alloc(48, 16) == nullptr, 11);
    auto* const made = from.template make<u64>(77u);
    expect(*made == 77, 14);
    from.destroy(made);
    from.free(first);
    from.free(nullptr);
    u64 const held = from.bytes();
    from.reset();
    auto const* const last = static_cast<u8*>(from.malloc(16));
    expect(last != first && from.malloc(500) != nullptr && from.bytes() == held, 13);  // arena.A5
    from.drop();
    expect(from.bytes() == 0, 12);
    from.drop();  // empty
  }
};

TEST(Arena, AnswersAtTheBorders) {
  warpheap::heap const heap{4_MiB};
  device_buffer<small> const state(1);
  device_buffer<u32> const failed(1);
  launch({1, 1}, try_borders{}, heap.ref(), state.data(), failed.data());
  synchronize();
  EXPECT_EQ(failed[0], 0u);
  expect_empty(heap);
}

/// Kernel: a thread takes a million blocks of 64 bytes.
struct take_many {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, arena<>* state, u32 each, u64* taken) const {
    arena_ref const from{heap, *state};
    for (u32 i = 0; i < each; ++i)
      if (from.malloc(64)) atomic_ref<u64>{*taken}.fetch_add(1, order::relaxed);
    taken[1] = from.bytes();
  }
};

TEST(Arena, HoldsAtMostAThirdMoreThanItGave) {
  warpheap::heap const heap{64_MiB};
  device_buffer<arena<>> const state(1);
  for (u32 const blocks : {100u, 1'000u, 10'000u, 100'000u}) {
    device_buffer<u64> const taken(2);
    launch({1, 1}, take_many{}, heap.ref(), state.data(), blocks, taken.data());
    synchronize();
    EXPECT_EQ(taken[0], blocks);
    EXPECT_LE(taken[1], u64{blocks} * 64 * 3 / 2 + 4096);
    drop_arenas(stream_view{}, heap.ref(), state.data(), 1);
    synchronize();
  }
  expect_empty(heap);
}

/// Kernel: a thread writes to a block of an arena that is gone, and frees it.
struct use_after_drop {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, arena<>* state) const {
    arena_ref const from{heap, *state};
    auto* const memory = static_cast<u8*>(from.malloc(64));
    from.malloc(64);
    from.drop();
    memory[100] = 1;
    heap.free(memory + 64);
  }
};

TEST(Arena, IsReportedWhenUsedAfterDropOfACheckedHeap) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer ends the program at the access";
#else
  warpheap::checked<warpheap::heap> const heap{4_MiB};
  device_buffer<arena<>> const state(1);
  launch({1, 1}, use_after_drop{}, heap.ref(), state.data());
  synchronize();
  heap.check_blocks();
  std::string all;
  for (auto const& error : heap.reports()) all += error.describe() + "\n";
  EXPECT_EQ(heap.error_count(), 2u) << all;
  EXPECT_EQ(heap.error_count(memory_error::use_after_free), 1u) << all;
#endif
}

}  // namespace arena_test
