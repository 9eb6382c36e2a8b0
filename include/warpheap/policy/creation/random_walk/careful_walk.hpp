// The steps by which a lane changes a word, and whose answer it takes: each in one place, with its
// memory order, so that a test can put a broken one in its stead.
#pragma once

#include "../../../sync/shared_pass.hpp"
#include "walk_word.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {

/// How words are changed and believed, as seen by one lane: what a twin of the algorithm would do
/// otherwise.
struct careful_walk {
  /// Takes the pages of `wanted`; returns what the word held. Who found a bit clear owns the page
  /// (K1).
  WARPHEAP_DEVICE static walk_word take(atomic_ref<u64> word, u64 wanted) {
    // acquire: pairs with the release in give_back(), or with that before it in the word's order.
    return walk_word{word.fetch_or(wanted, order::acquire)};
  }

  /// Tries to lock the word; returns what it held. It is ours if it was not locked (K2).
  WARPHEAP_DEVICE static walk_word try_lock(atomic_ref<u64> word) {
    // acquire: as in take(), for the pages that will be taken.
    return walk_word{word.fetch_or(walk_word::lock_bit, order::acquire)};
  }

  /// Takes the pages of `taken`, which are clear, and opens the lock, which is ours (K2): all at
  /// once. Returns what the word held.
  WARPHEAP_DEVICE static walk_word publish(atomic_ref<u64> word, u64 taken) {
    // relaxed: lock and bits are one word, and nothing else is handed over with it.
    return walk_word{word.fetch_xor(walk_word::lock_bit | taken, order::relaxed)};
  }

  /// Gives pages back; returns what the word held. Where a bit was clear, nobody owned the page.
  WARPHEAP_DEVICE static walk_word give_back(atomic_ref<u64> word, u64 bits) {
    // release: what the owner did to the page happens before its next owner; pairs with the acquire
    // in take(), try_lock().
    return walk_word{word.fetch_and(~bits, order::release)};
  }

  /// Whether somebody else's pass answers a search that drew `number`.
  template <class Pass>
  WARPHEAP_DEVICE static bool may_share(Pass const& pass, u64 number, pass_size size = {}) {
    return pass.answers(number, size);
  }

  /// Whether a search waits for a locked word that is not full; and whether there is a search at
  /// all.
  static constexpr bool waits_for_locks = true;
  static constexpr bool searches = true;
};

}  // namespace warpheap::inline WARPHEAP_BACKEND
