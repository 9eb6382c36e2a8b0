// The last resort of lanes of one heap and size for whom no head had room: every slab is looked at once, by the lanes side by
// side, also the busy ones, other rows' heads, and heads of other chunks that are empty; then TBuddy is asked for more.
//
// nullptr means that no suitable block was free during the whole call. So each place has to be seen without room, or lost to
// another call, once: a lost race is an observation, from which a search goes on. It takes no second round for what others
// do, and ends however they come and go. A slab is free while nobody has a chunk of it, also while others move it from one
// set to another, or from TBuddy or to it (P1).
//
//   N1  in a slab of our chunks the words decide. Its count may be too high, by promises of calls that will not find a block
//       or were promised too much. So a search promises itself what it sees, whatever the count says (A1 holds). A call that
//       was promised a block and finds none gives the promise back and searches itself.
//   N2  a slab of other chunks is in use unless its count is 0: a promise there holds the whole slab.
//   N3  TBuddy is asked with the mutex held. If slabs have come from it or gone to it since the first look, all slabs are
//       looked at once more before the mutex is given back: no slab can pass from one side to the other then.
//
// A crowd on a full heap shares searches (E1, E2 in slab_table.hpp): a call goes by any that began after it did. And a slab
// whose words were searched in vain keeps a note of that, so only slabs in which something was freed since are read again.
#pragma once

#include "../../../platform/backoff.hpp"
#include "../../../sync/warp_aggregate.hpp"
#include "chunk_claim.hpp"
#include "slab_supply.hpp"

namespace warpheap::inline WARPHEAP_BACKEND::chunks {

template <class Table>
class block_search {
  using supply_type = slab_supply<Table>;
  using steps = typename Table::steps;

 public:
  /// A block, or nullptr: then there was none for us, and the refusal is counted. All lanes of `mask` call, with the same heap
  /// and size.
  ///
  /// number  of the call, if its leader drew one before; else 0
  WARPHEAP_COLD static void* run(Table table, u32 mask, u32 size, u64 number) {
    block_search search{table, group_of(mask), size};
    return search(number);
  }

 private:
  WARPHEAP_DEVICE block_search(Table const& table, lane_group const& group, u32 size)
      : table_{table}, group_{group}, kind_{kind_of(size)}, length_{length_of(size)} {}

  WARPHEAP_DEVICE void* operator()(u64 number) {
    // What any of us knows to have been freed, all of us find.
    simt::sync_warp(group_.mask);
    u64 moves = 0;
    if (group_.leads) {
      number_ = number != 0 ? number : table().draw_number();
      moves = table().moves();
      table().add_work(count::searches, 1);
    }
    if (!look_at_all()) {
      if constexpr (Table::config.split_percent != 0) note_fruitless();
      else take_from_tbuddy(moves);
    }
    u32 const refused = simt::ballot(group_.mask, mine_ == nullptr);
    if (group_.leads) table().add_count(count::failures, popcount(refused));
    return mine_;
  }

  WARPHEAP_DEVICE u32 size() const { return size_of(kind_, length_); }
  /// Lanes of ours that have no block yet.
  WARPHEAP_DEVICE u32 unserved() const { return simt::ballot(group_.mask, mine_ == nullptr); }

  /// Looks at every slab, and takes what is there. True if nobody has to look any further.
  WARPHEAP_DEVICE bool look_at_all() {
    u32 const slabs = table().slabs(), start = broadcast(group_, supply_type::scattered(slabs));
    WARPHEAP_NO_UNROLL
    for (u32 done = 0; done < slabs; done += group_.size) {
      if (is_answered()) return true;
      u32 const mine = done + group_.rank, ahead = start + mine, slab = ahead < slabs ? ahead : ahead - slabs;
      bool const worth = mine < slabs && is_worth_a_visit(slab);
      steps::linger_in_search();
      WARPHEAP_NO_UNROLL
      for (u32 rest = simt::ballot(group_.mask, worth); rest != 0; rest &= rest - 1) {
        if (visit(simt::shuffle(group_.mask, slab, lowest_bit(rest)))) return true;
        if (!steps::goes_on) done = 0 - group_.size;
      }
    }
    return false;
  }

  /// Whether a search that began after our call has found nothing for us (E2).
  WARPHEAP_DEVICE bool is_answered() const {
    u32 answered = 0;
    if (group_.leads) answered = table().is_fruitless(size(), number_);
    return broadcast(group_, answered) != 0;
  }
  WARPHEAP_DEVICE void note_fruitless() const {
    if (group_.leads) table().note_fruitless(size(), number_);
  }

  WARPHEAP_DEVICE bool is_worth_a_visit(u32 slab) const {
    table().add_work(count::looks, 1);
    // relaxed: of what was freed before our call we see it, or something later.
    slab_state const now = table().load(slab);
    if (now.phase() == slab_phase::locked) return steps::waits_for_locked_slabs;
    if (!steps::decides_by_words && now.serves(kind_) && now.room(capacity(), length_) == 0) return false;
    return now.unused() || (now.serves(kind_) && !table().is_noted_full(slab, now, length_));
  }

  /// Takes what a slab has for us. True if all of us are served.
  WARPHEAP_DEVICE bool visit(u32 slab) {
    for (;;) {
      u32 promised = 0, ours = 0;
      u32 const wanted = popcount(unserved());
      if (group_.leads) {
        slab_state seen;
        if (supply_type{table()}.lock_unused(slab, seen)) promised = open(slab, wanted);
        ours = promised != 0 || seen.serves(kind_);  // N2
      }
      if (broadcast(group_, ours) == 0) return false;
      // Emptied and locked by others between two of our steps, it may be free now.
      if (take_from(slab, broadcast(group_, promised))) return unserved() == 0;
    }
  }

  /// Makes a locked slab one of ours and returns the blocks of it that are promised. One lane.
  WARPHEAP_DEVICE u32 open(u32 slab, u32 wanted) const {
    u32 const room = capacity() >> length_, promised = wanted < room ? wanted : room;
    supply_type{table()}.publish(slab, size(), promised << length_, false);
    table().set(Table::sparse(kind_)).add(slab);  // A7: from there to where it belongs
    return promised;
  }

  /// Takes blocks of a slab of our chunks for those who have none, from a random word on, and gives back what is left of the
  /// `promised` blocks. False if the slab is not of our chunks any more.
  WARPHEAP_DEVICE bool take_from(u32 slab, u32 promised) {
    slab_state before;
    // acquire: room that was left before this is seen in the words; pairs with the release in subtract() (A4).
    if (group_.leads) before.word = table().state(slab).load(order::acquire);
    // The leader's acquire is everybody's, also that of publish().
    simt::sync_warp(group_.mask);
    u32 const words = table().geometry().words(kind_), start = broadcast(group_, supply_type::scattered(words));
    u32 waiting = unserved();
    bool found = promised != 0;
    WARPHEAP_NO_UNROLL
    for (u32 done = 0; done < words && waiting != 0 && (promised != 0 || !found); done += group_.size) {
      u32 const turn = done + group_.rank, ahead = start + turn, word = ahead < words ? ahead : ahead - words;
      u32 const starts = turn < words ? starts_in(look_at(table(), slab, word, capacity()), length_) : 0;
      table().add_work(count::word_looks, turn < words);
      WARPHEAP_NO_UNROLL
      for (u32 rest = simt::ballot(group_.mask, starts != 0); rest != 0 && waiting != 0; rest &= rest - 1) {
        if (!found) {
          promised = promise(slab, popcount(waiting));
          if (promised == 0) return false;
          found = true;
        }
        if (promised == 0) break;
        u32 const taker = lowest_bit(rest);
        u32 got = 0;
        if (simt::lane_id() == taker) got = take_some(slab, word, starts, promised);
        got = simt::shuffle(group_.mask, got, taker);
        u32 const at = simt::shuffle(group_.mask, word, taker), rank = popcount(waiting & simt::lanes_below());
        if (mine_ == nullptr && rank < popcount(got))
          mine_ = table().address(slab, kind_, word_chunks * at + nth_bit(got, rank));
        waiting = unserved();
        promised -= popcount(got);
      }
    }
    if (group_.leads && promised != 0) Table::give_back(table(), slab, promised << length_);
    if (group_.leads && !found) note_full(slab, before);
    // The takers' acquires are everybody's: what the old owners wrote happens before our return.
    simt::sync_warp(group_.mask);
    return true;
  }

  /// Promises us blocks of a slab, as many as we want, whatever its count says (N1). 0 if it is not of our chunks any more.
  WARPHEAP_DEVICE u32 promise(u32 slab, u32 wanted) const {
    u32 promised = 0;
    if (group_.leads) {
      if (table().promise(slab, wanted << length_).serves(kind_)) promised = wanted;
      else Table::give_back(table(), slab, wanted << length_);
    }
    promised = broadcast(group_, promised);
    simt::sync_warp(group_.mask);
    return promised;
  }

  /// Takes up to `most` of the blocks that start at `starts` in a word. One lane; each start is tried once.
  WARPHEAP_DEVICE u32 take_some(u32 slab, u32 word, u32 starts, u32 most) const {
    u32 got = 0;
    WARPHEAP_NO_UNROLL
    while (starts != 0 && popcount(got) < most) {
      u32 const wanted = static_cast<u32>(lowest_bits(starts, most - popcount(got)));
      u32 seen = 0;
      got |= take_blocks(table(), slab, word, wanted, kind_, length_, seen);
      starts &= ~wanted & starts_in(~seen, length_);
    }
    return got;
  }

  /// Nobody has to look at the words again as long as nobody leaves room (A4).
  WARPHEAP_DEVICE void note_full(u32 slab, slab_state before) const {
    // An empty one may have got another kind meanwhile, at the same version.
    if (!before.serves(kind_) || before.empty()) return;
    // relaxed: whoever believes it has read a state of the same version. Of two at once one is lost, and looked at again.
    atomic_ref<u64> const note = table().note(slab);
    note.store(before.noting_full(note.load(order::relaxed), length_), order::relaxed);
  }

  /// Slabs that TBuddy has, while we wait for the mutex what our row comes by, and all slabs again if some were moved (N3).
  WARPHEAP_DEVICE void take_from_tbuddy(u64 moves) {
    if (!lock_moving()) return;
    u32 moved = 0;
    if (group_.leads) moved = steps::heeds_moves && table().moves() != moves;
    moved = broadcast(group_, moved);
    for (;;) {
      u32 slab = slab_set::none, promised = 0;
      u32 const wanted = popcount(unserved());
      if (wanted == 0) break;
      if (group_.leads) slab = supply_type{table()}.make_alone();
      if (group_.leads && slab != slab_set::none) promised = open(slab, wanted);
      slab = broadcast(group_, slab);
      if (slab == slab_set::none) break;
      take_from(slab, broadcast(group_, promised));
    }
    if (unserved() != 0 && !(moved != 0 && look_at_all())) note_fruitless();
    if (group_.leads) table().moving().unlock();
  }

  /// Waits for the mutex, which the leader then has. False if we need it no more: somebody else's search has answered for us,
  /// or our row has come by a head that served us.
  WARPHEAP_DEVICE bool lock_moving() {
    spin_mutex const moving = table().moving();
    for (backoff nap;; nap.pause()) {
      if (is_answered()) return false;
      u32 locked = 0, head = slab_set::none;
      if (group_.leads) {
        locked = !moving.is_locked() && moving.try_lock();
        if (locked == 0) head = supply_type{table()}.head_with_room(table().my_entry(size()));
      }
      if (broadcast(group_, locked) != 0) return true;
      head = broadcast(group_, head);
      if (head != slab_set::none && visit(head)) return false;
    }
  }

  WARPHEAP_DEVICE u32 capacity() const { return table_.geometry().capacity(kind_); }
  /// Nothing that follows from its sizes is kept: this is off the common path.
  WARPHEAP_DEVICE Table table() const { return table_.afresh(); }

  Table table_;
  lane_group group_;
  u32 kind_, length_;
  u64 number_ = 0;        ///< of the search; the leader's
  void* mine_ = nullptr;  ///< the lane's block
};

}  // namespace warpheap::inline WARPHEAP_BACKEND::chunks
