// SPDX-License-Identifier: Apache-2.0
// Owners: what they lead to is destroyed once, by the lane that has them last, wherever they were
// passed.
#include "warpheap/container/owner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "container/heaps.hpp"
#include "support/schedules.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace owner_test {

using namespace warpheap;
using namespace warpheap::literals;
using namespace warpheap::test;
using testing::Each;

/// Counts its end.
struct counted {
  u32* ends = nullptr;
  u32 number = 0;

  counted() = default;
  WARPHEAP_DEVICE counted(u32* where, u32 mine) : ends{where}, number{mine} {}
  WARPHEAP_DEVICE ~counted() {
    if (ends) ++*ends;
  }
};

/// Kernel: each lane passes what it owns to the lane at the other end of the thread block through
/// dynamic shared memory, and destroys or keeps what it gets.
struct pass {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, heap_ref makes, u32* ends, owner<counted>* kept, u32* wrong) const {
    u32 const me = simt::thread_index(), last = simt::block_dim() - 1;
    u64 const place = global_thread_index();
    auto* const passed = static_cast<owner<counted>*>(simt::dynamic_shared());
    passed[me] = {};
    if (passed[me]) ++wrong[place];
    passed[me].reset(heap);  // of nothing
    simt::sync_block();

    owner<counted> mine{makes.make<counted>(&ends[place], me)};
    if (!mine || mine->number != me || (*mine).ends != &ends[place]) ++wrong[place];
    passed[last - me] = mine;
    simt::sync_block();
    mine = passed[me];
    if (mine.get() && mine->number != last - me) ++wrong[place];
    if (me % 2 == 0) mine.reset(heap);
    if (me % 4 == 1) {
      makes.destroy(mine.release());
      mine.reset(heap);
    }
    if (me % 2 == 0 && mine) ++wrong[place];
    kept[place] = mine;
  }
};

/// Kernel: the rest, by a grid of another shape.
struct reset_kept {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, owner<counted>* kept, u64 count) const {
    if (u64 const me = global_thread_index(); me < count) kept[me].reset(heap);
  }
};

TEST(Owner, DestroysItsObjectOnceWhereverItWasPassed) {
  for_each_schedule(20, [] {
    heap const heap{4_MiB};
    device_buffer<u32> const ends(80), wrong(80);
    device_buffer<owner<counted>> const kept(80);
    limited_ref const without_make{heap.ref(), ~u64{0}};
    launch({.blocks = 2, .threads = 40, .shared_bytes = 40 * sizeof(owner<counted>)}, pass{}, without_make, heap.ref(),
           ends.data(), kept.data(), wrong.data());
    synchronize();
    EXPECT_EQ(heap.statistics().live_blocks, 20u) << "a quarter is kept";
    launch({1, 96}, reset_kept{}, heap.ref(), kept.data(), u64{80});
    launch({1, 96}, reset_kept{}, heap.ref(), kept.data(), u64{80});
    synchronize();
    EXPECT_THAT(ends.to_host(), Each(1u));
    EXPECT_THAT(wrong.to_host(), Each(0u));
    EXPECT_EQ(heap.statistics().live_blocks, 0u);
    EXPECT_EQ(heap.statistics().double_frees, 0u);
  });
}

/// Kernel: arrays of as many objects as the lane's index, of a heap that refuses some.
struct own_arrays {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, u32* ends, u32* made, u32* wrong) const {
    u64 const me = global_thread_index();
    owner<counted[]> mine{heap.template make_array<counted>(me), me};
    if (mine ? mine.size() != me : mine.size() != 0 || mine.get()) ++wrong[me];
    made[me] = static_cast<u32>(mine.size());
    u32 number = 0;
    for (counted& each : mine) {
      each.ends = &ends[me];
      each.number = number++;
    }
    if (mine && mine[me - 1].number != me - 1) ++wrong[me];
    if (number != mine.size()) ++wrong[me];
    if (me % 3 == 0) {
      owner<counted[]> const other = mine;
      u64 const count = mine.size();
      heap.destroy_array(mine.release(), count);
      if (other.size() != count || mine.size() != 0) ++wrong[me];
    }
    mine.reset(heap);
    mine.reset(heap);
    if (mine || mine.size() != 0) ++wrong[me];
  }
};

TEST(Owner, DestroysEveryObjectOfAnArray) {
  for_each_schedule(20, [] {
    refusing_heap const heap{4_MiB};
    device_buffer<u32> const ends(80), made(80), wrong(80);
    launch({2, 40}, own_arrays{}, heap.ref(), ends.data(), made.data(), wrong.data());
    synchronize();
    EXPECT_EQ(ends.to_host(), made.to_host());
    EXPECT_THAT(wrong.to_host(), Each(0u));
    EXPECT_THAT(made.to_host(), testing::Contains(testing::Gt(0u)));
    EXPECT_EQ(heap.statistics().live_blocks, 0u);
  });
}

}  // namespace owner_test
