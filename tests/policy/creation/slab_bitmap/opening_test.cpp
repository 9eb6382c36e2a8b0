// SPDX-License-Identifier: Apache-2.0
// How many slabs a crowd opens. A slab that serves one class is lost to the others, so a burst of
// many sizes that opens more than it fills runs out of memory with most of the pool unused.
#include <warpheap/structure/size_class.hpp>
#include <warpheap/util/random.hpp>

#include "pool_fixture.hpp"

namespace slab_bitmap_opening_test {

using namespace warpheap;
using namespace slab_bitmap_parts;
using test::tiny_pool;

/// A crowd that is active at once. On the host every lane takes one step in turn, so all decide by
/// the state before any of them acted. On a GPU the hardware schedules it.
template <class Body>
void with_a_crowd(Body body) {
#if !defined(__CUDACC__)
  host::scoped_execution const use{{.mode = host::execution_mode::deterministic,
                                    .policy = host::schedule_policy::round_robin,
                                    .masks = host::mask_policy::maximal,
                                    .sm_count = 64,
                                    .blocks_per_sm = 16}};
#endif
  body();
}

struct burst {
  u32 slabs, threads, least, most;
  bool one_size_a_warp = false;

  WARPHEAP_HOST_DEVICE u32 bytes_of(u32 thread) const {
    u32 const key = one_size_a_warp ? thread / 32 : thread;
    return least + scale_below(mix32(key * 2'654'435'761u + 77), most - least + 1);
  }
  /// The bytes of all blocks, each as large as its class.
  u64 asked() const {
    u64 bytes = 0;
    for (u32 thread = 0; thread < threads; ++thread) bytes += class_bytes(size_class_of(bytes_of(thread)));
    return bytes;
  }
};

struct ask_once_each {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, burst what, void** blocks) const {
    u32 const me = static_cast<u32>(global_thread_index());
    if (me < what.threads) blocks[me] = heap.create(what.bytes_of(me));
  }
};

/// Twice the same burst, with everything given back in between, is served without a refusal.
void expect_is_served(burst const& what) {
  SCOPED_TRACE(testing::Message() << what.threads << " threads, " << what.least << " to " << what.most << " bytes");
  u64 const pool_bytes = what.slabs * tiny_pool::slab_bytes;
  ASSERT_LE(2 * what.asked(), pool_bytes + pool_bytes / 8) << "more than about half of the pool";
  tiny_pool const pool{what.slabs};
  device_buffer<void*> const blocks(what.threads);
  launch_shape const shape{(what.threads + 255) / 256, 256};
  for (u32 round = 0; round < 2; ++round) {
    launch(shape, ask_once_each{}, pool.allocator(), what, blocks.data());
    synchronize();
    u32 refused = 0;
    for (void const* const block : blocks.to_host()) refused += block == nullptr;
    EXPECT_EQ(refused, 0u) << "round " << round;
    test::release(pool, blocks.to_host(), shape);
    pool.expect_quiet(0);
  }
}

TEST(SlabBitmapOpening, ABurstOfManySizesThatAsksForHalfOfThePoolIsServed) {
  with_a_crowd([] {
    expect_is_served({1024, 1u << 14, 16, 1024});
    expect_is_served({1024, 1u << 13, 16, 2048});
    expect_is_served({1024, 1u << 12, 4, 4096});
    expect_is_served({.slabs = 1024, .threads = 1u << 12, .least = 4, .most = 4096, .one_size_a_warp = true});
  });
}

// Every cache begins with every class: a slab for each would be more than there are.
TEST(SlabBitmapOpening, ABurstThatAsksForLittleLeavesMostSlabsFree) {
  with_a_crowd([] {
    tiny_pool const pool{1024};
    burst const what{1024, 1u << 12, 16, 512};
    ASSERT_LE(16 * what.asked(), 1024 * tiny_pool::slab_bytes * 5 / 4) << "more than about a sixteenth of the pool";
    device_buffer<void*> const blocks(what.threads);
    launch({16, 256}, ask_once_each{}, pool.allocator(), what, blocks.data());
    synchronize();
    EXPECT_GE(pool.allocator().snapshot().statistics().free_slabs, 512u);
  });
}

inline constexpr creation::slab_bitmap_config least_slabs{.max_slab_log2 = 14};

// Where caches have slabs of their own, a whole crowd sees most slabs free, and would take all.
// Requests of few blocks leave 44 of 64; some of these go to classes whose demand asks for more.
TEST(SlabBitmapOpening, CachesThatOpenAtOnceLeaveSlabsFree) {
  with_a_crowd([] {
    u32 const slabs = 1u << 14;
    burst const what{slabs, 1u << 16, 16, 1024};
    ASSERT_LE(6 * what.asked(), slabs * tiny_pool::slab_bytes) << "more than a sixth of the pool";
    test::quiet_pool<creation::slab_bitmap<least_slabs>> const pool{slabs * tiny_pool::slab_bytes};
    ASSERT_TRUE(pool.allocator().table().geometry().has_many_slabs());
    device_buffer<void*> const blocks(what.threads);
    launch({what.threads / 256, 256}, ask_once_each{}, pool.allocator(), what, blocks.data());
    synchronize();
    EXPECT_GE(pool.allocator().snapshot().statistics().free_slabs, slabs / 16 * 7);
  });
}

/// Refills once for a cache without a slab. Tells the slab of its blocks, or that it would scan.
struct refill_once {
  WARPHEAP_DEVICE void operator()(slab_table table, u32 size_class, u32* slab, bool* scans) const {
    u32 const cache = 0, entry = table.cache_entry(size_class, cache);
    table.clear_active(entry, table.load_cached(entry).active() - 1);
    slab_refill refill{cache};
    slab_reservation taken;
    while (!refill.has_ended() && taken.blocks() == 0) taken = refill.next(table, size_class, 1);
    *scans = taken.blocks() == 0;
    *slab = taken.slab();
  }
};

// An old heap has no free slabs: those of other sizes keep theirs, empty as they may be.
TEST(SlabBitmapOpening, ACacheThatBeginsWhereNoSlabIsFreeJoinsAPartialOne) {
  u32 const slabs = 1u << 14, size_class = size_class_of(64);
  test::quiet_pool<creation::slab_bitmap<least_slabs>> const pool{slabs * tiny_pool::slab_bytes};
  auto const table = pool.allocator().table();
  ASSERT_TRUE(table.geometry().has_many_slabs());
  auto const block = static_cast<u8*>(test::allocate(pool, {1, 1}, 64)[0]);
  launch_shape const rest{slabs / 256, 256};
  test::allocate(pool, rest, tiny_pool::slab_bytes);
  ASSERT_EQ(pool.allocator().snapshot().statistics().free_slabs, 0u);
  device_buffer<u32> const slab(1);
  device_buffer<bool> const scans(1);
  launch({1, 1}, refill_once{}, table, size_class, slab.data(), scans.data());
  synchronize();
  EXPECT_FALSE(scans[0]);
  EXPECT_EQ(slab[0], static_cast<u32>((block - table.pool()) / tiny_pool::slab_bytes));
}

/// One lane finds too few free blocks in `slab` many times, with `used` blocks reserved. Counts how
/// often it leaves. Its cache has the slab, or none.
struct find_crowded {
  WARPHEAP_DEVICE void operator()(slab_table table, u32 size_class, u32 slab, u32 used, bool is_active,
                                  u32* leaves) const {
    u32 const cache = 0, entry = table.cache_entry(size_class, cache);
    table.clear_active(entry, table.load_cached(entry).active() - 1);
    if (is_active) table.set_active(entry, slab);
    table.reserve(slab, used);
    for (u32 look = 0; look < 1000; ++look) {
      slab_refill refill{cache};
      refill.leave_crowded(table, size_class, slab);
      *leaves += refill.is_replacing();
    }
    table.fix_up(slab, table.subtract(slab, 0, used));
  }
};

// A cache leaves a full slab where more than half of the slabs are free, one that is half full
// where more than three quarters are, and so on.
TEST(SlabBitmapOpening, CachesLeaveCrowdedSlabsWhereManyAreFree) {
  u32 const size_class = size_class_of(16), capacity = 1024, slabs = 64;
  for (u32 const sixteenths : {1u, 4u, 8u, 12u, 16u})
    for (u32 const more : {0u, 1u})
      for (bool const is_active : {false, true}) {
        u32 const free = 63 - 2 * sixteenths + more;
        SCOPED_TRACE(testing::Message() << sixteenths << "/16 used, " << free << " free, active " << is_active);
        tiny_pool const pool{slabs};
        auto const table = pool.allocator().table();
        ASSERT_EQ(table.geometry().capacity(size_class), capacity);
        if (free < slabs - 1) test::allocate(pool, {1, slabs - free - 1}, tiny_pool::slab_bytes);
        auto* const block = static_cast<u8*>(test::allocate(pool, {1, 1}, 16)[0]);
        ASSERT_EQ(pool.allocator().snapshot().statistics().free_slabs, free);
        device_buffer<u32> const leaves(1);
        launch({1, 1}, find_crowded{}, table, size_class,
               static_cast<u32>((block - table.pool()) / tiny_pool::slab_bytes), capacity * sixteenths / 16 - 1,
               is_active, leaves.data());
        synchronize();
        EXPECT_EQ(leaves[0] > 0, more > 0 && is_active);
      }
}

struct cache_slabs {
  u32 served, active, other;
};

/// What one lane gets whose reservation takes the active slab to the high watermark. Another slab
/// of the class has room, or there is none.
struct use_up_a_slab {
  WARPHEAP_DEVICE void operator()(slab_table table, u32 size_class, u32 slab, bool has_other, cache_slabs* out) const {
    u32 const cache = 0, entry = table.cache_entry(size_class, cache);
    u32 other = 0;
    while (has_other && slab_lock::take_free(table, other) == 0) ++other;
    if (has_other) slab_lock::publish(table, other, size_class, 1, slab_table::no_entry);
    table.set_active(entry, slab);
    table.reserve(slab, slab_limits{table.geometry().capacity(size_class)}.high - 1 - table.load(slab).used());
    slab_refill refill{cache, slab, table.reserve(slab, 1)};
    slab_reservation mine;
    while (!refill.has_ended() && (mine.blocks() == 0 || refill.is_replacing())) {
      slab_reservation const taken = refill.next(table, size_class, 1);
      if (taken.blocks() != 0) mine = taken;
    }
    *out = {mine.slab(), table.load_cached(entry).active() - 1, has_other ? other : slab};
  }
};

// A request that uses up the active slab has its block there, and replaces it by a free slab where
// half are free; else by one of the class that has room, and if there is none, keeps it.
TEST(SlabBitmapOpening, ACacheWhoseSlabIsUsedUpGetsAFreeSlabOrOneWithRoom) {
  u32 const slabs = 64;
  for (u32 const free : {slabs - 2, 32u, 31u, 1u})
    for (bool const has_other : {false, true}) {
      SCOPED_TRACE(testing::Message() << free << " free, another one has room " << has_other);
      tiny_pool const pool{slabs};
      auto const table = pool.allocator().table();
      auto const block = static_cast<u8*>(test::allocate(pool, {1, 1}, 16)[0]);
      u32 const slab = static_cast<u32>((block - table.pool()) / tiny_pool::slab_bytes), in_use = has_other ? 2 : 1;
      if (slabs - in_use > free) test::allocate(pool, {1, slabs - in_use - free}, tiny_pool::slab_bytes);
      device_buffer<cache_slabs> const out(1);
      launch({1, 1}, use_up_a_slab{}, table, size_class_of(16), slab, has_other, out.data());
      synchronize();
      EXPECT_EQ(out[0].served, slab);
      if (free > 31) EXPECT_TRUE(out[0].active != slab && out[0].active != out[0].other) << out[0].active;
      else EXPECT_EQ(out[0].active, out[0].other);
    }
}

/// Of the kernels below, which have this many threads.
constexpr u32 crowd = 32;
constexpr lane_mask crowd_mask = lanes_before(crowd);

/// Each lane replaces an active slab that it uses up, and then asks for more.
struct use_up_slabs_at_once {
  WARPHEAP_DEVICE void operator()(slab_table table, u32 size_class, u32* are_opening) const {
    u32 const cache = simt::lane_id(), high = slab_limits{table.geometry().capacity(size_class)}.high;
    u32 slab = cache;
    if (slab_lock::take_free(table, slab) == 0) return;
    slab_lock::publish(table, slab, size_class, high - 1, table.cache_entry(size_class, cache));
    simt::sync_warp(crowd_mask);
    slab_refill refill{cache, slab, table.reserve(slab, 1)};
    while (refill.next(table, size_class, 1).blocks() == 0 || refill.is_replacing())
      if (refill.has_ended()) break;
    refill.begin_again();
    while (!refill.has_ended() && refill.next(table, size_class, 1).blocks() == 0) {
    }
    simt::sync_warp(crowd_mask);
    *are_opening = table.is_opening(size_class);
  }
};

// Of those that see the last free slabs some lose one to another, and then find too few: they
// opened none, and leave no opener behind.
TEST(SlabBitmapOpening, ReplacementsOfActiveSlabsAtOnceLeaveNoOpener) {
  test::for_each_schedule(100, [] {
    tiny_pool const pool{64};
    device_buffer<u32> const are_opening(1);
    launch({1, crowd}, use_up_slabs_at_once{}, pool.allocator().table(), size_class_of(16), are_opening.data());
    synchronize();
    EXPECT_EQ(are_opening[0], 0u);
  });
}

/// Takes every slab but 62 from `first` on.
struct leave_62_free {
  WARPHEAP_DEVICE void operator()(slab_table table, u32 first) const {
    u32 const slab = static_cast<u32>(global_thread_index());
    if (slab - first >= 62) slab_lock::take_free(table, slab);
  }
};

/// Lane 0 refills for a cache without a slab, while the others take all that leave_62_free left.
/// Again and again: lane 0 mostly opens one, and more than 44 must be free.
struct refill_while_others_take_all {
  WARPHEAP_DEVICE void operator()(slab_table table, u32 size_class, u32 first, u32* are_opening) const {
    u32 const lane = simt::lane_id(), entry = table.cache_entry(size_class, 0);
    for (u32 round = 0; round < 16; ++round) {
      if (lane == 0) table.clear_active(entry, table.load_cached(entry).active() - 1);
      simt::sync_warp(crowd_mask);
      bool is_taken[2]{};
      if (lane != 0) {
        for (u32 i = 0; i < 2; ++i) is_taken[i] = slab_lock::take_free(table, first + lane - 1 + 31 * i) != 0;
      } else {
        slab_refill refill{0};
        while (!refill.has_ended() && refill.next(table, size_class, 1).blocks() == 0) {
        }
      }
      simt::sync_warp(crowd_mask);
      for (u32 i = 0; i < 2; ++i)
        if (is_taken[i]) slab_lock::unlock(table, first + lane - 1 + 31 * i, slab_kind::locked, order::release);
      simt::sync_warp(crowd_mask);
    }
    *are_opening = table.is_opening(size_class);
  }
};

// A request that its cache's demand elects is not one of the class's openers: where others take
// what it was to open it joins a partial slab, and leaves their number alone.
TEST(SlabBitmapOpening, ARequestOfACacheThatOpensNoneLeavesNoOpener) {
  u32 const slabs = 1u << 14, size_class = size_class_of(16), first = 64 * 100;
  test::quiet_pool<creation::slab_bitmap<least_slabs>> const pool{slabs * tiny_pool::slab_bytes};
  auto const table = pool.allocator().table();
  test::for_each_schedule(40, [&] {
    pool.allocator().initialize({});
    test::allocate(pool, {1, 1}, 16);
    launch({slabs / 256, 256}, leave_62_free{}, table, first);
    device_buffer<u32> const are_opening(1);
    launch({1, crowd}, refill_while_others_take_all{}, table, size_class, first, are_opening.data());
    synchronize();
    EXPECT_EQ(are_opening[0], 0u);
  });
}

/// Each lane refills for a whole slab, and counts itself if it would have to scan.
struct refill_with_slabs {
  WARPHEAP_DEVICE void operator()(slab_table table, u32 size_class, u32* scanning) const {
    slab_refill refill{0};
    while (!refill.has_ended())
      if (refill.next(table, size_class, 1).blocks() != 0) return;
    atomic_ref<u32>{*scanning}.fetch_add(1, order::relaxed);
  }
};

// Each look at random finds one that many others find, too. A scan would look at all slabs.
TEST(SlabBitmapOpening, ACrowdThatNeedsEverySlabFindsTheEmptyOnes) {
  with_a_crowd([] {
    u32 const slabs = 1024;
    launch_shape const shape{slabs / 256, 256};
    tiny_pool const pool{slabs};
    test::release(pool, test::allocate(pool, shape, tiny_pool::slab_bytes), shape);
    ASSERT_EQ(pool.allocator().snapshot().statistics().free_slabs, 0u);
    device_buffer<u32> const scanning(1);
    launch(shape, refill_with_slabs{}, pool.allocator().table(), size_class_of(tiny_pool::slab_bytes), scanning.data());
    synchronize();
    EXPECT_LE(scanning[0], slabs / 128);
  });
}

/// One lane asks `calls` times whether to open a slab for `blocks` blocks, and opens none of them.
struct ask_to_open {
  WARPHEAP_DEVICE void operator()(slab_table table, u32 size_class, u32 blocks, bool plenty, u32 calls, u32* opens,
                                  bool* is_opening) const {
    for (u32 call = 0; call < calls; ++call) opens[call] = table.begin_opening(size_class, blocks, plenty);
    *is_opening = table.is_opening(size_class);
    for (u32 call = 0; call < calls; ++call)
      if (opens[call]) table.end_opening(size_class);
  }
};

/// Which of `calls` requests of `blocks` blocks are to open a slab, in the state that `pool` is in.
std::vector<u32> openers(tiny_pool const& pool, u32 size_class, u32 blocks, bool plenty, u32 calls) {
  device_buffer<u32> const opens(calls);
  device_buffer<bool> const is_opening(1);
  launch({1, 1}, ask_to_open{}, pool.allocator().table(), size_class, blocks, plenty, calls, opens.data(),
         is_opening.data());
  synchronize();
  EXPECT_TRUE(is_opening[0]);
  return opens.to_host();
}

// A slab for each slab's worth, rounded down to a power of two, and half of one where memory is
// plenty and a slab has 64 blocks or more. If no thread is opening one, the next request does.
TEST(SlabBitmapOpening, OneRequestOpensASlabForEachWorthOfDemand) {
  struct row {
    u32 bytes, worth, worth_of_plenty;
  };
  for (row const each :
       {row{16, 1024, 512}, {48, 256, 128}, {256, 64, 32}, {320, 32, 32}, {1024, 16, 16}, {16384, 1, 1}})
    for (bool const plenty : {false, true})
      for (u32 const blocks : {1u, 3u, 32u}) {
        SCOPED_TRACE(testing::Message() << each.bytes << " bytes, " << blocks << " blocks, plenty " << plenty);
        u32 const worth = plenty ? each.worth_of_plenty : each.worth, calls = 3 * worth / blocks + 2;
        std::vector<u32> expected;
        for (u32 call = 0; call < calls; ++call) {
          u32 const first = call * blocks, last = first + blocks - 1;
          expected.push_back(first % worth == 0 || first / worth != last / worth);
        }
        tiny_pool const pool{4};
        u32 const size_class = size_class_of(each.bytes);
        EXPECT_EQ(openers(pool, size_class, blocks, plenty, calls), expected);
        // All have ended: the next request, wherever in a worth it comes, is the first of one.
        if (calls * blocks % worth != 0) EXPECT_EQ(openers(pool, size_class, blocks, plenty, calls), expected);
      }
}

}  // namespace slab_bitmap_opening_test
