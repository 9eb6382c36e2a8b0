// Slabs that change their kind or class. All of it goes through kind locked: one thread holds the slab, others' transients
// come and go, and nobody is promised anything.
//
//   transition                   by                                  operation
//   free or empty -> locked      a taker                             compare-exchange; toggles off where listed (before it,
//                                                                    and back, where slabs are to be spared)
//   locked -> live, run, free    who locked it                       fetch_add of the difference; toggles on
//
// An empty slab changes class only after a look at every word: free clears bits and subtracts by
// two atomics on different words, which nothing orders for a third thread, so a slab may be seen
// with used = 0 while a clear is on its way. A read-modify-write of each word comes after the
// clears, or finds that one is late; then the slab is left.
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
    // D4: S and H go with the lock: a late settler that lifted one from a locked slab would leave
    // its toggle undone.
    slab_state const locked = slab_state::of(slab_kind::locked, was.size_class());
    // acquire: pairs with the release in publish(); the old owners' writes come with the words below.
    if (!table.state(slab).compare_exchange(was.word, locked.word, order::acquire, order::relaxed)) return false;
    bool const empty = has_only_zeros(table.blocks(slab), afresh(table.geometry().capacity(was.size_class())));
    // On to the new class, here under the lock (D3); or back, listed whatever it was: a settler
    // that met the lock has gone.
    u64 const back = was.word & ~(slab_state::soft_bit | slab_state::hard_bit);
    u64 const wished = empty ? slab_state::of(slab_kind::locked, size_class).word : back;
    if (!empty) table.raise_epoch();  // D9
    // release: gives the lock back; where it is kept, publish() releases.
    table.state(slab).fetch_add(wished - locked.word, order::release);
    if (was.soft() != empty) table.index(slab_table::listed(was.size_class())).toggle(slab);
    if (was.hard() != empty) table.index(slab_table::scarce(was.size_class())).toggle(slab);
    return empty;
  }

  /// Whether every word of a locked slab of `capacity` blocks is zero. Nobody sets bits there (D1),
  /// so what is zero stays so, and a block that is freed a second time meanwhile finds nothing to
  /// clear.
  WARPHEAP_DEVICE static bool has_only_zeros(bitmap words, u32 capacity) {
    u32 const count = (capacity + 63) / 64;
    u32 zeros = 0;
    // acquire: what the old owners wrote happens before the next one's use; pairs with the release
    // in bitmap::release().
    WARPHEAP_NO_UNROLL
    while (zeros < count && words.load_newest(zeros, order::acquire) == 0) ++zeros;
    recycling_fence();  // every word was seen at zero before one is opened for the new class
    return zeros == count;
  }
};

}  // namespace warpheap::inline WARPHEAP_BACKEND
