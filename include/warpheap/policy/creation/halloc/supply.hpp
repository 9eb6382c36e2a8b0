// SPDX-License-Identifier: Apache-2.0
// Which slab a row takes its blocks from. For one lane alone, without a collective: a thread that
// is at work here holds a slab or a row that others may be waiting for.
//
// Slabs come, in this order, from the normal ones of the size, the sparse ones of the same kind of
// chunks, the free ones, TBuddy, and last from the busy ones. A thread takes a slab out of its set
// first, and then makes it a head by one compare-exchange of a state that fits: that is its lock. A
// slab that does not fit goes to the set where it belongs.
//
// The thread whose promise brings a head to 83.5% replaces it; meanwhile others take the rest of
// it. The next head was found ahead of time, so the row is locked for a few atomics only. The
// thread searches for one more after it has unlocked the row, and several such searches may run at
// once. A row in use that had no next head ready keeps one more of them from then on, four at most:
// contending threads take a slab of large blocks in less time than a search needs.
//
//   halloc.P1  slabs come from TBuddy and go back under a mutex, and each move is counted before
//       the mutex is unlocked. So two equal counts have no move between them, and the thread that
//       holds the mutex knows that no slab is on its way.
//   halloc.P2  head bit => a row has the slab as its head or as a next one, or a call in progress
//       is about to put it there, or has taken it from there.
//   halloc.P3  a row's head changes, and its next heads are taken, under its lock alone. To a place
//       without a next head any thread may give one.
//   halloc.P4  until a thread has unlocked the slab that it locked, it waits for no thread that
//       waits for a locked slab or for the mutex, and for TBuddy only while it holds the mutex. So
//       a thread that waits for a locked slab, with or without the mutex, waits for a running
//       thread.
//
// Source: Adinetz and Pleiter 2014, whose figure of the order is lost.
#pragma once

#include "../../../sync/lane_random.hpp"
#include "table.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace halloc_parts {

enum class replaced : u32 { done, by_others, none_found };
/// What a slab is made live for.
enum class slab_use : bool { search, head };
/// When a row needs the head that is searched.
enum class needed : bool { now, ahead };

template <class Table>
class slab_supply {
 public:
  static constexpr u32 none = slab_set::none;

  WARPHEAP_DEVICE explicit slab_supply(Table const& table) : table_{table} {}

  /// Gives the row another head in place of `seen`, if that is still its head.
  WARPHEAP_COLD static replaced replace(Table table, u32 entry, u32 seen) {
    return slab_supply{table}.replace(entry, seen);
  }

  /// Locks a free slab and takes it out of the set of free slabs. False if it is not free any more.
  WARPHEAP_DEVICE bool lock_free(u32 slab) const {
    slab_state seen = table().load(slab);
    bool won = false;
    // halloc.A6: transients stay in the count; each call takes its own back. acquire: what was done
    // to the slab happens before our use; pairs with the release in unlock_free().
    while (!won && seen.phase() == slab_phase::free)
      won = table().state(slab).compare_exchange(seen.word, seen.locked().word, order::acquire, order::relaxed);
    if (Table::steps::locks_free_slabs && !won) return false;
    table().set(Table::free_slabs).remove(slab);  // halloc.A8
    return true;
  }

  /// Locks a slab that is free or empty. Waits while another call has it locked, which may only be
  /// putting it elsewhere (halloc.P4). False if the slab is in use, and then `seen` is its state.
  WARPHEAP_DEVICE bool lock_unused(u32 slab, slab_state& seen) const {
    constexpr u64 never = ~u64{0};
    u64 lost = never;  // the version at which we lost a race
    WARPHEAP_NO_UNROLL
    for (backoff nap;;) {
      // acquire: room that was left before this is seen in the words; pairs with the release in
      // subtract() (halloc.A4).
      seen.word = table().state(slab).load(order::acquire);
      if (seen.phase() == slab_phase::locked && Table::steps::waits_for_locked_slabs) {
        nap.while_working();
        continue;
      }
      // Room was left since we lost a race (halloc.A2): the slab was in use at a moment in between.
      if (!seen.unused() || (lost != never && lost != seen.version())) return false;
      if (seen.phase() == slab_phase::free ? lock_free(slab) : table().lock_empty(slab)) return true;
      lost = seen.version();
    }
  }

  /// Makes a locked slab live with `chunks` of it promised to the caller.
  WARPHEAP_DEVICE void publish(u32 slab, u32 size, u32 chunks, slab_use use) const {
    // relaxed: ordered by the release below; a free gets it with the block.
    table().role(slab).store(1 + kind_of(size), order::relaxed);
    u64 const change = slab_state::live_as(size) - slab_state::of(slab_phase::locked) + chunks;
    // release: role and clear words happen before any promise; pairs with the acquire in promise().
    table().state(slab).fetch_add(change + (use == slab_use::head ? slab_state::head_bit : 0), order::release);
  }

  /// A locked slab, which was TBuddy's until now or is free by now; `none` if TBuddy has none.
  /// While TBuddy has plenty, it takes several at a time and leaves the others free: one slab takes
  /// TBuddy as long as sixty-four.
  WARPHEAP_DEVICE u32 make() const {
    if constexpr (Table::config.split_percent != 0) return none;
    spin_mutex const moving = table().moving();  // halloc.P1
    for (backoff nap; moving.is_locked() || !moving.try_lock();) {
      nap.while_working();
      // The mutex's holder may have brought enough for us too.
      if (u32 const spare = take_spare(); spare != none) return spare;
    }
    u32 const made = make_alone();
    moving.unlock();
    return made;
  }
  /// make() for a thread that holds the mutex.
  WARPHEAP_DEVICE u32 make_alone() const {
    if constexpr (Table::config.split_percent != 0) return none;
    if (u32 const spare = take_spare(); spare != none) return spare;
    large_heap const large = table().large();
    u32 const order = table().slab_order();
    u32 more = slabs_at_a_time_log2();
    void* memory = more != 0 ? large.create_kept(order + more) : nullptr;
    if (memory) {
      large.divide_kept(memory, order + more, order);
    } else {
      more = 0;
      memory = large.create_kept(order);
    }
    if (!memory) return none;
    u32 const first = static_cast<u32>(table().slab_at(table().offset_of(memory)));
    WARPHEAP_NO_UNROLL
    for (u32 slab = first; slab != first + (1u << more); ++slab) {
      // relaxed: TBuddy gave us the slab, and orders us after the thread that gave it back;
      // unlock_free() and publish() release.
      table().role(slab).store(1, order::relaxed);
      table().state(slab).fetch_add(slab_state::of(slab_phase::locked), order::relaxed);
    }
    table().count_move();
    // The run is aligned to its size, so it lies in one word of the set.
    if (more != 0) table().unlock_free(first + 1, first + (1u << more));
    return first;
  }

  /// The slab that a row takes blocks from, if it has room by its count; else `none`.
  WARPHEAP_DEVICE u32 head_with_room(u32 entry) const {
    u32 const head = head_of(table().head(entry).load(order::relaxed)), size = entry % sizes;
    return head != 0 && fits(head - 1, table().load(head - 1), size, table().geometry().capacity(kind_of(size)))
               ? head - 1
               : none;
  }

  /// Gives a locked slab back to TBuddy. The caller holds the mutex (halloc.P1).
  WARPHEAP_DEVICE void unmake(u32 slab) const {
    // relaxed: TBuddy's release covers both.
    table().role(slab).store(0, order::relaxed);
    table().state(slab).fetch_sub(slab_state::of(slab_phase::locked), order::relaxed);
    table().large().destroy_kept(table().data(slab));
    table().count_move();
  }

  WARPHEAP_DEVICE static u32 scattered(u32 below) { return scale_below(lane_random_bits(), below); }

 private:
  WARPHEAP_DEVICE replaced replace(u32 entry, u32 seen) const {
    u32 const size = entry % sizes;
    atomic_ref<u64> const lock = table().lock_of(entry);
    // relaxed: a hint, so that contending attempts do not keep the lock's owner from its row.
    if (lock.load(order::relaxed) & row_lock) return replaced::by_others;
    // acquire: the row as its last owner left it; pairs with the release in unlock().
    u64 const more_ahead = lock.fetch_or(row_lock, order::acquire);
    if (more_ahead & row_lock) return replaced::by_others;
    u64 const began = Table::work_clock();
    // relaxed: all but the counter changes under our lock alone (halloc.P3).
    u32 const head = head_of(table().head(entry).load(order::relaxed));
    if (Table::steps::rechecks_head && head != seen) {
      unlock(entry, more_ahead);
      return replaced::done;
    }
    u32 next = take_next(entry, size);
    bool const dry = next == 0;
    if (dry) next = find(table(), size, needed::now) + 1;
    // No head at all is better than one without room, of which threads would promise themselves
    // blocks and give them back. relaxed: a thread that uses the head checks the slab's state. Only
    // the low part changes: it becomes exactly `next`.
    table().head(entry).fetch_add(u64{next} - u64{head}, order::relaxed);
    u64 const wanted = dry && head != 0 && more_ahead + 1 < Table::most_ahead ? more_ahead + 1 : more_ahead;
    unlock(entry, wanted);
    if (next != 0) {
      table().add_cycles(count::replacing, began);
      table().add_work(count::replacements, 1);
      table().add_work(count::dry_rows, dry && head != 0);
    }
    if (head != 0) retire(head - 1);
    if (next == 0) return replaced::none_found;
    fill_ahead(entry, size, static_cast<u32>(1 + wanted));
    table().add_cycles(count::caching, began);
    return replaced::done;
  }

  WARPHEAP_DEVICE void unlock(u32 entry, u64 more_ahead) const {
    // release: pairs with the acquire in replace().
    table().lock_of(entry).store(more_ahead, order::release);
  }

  /// One of the row's next heads, + 1; 0 if we saw none that may serve. The caller holds the row.
  WARPHEAP_DEVICE u32 take_next(u32 entry, u32 size) const {
    WARPHEAP_NO_UNROLL
    for (u32 i = 0; i < Table::most_ahead; ++i) {
      atomic_ref<u64> const place = table().next_head(entry, i);
      if (place.load(order::relaxed) == 0) continue;
      // acquire: the head as its finder left it; pairs with the release in give_next(). Not 0: only
      // the row's owner takes next heads (halloc.P3).
      u32 const next = static_cast<u32>(place.exchange(0, order::acquire));
      if (may_serve(next - 1, size)) return next;
      retire(next - 1);
    }
    return 0;
  }

  /// Finds next heads until the row has `wanted`, but two at most, since other threads search too.
  /// Finds more than the row's first one only while there are many free slabs.
  WARPHEAP_DEVICE void fill_ahead(u32 entry, u32 size, u32 wanted) const {
    WARPHEAP_NO_UNROLL
    for (u32 turn = 0; turn < 2; ++turn) {
      u32 there = 0;
      for (u32 i = 0; i < wanted; ++i) there += table().next_head(entry, i).load(order::relaxed) != 0;
      if (there == wanted || (there != 0 && !is_roomy())) return;
      u32 const slab = find(table(), size, needed::ahead);
      if (slab == none) return;
      if (!give_next(entry, slab, wanted)) return retire(slab);
    }
  }

  /// Makes a head one of the row's next heads. False if the row has `wanted` of them already
  /// (halloc.P3).
  WARPHEAP_DEVICE bool give_next(u32 entry, u32 slab, u32 wanted) const {
    WARPHEAP_NO_UNROLL
    for (u32 i = 0; i < wanted; ++i) {
      atomic_ref<u64> const place = table().next_head(entry, i);
      u64 there = Table::steps::gives_to_empty_places ? 0 : place.load(order::relaxed);
      // release: pairs with the acquire in take_next().
      if (place.compare_exchange(there, u64{slab} + 1, order::release, order::relaxed)) return true;
    }
    return false;
  }

  /// Whether a slab that was found ahead of time may still serve the size: others may have taken it
  /// for another kind.
  WARPHEAP_DEVICE bool may_serve(u32 slab, u32 size) const {
    slab_state const now = table().load(slab);
    return now.serves(kind_of(size)) && now.head() && fits(slab, now, size, table().busy_limit(kind_of(size)));
  }

  /// Takes a head from its row to the set where it belongs (halloc.A7).
  WARPHEAP_DEVICE void retire(u32 slab) const {
    // acquire: as in lock_empty(). The slab may have become another row's head meanwhile: then it
    // will be in two places, which does no harm.
    slab_state const old{table().state(slab).fetch_and(~slab_state::head_bit, order::acquire)};
    if (!old.live()) return;
    table().set(table().set_of(old)).add(slab);
    if (old.used() == 0 && table().lock_empty(slab)) table().unlock_free(slab);
  }

  WARPHEAP_DEVICE bool fits(u32 slab, slab_state now, u32 size, u32 most_used) const {
    u32 const kind = kind_of(size), length = length_of(size);
    return now.serves(kind) && now.used() <= most_used && now.room(table().geometry().capacity(kind), length) != 0 &&
           !table().is_noted_full(slab, now, length);
  }

  /// A head for the size; `none` if we saw none, though there may be one. If it is ahead of time,
  /// only a slab whose use costs others nothing. A call: two copies of it would be four thousand
  /// instructions.
  WARPHEAP_COLD static u32 find(Table table, u32 size, needed when) { return slab_supply{table}.find(size, when); }
  WARPHEAP_DEVICE u32 find(u32 size, needed when) const {
    u32 const kind = kind_of(size);
    u32 slab = none;
    WARPHEAP_NO_UNROLL
    for (u32 turn = 0; turn < 2 && slab == none; ++turn)
      slab = take(turn == 0 ? Table::normal(size) : Table::sparse(kind), size,
                  turn == 0 ? table().busy_limit(kind) : table().sparse_limit(kind));
    if (slab == none) slab = take_free(size);
    if (slab == none && (when == needed::now || is_plenty())) slab = make(size);
    if (slab == none && when == needed::now) slab = take(Table::busy(kind), size, table().geometry().capacity(kind));
    return slab;
  }

  WARPHEAP_DEVICE bool is_plenty() const {
    return Table::config.split_percent == 0 &&
           table().large().available_slots(u64{1} << table().geometry().slab_log2()) > table().slabs() / 4;
  }
  WARPHEAP_DEVICE u32 slabs_at_a_time_log2() const {
    u32 const share = log2_floor(table().slabs()), most = share > 5 ? share - 5 : 0;
    if (most == 0 || !is_plenty()) return 0;
    return most < 6 ? most : 6;
  }
  /// Whether a quarter of some slabs drawn at random are free, or TBuddy has plenty.
  WARPHEAP_DEVICE bool is_roomy() const {
    u32 const slabs = table().slabs(), drawn = slabs < 64 ? slabs : 64;
    return table().set(Table::free_slabs).count_near(scattered(slabs)) >= (drawn + 3) / 4 || is_plenty();
  }

  /// Makes a slab of a set a head if at most `most_used` of its chunks are taken. Tries a few
  /// slabs: one that does not fit goes to a set where it does.
  WARPHEAP_DEVICE u32 take(u32 which, u32 size, u32 most_used) const {
    slab_set const from = table().set(which);
    WARPHEAP_NO_UNROLL
    for (u32 tries = 0; tries < most_tries; ++tries) {
      u32 const slab = from.find(scattered(table().slabs()));
      if (slab == none) return none;
      // acquire: we see the state for which the slab was put into the set, or a later one.
      if (!from.remove(slab)) continue;
      if (try_head(slab, size, most_used)) return slab;
    }
    return none;
  }
  static constexpr u32 most_tries = 4;

  /// Makes a slab that we took out of a set a head. If it does not fit, it goes to the set where it
  /// belongs (slab_set.S1).
  WARPHEAP_DEVICE bool try_head(u32 slab, u32 size, u32 most_used) const {
    u64 const as = u64{length_of(size)} << slab_state::length_shift;
    slab_state now = table().load(slab);
    while (now.live() && !now.head()) {
      if (!fits(slab, now, size, most_used)) {
        table().set(table().set_of(now)).add(slab);
        return false;
      }
      u64 const wished = (now.word & ~(u64{3} << slab_state::length_shift)) | as | slab_state::head_bit;
      // acquire: as in promise(). The whole word is compared: live, of this kind, and no head.
      if (table().state(slab).compare_exchange(now.word, wished, order::acquire, order::relaxed)) return true;
    }
    return false;
  }

  /// A free slab, locked; `none` if we saw none or others were faster.
  WARPHEAP_DEVICE u32 take_spare() const {
    u32 const spare = table().set(Table::free_slabs).find(scattered(table().slabs()));
    return spare != none && lock_free(spare) ? spare : none;
  }

  WARPHEAP_DEVICE u32 take_free(u32 size) const {
    WARPHEAP_NO_UNROLL
    for (u32 tries = 0; tries < most_tries; ++tries) {
      u32 const slab = table().set(Table::free_slabs).find(scattered(table().slabs()));
      if (slab == none) return none;
      if (!lock_free(slab)) continue;
      publish(slab, size, 0, slab_use::head);
      return slab;
    }
    return none;
  }

  WARPHEAP_DEVICE u32 make(u32 size) const {
    u32 const slab = make();
    if (slab != none) publish(slab, size, 0, slab_use::head);
    return slab;
  }

  /// The table with opaque sizes, from which nothing is kept in registers: no common path is here.
  WARPHEAP_DEVICE Table table() const { return table_.opaque(); }

  Table table_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::halloc_parts
