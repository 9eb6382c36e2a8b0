// SPDX-License-Identifier: Apache-2.0
// A set of slabs that any lane may change: a bit a slab, and above these a summary with a bit for
// each word that is not zero.
//
// A set says where to look, not what is there. A thread puts a slab in after the slab came to
// belong there. A thread that takes a slab removes it first, and looks at it afterwards, under
// whatever lock the slab has. So
//
//   slab_set.S1  a slab that belongs in a set is in it, or some thread has yet to look at it or to
//       put it in.
//   slab_set.S2  a set may also hold slabs that do not belong there: the thread that takes one out
//       puts it where it belongs, or forgets it.
//   slab_set.S3  at rest, word not zero => summary bit set.
//
// Orders: add releases, remove acquires, on the slab's word: what made the slab belong happens
// before the look of the thread that takes it out.
//
// slab_set.S3: suppose that the last change of a summary bit is the clear of a remove, and that the
// word is not zero. The add that last took the word from zero set the summary bit afterwards, so
// before that clear. The clear acquires what the add released, so the remove's second look finds
// the word not zero and sets the bit again. So its clear was not the last change.
//
// Cost: one atomic to put in, two or three loads and one atomic to take out. An empty set costs a
// load for 4,096 slabs.
// Source: Adinetz and Pleiter 2014, whose sets are bitmaps of one level, for some hundreds of
// slabs.
#pragma once

#include "../platform/simt.hpp"
#include "../util/bits.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// View of a set in words_for(slabs) words, which it does not own; zeroed words are the empty set.
class slab_set {
 public:
  static constexpr u32 none = ~0u;

  WARPHEAP_HOST_DEVICE static constexpr u32 words_for(u32 slabs) { return low_words(slabs) + top_words(slabs); }

  WARPHEAP_HOST_DEVICE slab_set(u64* words, u32 slabs) : words_{words}, slabs_{slabs} {}

  /// Puts a slab in. Any lane alone.
  WARPHEAP_DEVICE void add(u32 slab) const {
    // release: pairs with the acquire in remove().
    u64 const old = word(slab / 64).fetch_or(bit(slab), order::release);
    if (old == 0) raise(slab / 64);
  }

  /// Puts several slabs in, bit i of `which` for slab 64 * at + i, by one operation. Any lane
  /// alone.
  WARPHEAP_DEVICE void add_all(u32 at, u64 which) const {
    // release: as in add().
    u64 const old = word(at).fetch_or(which, order::release);
    if (old == 0 && which != 0) raise(at);
  }

  /// Takes a slab out. True if it was in, and we took it. Any lane alone.
  WARPHEAP_DEVICE bool remove(u32 slab) const {
    u32 const at = slab / 64;
    // acquire: pairs with the release in add().
    u64 const old = word(at).fetch_and(~bit(slab), order::acquire);
    if (old == bit(slab)) {
      // acquire: an add whose raise() comes before this in the summary is seen by the second look;
      // pairs with raise().
      summary(at / 64).fetch_and(~bit(at), order::acquire);
      if (word(at).load(order::relaxed) != 0) raise(at);
    }
    return (old & bit(slab)) != 0;
  }

  /// A slab that was in the set lately, the first at or cyclically after `start` as far as we saw;
  /// `none` if we saw none.
  WARPHEAP_DEVICE u32 find(u32 start) const {
    u32 const words = low_words(slabs_), from = start / 64;
    // relaxed: a hint, as all here.
    u64 const first = word(from).load(order::relaxed) & ~low_mask(start % 64);
    if (first != 0) return 64 * from + lowest_bit(first);
    WARPHEAP_NO_UNROLL
    for (u32 turn = 0, at = from + 1; turn <= top_words(slabs_); ++turn) {
      if (at >= words) at = 0;
      u64 occupied = summary(at / 64).load(order::relaxed) & ~low_mask(at % 64);
      for (; occupied != 0; occupied &= occupied - 1) {
        u32 const here = at - at % 64 + lowest_bit(occupied);
        if (u64 const bits = word(here).load(order::relaxed)) return 64 * here + lowest_bit(bits);
      }
      at = at - at % 64 + 64;
    }
    return none;
  }

  /// How many of the slabs of the word that `slab` lies in are in the set: a hint.
  WARPHEAP_DEVICE u32 count_near(u32 slab) const { return popcount(word(slab / 64).load(order::relaxed)); }

  /// For code that writes the words of a quiet set itself.
  WARPHEAP_HOST_DEVICE static constexpr u32 low_words(u32 slabs) { return (slabs + 63) / 64; }

#if !defined(__CUDACC_RTC__)
  /// For a set whose words were copied to the host: whether a slab is in it, and whether
  /// slab_set.S3 holds.
  static bool contains(u64 const* words, u32 slab) { return (words[slab / 64] >> (slab % 64) & 1) != 0; }
  static bool is_upper_bound(u64 const* words, u32 slabs) {
    for (u32 at = 0; at < low_words(slabs); ++at)
      if (words[at] != 0 && !contains(words + low_words(slabs), at)) return false;
    return true;
  }
#endif

 private:
  WARPHEAP_HOST_DEVICE static constexpr u32 top_words(u32 slabs) { return (low_words(slabs) + 63) / 64; }
  WARPHEAP_DEVICE static u64 bit(u32 i) { return u64{1} << (i % 64); }
  WARPHEAP_DEVICE atomic_ref<u64> word(u32 i) const { return atomic_ref<u64>{words_[i]}; }
  WARPHEAP_DEVICE atomic_ref<u64> summary(u32 i) const { return atomic_ref<u64>{words_[low_words(slabs_) + i]}; }
  WARPHEAP_DEVICE void raise(u32 at) const {
    // release: the slab's bit is set before the second look of a remove() that comes after this in
    // the summary; pairs with remove().
    summary(at / 64).fetch_or(bit(at), order::release);
  }

  u64* words_;
  u32 slabs_;
};

}}  // namespace warpheap::WARPHEAP_BACKEND
