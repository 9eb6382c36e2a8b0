// SPDX-License-Identifier: Apache-2.0
// The transitions of a live slab, one call at a time: from every state that matters a call leaves
// the descriptor, the indexes and the answer that the picture of the descriptor says.
#include <set>

#include "transitions_fixture.hpp"

namespace slab_bitmap_table_test {

using namespace warpheap;
using namespace warpheap::slab_bitmap_parts;
using test::capacity_of;
using test::classes_tried;
using test::for_each_call;
using test::live;
using test::of_kind;
using test::slab_call;
using test::slab_outcome;
using test::slab_situation;
using test::tiny_pool;

/// Live slabs of a class around all their limits.
std::vector<slab_situation> live_slabs(u32 size_class, bool full = false) {
  slab_limits const limits{capacity_of(size_class)};
  std::set<u32> edges;
  for (u32 const limit : {0u, limits.low, limits.high, limits.capacity})
    for (u32 const off : {0u, 1u, 2u, 3u}) edges.insert({limit + off, limit > off ? limit - off : 0});
  std::vector<slab_situation> all;
  for (u32 const used : edges)
    for (u32 const bump : {used, limits.capacity - 1, limits.capacity, 2 * limits.capacity})
      for (bool const unlisted : {false, true})
        if (bump >= used && (!unlisted || used > limits.low))
          all.push_back(live(size_class, used, bump, unlisted, full));
  return all;
}

/// A slab from which a reservation was taken back. That leaves an empty one in reclaimable, and
/// says so (slab.I5).
slab_situation released(slab_situation before) {
  slab_state const now = before.state();
  if (!now.is_live() || now.used() != 0) return before;
  bool const is_used_up = now.bump() > capacity_of(now.size_class()) / 4;
  before.word = (is_used_up ? now.next_generation() : now.word) | slab_state::reclaimable_bit;
  return before;
}

// What a slab that does not serve the class grants, whatever it is.
TEST(SlabBitmapTable, AReservationOfAnotherKindOrClassIsReleased) {
  for (u32 const size_class : classes_tried)
    for (bool const by_bits : {false, true}) {
      std::vector<slab_situation> others{of_kind(slab_kind::free),   of_kind(slab_kind::locked),
                                         of_kind(slab_kind::run),    of_kind(slab_kind::locked, 2),
                                         live(size_class + 1, 1, 1), live(size_class == 35 ? 3 : size_class + 5, 0, 7)};
      for_each_call({slab_call::release_excess, size_class, 3, by_bits}, others,
                    [](slab_situation const& before, slab_situation const& after, slab_outcome const& got) {
                      EXPECT_EQ(after, released(before));
                      EXPECT_EQ(got.blocks, 0u);
                    });
    }
}

/// A call that reserves is told what it keeps; a slab that reaches its high watermark is unlisted.
void expect_reserved(slab_call const& call, slab_situation const& before, slab_situation const& after,
                     slab_outcome const& got) {
  slab_limits const limits{capacity_of(call.size_class)};
  u32 const used = before.state().used(), bump = before.state().bump();
  u32 const room = used < limits.capacity ? limits.capacity - used : 0;
  u32 const kept = call.by_bits ? call.blocks : std::min(call.blocks, room);
  EXPECT_EQ(got.blocks, kept);
  slab_situation expected = before;
  expected.word += slab_state::reservation(kept);
  bool const crosses = used + kept >= limits.high;
  if (crosses && !before.state().is_unlisted()) {
    expected.word |= slab_state::unlisted_bit;
    expected.partial = false;
  }
  EXPECT_EQ(after, expected);
  if (kept == 0) return;
  EXPECT_EQ(got.place, bump);
  EXPECT_EQ(got.is_new, bump < limits.capacity);
  EXPECT_EQ(got.reaches_high, crosses && used < limits.high);
}

TEST(SlabBitmapTable, AReservationIsKeptAsFarAsThereIsRoomAndUnlistsAtTheHighWatermark) {
  for (u32 const size_class : classes_tried)
    for (u32 const wanted : {1u, 2u, 5u, 32u})
      for (bool const by_bits : {false, true})
        for (bool const full : {false, true}) {
          slab_call const call{slab_call::release_excess, size_class, wanted, by_bits};
          for_each_call(call, live_slabs(size_class, full),
                        [&](auto const&... seen) { expect_reserved(call, seen...); });
        }
}

// Its blocks were freed since a reservation reached the high watermark. So it is partial (slab.D4).
TEST(SlabBitmapTable, ASlabThatIsEmptiedBeforeItIsUnlistedIsPartialAgain) {
  for (u32 const size_class : {0u, 20u, 29u}) {
    slab_limits const limits{capacity_of(size_class)};
    u32 const used = limits.high - 1;
    for_each_call({.what = slab_call::release_excess_late, .size_class = size_class, .blocks = 1, .spare = used},
                  {live(size_class, used, used)},
                  [&](slab_situation const&, slab_situation const& after, slab_outcome const& got) {
                    EXPECT_EQ(got.blocks, 1u);
                    EXPECT_EQ(after.state().used(), 1u);
                    EXPECT_FALSE(after.state().is_unlisted());
                    EXPECT_TRUE(after.partial);
                  });
  }
}

/// What a slab becomes when `gone` of its blocks are: with room it is on the partial list again.
slab_situation with_fewer(slab_situation before, u32 gone, bool frees) {
  slab_limits const limits{capacity_of(before.state().size_class())};
  slab_situation after = before;
  // A free changes the count alone, and what is released was never reserved.
  after.word -= frees ? gone : slab_state::reservation(gone);
  if (before.state().is_unlisted() && after.state().used() <= limits.low) {
    after.word &= ~slab_state::unlisted_bit;
    after.partial = true;
  }
  if (after.state().used() != 0) return after;
  after.reclaimable = true;
  // An empty slab begins anew once more than a quarter of it was reserved, and says that it is in
  // reclaimable (slab.I5); not if its mark stays and nothing else had to be fixed up.
  if (before.state().is_full() && !frees && !before.state().is_unlisted()) return after;
  if (after.state().bump() > limits.capacity / 4) after.word = after.state().next_generation();
  after.word |= slab_state::reclaimable_bit;
  return after;
}

TEST(SlabBitmapTable, AFreeListsASlabWithRoomAndLiftsItsMark) {
  for (u32 const size_class : classes_tried)
    for (bool const full : {false, true})
      for (u32 const freed : {1u, 2u, 7u}) {
        std::vector<slab_situation> from;
        for (auto const& each : live_slabs(size_class, full))
          if (each.state().used() >= freed) from.push_back(each);
        if (from.empty()) continue;
        for_each_call({slab_call::fix_up, size_class, freed}, from,
                      [&](slab_situation const& before, slab_situation const& after, slab_outcome const&) {
                        slab_situation expected = with_fewer(before, freed, true);
                        expected.word &= ~slab_state::full_bit;
                        expected.maybe_available = true;
                        EXPECT_EQ(after, expected);
                      });
      }
}

TEST(SlabBitmapTable, WhatIsReleasedListsASlabWithRoomAndLeavesItsMark) {
  for (u32 const size_class : classes_tried)
    for (bool const full : {false, true})
      for (u32 const blocks : {1u, 2u, 7u}) {
        std::vector<slab_situation> from;
        for (auto const& each : live_slabs(size_class, full))
          if (each.state().used() >= blocks && each.state().bump() >= blocks) from.push_back(each);
        if (from.empty()) continue;
        for_each_call({slab_call::release, size_class, blocks}, from,
                      [&](slab_situation const& before, slab_situation const& after, slab_outcome const&) {
                        EXPECT_EQ(after, with_fewer(before, blocks, false));
                      });
      }
}

// slab.D5, and the bit in maybe_available(c) goes. Marked again, the word is another one.
TEST(SlabBitmapTable, AFullSlabLeavesTheIndexOfOpenSlabs) {
  for (u32 const size_class : classes_tried) {
    u32 const capacity = capacity_of(size_class);
    for_each_call({slab_call::mark_full, size_class, 0}, {live(size_class, capacity, capacity, true)},
                  [&](slab_situation const& before, slab_situation const& after, slab_outcome const&) {
                    slab_situation expected = before;
                    expected.word += slab_state::generation_unit + slab_state::full_bit;
                    expected.maybe_available = false;
                    EXPECT_EQ(after, expected);
                  });
  }
}

/// A slab of class `is` that the index of class `named` names too.
struct clear_another_class {
  WARPHEAP_DEVICE void operator()(slab_table table, u32 is, u32 named, u32* bits) const {
    table.state(0).store(slab_state::of(slab_kind::live, is).word + 2, order::relaxed);
    for (u32 const each : {is, named}) table.index(slab_table::maybe_available(each)).set(0);
    table.clear_stale(slab_table::maybe_available(named), 0, named);
    bits[0] = table.index(slab_table::maybe_available(is)).load(0) & 1;
    bits[1] = table.index(slab_table::maybe_available(named)).load(0) & 1;
  }
};

TEST(SlabBitmapTable, AScanClearsWhatAnIndexNamesInVain) {
  u32 const size_class = 20, other = 21;
  // In maybe_available(other) by mistake, and rightly in that of size_class.
  auto const is_kept = [](slab_situation const& before, slab_situation const& after, slab_outcome const&) {
    EXPECT_EQ(after, before);
  };
  auto used = live(size_class, 3, 3), empty = live(size_class, 0, 3), stale = used;
  stale.reclaimable = true;
  for_each_call({slab_call::clear_available, size_class},
                {used, empty, of_kind(slab_kind::free), of_kind(slab_kind::run)}, is_kept);
  for_each_call({slab_call::clear_reclaimable, size_class},
                {empty, of_kind(slab_kind::free), of_kind(slab_kind::locked)}, is_kept);
  auto marked = stale, cleared = used;
  marked.word |= slab_state::reclaimable_bit;
  cleared.word += slab_state::generation_unit;
  for_each_call(
      {slab_call::clear_reclaimable, size_class}, {stale, marked, used},
      [&](slab_situation const&, slab_situation const& after, slab_outcome const&) { EXPECT_EQ(after, cleared); });
  tiny_pool const pool{2};
  device_buffer<u32> const left(2);
  launch({1, 1}, clear_another_class{}, pool.allocator().table(), size_class, other, left.data());
  synchronize();
  EXPECT_EQ(left.to_host(), (std::vector<u32>{1, 0}));
}

// While the over-reservation stands, the count is not zero. No thread would set a bit that it
// cleared.
TEST(SlabBitmapTable, AFreeSlabWithAnOverReservationIsNotCleared) {
  auto const free = of_kind(slab_kind::free, 2);
  auto locked = of_kind(slab_kind::locked, 2);
  locked.reclaimable = true;  // until it is published
  for (auto const call : {slab_call::clear_reclaimable, slab_call::clear_available})
    for_each_call({call, 20}, {free, locked},
                  [](slab_situation const& before, slab_situation const& after, slab_outcome const&) {
                    EXPECT_EQ(after, before);
                  });
}

struct read_limits {
  WARPHEAP_DEVICE void operator()(slab_table table, u64* limits, u64* cached, u32 entries) const {
    for (u32 entry = 0; entry < entries; ++entry) {
      limits[entry] = table.cached_limits(entry);
      cached[entry] = table.cached(entry).load(order::relaxed);
    }
  }
};

TEST(SlabBitmapTable, EveryCacheEntryOfANewHeapHasTheLimitsOfItsClassAndNoSlab) {
  for (u32 const slabs : {1u, 100u, 1500u}) {
    tiny_pool const pool{slabs};
    auto const geometry = pool.allocator().geometry();
    u32 const entries = geometry.sm_caches() * geometry.classes();
    device_buffer<u64> const limits(entries), cached(entries);
    launch({1, 1}, read_limits{}, pool.allocator().table(), limits.data(), cached.data(), entries);
    synchronize();
    auto const read = limits.to_host();
    for (u32 entry = 0; entry < entries; ++entry) {
      slab_limits const expected{geometry.capacity(entry % geometry.classes())};
      ASSERT_EQ(read[entry] >> 32, expected.capacity) << entry;
      ASSERT_EQ(read[entry] & 0xffff'ffff, expected.high) << entry;
    }
    EXPECT_EQ(cached.to_host(), std::vector<u64>(entries));
  }
}

TEST(SlabBitmapTable, OneLaneFillsTheMetadataAsManyDo) {
  for (u32 const slabs : {1u, 100u, 1500u}) {
    tiny_pool const pool{slabs};
    auto const table = pool.allocator().table();
    std::vector<u8> const of_many(table.metadata(), table.metadata() + table.geometry().metadata_bytes());
    backend::fill_bytes(table.metadata(), 0, of_many.size(), {});
    launch({1, 1}, fill_metadata{}, table, nullptr);
    synchronize();
    EXPECT_TRUE(std::equal(of_many.begin(), of_many.end(), table.metadata())) << slabs;
  }
}

struct draw_entries {
  WARPHEAP_DEVICE void operator()(slab_table table, u32 size_class, u32 salts, u32* entries, u32* first_cache) const {
    for (u32 salt = 0; salt < salts; ++salt) entries[salt] = table.cache_entry(size_class, salt);
    *first_cache = simt::sm_id() << table.geometry().sm_caches_used_log2(size_class);
  }
};

TEST(SlabBitmapTable, AMultiprocessorUsesTheCachesOfItsOwn) {
  constexpr u32 salts = 64;
  for (u32 const slabs : {1u, 100u, 1500u}) {
    tiny_pool const pool{slabs};
    auto const geometry = pool.allocator().geometry();
    device_buffer<u32> const entries(salts), first_cache(1);
    for (u32 size_class = 0; size_class < geometry.classes(); ++size_class) {
      launch({1, 1}, draw_entries{}, pool.allocator().table(), size_class, salts, entries.data(), first_cache.data());
      synchronize();
      std::set<u32> expected, drawn;
      for (u32 const entry : entries.to_host()) drawn.insert(entry);
      for (u32 cache = 0; cache < 1u << geometry.sm_caches_used_log2(size_class); ++cache)
        expected.insert((first_cache[0] + cache) % geometry.sm_caches() * geometry.classes() + size_class);
      ASSERT_EQ(drawn, expected) << slabs << " slabs, class " << size_class;
    }
  }
}

}  // namespace slab_bitmap_table_test
