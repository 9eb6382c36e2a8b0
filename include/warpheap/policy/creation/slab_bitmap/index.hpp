// SPDX-License-Identifier: Apache-2.0
// A bit per slab, in words that the slab table owns. An index keeps to one of two protocols:
//
// xor updates. Exclusive-or commutes, so late ones may land in any order. Every second one of a
// slab puts it in; a flag elsewhere says which. After the words lies a summary, a bit a word.
//   slab.X1  at rest, the slab's bit = parity of its xor updates.
//   slab.X2  at rest, summary bit <=> word is not zero: each change from or to zero flips it
//       once.
//
// set, tell and clear. Idempotent, with a summary on which a scan may rely, a bit a word and C:
//   slab.X3  a word is not zero => its summary bit or C is set, or a call that made it so still
//       runs. It changes the word first. A bit is cleared under C, and set again if the word,
//       looked at after that, is not zero.
#pragma once

#include "../../../platform/point.hpp"
#include "../../../platform/simt.hpp"
#include "../../../util/bits.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace slab_bitmap_parts {

/// View of an index of `slabs` slabs; zeroed words are the empty one. Any lane alone.
class slab_index {
 public:
  static constexpr u32 none = ~0u;

  static constexpr u32 words_a_summary = 32;  ///< of set and clear; of xor updates 64
  /// Words of an index with its summary; width() counts those without.
  WARPHEAP_HOST_DEVICE static constexpr u32 words_for(u32 slabs) { return width(slabs) + summaries(slabs); }
  /// Words of a summary of set and clear; no fewer than of xor updates.
  WARPHEAP_HOST_DEVICE static constexpr u32 summaries(u32 slabs) {
    return (width(slabs) + words_a_summary - 1) / words_a_summary;
  }
  WARPHEAP_HOST_DEVICE static constexpr u32 width(u32 slabs) { return (slabs + 63) / 64; }

  WARPHEAP_HOST_DEVICE constexpr slab_index(u64* words, u32 slabs) : words_{words}, slabs_{slabs} {}

  /// Returns the word as it was: the 64 slabs around.
  WARPHEAP_DEVICE u64 xor_bit(u32 slab) const {
    // relaxed, both: parity needs atomicity alone (slab.X1, slab.X2), and find() is a hint.
    u64 const old = word(slab / 64).fetch_xor(bit(slab), order::relaxed);
    if (old == 0 || old == bit(slab)) summary(slab / 4096).fetch_xor(bit(slab / 64), order::relaxed);
    return old;
  }

  WARPHEAP_DEVICE void set(u32 slab) const { word(slab / 64).fetch_or(bit(slab), order::relaxed); }
  /// After set(): sets the summary bit.
  WARPHEAP_DEVICE void tell(u32 slab) const {
    // release: the word is changed first (slab.X3); pairs with clear_stale_word().
    summary(slab / 64 / words_a_summary).fetch_or(word_bit(slab / 64), order::release);
  }
  /// how: release where the cleared bit tells other threads something.
  WARPHEAP_DEVICE void clear(u32 slab, order how) const { word(slab / 64).fetch_and(~bit(slab), how); }

  WARPHEAP_DEVICE u64 newest(u32 slab) const {
    // A read-modify-write: the newest. relaxed: a scan that compares indexes orders its looks.
    return word(slab / 64).fetch_or(0, order::relaxed);
  }
  WARPHEAP_DEVICE u64 load(u32 slab) const { return word(slab / 64).load(order::relaxed); }  // hint

  /// Whether any slab may have been added: a hint, or as of the newest summary.
  WARPHEAP_DEVICE bool may_name_any(bool newest) const {
    u64 seen = 0;
    WARPHEAP_NO_UNROLL
    for (u32 i = 0; i < summaries(slabs_) && seen == 0; ++i)
      seen = newest ? summary(i).fetch_or(0, order::relaxed) : summary(i).load(order::relaxed);
    return seen != 0;
  }
  /// Clears the summary bit of word `at`, which was seen to be zero.
  WARPHEAP_DEVICE void clear_stale_word(u32 at) const {
    atomic_ref<u64> const around = summary(at / words_a_summary);
    u64 seen = around.load(order::relaxed);
    if ((seen & index_lock_bit) != 0 || (seen & word_bit(at)) == 0) return;
    // acquire: the word as it was when its bit was set, or newer; pairs with tell().
    if (!around.compare_exchange(seen, (seen | index_lock_bit) & ~word_bit(at), order::acquire, order::relaxed)) return;
    WARPHEAP_POINT("index.before_second_look");
    // acquire: what cleared the word may have set another index first (slab.I4); passed on by C's
    // end.
    if (word(at).fetch_or(0, order::acquire) != 0) around.fetch_or(word_bit(at), order::relaxed);
    around.fetch_and(~index_lock_bit, order::release);  // release: the look comes first
  }

  /// A slab that was in lately, from `start` on and around in its word, then in words that the
  /// summary names; `none` if we saw none. Of more than 65,536 slabs it looks at those around.
  WARPHEAP_DEVICE u32 find(u32 start) const {
    u32 at = start / 64, group = at / 64;
    u64 found = load(start), named = 0;
    u32 const summaries = width(width(slabs_));
    WARPHEAP_NO_UNROLL
    for (u32 turn = 0; found == 0 && (named != 0 || (turn < summaries && turn < most_summaries));) {
      if (named == 0) {
        if (turn != 0) group = group + 1 < summaries ? group + 1 : 0;
        named = rotate_left(summary(group).load(order::relaxed), 0 - start / 64);
        ++turn;
        continue;
      }
      at = 64 * group + (start / 64 + lowest_bit(named)) % 64;
      found = load(64 * at);
      named &= named - 1;
    }
    return found != 0 ? 64 * at + (start + lowest_bit(rotate_left(found, 0 - start))) % 64 : none;
  }

 private:
  static constexpr u32 most_summaries = 16;  // that find() looks at, for 4,096 slabs each

  static constexpr u64 index_lock_bit = u64{1} << words_a_summary;  ///< C

  WARPHEAP_DEVICE static u64 word_bit(u32 at) { return u64{1} << (at % words_a_summary); }
  WARPHEAP_DEVICE static u64 bit(u32 i) { return u64{1} << (i % 64); }
  WARPHEAP_DEVICE atomic_ref<u64> word(u32 i) const { return atomic_ref<u64>{words_[i]}; }
  WARPHEAP_DEVICE atomic_ref<u64> summary(u32 i) const { return atomic_ref<u64>{words_[width(slabs_) + i]}; }

  u64* words_;
  u32 slabs_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::slab_bitmap_parts
