// SPDX-License-Identifier: Apache-2.0
// Slabs that change their kind or class, always through kind locked: one thread holds the slab,
// others' over-reservations come and go, and no block is reserved for a caller.
//
//   transition               by                         operation
//   free or empty -> locked  a taker                    compare-exchange, no C; off old indexes
//   locked -> live           the thread that locked it  set maybe_available(c); clear reclaimable
//                                                       if blocks are reserved; fetch_add (slab.I4)
//   locked -> run            the same                   clear reclaimable; fetch_add
//   locked, run -> free      the locker; the freer      set reclaimable; fetch_sub
//
// An empty slab of which the clear of a late free is still on its way is left (has_only_zeros()).
#pragma once

#include "table.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace slab_bitmap_parts {

/// Takes slabs and gives them kinds. Stateless; `table` is the heap. Any lane alone.
class slab_lock {
 public:
  /// Locks a free slab, and returns how many of the 64 slabs around were free then, this one
  /// included; 0 if another thread was faster. publish() or unlock() must follow.
  WARPHEAP_DEVICE static u32 take_free(slab_table const& table, u32 slab) {
    slab_state const was = table.load(slab);
    if (was.kind() != slab_kind::free || !lock(table, slab, was)) return 0;
    u32 const around = popcount(table.index(slab_table::free_slabs).xor_bit(slab));
    return around != 0 ? around : 1;  // 0: unlock()'s xor update is late, as it may be if fenced
  }

  /// Locks a free or empty slab, and takes it off its indexes except reclaimable. Scans wait for it
  /// until publish(), make_run() or unlock(), one of which must follow.
  WARPHEAP_DEVICE static bool take(slab_table const& table, u32 slab) {
    slab_state const was = table.load(slab);
    if (!was.is_reclaimable() || !lock(table, slab, was)) return false;
    if (!was.is_live()) {
      table.index(slab_table::free_slabs).xor_bit(slab);
      return true;
    }
    u32 const old_class = was.size_class();
    auto const partial = table.index(slab_table::partial(old_class));
    auto const maybe_available = table.index(slab_table::maybe_available(old_class));
    bool const is_empty = has_only_zeros(table.blocks(slab), opaque(table.geometry().capacity(old_class)));
    if (was.is_unlisted() != is_empty) partial.xor_bit(slab);
    if (is_empty) {
      maybe_available.clear(slab, order::relaxed);  // slab.I3: we hold the lock
      return true;
    }
    // Live again, without U and F, and in the indexes: a fix-up that met the lock did nothing.
    table.add(slab_table::maybe_available(old_class), slab);
    table.add(slab_table::reclaimable, slab);
    u64 const change = slab_state::of(slab_kind::live, old_class).word - slab_state::of(slab_kind::locked, 0).word;
    // release: words, index bits (slab.I1, slab.I2) as we leave them; pairs with reserve() and
    // lock().
    table.state(slab).fetch_add(change, order::release);
    return false;
  }

  /// Makes our locked slab live, reserves up to `wanted` blocks for the caller, and activates it.
  WARPHEAP_DEVICE static slab_reservation publish(slab_table const& table, u32 slab, u32 size_class, u32 wanted,
                                                  u32 entry) {
    slab_limits const limits{table.geometry().capacity(size_class)};
    u32 const reserved = wanted < limits.capacity ? wanted : limits.capacity;
    bool const is_high = reserved >= limits.high;
    table.add(slab_table::maybe_available(size_class), slab);
    // release: slab.I4; pairs with the fence in end_round(). A slab that begins empty keeps it
    // (slab.I2).
    if (reserved != 0) table.index(slab_table::reclaimable).clear(slab, order::release);
    // relaxed: the release below orders it.
    table.header(slab).store(slab_header::of_class(size_class).word, order::relaxed);
    u64 const change = slab_state::of(slab_kind::live, size_class).word - slab_state::of(slab_kind::locked, 0).word +
                       slab_state::reservation(reserved) + (is_high ? slab_state::unlisted_bit : 0);
    // release: header, empty words, slab.I1 come before any reservation; pairs with reserve(),
    // lock().
    slab_state const old{table.state(slab).fetch_add(change, order::release)};
    table.set_active(entry, slab);
    if (!is_high) table.index(slab_table::partial(size_class)).xor_bit(slab);
    return slab_reservation{slab, reserved, 0}.with({.is_new = old.bump() == 0, .reaches_high = is_high});
  }

  WARPHEAP_DEVICE static void make_run(slab_table const& table, u32 slab) {
    // relaxed, both: they publish nothing; the header publishes the run.
    table.index(slab_table::reclaimable).clear(slab, order::relaxed);
    table.state(slab).fetch_add(slab_state::of(slab_kind::run, 0).word - slab_state::of(slab_kind::locked, 0).word,
                                order::relaxed);
  }

  /// Makes a slab of kind `from`, locked or run, free. Of a run each before the next is named: a
  /// scan that passed the first as in use could place a run across its end.
  WARPHEAP_DEVICE static void unlock(slab_table const& table, u32 slab, slab_kind from, order how) {
    table.add(slab_table::reclaimable, slab);
    table.index(slab_table::free_slabs).xor_bit(slab);
    // how: release, or fenced after release_fence(): the owner is done; pairs with lock().
    table.state(slab).fetch_sub(slab_state::of(from, 0).word, how);
  }

 private:
  /// Locks a slab that was seen reclaimable, if nothing has changed since.
  WARPHEAP_DEVICE static bool lock(slab_table const& table, u32 slab, slab_state was) {
    if (was.is_index_locked()) return false;
    // Over-reservations stay in both fields, from which each is released (slab.D1). U and F go: a
    // late fix-up that lifted U from a locked slab would leave its xor update undone (slab.D4).
    u64 const generation = was.next_generation() & ~(slab_state::generation_unit - 1);
    u64 const locked = generation + slab_state::of(slab_kind::locked, 0).word + slab_state::reservation(was.used());
    // acquire: the last owner's writes come first; pairs with unlock(), publish() and take().
    return table.state(slab).compare_exchange(was.word, locked, order::acquire, order::relaxed);
  }

  /// Whether every word of a locked slab is zero. No thread sets bits there, so zeros stay
  /// (slab.D1).
  WARPHEAP_DEVICE static bool has_only_zeros(bitmap words, u32 capacity) {
    u32 const count = (capacity + 63) / 64;
    u32 zeros = 0;
    // acquire: the old owners' writes come before the next use; pairs with bitmap::release().
    WARPHEAP_NO_UNROLL
    while (zeros < count && words.load_newest(zeros, order::acquire) == 0) ++zeros;
    full_fence();  // every word was seen zero before one serves a new class
    return zeros == count;
  }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::slab_bitmap_parts
