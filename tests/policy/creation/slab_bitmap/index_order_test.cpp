// SPDX-License-Identifier: Apache-2.0
// slab.I4: a lane that finds a slab's bit in reclaimable cleared finds the one in maybe_available
// after a fence, however it was cleared. Lanes read the latter by plain loads here, since only
// those may see an old word on the host backend; the memory model of a GPU orders a
// read-modify-write no better.
#include "pool_fixture.hpp"

namespace slab_bitmap_index_order_test {

using namespace warpheap;
using namespace warpheap::slab_bitmap_parts;
using test::tiny_pool;

constexpr u32 size_class = 20;

/// Waits until slab 0 is no longer in reclaimable; then says whether maybe_available lacks it.
WARPHEAP_DEVICE u32 is_missed(slab_table table) {
  while (table.index(slab_table::reclaimable).newest(0) & 1) simt::pause(1);
  full_fence();
  return ~table.index(slab_table::maybe_available(size_class)).load(0) & 1;
}

/// Lane 0 takes the slab for the class, and reserves a block of it later. Lane 1, of a scan for
/// another class, finds it in use.
struct clear_a_stale_bit {
  WARPHEAP_DEVICE void operator()(slab_table table, u32* missed) const {
    switch (simt::lane_id()) {
      case 0:
        if (slab_lock::take(table, 0)) slab_lock::publish(table, 0, size_class, 0, slab_table::no_entry);
        table.reserve(0, 1);
        break;
      case 1:
        while (!table.load(0).is_live() || table.load(0).used() == 0) simt::pause(1);
        table.clear_stale(slab_table::reclaimable, 0, size_class + 1);
        break;
      default: *missed = is_missed(table);
    }
  }
};

/// Lane 0 takes the slab for the class, with a block.
struct publish_a_slab {
  WARPHEAP_DEVICE void operator()(slab_table table, u32* missed) const {
    if (simt::lane_id() != 0) *missed = is_missed(table);
    else if (slab_lock::take(table, 0)) slab_lock::publish(table, 0, size_class, 1, slab_table::no_entry);
  }
};

/// As publish_a_slab, but the fence is that of a scan, between its rounds.
struct publish_beside_a_scan {
  WARPHEAP_DEVICE void operator()(slab_table table, u32* missed) const {
    if (simt::lane_id() == 0) {
      if (slab_lock::take(table, 0)) slab_lock::publish(table, 0, size_class, 1, slab_table::no_entry);
      return;
    }
    scan_cursor scan{0, 0, false};
    // By counts, then reclaimable slabs.
    for (u32 round = 0; round < 2; ++round) {
      while (scan.look(table, size_class, 1) != scan_cursor::none) scan.is_hasty() ? scan.pass_slab(1) : simt::pause(1);
      scan.end_round(0);
    }
    *missed = ~table.index(slab_table::maybe_available(size_class)).load(0) & 1;
  }
};

/// Which slab a scan names first.
struct look_once {
  WARPHEAP_DEVICE void operator()(slab_table table, bool skips_counts, u32* named) const {
    scan_cursor scan{0, 0, skips_counts};
    *named = scan.look(table, size_class, 1);
  }
};

// A scan for whole slabs looks at what may be taken first: slabs of its class that are in use are
// used up. Every other one fills those first.
TEST(SlabBitmapIndexOrder, AScanForSlabsLooksAtReclaimableOnesFirst) {
  for (bool const skips_counts : {false, true}) {
    tiny_pool const pool{2};
    auto const block = static_cast<u8*>(test::allocate(pool, {1, 1}, class_bytes(size_class))[0]);
    u32 const in_use = static_cast<u32>((block - pool.allocator().table().pool()) / tiny_pool::slab_bytes);
    device_buffer<u32> const named(1);
    launch({1, 1}, look_once{}, pool.allocator().table(), skips_counts, named.data());
    synchronize();
    EXPECT_EQ(named[0], skips_counts ? 1 - in_use : in_use);
  }
}

template <class Body>
void expect_finds(u32 lanes) {
  test::for_each_schedule(400, [=] {
    tiny_pool const pool{1};
    device_buffer<u32> const missed(1);
    launch({1, lanes}, Body{}, pool.allocator().table(), missed.data());
    synchronize();
    EXPECT_EQ(missed[0], 0u);
  });
}

TEST(SlabBitmapIndexOrder, ASlabThatAScanClearedIsFoundInItsClass) { expect_finds<clear_a_stale_bit>(3); }
TEST(SlabBitmapIndexOrder, ASlabThatWasTakenIsFoundInItsClass) { expect_finds<publish_a_slab>(2); }
TEST(SlabBitmapIndexOrder, AScanLooksAtItsClassAfterReclaimableSlabs) { expect_finds<publish_beside_a_scan>(2); }

}  // namespace slab_bitmap_index_order_test
