// A bit a slab, in words that somebody else owns. An index keeps to one of two protocols:
//
// toggle. Exclusive-or commutes, so late toggles may land in any order. Every second toggle of a
// slab puts it in; a flag elsewhere says which. After the words lies a summary, a bit a word.
//   X1  at rest, the slab's bit = parity of its toggles.
//   X2  at rest, summary bit <=> word is not zero: each change from or to zero toggles it once.
//
// set and clear. Idempotent, and without a summary: a search looks at all words.
#pragma once

#include "../../../platform/simt.hpp"
#include "../../../util/bits.hpp"

namespace warpheap::inline WARPHEAP_BACKEND::slab_bitmap_parts {

/// View of an index of `slabs` slabs; zeroed words are the empty one. Any lane alone.
class slab_index {
 public:
  static constexpr u32 none = ~0u;

  /// Words of an index with its summary; width() counts those without.
  WARPHEAP_HOST_DEVICE static constexpr u32 words_for(u32 slabs) { return width(slabs) + width(width(slabs)); }
  WARPHEAP_HOST_DEVICE static constexpr u32 width(u32 slabs) { return (slabs + 63) / 64; }

  WARPHEAP_HOST_DEVICE constexpr slab_index(u64* words, u32 slabs) : words_{words}, slabs_{slabs} {}

  /// Returns the word as it was: the 64 slabs around.
  WARPHEAP_DEVICE u64 toggle(u32 slab) const {
    // relaxed, both: parity needs atomicity alone (X1, X2), and find() is a hint.
    u64 const old = word(slab / 64).fetch_xor(bit(slab), order::relaxed);
    if (old == 0 || old == bit(slab)) summary(slab / 4096).fetch_xor(bit(slab / 64), order::relaxed);
    return old;
  }

  WARPHEAP_DEVICE void set(u32 slab) const { word(slab / 64).fetch_or(bit(slab), order::relaxed); }
  /// how: release where the cleared bit tells other threads something.
  WARPHEAP_DEVICE void clear(u32 slab, order how) const { word(slab / 64).fetch_and(~bit(slab), how); }

  WARPHEAP_DEVICE u64 newest(u32 slab) const {
    // A read-modify-write: the newest. relaxed: a search that compares indexes orders its looks.
    return word(slab / 64).fetch_or(0, order::relaxed);
  }
  WARPHEAP_DEVICE u64 load(u32 slab) const { return word(slab / 64).load(order::relaxed); }  // hint

  /// A slab that was in lately, from `start` on and around in its word, then in words that the
  /// summary names; `none` if we saw none. Different starts lead to different slabs.
  WARPHEAP_DEVICE u32 find(u32 start) const {
    u32 at = start / 64, group = at / 64;
    u64 found = load(start), named = 0;
    u32 const summaries = width(width(slabs_));
    WARPHEAP_NO_UNROLL
    for (u32 turn = 0; found == 0 && (named != 0 || (turn < summaries && turn < most_summaries));) {
      if (named == 0) {
        group = turn == 0 ? group : group + 1 < summaries ? group + 1 : 0;
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
  static constexpr u32 most_summaries = 16;  // that find() looks at

  WARPHEAP_DEVICE static u64 bit(u32 i) { return u64{1} << (i % 64); }
  WARPHEAP_DEVICE atomic_ref<u64> word(u32 i) const { return atomic_ref<u64>{words_[i]}; }
  WARPHEAP_DEVICE atomic_ref<u64> summary(u32 i) const { return atomic_ref<u64>{words_[width(slabs_) + i]}; }

  u64* words_;
  u32 slabs_;
};

}  // namespace warpheap::inline WARPHEAP_BACKEND::slab_bitmap_parts
