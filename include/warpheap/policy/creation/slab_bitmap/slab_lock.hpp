// Slabs that change their kind or class. All of it goes through kind locked: one thread holds the slab, others' transients
// come and go, and nobody is promised anything.
//
//   transition                   by                                  operation
//   free or empty -> locked      a taker                             compare-exchange; toggles off where listed (before it,
//                                                                    and back, where slabs are to be spared)
//   locked -> live, run, free    who locked it                       fetch_add of the difference; toggles on
//
// An empty slab is handed over word by word: free clears bits and subtracts by two atomics on different words, which
// nothing orders for a third thread, so a slab may be seen with used = 0 while a clear is on its way. Claiming every word
// of the old class waits for the clears, or finds that one is late and leaves the slab.
#pragma once

#include "slab_table.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {

/// Takes slabs and gives them kinds. Stateless; `table` is the heap. Any lane alone.
class slab_lock {
 public:
  /// Locks a free or empty slab for a run. True if we did; then publish_run() or unlock() must follow.
  WARPHEAP_DEVICE static bool take_for_run(slab_table const& table, u32 slab) {
    return take_free(table, slab, 0) || take_empty(table, slab, 0);
  }

  /// Makes a slab locked for a run part of it.
  WARPHEAP_DEVICE static void publish_run(slab_table const& table, u32 slab) {
    // relaxed: nobody reads anything on the strength of it; the locker hands the run out.
    table.state(slab).fetch_add(slab_state::of(slab_kind::run, 0).word - slab_state::of(slab_kind::locked, 0).word,
                                order::relaxed);
  }

  /// Gives a slab of kind `from` (locked for a run, or run) back to the free ones. The caller raises the epoch.
  WARPHEAP_DEVICE static void unlock(slab_table const& table, u32 slab, slab_kind from, order how) {
    // how: release, or relaxed after recycling_fence(): what the owner did happens before the next one's use; pairs with
    // the acquire in take_free().
    table.state(slab).fetch_sub(slab_state::of(from, 0).word, how);
    table.index(slab_table::free_slabs).toggle(slab);
  }

  /// Locks a free slab on the way to `size_class`.
  WARPHEAP_DEVICE static bool take_free(slab_table const& table, u32 slab, u32 size_class) {
    if (!lock_free(table, slab, size_class)) return false;
    table.index(slab_table::free_slabs).toggle(slab);
    return true;
  }

  /// The same, if that leaves `spare` of the 64 slabs around it free. A crowd that looked at the index at once would all see
  /// enough of them; so each takes its slab off the index first, and counts by what was there. (Two who come for one slab put
  /// it back for a moment, in which a third may count it.)
  WARPHEAP_DEVICE static bool take_spare(slab_table const& table, u32 slab, u32 size_class, u32 spare) {
    auto const free_slabs = table.index(slab_table::free_slabs);
    u64 const around = free_slabs.toggle(slab);
    if (popcount(around) > spare && lock_free(table, slab, size_class)) return true;
    free_slabs.toggle(slab);  // toggles commute (D4): back as it was, whatever others did meanwhile
    return false;
  }

  /// Locks an empty slab of another class, or of the same, on the way to `size_class`.
  WARPHEAP_DEVICE static bool take_empty(slab_table const& table, u32 slab, u32 size_class) {
    bool const taken = try_take_empty(table.afresh(), slab, size_class);
    // Out of the set of empty slabs, unless it has become empty again.
    table.afresh().index(slab_table::empty_slabs).clear(slab);
    slab_state const now = table.load(slab);
    if (now.live() && now.used() == 0) table.afresh().index(slab_table::empty_slabs).set(slab);
    return taken;
  }

  /// Makes a slab that we locked for `size_class` live, promises `wanted` blocks to the caller, and makes it the slab that
  /// hint `entry` uses, unless that is no_hint.
  WARPHEAP_DEVICE static slab_reservation publish(slab_table const& table, u32 slab, u32 size_class, u32 wanted,
                                                  u32 entry) {
    slab_limits const limits{table.geometry().capacity(size_class)};
    u32 const promised = wanted < limits.capacity ? wanted : limits.capacity;
    bool const soft = promised >= limits.soft, hard = promised >= limits.capacity;
    // relaxed: ordered by the release below.
    table.role(slab).store(slab_role::of_class(size_class).word, order::relaxed);
    // D9: who left this slab free or empty may not have said so yet.
    table.raise_epoch_relaxed();
    u64 const change = slab_state::of(slab_kind::live, 0).word - slab_state::of(slab_kind::locked, 0).word +
                       slab_state::promise(promised) + (soft ? slab_state::soft_bit : 0) +
                       (hard ? slab_state::hard_bit : 0);
    // release: role and cleared words happen before any reservation; pairs with the acquire in promise().
    slab_state const old{table.state(slab).fetch_add(change, order::release)};
    table.set_hint(entry, slab);  // before the indexes: others wait for it
    if (!soft) table.index(slab_table::listed(size_class)).toggle(slab);
    if (!hard) table.index(slab_table::scarce(size_class)).toggle(slab);
    return {slab, promised, old.ever() == 0 ? 0 : slab_reservation::anywhere, soft};
  }

 private:
  WARPHEAP_DEVICE static bool lock_free(slab_table const& table, u32 slab, u32 size_class) {
    slab_state was = table.load(slab);
    if (was.kind() != slab_kind::free) return false;
    // D1: transients stay in the count; each takes its own part back from both fields.
    u64 const locked = slab_state::of(slab_kind::locked, size_class).word + slab_state::promise(was.used());
    // acquire: the last owner's writes happen before ours; pairs with the release in unlock().
    return table.state(slab).compare_exchange(was.word, locked, order::acquire, order::relaxed);
  }

  WARPHEAP_DEVICE static bool try_take_empty(slab_table const& table, u32 slab, u32 size_class) {
    slab_state was = table.load(slab);
    if (!was.live() || was.used() != 0) return false;
    u32 const capacity = table.geometry().capacity(was.size_class());
    // D1: the words are claimed below and count as promised while they are, so that a block freed twice at this moment
    // takes nothing that is not there. D4: S and H go with the lock: a late settler that lifted one from a locked slab
    // would leave its toggle undone.
    u64 const locked = slab_state::of(slab_kind::locked, was.size_class()).word + slab_state::promise(capacity);
    // acquire: pairs with the release in publish(); the old owners' writes come with the words below.
    if (!table.state(slab).compare_exchange(was.word, locked, order::acquire, order::relaxed)) return false;
    u32 const handed = hand_over(table.blocks(slab), afresh(capacity));
    u32 const kept = handed & ~not_empty;
    // Back as it was taken, or on to the new class, here under the lock (D3).
    u64 const wished = handed & not_empty ? was.word : slab_state::of(slab_kind::locked, size_class).word;
    u64 const change = wished - slab_state::of(slab_kind::locked, was.size_class()).word - slab_state::promise(kept);
    // release: gives the lock back; where it is kept, publish() releases.
    table.state(slab).fetch_add(change, order::release);
    if (handed & not_empty) return false;
    if (!was.soft()) table.index(slab_table::listed(was.size_class())).toggle(slab);
    if (!was.hard()) table.index(slab_table::scarce(was.size_class())).toggle(slab);
    return true;
  }

  /// Claims and clears all words of a locked slab of `capacity` blocks. Returns the blocks that are still ours to
  /// subtract: all, less those that somebody freed a second time meanwhile. With not_empty if a word was not zero (D7);
  /// its bits are left as they were.
  WARPHEAP_DEVICE static u32 hand_over(bitmap words, u32 capacity) {
    u32 const count = (capacity + 63) / 64;
    u32 kept = capacity, claimed = 0;
    WARPHEAP_NO_UNROLL
    for (; claimed < count; ++claimed) {
      u64 const valid = slab_table::valid_mask(capacity, claimed);
      // acquire: what the old owners wrote happens before the next one's use; pairs with the release in
      // bitmap::release().
      u64 const ours = words.try_claim(claimed, valid, order::acquire);
      if (ours == valid) continue;
      kept -= popcount(ours) - popcount(words.release(claimed, ours));
      break;
    }
    recycling_fence();
    WARPHEAP_NO_UNROLL
    for (u32 i = 0; i < claimed; ++i) {
      u64 const valid = slab_table::valid_mask(capacity, i);
      kept -= popcount(valid) - popcount(words.release(i, valid));
    }
    return claimed == count ? kept : kept | not_empty;
  }

  static constexpr u32 not_empty = 1u << 31;
};

}  // namespace warpheap::inline WARPHEAP_BACKEND
