// SPDX-License-Identifier: Apache-2.0
// The last resort of lanes of one heap and size for which no head had room. The lanes look at every
// slab once, side by side: at busy ones too, at other rows' heads, and at empty heads of other
// kinds of chunks. Then they ask TBuddy for more.
//
// nullptr means that no suitable block stayed free during the whole call. So each place has to be
// seen without room once. A lost race will do: what a read-modify-write found taken was taken at
// that moment. A search goes on from where it lost a race, and ends whatever others take and free.
// A slab also counts as free while another call moves it from one set to another, or between the
// sets and TBuddy. A search waits for such a slab (lock_unused() in supply.hpp), and notices if it
// missed one (halloc.N3).
//
//   halloc.N1  in a slab of our kind of chunks the words decide. Its count may be too high, by
//       promises of calls that will not find a block or were promised too much. So a search
//       promises itself what it sees, whatever the count says (halloc.A1 holds). A call that was
//       promised a block and finds none gives the promise back and searches itself.
//   halloc.N2  a slab of another kind is in use unless its count is 0: a promise there holds the
//       whole slab.
//   halloc.N3  TBuddy is asked with the mutex held. If slabs have come from it or gone to it since
//       the first look, there is a second and last round before the mutex is unlocked. No slab can
//       pass from one side to the other during that round.
//
// Contending threads on a full heap share searches (sync/shared_pass.hpp): a call accepts the
// answer of any search that began after the call did. And a slab whose words were searched in vain
// keeps a note of that, so only slabs in which something was freed since are read again.
#pragma once

#include "../../../platform/backoff.hpp"
#include "../../../sync/warp_aggregate.hpp"
#include "claim.hpp"
#include "supply.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace halloc_parts {

/// A search in progress: next_slab() says where to go, visit() takes what is free there.
template <class Table>
class block_search {
  using supply_type = slab_supply<Table>;
  using steps = typename Table::steps;

 public:
  /// A block for the lane, or nullptr: then there was none for it, and the refusal is counted. All
  /// lanes of `mask` call, with the same heap and size.
  ///
  /// number  of the call, if its leader drew one before; else 0
  WARPHEAP_COLD static void* run(Table table, lane_mask mask, u32 size, u64 number) {
    block_search search{table, group_of(mask), size};
    return search(number);
  }

 private:
  static constexpr u32 none = slab_set::none;
  /// slabs whose states a lane loads before it waits for the first load
  static constexpr u32 at_a_time = 4;

  /// In this order. The leader has the mutex in the last two.
  enum class stage : u32 { round, mutex, tbuddy, second_round };

  WARPHEAP_DEVICE block_search(Table const& table, lane_group const& group, u32 size)
      : table_{table}, group_{group}, kind_{kind_of(size)}, length_{length_of(size)} {}

  WARPHEAP_DEVICE void* operator()(u64 number) {
    // The search finds every block that a lane of the group knows to be freed.
    simt::sync_warp(group_.mask);
    if (group_.leads) {
      number_ = number != 0 ? number : table().pass().draw();
      moves_ = table().moves();
      table().add_work(count::searches, 1);
    }
    start_ = broadcast(group_, supply_type::scattered(table().slabs()));
    // The leader's acquires cover all lanes: we see what was known to be free to every call that
    // our search answers.
    simt::sync_warp(group_.mask);
    WARPHEAP_NO_UNROLL
    while (lane_mask const waiting = unserved()) {
      u32 const slab = next_slab();
      if (slab == none) break;
      visit(slab, waiting);
    }
    if (stage_ >= stage::tbuddy && group_.leads) table().moving().unlock();
    lane_mask const refused = unserved();
    if (group_.leads) table().add_count(count::failures, popcount(refused));
    return mine_;
  }

  WARPHEAP_DEVICE u32 size() const { return size_of(kind_, length_); }
  /// Our lanes that have no block yet.
  WARPHEAP_DEVICE lane_mask unserved() const { return simt::ballot(group_.mask, mine_ == nullptr); }

  /// A slab that may have something for us; `none` if it is certain that none has.
  WARPHEAP_DEVICE u32 next_slab() {
    WARPHEAP_NO_UNROLL
    for (;;) {
      if (lane_mask const lanes = simt::ballot(group_.mask, worth_ != 0)) return next_worth_a_visit(lowest_bit(lanes));
      if (stage_ == stage::tbuddy) {
        u32 const slab = ask_tbuddy();
        if (brought_) return slab;
      }
      if (is_answered()) return none;
      if (stage_ == stage::mutex) {
        if (u32 const head = lock_moving(); head != none) return head;
      } else if (seen_ < table().slabs()) {
        look_at_some();
      } else if (stage_ == stage::second_round || Table::config.split_percent != 0) {
        if (group_.leads) table().pass().publish(number_, Table::pass_for_size(size()));
        return none;
      } else {
        stage_ = stage::mutex;
      }
    }
  }

  /// The first slab that `lane` has marked.
  WARPHEAP_DEVICE u32 next_worth_a_visit(u32 lane) {
    u32 const mine = worth_ != 0 ? in_turn(lowest_bit(worth_)) : none;
    if (simt::lane_id() == lane) worth_ &= worth_ - 1;
    return simt::shuffle(group_.mask, mine, lane);
  }

  /// A slab of TBuddy's memory, locked; `none` if it has none, and then it is not asked again.
  WARPHEAP_DEVICE u32 ask_tbuddy() {
    u32 const slab = broadcast(group_, group_.leads ? supply_type{table()}.make_alone() : none);
    brought_ = slab != none;
    if (!brought_) stage_ = stage::second_round;
    return slab;
  }

  /// Whether a search that began after our call has found nothing for us.
  WARPHEAP_DEVICE bool is_answered() const {
    return broadcast(group_, u32{group_.leads && table().is_answered(Table::pass_for_size(size()), number_)}) != 0;
  }

  /// The i-th of the slabs that the lane looked at last.
  WARPHEAP_DEVICE u32 in_turn(u32 i) const {
    u32 const ahead = start_ + seen_ - (at_a_time - i) * group_.size + group_.rank;
    return ahead < table().slabs() ? ahead : ahead - table().slabs();
  }

  /// Looks at the next slabs of the round, some for each lane, and marks those worth a visit.
  WARPHEAP_DEVICE void look_at_some() {
    u32 const left = table().slabs() - seen_;
    seen_ += at_a_time * group_.size;
    slab_state now[at_a_time];
    // relaxed: we see what was freed before our call, or something later.
    for (u32 i = 0; i < at_a_time && i * group_.size + group_.rank < left; ++i) now[i] = table().load(in_turn(i));
    for (u32 i = 0; i < at_a_time && i * group_.size + group_.rank < left; ++i)
      worth_ |= u32{is_worth_a_visit(in_turn(i), now[i])} << i;
    steps::linger_in_search();
  }

  WARPHEAP_DEVICE bool is_worth_a_visit(u32 slab, slab_state now) const {
    table().add_work(count::looks, 1);
    if (now.phase() == slab_phase::locked) return steps::waits_for_locked_slabs;
    if (!steps::decides_by_words && now.serves(kind_) && now.room(capacity(), length_) == 0) return false;
    return now.unused() || (now.serves(kind_) && !table().is_noted_full(slab, now, length_));
  }

  /// Tries to lock the mutex, with which TBuddy may be asked. If that fails and our row has got a
  /// head with room meanwhile, returns the head; else `none`.
  WARPHEAP_DEVICE u32 lock_moving() {
    spin_mutex const moving = table().moving();
    u32 locked = 0, moved = 0, head = none;
    if (group_.leads) {
      locked = !moving.is_locked() && moving.try_lock();
      if (locked != 0) moved = steps::heeds_moves && table().moves() != moves_;
      else head = supply_type{table()}.head_with_room(table().my_entry(size()));
    }
    if (broadcast(group_, locked) == 0) {
      nap_.while_working();
      return broadcast(group_, head);
    }
    stage_ = stage::tbuddy;
    seen_ = broadcast(group_, moved) != 0 ? 0 : table().slabs();  // halloc.N3: 0 is a second round
    // The mutex's acquire covers all lanes.
    simt::sync_warp(group_.mask);
    return none;
  }

  /// Takes blocks of a slab for the lanes that wait. A slab that TBuddy brought is locked by us.
  WARPHEAP_DEVICE void visit(u32 slab, lane_mask waiting) {
    WARPHEAP_NO_UNROLL
    for (;;) {
      slab_state seen;
      u32 ours = 0;  // 1 + the blocks of it that are promised; 0 if it is in use for another kind
      if (group_.leads) {
        bool const locked = brought_ || supply_type{table()}.lock_unused(slab, seen);
        ours = locked ? 1 + open(slab, popcount(waiting)) : u32{seen.serves(kind_)};  // halloc.N2
      }
      brought_ = false;
      ours = broadcast(group_, ours);
      if (ours == 0) break;
      // Others may have emptied and locked it between two of our steps. It may be free now: again.
      if (take_from(slab, waiting, ours - 1, seen)) break;
    }
    if (!steps::goes_on && stage_ == stage::round) seen_ = worth_ = 0;
  }

  /// Makes a locked slab one of our kind. Returns how many of its blocks are promised. One lane.
  WARPHEAP_DEVICE u32 open(u32 slab, u32 wanted) const {
    u32 const room = capacity() >> length_, promised = wanted < room ? wanted : room;
    supply_type{table()}.publish(slab, size(), promised << length_, slab_use::search);
    table().set(Table::sparse(kind_)).add(slab);  // halloc.A7: it goes on to where it belongs
    return promised;
  }

  /// Takes blocks of a slab of our kind for the lanes without one, from a random word on. Gives
  /// back what is left of the `promised` blocks or, if there were none, of those that it promised
  /// itself (halloc.N1). False if the slab is not of our kind any more.
  ///
  /// waiting  the lanes without a block
  /// before   what lock_unused() saw, if nothing is promised; valid in the leader
  // NOLINTNEXTLINE(readability-function-cognitive-complexity)
  WARPHEAP_DEVICE bool take_from(u32 slab, lane_mask waiting, u32 promised, slab_state before) {
    // The leader's acquires cover all lanes: we see words no older than `before` (halloc.A4), and a
    // slab that we locked as the others left it.
    simt::sync_warp(group_.mask);
    u32 const words = table().geometry().words(kind_), start = broadcast(group_, supply_type::scattered(words));
    bool found = promised != 0;
    WARPHEAP_NO_UNROLL
    for (u32 done = 0; done < words && waiting != 0 && (promised != 0 || !found); done += group_.size) {
      u32 const turn = done + group_.rank, ahead = start + turn, word = ahead < words ? ahead : ahead - words;
      u32 const starts = turn < words ? starts_in(look_at(table(), slab, word, capacity()), length_) : 0;
      table().add_work(count::word_looks, turn < words);
      WARPHEAP_NO_UNROLL
      for (lane_mask rest = simt::ballot(group_.mask, starts != 0); rest != 0 && waiting != 0; rest &= rest - 1) {
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
    // The takers' acquires cover all lanes: what the old owners wrote happens before our return.
    simt::sync_warp(group_.mask);
    return true;
  }

  /// Promises us `wanted` blocks of a slab, whatever its count says (halloc.N1). 0 if it is not of
  /// our kind any more.
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

  /// Takes up to `most` of the blocks that start at `starts` in a word. One lane; each start is
  /// tried once.
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

  /// Notes that no thread has to look at the words again before room is left (halloc.A4).
  WARPHEAP_DEVICE void note_full(u32 slab, slab_state before) const {
    // A slab that was empty may have got another kind meanwhile, at the same version.
    if (!before.serves(kind_) || before.empty()) return;
    // relaxed: a thread that believes the note has read a state of the same version. Of two notes
    // at once one is lost, and the words are looked at again for it.
    atomic_ref<u64> const note = table().note(slab);
    note.store(before.noting_full(note.load(order::relaxed), length_), order::relaxed);
  }

  WARPHEAP_DEVICE u32 capacity() const { return table_.geometry().capacity(kind_); }
  /// The table with opaque sizes, from which nothing is kept in registers: no common path is here.
  WARPHEAP_DEVICE Table table() const { return table_.opaque(); }

  Table table_;
  lane_group group_;
  u32 kind_, length_;
  void* mine_ = nullptr;  ///< the lane's block
  stage stage_ = stage::round;
  u32 start_ = 0, seen_ = 0;  ///< a round's first slab, and how many it has seen
  u32 worth_ = 0;             ///< bit i: the lane's in_turn(i) is worth a visit
  bool brought_ = false;      ///< the slab to visit came from TBuddy and is locked by us
  // Valid in the leader.
  u64 number_ = 0, moves_ = 0;  ///< of the search; counted before its first look
  backoff nap_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::halloc_parts
