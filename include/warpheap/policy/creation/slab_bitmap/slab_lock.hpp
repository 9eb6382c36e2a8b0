// Slabs that change their kind or class. All of it goes through kind locked: one thread holds the slab, others' transients
// come and go, and nobody is promised anything.
//
//   transition                   by                                  operation
//   free or empty -> locked      a taker                             compare-exchange from a word without C; off the
//                                                                    indexes of the old class
//   locked -> live               the thread that locked it           set open(c), clear takeable;
//                                                                    fetch_add (I4)
//   locked -> run                the same                            clears takeable, fetch_add
//   locked, run -> free          the same, or one that frees the run  sets takeable, fetch_sub
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
  /// Locks a free slab, if that leaves `spare` of the 64 slabs around it free; publish() must follow. A crowd that looked at
  /// the index at once would all see enough of them; so each takes its slab off the index first, and counts by what was
  /// there.
  WARPHEAP_DEVICE static bool take_free(slab_table const& table, u32 slab, u32 spare) {
    slab_state const was = table.load(slab);
    if (was.kind() != slab_kind::free || !lock(table, slab, was)) return false;
    if (popcount(table.index(slab_table::free_slabs).toggle(slab)) > spare) return true;
    unlock(table, slab, slab_kind::locked, order::release);
    return false;
  }

  /// Locks a free or empty slab, and takes it off the indexes where it stands, but for takeable:
  /// until publish(), publish_run() or unlock(), one of which must follow, searches wait for us.
  WARPHEAP_DEVICE static bool take(slab_table const& table, u32 slab) {
    slab_state const was = table.load(slab);
    if (!was.takeable() || !lock(table, slab, was)) return false;
    if (!was.live()) {
      table.index(slab_table::free_slabs).toggle(slab);
      return true;
    }
    u32 const old_class = was.size_class();
    auto const listed = table.index(slab_table::listed(old_class)), open = table.index(slab_table::open(old_class));
    bool const is_empty = has_only_zeros(table.blocks(slab), afresh(table.geometry().capacity(old_class)));
    if (was.soft() != is_empty) listed.toggle(slab);
    if (is_empty) {
      open.clear(slab, order::relaxed);  // I3: we hold the lock
      return true;
    }
    // Live again, without S and F, and with the bits of the indexes: a settler that met the lock has gone.
    open.set(slab);
    table.index(slab_table::takeable).set(slab);
    u64 const change = slab_state::of(slab_kind::live, old_class).word - slab_state::of(slab_kind::locked, 0).word;
    // release: I1, I2; gives the lock back.
    table.state(slab).fetch_add(change, order::release);
    return false;
  }

  /// Makes a slab that we locked live, of `size_class`, promises `wanted` blocks to the caller, and makes it the slab that
  /// hint `entry` uses, unless that is no_hint.
  WARPHEAP_DEVICE static slab_reservation publish(slab_table const& table, u32 slab, u32 size_class, u32 wanted,
                                                  u32 entry) {
    slab_limits const limits{table.geometry().capacity(size_class)};
    u32 const promised = wanted < limits.capacity ? wanted : limits.capacity;
    bool const soft = promised >= limits.soft;
    table.index(slab_table::open(size_class)).set(slab);
    // release: I4; pairs with the fence of a search that finds the bit cleared. Of a slab that
    // begins empty it stays (I2).
    if (promised != 0) table.index(slab_table::takeable).clear(slab, order::release);
    // relaxed: ordered by the release below.
    table.role(slab).store(slab_role::of_class(size_class).word, order::relaxed);
    u64 const change = slab_state::of(slab_kind::live, size_class).word - slab_state::of(slab_kind::locked, 0).word +
                       slab_state::promise(promised) + (soft ? slab_state::soft_bit : 0);
    // release: role, cleared words and I1 happen before any reservation; pairs with the acquire in promise().
    slab_state const old{table.state(slab).fetch_add(change, order::release)};
    table.set_hint(entry, slab);  // before the index: others wait for it
    if (!soft) table.index(slab_table::listed(size_class)).toggle(slab);
    return slab_reservation{slab, promised, 0}.known(old.ever() == 0, soft, false);
  }

  /// Makes a locked slab part of a run.
  WARPHEAP_DEVICE static void publish_run(slab_table const& table, u32 slab) {
    // relaxed, both: nobody reads anything on the strength of it; the locker hands the run out.
    table.index(slab_table::takeable).clear(slab, order::relaxed);
    table.state(slab).fetch_add(slab_state::of(slab_kind::run, 0).word - slab_state::of(slab_kind::locked, 0).word,
                                order::relaxed);
  }

  /// Makes a slab of kind `from`, locked or run, free.
  WARPHEAP_DEVICE static void unlock(slab_table const& table, u32 slab, slab_kind from, order how) {
    table.index(slab_table::takeable).set(slab);
    table.index(slab_table::free_slabs).toggle(slab);
    // how: release, or relaxed after recycling_fence(): what the owner did happens before the next one's use; pairs with
    // the acquire in lock().
    table.state(slab).fetch_sub(slab_state::of(from, 0).word, how);
  }

 private:
  /// Locks a slab that was seen takeable, if nothing has changed since.
  WARPHEAP_DEVICE static bool lock(slab_table const& table, u32 slab, slab_state was) {
    if (was.clearing()) return false;
    // D1: transients of a free slab stay in the count; each takes its own part back from both fields. S and F go with the
    // lock: a late settler that lifted S from a locked slab would leave its toggle undone (D4).
    u64 const life = was.reborn() & ~(slab_state::life_unit - 1);
    u64 const locked = life + slab_state::of(slab_kind::locked, 0).word + slab_state::promise(was.used());
    // acquire: the last owner's writes happen before ours; pairs with the release in unlock(),
    // publish() and take().
    return table.state(slab).compare_exchange(was.word, locked, order::acquire, order::relaxed);
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
