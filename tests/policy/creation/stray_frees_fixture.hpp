// SPDX-License-Identifier: Apache-2.0
// What misuse does to a heap: lanes free blocks a second time while others ask and free, warps free
// together what is no longer theirs, and thread blocks free any address where a block may start. A
// block that was handed out again in between is lost to its owner, which no check can tell; but
// every count, index and lock stays right, no call waits for ever, and all memory comes back.
#pragma once

#include <initializer_list>
#include <string>

#include "quiet_pool_fixture.hpp"

namespace warpheap::test {

/// A misuse: how many lanes there are, what they ask for, and how often.
struct misuse {
  launch_shape shape;
  sizes_between sizes;
  u32 rounds = 10;
  u32 apart = 16;  ///< bytes between the places at which `frees_anything` frees
};

/// Kernel: lanes ask and free. After every free they free one of their last four blocks once more;
/// most of these have another owner by now.
struct frees_twice {
  misuse of;
  u64 seed;

  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap) const {
    random_sequence random{seed * 1000 + static_cast<u32>(global_thread_index())};
    void* last[4] = {};
    for (u32 round = 0; round < of.rounds; ++round) {
      void* const block = heap.create(of.sizes.draw(random));
      pause_for(random.below(4));
      if (block) heap.destroy(block);
      last[round % 4] = block;
      pause_for(random.below(4));
      if (void* const stale = last[random.below(4)]) heap.destroy(stale);
    }
  }

  template <class Allocator>
  void run(Allocator const& heap) const {
    launch(of.shape, *this, heap);
    synchronize();
  }
};

/// Kernel: every lane leaves its block on a board for all, and frees what lies at a place drawn by
/// its warp: all lanes of the warp one block, or neighbouring ones, two or three times over.
struct warps_free_twice {
  static constexpr u32 places = 24;
  misuse of;
  u64 seed;

  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, u64* board) const {
    u32 const me = static_cast<u32>(global_thread_index());
    random_sequence random{seed * 1000 + me}, of_warp{seed * 7919 + me / 32};
    for (u32 round = 0; round < of.rounds; ++round) {
      atomic_ref<u64> const mine{board[(me + round) % places]};
      void* const block = heap.create(of.sizes.draw(random));
      // relaxed: the lane that frees it writes nothing to it.
      u64 const before = mine.exchange(reinterpret_cast<u64>(block), order::relaxed);
      if (before != 0) heap.destroy(reinterpret_cast<void*>(before));
      u32 const at = of_warp.below(places), spread = of_warp.below(2);
      u64 const stale = atomic_ref<u64>{board[(at + spread * simt::lane_id()) % places]}.load(order::relaxed);
      for (u32 times = 1 + of_warp.below(2); times != 0 && stale != 0; --times)
        heap.destroy(reinterpret_cast<void*>(stale));
    }
  }

  template <class Allocator>
  void run(Allocator const& heap) const {
    device_buffer<u64> const board(places);
    launch(of.shape, *this, heap, board.data());
    synchronize();
  }
};

/// Kernel: every other thread block frees any address where a block may start, its lanes together
/// at one place or each at its own. Lanes of the other thread blocks ask, and free what they got
/// before.
template <bool Together>
struct frees_anything {
  misuse of;
  u64 seed;

  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, u64 pool_bytes) const {
    bool const frees_all = simt::block_index() % 2 != 0;
    random_sequence random{seed * 1000 + (frees_all && Together ? simt::block_index() : global_thread_index())};
    u32 const places = static_cast<u32>(pool_bytes / of.apart);
    void* held = nullptr;
    for (u32 round = 0; round < of.rounds; ++round) {
      if (frees_all) {
        heap.destroy(heap.table().pool() + u64{random.below(places)} * of.apart);
      } else {
        void* const block = heap.create(of.sizes.draw(random));
        heap.destroy(held);
        held = block;
      }
    }
  }

  template <class Allocator>
  void run(Allocator const& heap) const {
    launch(of.shape, *this, heap, u64{heap.pool_bytes()});
    synchronize();
  }
};
using lanes_free_anything = frees_anything<false>;
using warps_free_anything = frees_anything<true>;

/// Kernel: one thread asks until there is nothing left, and says how often it was served.
struct drain {
  template <class Allocator>
  WARPHEAP_DEVICE void operator()(Allocator heap, u64 bytes, u64* served) const {
    while (heap.create(bytes)) ++*served;
  }
};

/// Takes all that is left in blocks of `bytes`. Returns what is wrong: an invariant, or a sum of
/// blocks that contradicts the heap's counts; empty if nothing is.
template <class Allocator>
std::string fault_of_draining(quiet_pool<Allocator> const& pool, u64 bytes) {
  if (auto const lines = pool.allocator().snapshot().check_invariants(); !lines.empty()) return lines[0];
  u64 const before = pool.allocator().snapshot().statistics().live_blocks;
  u64 const left = count_slots_by_grid(pool.allocator(), bytes);
  device_buffer<u64> const served(1);
  launch({1, 1}, drain{}, pool.allocator(), bytes, served.data());
  synchronize();
  if (served[0] != left)
    return std::to_string(left) + " blocks were said to be left, and " + std::to_string(served[0]) + " were";
  if (u64 const live = pool.allocator().snapshot().statistics().live_blocks; live != before + left)
    return std::to_string(before) + " blocks and " + std::to_string(left) + " more are " + std::to_string(live);
  if (auto const lines = pool.allocator().snapshot().check_invariants(); !lines.empty()) return "full: " + lines[0];
  return {};
}

/// Frees all that is live, each block once. Returns what is wrong; empty if nothing is.
template <class Allocator>
std::string fault_of_emptying(quiet_pool<Allocator> const& pool) {
  std::vector<u64> blocks;
  pool.allocator().snapshot().for_each_live(
      [&](void* block, size_t) { blocks.push_back(reinterpret_cast<u64>(block)); });
  auto const counts = pool.allocator().snapshot().statistics();
  free_addresses(pool, blocks);
  auto const after = pool.allocator().snapshot().statistics();
  if (after.live_blocks != 0) return std::to_string(after.live_blocks) + " blocks cannot be freed";
  if (after.double_frees + after.foreign_frees != counts.double_frees + counts.foreign_frees)
    return "live blocks are taken for misuse";
  if (auto const lines = pool.allocator().snapshot().check_invariants(); !lines.empty()) return "emptied: " + lines[0];
  return {};
}

/// The largest power of two of which a heap has a block left.
template <class Allocator>
u64 largest_left(quiet_pool<Allocator> const& pool) {
  u64 bytes = u64{1} << log2_floor(pool.allocator().pool_bytes());
  while (bytes > 16 && count_slots_by_grid(pool.allocator(), bytes) == 0) bytes /= 2;
  return bytes;
}

/// What is wrong with a heap of `make_pool()` after the misuse by Kernel; empty if nothing is.
template <class Kernel, class MakePool>
std::string fault_after(MakePool make_pool, misuse const& of) {
  auto const pool = make_pool();
  u64 const largest = largest_left(pool), room = count_slots_by_grid(pool.allocator(), largest);
  Kernel{of, schedule_seed()}.run(pool.allocator());
  if (auto const fault = fault_of_draining(pool, of.sizes.most); !fault.empty()) return fault;
  if (auto const fault = fault_of_emptying(pool); !fault.empty()) return fault;
  if (u64 const left = count_slots_by_grid(pool.allocator(), largest); left != room)
    return std::to_string(left) + " blocks of " + std::to_string(room) + " came back";
  return fault_of_draining(pool, largest);
}

/// Expects that a heap of `make_pool()` is whole after the misuse by Kernel.
template <class Kernel, class MakePool>
void expect_whole_after(unsigned seeds, MakePool make_pool, misuse const& of) {
  for_each_schedule(seeds, [&] { EXPECT_EQ(fault_after<Kernel>(make_pool, of), ""); });
}

#if !defined(__CUDACC__)

/// Expects that the heap is whole after lanes freed twice, under seeds at which it once was not.
template <class MakePool>
void replay(std::initializer_list<u64> seeds, MakePool make_pool, misuse const& of) {
  for (u64 const seed : seeds) {
    auto run = schedule_of(seed);
    run.step_cap = 20'000'000;
    SCOPED_TRACE(host::describe(run));
    host::scoped_execution const use{run};
    auto const body = [&] { EXPECT_EQ(fault_after<frees_twice>(make_pool, of), ""); };
    detail::run_guarded(body);
  }
}

#endif

/// A warp's second frees are each counted, of blocks of 48 bytes and of one of 96.
template <class MakePool>
void expect_counts_second_frees(unsigned seeds, MakePool make_pool) {
  for_each_schedule(seeds, [&] {
    auto const pool = make_pool();
    auto const blocks = allocate(pool, {1, 31}, 48);
    release(pool, blocks);
    pool.expect_quiet(0);
    release(pool, blocks);
    pool.expect_quiet(0, 31);
    auto const one = allocate(pool, {1, 1}, 96);
    release(pool, std::vector<void*>(32, one[0]));
    pool.expect_quiet(0, 62);
  });
}

}  // namespace warpheap::test
