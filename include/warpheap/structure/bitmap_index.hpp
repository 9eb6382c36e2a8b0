// Which of up to 2^24 items are in a set, found without looking at all of them: a bitmap, above it a bitmap of its
// words that are not zero, and so on until few words are left.
//
//   level 1 (summary)        | 1 0 1 ...                       |   bit j: word j of level 0 is not zero
//   level 0     | 0110...0 | 0000...0 | 1000...0 | ...         |   bit i: item i
//
// The words of all levels lie in one array, level 0 first; the top level has at most 8 words, so 1 to 4 levels do.
// There are two protocols, and one index keeps to one of them:
//
// toggle. Exclusive-or commutes, so it does not matter in what order late toggles land. Callers alternate: of the
// toggles of one item every second puts it in (some state elsewhere, a flag bit changed by fetch_or and fetch_and, says
// whose turn it is). One atomic, and one a level more only when a word changes between zero and not zero.
//   X1  at rest, item bit = parity of its toggles.
//   X2  at rest, summary bit <=> word below is not zero: the word left zero as often as the summary bit was toggled on,
//       and came back as often as it was toggled off.
//
// set and clear. Idempotent, so callers need no state elsewhere; the summary is an upper bound.
//   U1  at rest, word not zero => summary bit set.
//   Argument: suppose the last change of a summary bit were a clear by C. Let S be the set that last took the word from
//   zero to not zero. S's fetch_or (release) of the summary bit then comes before C's fetch_and (acquire) of it, so C's
//   second look at the word comes after S's fetch_or of it, finds it not zero, and sets the summary bit again.
//
// find is a hint in both: the caller checks what it got. It costs a load a level where the set is dense, and loads of
// the top level alone where the index is empty.
// Source: the multi-level summary is folklore (van Emde Boas's idea with fixed fan-out 64); the exclusive-or protocol
// is ours.
#pragma once

#include "../platform/simt.hpp"
#include "../util/bits.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {

/// View of an index in `words_for(items)` words that someone else owns; zeroed words are the empty set.
class bitmap_index {
 public:
  static constexpr u32 none = ~0u;
  static constexpr u32 max_items = 1u << 24;
  static constexpr u32 max_top_words = 8;

  /// Words that an index over `items` items takes; `items` is in [1, max_items].
  WARPHEAP_HOST_DEVICE static constexpr u64 words_for(u32 items) {
    u64 words = 0;
    for (u32 level = 0; level < levels_for(items); ++level) words += level_words(items, level);
    return words;
  }

  /// Levels of an index over `items` items, 1 to 4.
  WARPHEAP_HOST_DEVICE static constexpr u32 levels_for(u32 items) {
    constexpr u32 top_items = 64 * max_top_words;
    return 1 + (items > top_items) + (items > top_items * 64) + (items > top_items * 64 * 64);
  }

  /// Words of one level of an index over `items` items.
  WARPHEAP_HOST_DEVICE static constexpr u32 level_words(u32 items, u32 level) {
    return ((items - 1) >> (6 * level + 6)) + 1;
  }

  WARPHEAP_HOST_DEVICE constexpr bitmap_index(u64* words, u32 items) : words_{words}, items_{items} {}

  /// Puts `item` in if it is out, and out if it is in. Returns the word of `item` as it was: bit i is item i of the 64 around.
  /// Any lane alone.
  WARPHEAP_DEVICE u64 toggle(u32 item) const {
    u64 around = 0;
    WARPHEAP_NO_UNROLL
    for (level at = bottom();; at = above(at), item /= 64) {
      // relaxed: parity needs atomicity alone (X1, X2), and find() is a hint.
      auto const old = at.word_of(item).fetch_xor(bit_of(item), order::relaxed);
      if (at.depth == 0) around = old;
      auto const crossed_zero = old == 0 || old == bit_of(item);
      if (!crossed_zero || is_top(at)) return around;
    }
  }

  /// Puts `item` in. Any lane alone.
  WARPHEAP_DEVICE void set(u32 item) const {
    // relaxed: the summary's release covers it.
    auto const old = bottom().word_of(item).fetch_or(bit_of(item), order::relaxed);
    if (old == 0 && !is_top(bottom())) raise_summary(above(bottom()), item / 64);
  }

  /// Puts `item` out. Any lane alone.
  WARPHEAP_DEVICE void clear(u32 item) const {
    // relaxed: nothing is read on the strength of this bit.
    auto old = bottom().word_of(item).fetch_and(~bit_of(item), order::relaxed);
    WARPHEAP_NO_UNROLL
    for (level at = bottom(); old == bit_of(item) && !is_top(at); item /= 64) {
      auto const word = at.word_of(item);
      at = above(at);
      // acquire: a set that came before in the summary is seen by the second look; pairs with the release in
      // raise_summary().
      old = at.word_of(item / 64).fetch_and(~bit_of(item / 64), order::acquire);
      // relaxed: U1 needs no more than what the acquire ordered before.
      if (word.load(order::relaxed) != 0) return raise_summary(at, item / 64);
    }
  }

  /// An item that was in the set lately, the first at or cyclically after `start` as far as we saw; `none` if we saw
  /// none. `start` is an item, best a random one. Any lane alone.
  WARPHEAP_DEVICE u32 find(u32 start) const {
    // relaxed: a hint. In a dense set this is all.
    auto const near = bottom().word_of(start).load(order::relaxed) & ~low_mask(start % 64);
    if (near != 0) return start - start % 64 + lowest_bit(near);
    level top = bottom();
    WARPHEAP_NO_UNROLL
    while (!is_top(top)) top = above(top);
    auto const own = start >> items_log2(top);
    auto const found = find_between(top, start, end_of(top, own));
    if (found != none) return found;
    // Nothing behind us in our own top word. The others are looked at first, and once, which settles an empty index.
    auto const occupied = occupied_words(top);
    WARPHEAP_NO_UNROLL
    for (u32 turn = 1; turn <= top.width; ++turn) {
      auto const word = own + turn < top.width ? own + turn : own + turn - top.width;
      if ((occupied >> word & 1) == 0) continue;
      auto const later = find_between(top, word << items_log2(top), word == own ? start : end_of(top, word));
      if (later != none) return later;
    }
    return none;
  }

#if !defined(__CUDACC_RTC__)
  /// Items of a set whose words were copied to the host at rest.
  static u64 count(u64 const* words, u32 items) {
    u64 in = 0;
    for (u32 word = 0; word < level_words(items, 0); ++word) in += popcount(words[word]);
    return in;
  }

  /// X1 and X2, for words copied to the host at rest: `expected(item)` says which items should be in.
  template <class Expected>
  static bool is_exact(u64 const* words, u32 items, Expected expected) {
    return holds(words, items, expected, [](bool summary, bool occupied) { return summary == occupied; });
  }

  /// U1, for words copied to the host at rest: `expected(item)` says which items should be in.
  template <class Expected>
  static bool is_upper_bound(u64 const* words, u32 items, Expected expected) {
    return holds(words, items, expected, [](bool summary, bool occupied) { return summary || !occupied; });
  }
#endif

 private:
#if !defined(__CUDACC_RTC__)
  template <class Expected, class Relation>
  static bool holds(u64 const* words, u32 items, Expected expected, Relation relation) {
    auto const is_set = [](u64 const* level, u32 bit) { return (level[bit / 64] >> (bit % 64) & 1) != 0; };
    for (u32 item = 0; item < 64 * level_words(items, 0); ++item) {
      if (is_set(words, item) != (item < items && expected(item))) return false;
    }
    for (u32 depth = 1; depth < levels_for(items); ++depth) {
      auto const width = level_words(items, depth - 1);
      for (u32 bit = 0; bit < 64 * level_words(items, depth); ++bit) {
        if (!relation(is_set(words + width, bit), bit < width && words[bit] != 0)) return false;
      }
      words += width;
    }
    return true;
  }
#endif

  struct level {
    u64* words;
    u32 width;  ///< words of this level, which are the bits of the next
    u32 depth;  ///< 0 at the bottom

    WARPHEAP_DEVICE atomic_ref<u64> word_of(u32 bit) const { return atomic_ref<u64>{words[bit / 64]}; }
  };

  WARPHEAP_DEVICE static u64 bit_of(u32 item) { return u64{1} << (item % 64); }
  WARPHEAP_DEVICE static bool is_top(level const& at) { return at.width <= max_top_words; }
  WARPHEAP_DEVICE level bottom() const { return {words_, level_words(items_, 0), 0}; }
  WARPHEAP_DEVICE level above(level const& at) const {
    return {at.words + at.width, (at.width - 1) / 64 + 1, at.depth + 1};
  }
  WARPHEAP_DEVICE level below(level const& at) const {
    auto const width = level_words(items_, at.depth - 1);
    return {at.words - width, width, at.depth - 1};
  }

  /// Sets bit `item` of a summary level, and of those above as far as its words were zero.
  WARPHEAP_DEVICE void raise_summary(level at, u32 item) const {
    WARPHEAP_NO_UNROLL
    for (;; at = above(at), item /= 64) {
      // release: the bit below happens before a clear that comes after this in the summary looks again; pairs with the
      // acquire in clear().
      auto const old = at.word_of(item).fetch_or(bit_of(item), order::release);
      if (old != 0 || is_top(at)) return;
    }
  }

  /// log2 of the items below one word of a level.
  WARPHEAP_DEVICE static u32 items_log2(level const& at) { return 6 * at.depth + 6; }

  /// One past the last item below a word of a level.
  WARPHEAP_DEVICE u32 end_of(level const& at, u32 word) const {
    auto const end = (word + 1) << items_log2(at);
    return end < items_ ? end : items_;
  }

  /// Bit w is set if word w of the top level was not zero.
  WARPHEAP_DEVICE static u32 occupied_words(level const& top) {
    u32 occupied = 0;
    WARPHEAP_NO_UNROLL
    for (u32 word = 0; word < max_top_words; ++word) {
      // relaxed: a hint.
      if (word < top.width && top.word_of(64 * word).load(order::relaxed) != 0) occupied |= 1u << word;
    }
    return occupied;
  }

  /// The first item of [position, end) that we see, top down; all of them lie below one word of the top level. A
  /// summary bit whose word turns out to be zero is passed over, so position only grows and the search ends.
  WARPHEAP_DEVICE u32 find_between(level at, u32 position, u32 end) const {
    WARPHEAP_NO_UNROLL
    while (position < end) {
      auto const shift = 6 * at.depth;
      auto const bit = position >> shift;
      // relaxed: a hint.
      auto const rest = at.word_of(bit).load(order::relaxed) & ~low_mask(bit % 64);
      if (rest == 0) {
        position = (bit / 64 + 1) << (shift + 6);
        if (!is_top(at)) at = above(at);
        continue;
      }
      auto const first = (bit - bit % 64 + lowest_bit(rest)) << shift;
      if (first > position) position = first;
      if (at.depth == 0) return position < end ? position : none;
      at = below(at);
    }
    return none;
  }

  u64* words_;
  u32 items_;
};

}  // namespace warpheap::inline WARPHEAP_BACKEND
