// SPDX-License-Identifier: Apache-2.0
// How a thread that finds no memory learns that some has come free: a word that every thread that
// makes room reads, and hardly ever writes.
//
//   63                     1 0
//  |        epoch           | watched |
//
// A searching thread sets `watched` first, then visits every place where room may be, by
// read-modify-writes. A thread that makes room does so by a read-modify-write of such a place, and
// then reads the word: if it is watched, the thread raises the epoch, which clears `watched`. If
// the word is unchanged at the end of a visit that found nothing, no room was made anywhere by a
// call that has returned: at that instant every block was owned or promised.
//
//   bins.W1  after a visit found no room at a place, a call that makes room there raises the word,
//       if it is watched, before the call returns. The call's read-modify-write follows the
//       visitor's in the order of the place, both acquire and release, so the call sees the watch.
//   bins.W2  the word never comes back to an earlier value: each watch of an unwatched word has an
//       epoch of its own.
//
// Cost: a load for a thread that makes room. While no thread is out of memory the word does not
// change.
// Progress: wait-free.
#pragma once

#include "../../../../platform/simt.hpp"
#include "../../../../util/bits.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace bins {

/// The word's fields: pure functions.
namespace room_watch_word {

WARPHEAP_HOST_DEVICE constexpr bool is_watched(u64 word) { return word & 1; }
WARPHEAP_HOST_DEVICE constexpr u64 watched(u64 word) { return word | 1; }
/// A watched word, raised: the carry raises the epoch and clears `watched`.
WARPHEAP_HOST_DEVICE constexpr u64 raised(u64 word) { return word + 1; }
/// The exhaustion note of a search that found nothing: the low halves of both words that it
/// watched.
WARPHEAP_HOST_DEVICE constexpr u64 exhaustion_of(u64 pages, u64 blocks) {
  return pages << 32 | (blocks & low_mask(32));
}

}  // namespace room_watch_word

class room_watch {
 public:
  WARPHEAP_DEVICE explicit room_watch(u64& word) : word_{word} {}

  /// Begins a watch, before places are visited. Returns the value to pass to unchanged().
  WARPHEAP_DEVICE u64 watch() const {
    // acquire: the visit sees room for which the word was raised; pairs with the release in
    // room_appeared(). release: what we acquired reaches the next watcher too.
    return room_watch_word::watched(word_.fetch_or(1, order::acq_rel));
  }

  /// Whether no thread has raised the word since watch() returned `seen`.
  WARPHEAP_DEVICE bool unchanged(u64 seen) const {
    // A read-modify-write returns the newest value. acquire, release: as in watch().
    return word_.fetch_add(0, order::acq_rel) == seen;
  }

  /// To be called after room was made by an acquire-release read-modify-write of its place
  /// (bins.W1).
  WARPHEAP_DEVICE void room_appeared() const {
    // relaxed: no older than the watch of a thread that visited the place before us (bins.W1).
    u64 seen = word_.load(order::relaxed);
    if (!room_watch_word::is_watched(seen)) return;
    // release: a thread that watches next sees our room; pairs with the acquire in watch(). If the
    // exchange fails, another thread raised the word after our room was made.
    word_.compare_exchange(seen, room_watch_word::raised(seen), order::acq_rel, order::relaxed);
  }

  /// The word as it is, to compare with exhaustion notes. acquire: what the thread that noted an
  /// equal word knew, we know.
  WARPHEAP_DEVICE u64 look() const { return word_.load(order::acquire); }

 private:
  atomic_ref<u64> word_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::bins
