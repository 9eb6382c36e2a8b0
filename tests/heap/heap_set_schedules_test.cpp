// SPDX-License-Identifier: Apache-2.0
// Heap sets under schedules: posts, drains and calls of two members meet. Half of the thread blocks
// of one launch act as member 0, the others as member 1.
#include "heap_set_fixture.hpp"
#include "support/schedules.hpp"

namespace heap_set_test {

struct both_members {
  set_ref refs[2];
};
both_members both(heap_set const& set) { return {{set.ref(0), set.ref(1)}}; }

/// Kernel: threads of member 1 free the blocks of a full heap, and say so. Threads of member 0 wait
/// for that, and ask for as many: each must get one. Others there drain all the time.
struct free_then_take {
  WARPHEAP_DEVICE void operator()(both_members heaps, void* const* freed, u32 wanted, u32* said, void** got) const {
    u32 const me = simt::block_index() / 2 * simt::block_dim() + simt::thread_index();
    if (simt::block_index() % 2 == 1) {
      if (me >= wanted) return;
      heaps.refs[1].free(freed[me]);
      // release: the free is done; pairs with the wait below.
      atomic_ref<u32>{*said}.fetch_add(1, order::release);
    } else if (me >= wanted) {
      for (u32 i = 0; i < 3; ++i) detail::drain_member{}(heaps.refs[0].local());
    } else {
      backoff wait;
      while (atomic_ref<u32>{*said}.load(order::acquire) != wanted) wait.while_working();
      got[me] = heaps.refs[0].malloc(32768);
    }
  }
};

TEST(HeapSet, RefusesNobodyWhileEnoughHadBeenFreedFromAfar) {
  u64 turn = 0;
  test::for_each_schedule(500, [&] {
    launch_shape const shapes[] = {{2, 1}, {2, 31}, {2, 33}, {4, 8}, {6, 5}};
    auto const shape = shapes[turn++ % 5];
    u32 const threads = shape.blocks / 2 * shape.threads;
    u32 const wanted = std::min(31u, threads < 8 ? threads : threads - 4);
#if !defined(__CUDACC__)
    auto roomy = host::current_execution();  // those that are waited for must run
    roomy.sm_count = 4;
    roomy.blocks_per_sm = 2;
    host::scoped_execution const use{roomy};
#endif
    heap_set const set{1_MiB, on_one(2)};
    taken const all{set, 0, {1, 32}, 32768};
    device_buffer<void*> const freed(all.addresses()), got(wanted);
    device_buffer<u32> const said(1);
    launch(shape, free_then_take{}, both(set), freed.data(), wanted, said.data(), got.data());
    synchronize();
    auto const blocks = got.to_host();
    EXPECT_EQ(std::count(blocks.begin(), blocks.end(), nullptr), 0);
    EXPECT_EQ(std::set<void*>(blocks.begin(), blocks.end()).size(), wanted);
    expect_quiet(set, 32);
    EXPECT_EQ(set.pending(0), 0u);
  });
}

/// Kernel: every thread takes blocks of its member, and hands each to a thread of the other, which
/// verifies and frees it.
struct trade {
  WARPHEAP_DEVICE void operator()(both_members heaps, u32 rounds, u32 bytes, u64* places, u32* counts) const {
    u32 const side = simt::block_index() % 2, me = static_cast<u32>(global_thread_index());
    set_ref const mine = heaps.refs[side];
    for (u32 round = 0; round < rounds; ++round) {
      u64* const block = static_cast<u64*>(mine.malloc(bytes));
      if (block) {
        contents::acquire(block, bytes);
        for (u32 i = 0; i < bytes / 8; i += 16) block[i] = reinterpret_cast<u64>(block) + i;
      }
      atomic_ref<u32>{counts[block ? 0 : 1]}.fetch_add(1, order::relaxed);
      // acq_rel: what we wrote, for the thread that gets it; what that one wrote, for us.
      u64* const theirs = reinterpret_cast<u64*>(
          atomic_ref<u64>{places[me / 2]}.exchange(reinterpret_cast<u64>(block), order::acq_rel));
      if (theirs) give_back(mine, theirs, bytes, counts);
    }
  }

  WARPHEAP_DEVICE static void give_back(set_ref mine, u64* block, u32 bytes, u32* counts) {
    bool right = true;
    for (u32 i = 0; i < bytes / 8; i += 16) right = right && block[i] == reinterpret_cast<u64>(block) + i;
    if (!right) atomic_ref<u32>{counts[2]}.fetch_add(1, order::relaxed);
    if (!mine.local().contains(block)) atomic_ref<u32>{counts[3]}.fetch_add(1, order::relaxed);
    contents::release(block, bytes);
    mine.free(block);
  }
};

TEST(HeapSet, KeepsContentsWhileMembersTradeBlocks) {
  u64 served = 0, refused = 0, from_afar = 0, turn = 0;
  test::for_each_schedule(250, [&] {
    launch_shape const shapes[] = {{2, 1}, {2, 31}, {4, 33}, {6, 7}, {4, 32}};
    u32 const sizes[] = {65536, 65536, 32768, 131072, 65536};
    u32 const which = turn++ % 5;
    auto const shape = shapes[which];
    heap_set const set{1_MiB, on_one(2)};
    u64 const threads = u64{shape.blocks} * shape.threads;
    device_buffer<u64> const places((threads + 1) / 2);
    device_buffer<u32> const counts(4);
    launch(shape, trade{}, both(set), 6u, sizes[which], places.data(), counts.data());
    synchronize();
    EXPECT_EQ(counts[2], 0u);
    served += counts[0];
    refused += counts[1];
    from_afar += counts[3];
    EXPECT_THAT(set.check_invariants(), IsEmpty());
    std::vector<void*> left;
    for (u64 const block : places.to_host())
      if (block) left.push_back(reinterpret_cast<void*>(block));
    EXPECT_EQ(set.statistics().live_blocks, left.size() + set.pending(0) + set.pending(1));
    free_as(set, 1, left);
    drain(set);
    expect_quiet(set, 0);
    EXPECT_EQ(set.statistics().double_frees + set.statistics().foreign_frees, 0u);
  });
  EXPECT_GT(served, 0u);
  EXPECT_GT(from_afar, 0u);
  EXPECT_TRUE(refused > 0 || test::on_gpu);
}

/// Kernel: threads of member 1 free blocks, and those of member 0 drain, as the host's kernel does.
struct free_beside_drains {
  WARPHEAP_DEVICE void operator()(both_members heaps, void* const* freed, u32 count) const {
    u32 const me = simt::block_index() / 2 * simt::block_dim() + simt::thread_index();
    if (simt::block_index() % 2 == 0) detail::drain_member{}(heaps.refs[0].local());
    else if (me < count) heaps.refs[1].free(freed[me]);
  }
};

TEST(HeapSet, FreesEachBlockOnceWherePostsAndDrainsMeet) {
  test::for_each_schedule(150, [&] {
    heap_set const set{1_MiB, on_one(2)};
    for (u32 const bytes : {64u, 4096u}) {
      taken const blocks{set, 0, {2, 66}, bytes};
      auto const all = blocks.addresses();
      device_buffer<void*> const freed(all);
      u32 const count = static_cast<u32>(all.size());
      launch({8, 33}, free_beside_drains{}, both(set), freed.data(), count);
      synchronize();
      EXPECT_THAT(set.check_invariants(), IsEmpty());
      EXPECT_EQ(set.statistics(0).live_blocks, set.pending(0));
      drain(set);
      expect_quiet(set, 0);
      EXPECT_EQ(set.statistics().double_frees + set.statistics().foreign_frees, 0u);
    }
  });
}

}  // namespace heap_set_test
