// SPDX-License-Identifier: Apache-2.0
// The operations by which a lane changes marks and notes, and what it believes. Each is a function
// with its memory order, so that a test can replace it by a broken one.
#pragma once

#include "../shared/walk_faults.hpp"
#include "words.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace rw_malloc_parts {

/// How a lane works with runs of units. The mutants in the tests override this.
struct no_faults : no_walk_faults {
  /// The last unit of a block.
  WARPHEAP_HOST_DEVICE static constexpr u64 last_of(u64 unit, u64 units) { return unit + units - 1; }
  /// Where a lane's part of a shared block starts: `before` units of other lanes' parts come first.
  WARPHEAP_HOST_DEVICE static constexpr u64 part_of(u64 unit, u32 before) { return unit + before; }

  /// Marks both ends of a block that lies in several words (rw.U1). Returns what the first word's
  /// marks were.
  WARPHEAP_DEVICE static u64 mark_ends(atomic_ref<u64> first, u64 start_bit, atomic_ref<u64> last, u64 end_bit) {
    last.fetch_or(end_bit, order::relaxed);  // relaxed: the next operation hands it over
    // release: the end mark and the extent happen before the free of the block (rw.U2); pairs with
    // the acquire in receive_ends().
    return first.fetch_or(start_bit, order::release);
  }

  /// Receives what the owner of a block did before it set the start mark, which the caller saw by a
  /// read-modify-write on `first` (rw.U2).
  WARPHEAP_DEVICE static void receive_ends(atomic_ref<u64> first) {
    // acquire: reads the value that the caller's operation left, or a later one. Each of them
    // passes on what the mark released; pairs with the release in mark_ends(). A separate load, so
    // that blocks of one word pay nothing.
    static_cast<void>(first.load(order::acquire));
  }

  /// Sets the watch of a word (rw.G1); returns what it held.
  WARPHEAP_DEVICE static walk_word watch(atomic_ref<u64> word) {
    // acquire: pairs with the release of a free before it in the word's order; a free after it
    // finds the watch.
    return walk_word{word.fetch_or(unit_word::watch_bit, order::acquire)};
  }

  /// What is noted of a group.
  WARPHEAP_DEVICE static group_word read_note(atomic_ref<u64> group) {
    // acquire: our next look at the words sees all that came free before they were noted in this
    // turn (rw.G2); pairs with the acq_rel in search::note_anew() and the release in
    // take::note_taken().
    return group_word{group.load(order::acquire)};
  }

  /// Notes the runs of a group, if its word is still `noted` (rw.G2).
  WARPHEAP_DEVICE static void note(atomic_ref<u64> group, u64 noted, u64 now) {
    // relaxed: the words were looked at after the acq_rel that set this turn, and this operation
    // follows that one in the order of the group's word.
    group.compare_exchange(noted, now, order::relaxed, order::relaxed);
  }

  /// Whether a block may go to the beginning of a run only if another block ends before it.
  static constexpr bool looks_for_ends = true;

  /// Gives units of a word back; returns what it held. release_fence() came before.
  WARPHEAP_DEVICE static walk_word give_back(atomic_ref<u64> word, u64 bits) {
    // fenced: what the owner did to the block happens before its next owner; pairs with the acquire
    // in try_lock().
    return walk_word{word.fetch_and(~bits, order::fenced)};
  }

  /// Says that units of a group came free (rw.G1). release_fence() came before.
  WARPHEAP_DEVICE static void disturb(atomic_ref<u64> group) {
    // fenced: the cleared bits happen before the look of a search that sees the group so; pairs
    // with the acq_rel in search::note_anew().
    group.fetch_and(~group_word::noted_bit, order::fenced);
  }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::rw_malloc_parts
