// SPDX-License-Identifier: Apache-2.0
// The operations by which a lane changes a word, and the choice whose answer it accepts. Each is a
// function with its memory order, so that a test can replace it by a broken one.
#pragma once

#include "../../../sync/shared_pass.hpp"
#include "walk_word.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// How one lane changes words, and what it believes. The mutants in the tests override this.
struct no_walk_faults {
  /// Takes the pages of `wanted`; returns what the word held. The caller owns the pages whose bits
  /// were clear (walk.K1).
  WARPHEAP_DEVICE static walk_word take(atomic_ref<u64> word, u64 wanted) {
    // acquire: pairs with the release in give_back(), also if the word has changed since that free.
    return walk_word{word.fetch_or(wanted, order::acquire)};
  }

  /// Tries to lock the word; returns what it held. It is ours if it was not locked (walk.K2).
  WARPHEAP_DEVICE static walk_word try_lock(atomic_ref<u64> word) {
    // acquire: as in take(), for the pages that will be taken.
    return walk_word{word.fetch_or(walk_word::lock_bit, order::acquire)};
  }

  /// Takes the pages of `taken`, which are clear, and opens our lock, with one operation
  /// (walk.K2). Returns what the word held.
  WARPHEAP_DEVICE static walk_word publish(atomic_ref<u64> word, u64 taken) {
    // relaxed: lock and bits are one word, and nothing else is handed over with it.
    return walk_word{word.fetch_xor(walk_word::lock_bit | taken, order::relaxed)};
  }

  /// Frees pages; returns what the word held. A page whose bit was clear had no owner.
  WARPHEAP_DEVICE static walk_word give_back(atomic_ref<u64> word, u64 bits) {
    // release: what the owner did to the page happens before its next owner; pairs with the acquire
    // in take(), try_lock().
    return walk_word{word.fetch_and(~bits, order::release)};
  }

  /// Whether another search's pass answers a search that drew `number`.
  template <class Pass>
  WARPHEAP_DEVICE static bool may_share(Pass const& pass, u64 number, pass_size size = {}) {
    return pass.answers(number, size);
  }

  /// Whether a search waits for a locked word that is not full; and whether there is a search at
  /// all.
  static constexpr bool waits_for_locks = true;
  static constexpr bool searches = true;
};

}}  // namespace warpheap::WARPHEAP_BACKEND
