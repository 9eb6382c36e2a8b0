// The transitions of a live slab, one call at a time: from every state that matters a call leaves
// the descriptor, the indexes and the answer that the picture of the descriptor says.
#include <set>
#include <vector>

#include "pool_fixture.hpp"

namespace slab_bitmap_table_test {

using namespace warpheap;
using namespace warpheap::slab_bitmap_parts;
using test::tiny_pool;

/// A slab's descriptor and its bits in the indexes.
struct situation {
  u64 word = 0;
  bool listed = false, open = false, takeable = false, is_free = false;

  slab_state state() const { return {word}; }
  bool operator==(situation const&) const = default;
};

std::ostream& operator<<(std::ostream& to, situation const& it) {
  slab_state const now = it.state();
  return to << "kind " << static_cast<u32>(now.kind()) << ", class " << now.size_class() << ", used " << now.used()
            << ", ever " << now.ever() << ", life " << (it.word >> 52) << (now.is_unlisted() ? ", U" : "")
            << (now.is_full() ? ", F" : "") << (now.is_clearing() ? ", C" : "") << (it.listed ? ", listed" : "")
            << (it.open ? ", open" : "") << (it.takeable ? ", takeable" : "") << (it.is_free ? ", free" : "");
}

/// A call on slab 0 and its numbers.
struct call {
  enum what_of : u32 {
    keep,
    give_back,
    settle,
    mark_full,
    forget_open,
    forget_takeable,
    take,
    take_free,
    publish
  } what;
  u32 size_class = 0, blocks = 0;
  bool by_bits = false;
  u32 spare = 0;
};

/// What the call returned.
struct outcome {
  u32 blocks = 0, place = 0;
  bool is_new = false, reaches_soft = false, is_roomy = false, done = false;
};

/// Puts slab 0 into each situation, makes the call, and reads what became of it.
struct call_each {
  WARPHEAP_DEVICE void operator()(slab_table table, call what, situation* slabs, u32 count, outcome* outcomes) const {
    for (u32 i = 0; i < count; ++i) {
      slab_state const before = slabs[i].state();
      table.state(0).store(before.word, order::relaxed);
      put(table, slab_table::listed(before.size_class()), slabs[i].listed);
      set(table, slab_table::open(before.size_class()), slabs[i].open);
      set(table, slab_table::takeable, slabs[i].takeable);
      put(table, slab_table::free_slabs, slabs[i].is_free);
      outcomes[i] = make(table, what, before);
      slab_state const after = table.load(0);
      u32 const size_class = what.what == call::publish ? what.size_class : before.size_class();
      slabs[i] = {after.word, is_in(table, slab_table::listed(size_class)), is_in(table, slab_table::open(size_class)),
                  is_in(table, slab_table::takeable), is_in(table, slab_table::free_slabs)};
      put(table, slab_table::listed(size_class), false);
      set(table, slab_table::open(size_class), false);
    }
  }

 private:
  WARPHEAP_DEVICE static bool is_in(slab_table table, u32 which) { return table.index(which).load(0) & 1; }
  WARPHEAP_DEVICE static void put(slab_table table, u32 which, bool in) {
    if (is_in(table, which) != in) table.index(which).toggle(0);
  }
  WARPHEAP_DEVICE static void set(slab_table table, u32 which, bool in) {
    in ? table.index(which).set(0) : table.index(which).clear(0, order::relaxed);
  }
  WARPHEAP_DEVICE static outcome of(slab_reservation made) {
    return {made.blocks(), made.place(), made.is_new(), made.reaches_soft(), made.is_roomy(), true};
  }
  WARPHEAP_DEVICE static outcome make(slab_table table, call what, slab_state before) {
    switch (what.what) {
      case call::keep:
        return of(table.keep(0, what.size_class, what.blocks, table.promise(0, what.blocks), what.by_bits));
      case call::give_back: table.give_back(0, what.blocks); return {};
      case call::settle: table.settle(0, table.subtract(0, what.blocks, 0)); return {};
      case call::mark_full: table.mark_full(0, before); return {};
      case call::forget_open: table.forget(slab_table::open(what.size_class), 0, what.size_class); return {};
      case call::forget_takeable: table.forget(slab_table::takeable, 0, what.size_class); return {};
      case call::take: return {.done = slab_lock::take(table, 0)};
      case call::take_free: return {.done = slab_lock::take_free(table, 0, what.spare)};
      case call::publish: return of(slab_lock::publish(table, 0, what.size_class, what.blocks, slab_table::no_entry));
    }
    return {};
  }
};

/// Runs a call from each situation; calls visit(before, after, outcome).
template <class Visitor>
void for_each_call(call what, std::vector<situation> const& from, Visitor visit) {
  tiny_pool const pool{3};
  device_buffer<situation> const slabs{from};
  device_buffer<outcome> const outcomes(from.size());
  u32 const count = static_cast<u32>(from.size());
  launch({1, 1}, call_each{}, pool.allocator().table(), what, slabs.data(), count, outcomes.data());
  synchronize();
  auto const after = slabs.to_host();
  auto const said = outcomes.to_host();
  for (u32 i = 0; i < count; ++i) {
    SCOPED_TRACE(testing::Message() << "from " << from[i] << "; " << what.blocks << " blocks");
    visit(from[i], after[i], said[i]);
    if (testing::Test::HasFailure()) return;
  }
}

constexpr u32 classes_tried[] = {0, 20, 29, 35};  // 1024, 16 or so, a few, and one block in a slab

u32 capacity_of(u32 size_class) { return block_count(size_class, 14); }

/// A live slab with its indexes as at rest (D4, I1, I2).
situation live(u32 size_class, u32 used, u32 ever, bool unlisted = false, bool full = false, u32 life = 5) {
  slab_state const word{slab_state::of(slab_kind::live, size_class).word + used + (u64{ever} << 32) +
                        (u64{life} << 52) + (unlisted ? slab_state::unlisted_bit : 0) +
                        (full ? slab_state::full_bit : 0)};
  return {word.word, !unlisted, !full, used == 0, false};
}
situation of_kind(slab_kind kind, u32 used = 0) {
  bool const is_free = kind == slab_kind::free;
  return {slab_state::of(kind, 0).word + used * (slab_state::ever_unit + 1), false, false, is_free, is_free};
}

/// Live slabs of a class around all their limits.
std::vector<situation> live_slabs(u32 size_class, bool full = false) {
  slab_limits const limits{capacity_of(size_class)};
  std::set<u32> edges;
  for (u32 const limit : {0u, limits.roomy, limits.relist, limits.soft, limits.capacity})
    for (u32 const off : {0u, 1u, 2u, 3u}) edges.insert({limit + off, limit > off ? limit - off : 0});
  std::vector<situation> all;
  for (u32 const used : edges)
    for (u32 const ever : {used, limits.capacity - 1, limits.capacity, 2 * limits.capacity})
      for (bool const unlisted : {false, true})
        if (ever >= used && (!unlisted || used > limits.relist))
          all.push_back(live(size_class, used, ever, unlisted, full));
  return all;
}

// What a slab that does not serve the class grants, whatever it is.
TEST(SlabBitmapTable, APromiseOfAnotherKindOrClassIsGivenBack) {
  for (u32 const size_class : classes_tried)
    for (bool const by_bits : {false, true}) {
      std::vector<situation> others{of_kind(slab_kind::free),   of_kind(slab_kind::locked),
                                    of_kind(slab_kind::run),    of_kind(slab_kind::locked, 2),
                                    live(size_class + 1, 1, 1), live(size_class == 35 ? 3 : size_class + 5, 0, 7)};
      for_each_call({call::keep, size_class, 3, by_bits}, others,
                    [](situation const& before, situation const& after, outcome const& got) {
                      EXPECT_EQ(after, before);
                      EXPECT_EQ(got.blocks, 0u);
                    });
    }
}

TEST(SlabBitmapTable, APromiseIsKeptAsFarAsThereIsRoomAndUnlistsAtTheSoftLimit) {
  for (u32 const size_class : classes_tried) {
    slab_limits const limits{capacity_of(size_class)};
    for (u32 const wanted : {1u, 2u, 5u, 32u})
      for (bool const by_bits : {false, true})
        for (bool const full : {false, true})
          for_each_call({call::keep, size_class, wanted, by_bits}, live_slabs(size_class, full),
                        [&](situation const& before, situation const& after, outcome const& got) {
                          u32 const used = before.state().used(), ever = before.state().ever();
                          u32 const room = used < limits.capacity ? limits.capacity - used : 0;
                          u32 const kept = by_bits ? wanted : std::min(wanted, room);
                          EXPECT_EQ(got.blocks, kept);
                          situation expected = before;
                          expected.word += slab_state::promise(kept);
                          bool const crosses = kept != 0 && used + kept >= limits.soft;
                          if (crosses && !before.state().is_unlisted()) {
                            expected.word |= slab_state::unlisted_bit;
                            expected.listed = false;
                          }
                          EXPECT_EQ(after, expected);
                          if (kept == 0) return;
                          EXPECT_EQ(got.place, ever);
                          EXPECT_EQ(got.is_new, ever < limits.capacity);
                          EXPECT_EQ(got.is_roomy, used < limits.roomy);
                          EXPECT_EQ(got.reaches_soft, crosses && used < limits.soft);
                        });
  }
}

/// What a slab becomes when `gone` of its blocks are: with room it is listed again.
situation with_fewer(situation before, u32 gone, bool frees) {
  slab_limits const limits{capacity_of(before.state().size_class())};
  situation after = before;
  // A free changes the count alone, and what is given back was never promised.
  after.word -= frees ? gone : slab_state::promise(gone);
  if (before.state().is_unlisted() && after.state().used() <= limits.relist) {
    after.word &= ~slab_state::unlisted_bit;
    after.listed = true;
  }
  if (after.state().used() == 0) after.takeable = true;
  return after;
}

TEST(SlabBitmapTable, AFreeListsASlabWithRoomAndLiftsItsMark) {
  for (u32 const size_class : classes_tried)
    for (bool const full : {false, true})
      for (u32 const freed : {1u, 2u, 7u}) {
        std::vector<situation> from;
        for (auto const& each : live_slabs(size_class, full))
          if (each.state().used() >= freed) from.push_back(each);
        if (from.empty()) continue;
        for_each_call({call::settle, size_class, freed}, from,
                      [&](situation const& before, situation const& after, outcome const&) {
                        situation expected = with_fewer(before, freed, true);
                        expected.word &= ~slab_state::full_bit;
                        expected.open = true;
                        // An empty slab begins anew once more than a quarter of it was promised, if nothing
                        // else had to be settled.
                        bool const is_used_up = before.state().ever() > capacity_of(size_class) / 4;
                        bool const else_settled = full || before.state().is_unlisted();
                        if (expected.state().used() == 0 && is_used_up && !else_settled)
                          expected.word = slab_state{expected.word}.reborn();
                        EXPECT_EQ(after, expected);
                      });
      }
}

TEST(SlabBitmapTable, WhatIsGivenBackListsASlabWithRoomAndLeavesItsMark) {
  for (u32 const size_class : classes_tried)
    for (bool const full : {false, true})
      for (u32 const blocks : {1u, 2u, 7u}) {
        std::vector<situation> from;
        for (auto const& each : live_slabs(size_class, full))
          if (each.state().used() >= blocks && each.state().ever() >= blocks) from.push_back(each);
        if (from.empty()) continue;
        for_each_call({call::give_back, size_class, blocks}, from,
                      [&](situation const& before, situation const& after, outcome const&) {
                        EXPECT_EQ(after, with_fewer(before, blocks, false));
                      });
      }
}

// D5, and the bit in open(c) goes. Marked again, the word is another one.
TEST(SlabBitmapTable, AFullSlabLeavesTheIndexOfOpenSlabs) {
  for (u32 const size_class : classes_tried) {
    u32 const capacity = capacity_of(size_class);
    for_each_call({call::mark_full, size_class, 0}, {live(size_class, capacity, capacity, true)},
                  [&](situation const& before, situation const& after, outcome const&) {
                    situation expected = before;
                    expected.word += slab_state::life_unit + slab_state::full_bit;
                    expected.open = false;
                    EXPECT_EQ(after, expected);
                  });
  }
}

/// A slab of class `is` that the index of class `named` names too.
struct forget_another_class {
  WARPHEAP_DEVICE void operator()(slab_table table, u32 is, u32 named, u32* bits) const {
    table.state(0).store(slab_state::of(slab_kind::live, is).word + 2, order::relaxed);
    for (u32 const each : {is, named}) table.index(slab_table::open(each)).set(0);
    table.forget(slab_table::open(named), 0, named);
    bits[0] = table.index(slab_table::open(is)).load(0) & 1;
    bits[1] = table.index(slab_table::open(named)).load(0) & 1;
  }
};

TEST(SlabBitmapTable, ASearchForgetsWhatAnIndexNamesInVain) {
  u32 const size_class = 20, other = 21;
  // In open(other) by mistake, and rightly in open(size_class).
  auto const is_kept = [](situation const& before, situation const& after, outcome const&) {
    EXPECT_EQ(after, before);
  };
  auto used = live(size_class, 3, 3), empty = live(size_class, 0, 3), stale = used;
  stale.takeable = true;
  for_each_call({call::forget_open, size_class}, {used, empty, of_kind(slab_kind::free), of_kind(slab_kind::run)},
                is_kept);
  for_each_call({call::forget_takeable, size_class}, {empty, of_kind(slab_kind::free), of_kind(slab_kind::locked)},
                is_kept);
  for_each_call({call::forget_takeable, size_class}, {stale, used},
                [&](situation const&, situation const& after, outcome const&) { EXPECT_EQ(after, used); });
  tiny_pool const pool{2};
  device_buffer<u32> const left(2);
  launch({1, 1}, forget_another_class{}, pool.allocator().table(), size_class, other, left.data());
  synchronize();
  EXPECT_EQ(left.to_host(), (std::vector<u32>{1, 0}));
}

TEST(SlabBitmapTable, OnlyFreeAndEmptySlabsAreTaken) {
  u32 const size_class = 20;
  auto clearing = live(size_class, 0, 3);
  clearing.word |= slab_state::clearing_bit;
  for_each_call({call::take, size_class},
                {of_kind(slab_kind::locked), of_kind(slab_kind::run), live(size_class, 1, 1),
                 live(size_class, 15, 15, true), clearing},
                [](situation const& before, situation const& after, outcome const& got) {
                  EXPECT_FALSE(got.done);
                  EXPECT_EQ(after, before);
                });
  // Off its indexes, but in takeable until it is published.
  for_each_call({call::take, size_class},
                {of_kind(slab_kind::free), live(size_class, 0, 9), of_kind(slab_kind::free, 2)},
                [](situation const& before, situation const& after, outcome const& got) {
                  EXPECT_TRUE(got.done);
                  u32 const used = before.state().used();
                  u64 const life = (before.word & ~(slab_state::life_unit - 1)) + slab_state::life_unit;
                  u64 const locked = slab_state::of(slab_kind::locked, 0).word + slab_state::promise(used) + life;
                  EXPECT_EQ(after, (situation{locked, false, false, true, false}));
                });
  // Where 3 slabs are free, one may be taken that leaves 2 of them.
  for (u32 const spare : {0u, 2u, 3u, 64u})
    for_each_call({call::take_free, size_class, 0, false, spare},
                  {of_kind(slab_kind::free), live(size_class, 0, 3), of_kind(slab_kind::locked)},
                  [&](situation const& before, situation const& after, outcome const& got) {
                    bool const is_free = before.is_free;
                    EXPECT_EQ(got.done, is_free && spare < 3);
                    if (!is_free) EXPECT_EQ(after, before);
                    else EXPECT_EQ(after.is_free, !got.done);
                    EXPECT_EQ(after.takeable, before.takeable);
                  });
}

TEST(SlabBitmapTable, ALockedSlabBecomesOneOfTheClass) {
  for (u32 const size_class : classes_tried) {
    slab_limits const limits{capacity_of(size_class)};
    for (u32 const wanted : {0u, 1u, 2u, 14u, 15u, 32u}) {
      auto locked = of_kind(slab_kind::locked), crowded = of_kind(slab_kind::locked, 2);
      locked.takeable = crowded.takeable = true;
      for_each_call({call::publish, size_class, wanted}, {locked, crowded},
                    [&](situation const& before, situation const& after, outcome const& got) {
                      u32 const promised = std::min(wanted, limits.capacity);
                      bool const soft = promised >= limits.soft;
                      slab_state const now = after.state();
                      EXPECT_TRUE(now.serves(size_class));
                      EXPECT_EQ(now.used(), before.state().used() + promised);
                      EXPECT_EQ(now.ever(), before.state().ever() + promised);
                      EXPECT_EQ(now.is_unlisted(), soft);
                      EXPECT_EQ(after.listed, !soft);
                      EXPECT_TRUE(after.open);
                      EXPECT_EQ(after.takeable, promised == 0);
                      EXPECT_EQ(got.blocks, promised);
                      EXPECT_EQ(got.place, 0u);
                      EXPECT_EQ(got.is_new, before.state().ever() == 0);
                      EXPECT_EQ(got.reaches_soft, soft);
                    });
    }
  }
}

struct read_limits {
  WARPHEAP_DEVICE void operator()(slab_table table, u64* limits, u64* hints, u32 entries) const {
    for (u32 entry = 0; entry < entries; ++entry) {
      limits[entry] = table.hint_limits(entry);
      hints[entry] = table.hint(entry).load(order::relaxed);
    }
  }
};

TEST(SlabBitmapTable, EveryHintOfANewHeapHasTheLimitsOfItsClassAndNoSlab) {
  for (u32 const slabs : {1u, 100u, 1500u}) {
    tiny_pool const pool{slabs};
    auto const geometry = pool.allocator().geometry();
    u32 const entries = geometry.rows() * geometry.classes();
    device_buffer<u64> const limits(entries), hints(entries);
    launch({1, 1}, read_limits{}, pool.allocator().table(), limits.data(), hints.data(), entries);
    synchronize();
    auto const read = limits.to_host();
    for (u32 entry = 0; entry < entries; ++entry) {
      slab_limits const expected{geometry.capacity(entry % geometry.classes())};
      ASSERT_EQ(read[entry] >> 32, expected.capacity) << entry;
      ASSERT_EQ(read[entry] & 0xffff'ffff, expected.soft) << entry;
    }
    EXPECT_EQ(hints.to_host(), std::vector<u64>(entries));
  }
}

struct draw_entries {
  WARPHEAP_DEVICE void operator()(slab_table table, u32 size_class, u32 salts, u32* entries, u32* first_row) const {
    for (u32 salt = 0; salt < salts; ++salt) entries[salt] = table.hint_entry(size_class, salt);
    *first_row = simt::sm_id() << table.geometry().rows_used_log2(size_class);
  }
};

TEST(SlabBitmapTable, AMultiprocessorUsesTheRowsOfItsOwn) {
  for (u32 const slabs : {1u, 100u, 1500u})
    for (u32 size_class = 0; size_class < 36; ++size_class) {
      tiny_pool const pool{slabs};
      auto const geometry = pool.allocator().geometry();
      constexpr u32 salts = 64;
      device_buffer<u32> const entries(salts), first_row(1);
      launch({1, 1}, draw_entries{}, pool.allocator().table(), size_class, salts, entries.data(), first_row.data());
      synchronize();
      std::set<u32> expected, drawn;
      for (u32 const entry : entries.to_host()) drawn.insert(entry);
      for (u32 row = 0; row < 1u << geometry.rows_used_log2(size_class); ++row)
        expected.insert((first_row[0] + row) % geometry.rows() * geometry.classes() + size_class);
      ASSERT_EQ(drawn, expected) << slabs << " slabs, class " << size_class;
    }
}

}  // namespace slab_bitmap_table_test
