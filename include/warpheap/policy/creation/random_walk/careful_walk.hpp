// The steps by which a lane changes a word, and when it believes what it saw: each in one place, with its memory order, so
// that a test can put a broken one in its stead.
#pragma once

#include "../../../platform/simt.hpp"
#include "walk_word.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {

/// How words are changed and believed, as seen by one lane: what a twin of the algorithm would do otherwise.
struct careful_walk {
  /// Takes the pages of `wanted`; returns what the word held. Who found a bit clear owns the page (K1).
  WARPHEAP_DEVICE static walk_word take(atomic_ref<u64> word, u32 wanted) {
    // acquire: pairs with the release in give_back(), or with that before it in the word's order.
    return walk_word{word.fetch_or(wanted, order::acquire)};
  }

  /// Tries to lock the word; returns what it held. It is ours if it was not locked (K2).
  WARPHEAP_DEVICE static walk_word try_lock(atomic_ref<u64> word) {
    // acquire: as in take(), for the pages that will be taken.
    return walk_word{word.fetch_or(walk_word::lock_bit, order::acquire)};
  }

  /// Takes the pages of `taken`, which are clear, and opens the lock, which is ours (K2): all at once. Returns what the word
  /// held.
  WARPHEAP_DEVICE static walk_word publish(atomic_ref<u64> word, u64 taken) {
    // relaxed: lock and bits are one word, and nothing else is handed over with it.
    return walk_word{word.fetch_xor(walk_word::lock_bit | taken, order::relaxed)};
  }

  /// Gives pages back; returns what the word held. Where a bit was clear, nobody owned the page.
  WARPHEAP_DEVICE static walk_word give_back(atomic_ref<u64> word, u64 bits) {
    // release: what the owner did to the page happens before its next owner; pairs with the acquire in take(), try_lock().
    return walk_word{word.fetch_and(~bits, order::release)};
  }

  /// Marks a word that looked full; returns what it held.
  WARPHEAP_DEVICE static walk_word mark(atomic_ref<u64> word) {
    // acquire: as in take(), for a page that came free just before.
    return walk_word{word.fetch_or(walk_word::watched_bit, order::acquire)};
  }

  /// Whether a search may refuse: it saw every word full, and the epoch was as before.
  WARPHEAP_DEVICE static bool may_refuse(bool saw_all_full, bool is_quiet) { return saw_all_full && is_quiet; }

  /// Whether a locked word that was not full leaves a search in doubt; and whether there is a search at all.
  static constexpr bool doubts_locked_words = true;
  static constexpr bool searches = true;
};

}  // namespace warpheap::inline WARPHEAP_BACKEND
