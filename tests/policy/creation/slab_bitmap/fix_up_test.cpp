// SPDX-License-Identifier: Apache-2.0
// What is left of a slab that a few lanes change at once, by the transitions of the table alone:
// when all have returned, its flags and index bits are as its count and its bits say (slab.D4,
// slab.D5, slab.I1, slab.I2).
#include "pool_fixture.hpp"

namespace slab_bitmap_fix_up_test {

using namespace warpheap;
using namespace warpheap::slab_bitmap_parts;
using test::tiny_pool;

/// Where slab 0 is said to be, and which flags it has.
struct situation {
  u32 used = 0;
  bool full = false, index_locked = false, unlisted = false, partial = false, maybe_available = false,
       reclaimable = false;

  friend bool operator==(situation const&, situation const&) = default;
  friend std::ostream& operator<<(std::ostream& to, situation const& it) {
    return to << it.used << " used" << (it.full ? ", F" : "") << (it.index_locked ? ", C" : "")
              << (it.unlisted ? ", U" : "") << (it.partial ? ", partial" : "")
              << (it.maybe_available ? ", maybe available" : "") << (it.reclaimable ? ", reclaimable" : "");
  }
};

struct read_situation {
  WARPHEAP_DEVICE void operator()(slab_table table, u32 size_class, situation* found) const {
    slab_state const now = table.newest(0);
    auto const is_in = [&](u32 which) { return (table.index(which).newest(0) & 1) != 0; };
    *found = {now.used(),
              now.is_full(),
              now.is_index_locked(),
              now.is_unlisted(),
              is_in(slab_table::partial(size_class)),
              is_in(slab_table::maybe_available(size_class)),
              is_in(slab_table::reclaimable)};
  }
};

/// Takes slab 0 for a class, and blocks of it.
struct fill_slab {
  WARPHEAP_DEVICE void operator()(slab_table table, u32 size_class, u32 blocks) const {
    if (slab_lock::take(table, 0)) slab_lock::publish(table, 0, size_class, 0, slab_table::no_entry);
    for (u32 block = 0; block < blocks; ++block) {
      table.release_excess(0, size_class, 1, table.reserve(0, 1), table.geometry().capacity(size_class));
      table.blocks(0).try_claim(block / 64, u64{1} << (block % 64), order::acquire);
    }
    table.clear_stale(slab_table::reclaimable, 0, size_class);
  }
};

WARPHEAP_DEVICE void free_block(slab_table table, u32 block) {
  table.blocks(0).release(block / 64, u64{1} << (block % 64));
  table.fix_up(0, table.subtract(0, 1, 0));
}

/// As a scan does: marks the slab full if it sees the bits of its `capacity` blocks set.
WARPHEAP_DEVICE void look_and_mark(slab_table table, u32 capacity) {
  slab_state const seen = table.newest(0);
  bool is_full = seen.is_live() && seen.used() >= capacity && !seen.is_full() && !seen.is_index_locked();
  for (u32 word = 0; 64 * word < capacity; ++word) {
    u64 const valid = slab_table::valid_mask(capacity, word);
    is_full = is_full && (table.blocks(0).load_newest(word, order::relaxed) & valid) == valid;
  }
  if (is_full) table.mark_full(0, seen);
}

/// Runs `body` beside itself on a slab of `blocks` blocks of a class, and reads what is left.
template <class Body>
situation left_by(launch_shape shape, Body body, u32 size_class, u32 blocks) {
  tiny_pool const pool{1};
  auto const table = pool.allocator().table();
  launch({1, 1}, fill_slab{}, table, size_class, blocks);
  launch(shape, body, table, size_class);
  device_buffer<situation> const found(1);
  launch({1, 1}, read_situation{}, table, size_class, found.data());
  synchronize();
  for (auto const& line : pool.allocator().snapshot().check_invariants()) ADD_FAILURE() << line;
  return found[0];
}

constexpr u32 size_class = size_class_of(8192), capacity = 2;

/// Lane 0 frees a block while the others look and mark.
struct free_beside_looks {
  WARPHEAP_DEVICE void operator()(slab_table table, u32) const {
    if (global_thread_index() == 0) return free_block(table, 1);
    for (u32 look = 0; look < 3; ++look) look_and_mark(table, capacity);
  }
};

// slab.D5: the free changes the word from which the slab would be marked, or meets the mark.
TEST(SlabBitmapFixUp, ASlabIsNotFullAfterAFreeBesideALook) {
  for (launch_shape const shape : {launch_shape{2, 1}, {1, 2}, {3, 1}})
    test::for_each_schedule(600, [&] {
      EXPECT_EQ(left_by(shape, free_beside_looks{}, size_class, capacity),
                (situation{.used = 1, .partial = true, .maybe_available = true}));
    });
}

/// Each lane takes the block that is free, looks and marks, and frees it.
struct take_mark_and_free {
  WARPHEAP_DEVICE void operator()(slab_table table, u32) const {
    for (u32 round = 0; round < 4; ++round) {
      if (table.release_excess(0, size_class, 1, table.reserve(0, 1), capacity).blocks() == 0) continue;
      if (table.blocks(0).try_claim(0, 2, order::acquire) == 0) {
        table.release(0, 1);
        continue;
      }
      look_and_mark(table, capacity);
      free_block(table, 1);
    }
  }
};

// slab.D5: a free lifts the mark that it saw, and no later one, for which the bit in
// maybe_available was cleared.
TEST(SlabBitmapFixUp, ASlabThatIsMarkedAgainAndAgainIsMaybeAvailableInTheEnd) {
  for (launch_shape const shape : {launch_shape{2, 1}, {1, 2}, {3, 1}})
    test::for_each_schedule(600, [&] {
      EXPECT_EQ(left_by(shape, take_mark_and_free{}, size_class, 1),
                (situation{.used = 1, .partial = true, .maybe_available = true}));
    });
}

/// Two lanes free a block each of a slab that is marked full. Each says whether the slab was not in
/// the index when its free returned.
struct free_of_a_marked_slab {
  WARPHEAP_DEVICE void operator()(slab_table table, u32* missing) const {
    u32 const me = static_cast<u32>(global_thread_index());
    free_block(table, me);
    missing[me] = ~table.index(slab_table::maybe_available(size_class)).newest(0) & 1;
  }
};

struct mark_slab {
  WARPHEAP_DEVICE void operator()(slab_table table) const { look_and_mark(table, capacity); }
};

// slab.I1: a free that finds F gone leaves the index alone, so the thread that takes F away has set
// the bit before.
TEST(SlabBitmapFixUp, ASlabIsMaybeAvailableForEveryFreeThatHasReturned) {
  for (launch_shape const shape : {launch_shape{2, 1}, {1, 2}})
    test::for_each_schedule(600, [&] {
      tiny_pool const pool{1};
      auto const table = pool.allocator().table();
      device_buffer<u32> const missing(2);
      launch({1, 1}, fill_slab{}, table, size_class, capacity);
      launch({1, 1}, mark_slab{}, table);
      launch(shape, free_of_a_marked_slab{}, table, missing.data());
      synchronize();
      EXPECT_EQ(missing.to_host(), std::vector<u32>(2));
      pool.expect_empty();
    });
}

/// The first lane finds the slab in use, as a scan for another class does. The others release
/// blocks: the second as one whose cache was stale, the rest as those who found no block.
struct release_beside_a_scan {
  WARPHEAP_DEVICE void operator()(slab_table table, u32) const {
    if (global_thread_index() == 0) return table.clear_stale(slab_table::reclaimable, 0, size_class + 1);
    slab_state const old = table.reserve(0, 1);
    if (global_thread_index() == 1) table.release_excess(0, size_class + 1, 1, old, capacity);
    else table.release(0, 1);
  }
};

// slab.I2, slab.I3: the last of those that release finds the slab empty, by what its subtraction
// left, and waits for the scan.
TEST(SlabBitmapFixUp, ASlabIsReclaimableAfterTheLastReservationIsReleased) {
  for (launch_shape const shape : {launch_shape{2, 1}, {3, 1}, {1, 3}})
    test::for_each_schedule(600, [&] {
      EXPECT_EQ(left_by(shape, release_beside_a_scan{}, size_class, 0),
                (situation{.used = 0, .partial = true, .maybe_available = true, .reclaimable = true}));
    });
}

/// Three lanes bring a slab of 16 blocks from above its low watermark to it: by a free, by a
/// reservation released, and by one that is kept in part.
struct relist_together {
  static constexpr u32 size_class = size_class_of(1024), blocks = 14;

  WARPHEAP_DEVICE void operator()(slab_table table, u32) const {
    slab_state const old = table.reserve(0, 2);
    switch (global_thread_index()) {
      case 0: table.release(0, 2); return free_block(table, 0);
      case 1: return table.release(0, 2);
      default: {
        u32 const kept = table.release_excess(0, size_class, 2, old, table.geometry().capacity(size_class)).blocks();
        if (kept != 0) table.release(0, kept);
      }
    }
  }
};

// slab.D4: the one whose subtraction came to the limit lists the slab, whatever the others did
// before.
TEST(SlabBitmapFixUp, ASlabIsPartialAfterTheLastSubtraction) {
  using body = relist_together;
  slab_limits const limits{16};
  ASSERT_EQ(limits.low, body::blocks - 1);
  for (launch_shape const shape : {launch_shape{3, 1}, {1, 3}})
    test::for_each_schedule(600, [&] {
      EXPECT_EQ(left_by(shape, body{}, body::size_class, body::blocks),
                (situation{.used = body::blocks - 1, .partial = true, .maybe_available = true}));
    });
}

}  // namespace slab_bitmap_fix_up_test
