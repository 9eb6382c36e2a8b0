// SPDX-License-Identifier: Apache-2.0
// Calls on slabs whose descriptor and index bits a test has chosen: what they leave, and what they
// return.
#pragma once

#include <algorithm>
#include <ostream>
#include <vector>

#include "policy/creation/slab_bitmap/pool_fixture.hpp"

namespace warpheap::test {

/// A slab's descriptor and its bits in the indexes.
struct slab_situation {
  u64 word = 0;
  bool partial = false, maybe_available = false, reclaimable = false, is_free = false;

  slab_state state() const { return {word}; }
  bool operator==(slab_situation const&) const = default;
};

inline std::ostream& operator<<(std::ostream& to, slab_situation const& it) {
  slab_state const now = it.state();
  return to << "kind " << static_cast<u32>(now.kind()) << ", class " << now.size_class() << ", used " << now.used()
            << ", bump " << now.bump() << ", generation " << (it.word >> 52) << (now.is_unlisted() ? ", U" : "")
            << (now.is_full() ? ", F" : "") << (now.is_index_locked() ? ", C" : "") << (it.partial ? ", partial" : "")
            << (it.maybe_available ? ", available" : "") << (it.reclaimable ? ", reclaimable" : "")
            << (it.is_free ? ", free" : "");
}

/// A call on slab 0 and its numbers.
struct slab_call {
  enum what_of : u32 {
    release_excess,
    release_excess_late,  ///< the same, after `spare` other blocks are freed
    release,
    fix_up,
    mark_full,
    clear_available,
    clear_reclaimable,
    take,
    take_free,
    publish
  } what;
  u32 size_class = 0, blocks = 0;
  bool by_bits = false;
  u32 spare = 0;
};

/// What the call returned.
struct slab_outcome {
  u32 blocks = 0, place = 0;
  bool is_new = false, reaches_high = false, done = false;
};

/// Puts slab 0 into each slab_situation, makes the call, and reads what became of it.
struct call_each {
  WARPHEAP_DEVICE void operator()(slab_table table, slab_call what, slab_situation* slabs, u32 count,
                                  slab_outcome* outcomes) const {
    for (u32 i = 0; i < count; ++i) {
      slab_state const before = slabs[i].state();
      table.state(0).store(before.word, order::relaxed);
      put(table, slab_table::partial(before.size_class()), slabs[i].partial);
      set(table, slab_table::maybe_available(before.size_class()), slabs[i].maybe_available);
      set(table, slab_table::reclaimable, slabs[i].reclaimable);
      put(table, slab_table::free_slabs, slabs[i].is_free);
      outcomes[i] = make(table, what, before);
      slab_state const after = table.load(0);
      u32 const size_class = what.what == slab_call::publish ? what.size_class : before.size_class();
      slabs[i] = {after.word, is_in(table, slab_table::partial(size_class)),
                  is_in(table, slab_table::maybe_available(size_class)), is_in(table, slab_table::reclaimable),
                  is_in(table, slab_table::free_slabs)};
      put(table, slab_table::partial(size_class), false);
      set(table, slab_table::maybe_available(size_class), false);
    }
  }

 private:
  WARPHEAP_DEVICE static bool is_in(slab_table table, u32 which) { return table.index(which).load(0) & 1; }
  WARPHEAP_DEVICE static void put(slab_table table, u32 which, bool in) {
    if (is_in(table, which) != in) table.index(which).xor_bit(0);
  }
  WARPHEAP_DEVICE static void set(slab_table table, u32 which, bool in) {
    in ? table.index(which).set(0) : table.index(which).clear(0, order::relaxed);
  }
  WARPHEAP_DEVICE static slab_outcome of(slab_reservation made) {
    return {made.blocks(), made.place(), made.is_new(), made.reaches_high(), true};
  }
  WARPHEAP_DEVICE static u32 limit_of(slab_table table, slab_call what) {
    return what.by_bits ? slab_table::no_limit : table.geometry().capacity(what.size_class);
  }
  WARPHEAP_DEVICE static slab_outcome make(slab_table table, slab_call what, slab_state before) {
    switch (what.what) {
      case slab_call::release_excess:
        return of(table.release_excess(0, what.size_class, what.blocks, table.reserve(0, what.blocks),
                                       limit_of(table, what)));
      case slab_call::release_excess_late: {
        slab_state const old = table.reserve(0, what.blocks);
        table.subtract(0, what.spare, 0);
        return of(table.release_excess(0, what.size_class, what.blocks, old, limit_of(table, what)));
      }
      case slab_call::release: table.release(0, what.blocks); return {};
      case slab_call::fix_up: table.fix_up(0, table.subtract(0, what.blocks, 0)); return {};
      case slab_call::mark_full: table.mark_full(0, before); return {};
      case slab_call::clear_available:
        table.clear_stale(slab_table::maybe_available(what.size_class), 0, what.size_class);
        return {};
      case slab_call::clear_reclaimable: table.clear_stale(slab_table::reclaimable, 0, what.size_class); return {};
      case slab_call::take: return {.done = slab_lock::take(table, 0)};
      case slab_call::take_free: return {.done = slab_lock::take_free(table, 0) != 0};
      case slab_call::publish:
        return of(slab_lock::publish(table, 0, what.size_class, what.blocks, slab_table::no_entry));
    }
    return {};
  }
};

/// Runs a call from each slab_situation; calls visit(before, after, outcome).
template <class Visitor>
void for_each_call(slab_call what, std::vector<slab_situation> const& from, Visitor visit) {
  tiny_pool const pool{3};
  device_buffer<slab_situation> const slabs{from};
  device_buffer<slab_outcome> const outcomes(from.size());
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

/// 1024, 16 or so, a few, and one block in a slab.
inline constexpr u32 classes_tried[] = {0, 20, 29, 35};

inline u32 capacity_of(u32 size_class) { return block_count(size_class, 14); }

/// A live slab with its indexes as at rest (slab.D4, slab.I1, slab.I2).
inline slab_situation live(u32 size_class, u32 used, u32 bump, bool unlisted = false, bool full = false) {
  slab_state const word{slab_state::of(slab_kind::live, size_class).word + used + (u64{bump} << 32) + (u64{5} << 52) +
                        (unlisted ? slab_state::unlisted_bit : 0) + (full ? slab_state::full_bit : 0)};
  return {word.word, !unlisted, !full, used == 0, false};
}
inline slab_situation of_kind(slab_kind kind, u32 used = 0) {
  bool const is_free = kind == slab_kind::free;
  return {slab_state::of(kind, 0).word + used * (slab_state::bump_unit + 1), false, false, is_free, is_free};
}

}  // namespace warpheap::test
