// What misuse and hand-overs do to a heap: lanes that free blocks a second time while others ask
// and free, whole warps that free together what is no longer theirs, and pointers that reach
// another lane by a way that orders nothing.
#pragma once

#include <initializer_list>
#include <string>

#include "quiet_pool.hpp"

namespace warpheap::test {

/// Kernel: lanes ask and free, and after every free they free one of their last four blocks once
/// more, most of which are somebody else's by now.
struct frees_twice {
  u32 rounds;
  sizes_between sizes;
  u64 seed;

  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap) const {
    random_sequence random{seed * 1000 + static_cast<u32>(global_thread_index())};
    void* last[4] = {};
    for (u32 round = 0; round < rounds; ++round) {
      void* const block = heap.create(sizes.draw(random));
      wait(random.below(4));
      if (block) heap.destroy(block);
      last[round % 4] = block;
      wait(random.below(4));
      if (void* const stale = last[random.below(4)]) heap.destroy(stale);
    }
  }

  WARPHEAP_DEVICE static void wait(u32 turns) {
    for (; turns != 0; --turns) simt::pause(1);
  }
};

/// Kernel: every lane leaves its block on a board for all, and frees what lies at a place drawn by
/// its warp: all lanes of the warp one block, or neighbouring ones, two or three times over.
struct warps_free_twice {
  u32 rounds;
  sizes_between sizes;
  u64 seed;

  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, u64* board, u32 places) const {
    u32 const me = static_cast<u32>(global_thread_index());
    random_sequence random{seed * 1000 + me}, of_warp{seed * 7919 + me / 32};
    for (u32 round = 0; round < rounds; ++round) {
      atomic_ref<u64> const mine{board[(me + round) % places]};
      void* const block = heap.create(sizes.draw(random));
      // relaxed: whoever frees it writes nothing to it.
      u64 const before = mine.exchange(reinterpret_cast<u64>(block), order::relaxed);
      if (before != 0) heap.destroy(reinterpret_cast<void*>(before));
      u32 const at = of_warp.below(places), spread = of_warp.below(2);
      u64 const stale = atomic_ref<u64>{board[(at + spread * simt::lane_id()) % places]}.load(order::relaxed);
      for (u32 times = 1 + of_warp.below(2); times != 0 && stale != 0; --times)
        heap.destroy(reinterpret_cast<void*>(stale));
    }
  }
};

/// Kernel: one thread asks until there is nothing left, and says how often it was served.
struct drain {
  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, u64 bytes, u64* served) const {
    while (heap.create(bytes)) ++*served;
  }
};

/// What is wrong with a heap at rest after misuse: an invariant, or that its blocks and what it
/// says is left do not add up. Empty: nothing. Takes all that is left in blocks of `bytes`.
template <class Allocator>
std::string fault_after_misuse(quiet_pool<Allocator> const& pool, u64 bytes) {
  if (auto const lines = pool.allocator().check_invariants(); !lines.empty()) return lines[0];
  u64 const before = pool.allocator().statistics().live_blocks;
  u64 const left = pool.allocator().available_slots_on_host(bytes);
  device_buffer<u64> const served(1);
  launch({1, 1}, drain{}, pool.allocator(), bytes, served.data());
  synchronize();
  if (served[0] != left)
    return std::to_string(left) + " blocks were said to be left, and " + std::to_string(served[0]) + " were";
  if (u64 const live = pool.allocator().statistics().live_blocks; live != before + left)
    return std::to_string(before) + " blocks and " + std::to_string(left) + " more are " + std::to_string(live);
  if (auto const lines = pool.allocator().check_invariants(); !lines.empty()) return "full: " + lines[0];
  // All that is live can be freed, each block once.
  std::vector<u64> blocks;
  pool.allocator().for_each_live([&](void* block, size_t) { blocks.push_back(reinterpret_cast<u64>(block)); });
  auto const counts = pool.allocator().statistics();
  free_addresses(pool, blocks);
  auto const after = pool.allocator().statistics();
  if (after.live_blocks != 0) return std::to_string(after.live_blocks) + " blocks cannot be freed";
  if (after.double_frees + after.foreign_frees != counts.double_frees + counts.foreign_frees)
    return "live blocks are taken for misuse";
  if (auto const lines = pool.allocator().check_invariants(); !lines.empty()) return "emptied: " + lines[0];
  return {};
}

/// A misuse: what lanes ask for, and how many they are.
struct misuse {
  launch_shape shape;
  sizes_between sizes;
};

template <class MakePool>
void expect_whole_after_lanes(MakePool make_pool, misuse const& of, u64 seed) {
  auto const pool = make_pool();
  launch(of.shape, frees_twice{.rounds = 10, .sizes = of.sizes, .seed = seed}, pool.allocator());
  synchronize();
  EXPECT_EQ(fault_after_misuse(pool, of.sizes.most), "");
}

/// A heap of `make_pool()` is whole after lanes freed twice under traffic.
template <class MakePool>
void expect_whole_after_lanes(unsigned seeds, MakePool make_pool, misuse const& of) {
  u64 seed = 0;
  for_each_schedule(seeds, [&] { expect_whole_after_lanes(make_pool, of, seed++); });
}

/// After warps did so together.
template <class MakePool>
void expect_whole_after_warps(unsigned seeds, MakePool make_pool, misuse const& of) {
  constexpr u32 places = 24;
  u64 seed = 0;
  for_each_schedule(seeds, [&] {
    auto const pool = make_pool();
    device_buffer<u64> const board(places);
    launch(of.shape, warps_free_twice{.rounds = 6, .sizes = of.sizes, .seed = seed++}, pool.allocator(), board.data(),
           places);
    synchronize();
    EXPECT_EQ(fault_after_misuse(pool, of.sizes.most), "");
  });
}

#if !defined(__CUDACC__)

/// As expect_whole_after_lanes(), under the schedules of some seeds, at which the heap once was
/// not.
template <class MakePool>
void replay(std::initializer_list<u64> seeds, MakePool make_pool, misuse const& of) {
  for (u64 const seed : seeds) {
    auto run = schedule_of(seed);
    run.step_cap = 20'000'000;
    SCOPED_TRACE(host::describe(run));
    host::scoped_execution const use{run};
    auto const body = [&] { expect_whole_after_lanes(make_pool, of, seed); };
    detail::run_guarded(body);
  }
}

#endif

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
    // The more lanes there are, the older is what a lane may read.
    if (lane > 1) return frees_twice::wait(300);
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
    // release, acquire: each other's partner; relaxed: what this is about.
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

/// Blocks of `bytes` that another lane got are known by their size and freed, whichever way they
/// came.
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
