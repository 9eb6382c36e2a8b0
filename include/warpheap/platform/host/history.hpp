// SPDX-License-Identifier: Apache-2.0
// The last few values of every word that lanes access atomically, found by address.
//
// The values of a location are messages in coherence order, which their stamps give. A message that
// becomes the newest at step s has the stamp 256 s, or a little more if others were made in that
// step. That leaves room, so that a later store can be placed between two older messages.
//
// host.H1  stamps of a location rise from message to message.
// host.H2  memory holds the value of the newest message.
// host.H3  a message with `follows` is of a read-modify-write that read the message before it:
//     nothing that is atomic with it may come between the two.
//
// A word is 8 bytes of memory: one 8-byte location or two 4-byte ones. Memory that is accessed in
// both widths is `mixed` from then on: one location of 8-byte values, where an access to a half is
// one to the whole word, and a change of a half is a read-modify-write.
#pragma once

#include <deque>

#include "lane.hpp"
#include "view.hpp"

namespace warpheap::host::detail {

constexpr u64 stamps_of_a_step = 256;
WARPHEAP_NO_TSAN constexpr u64 stamp_of(u64 step) { return step * stamps_of_a_step; }

/// Of two stamps or steps.
WARPHEAP_NO_TSAN constexpr u64 later(u64 left, u64 right) { return left < right ? right : left; }

/// A value that a location held.
struct message {
  u64 value = 0;
  u64 stamp = 0;
  u64 step = 0;              // when it was made; a late store's stamp is of an earlier step
  view* released = nullptr;  // what an acquire of it learns
  u32 writer = 0;            // the thread block's number; 0: made before the run
  u32 lane = 0;              // the lane's number in the thread block
  bool block_scope = false;  // released to the writer's thread block alone
  bool follows = false;      // host.H3
};

/// Messages of one location, newest last.
struct location {
  static constexpr u32 depth = 4;

  u32 id = 0;
  u32 other_id = 0;  // mixed: the upper half's id from before
  u32 count = 0;
  message messages[depth];

  WARPHEAP_NO_TSAN message& newest() { return messages[count - 1]; }
  WARPHEAP_NO_TSAN bool is_newest(u32 index) const { return index + 1 == count; }

  /// The latest stamp here that `known` has.
  WARPHEAP_NO_TSAN u64 known_in(view const& known) const {
    u64 const mine = known.stores.known(id);
    return other_id ? later(mine, known.stores.known(other_id)) : mine;
  }

  /// The oldest message that may still be read where everything up to stamp `bound` is known.
  WARPHEAP_NO_TSAN u32 oldest_after(u64 bound) const {
    u32 oldest = count - 1;
    while (oldest > 0 && messages[oldest].stamp > bound) --oldest;
    return oldest;
  }

  /// A stamp for a message right behind message `index`, later than `bound`; 0 if there is no room.
  WARPHEAP_NO_TSAN u64 stamp_behind(u32 index, u64 bound) const {
    u64 const after = later(messages[index].stamp, bound), before = messages[index + 1].stamp;
    return before > after + 1 ? after + (before - after) / 2 : 0;
  }

  WARPHEAP_NO_TSAN void clear(view_store& views) {
    for (u32 i = 0; i < count; ++i) views.drop(messages[i].released);
    count = 0;
  }

  /// Puts `made` where its stamp belongs; drops the oldest if there are too many.
  WARPHEAP_NO_TSAN void insert(view_store& views, message const& made) {
    u32 index = count;
    while (index > 0 && messages[index - 1].stamp > made.stamp) --index;
    if (count == depth) {
      views.drop(messages[0].released);
      --index;
      for (u32 i = 0; i < index; ++i) messages[i] = messages[i + 1];
    } else {
      for (u32 i = count++; i > index; --i) messages[i] = messages[i - 1];
    }
    messages[index] = made;
  }
};

struct word_history {
  enum class width : u8 { unknown, wide, narrow, mixed };

  width accessed = width::unknown;
  location parts[2];

  /// From now on the word is accessed in both widths. Two histories of halves become one of words,
  /// in which each message carries what either half's released.
  void mix(view_store& views) {
    if (accessed == width::narrow) merge(views);
    accessed = width::mixed;
  }

 private:
  void merge(view_store& views) {
    auto &low = parts[0], &high = parts[1];
    location whole;
    whole.id = low.id;
    whole.other_id = high.id;
    u32 i = 0, j = 0;
    while (!low.is_newest(i) && low.messages[i + 1].stamp <= high.messages[0].stamp) ++i;
    while (!high.is_newest(j) && high.messages[j + 1].stamp <= low.messages[i].stamp) ++j;
    for (;;) {
      whole.insert(views, merged(views, low.messages[i], high.messages[j], whole.count > 0));
      if (low.is_newest(i) && high.is_newest(j)) break;
      bool const low_next =
          high.is_newest(j) || (!low.is_newest(i) && low.messages[i + 1].stamp < high.messages[j + 1].stamp);
      ++(low_next ? i : j);
    }
    low.clear(views);
    high.clear(views);
    low = whole;
  }

  static message merged(view_store& views, message const& low, message const& high, bool follows) {
    message both = low.stamp > high.stamp ? low : high;
    both.value = low.value | high.value << 32;
    both.step = later(low.step, high.step);
    both.block_scope = false;
    both.follows = follows;
    both.released = views.joined(low.released, high.released);
    return both;
  }
};

class history_table {
 public:
  history_table() { slots_.resize(1024); }

  WARPHEAP_NO_TSAN word_history& word_of(u64 address) {
    auto* const found = slot_of(address >> 3).word;
    return found ? *found : add(address >> 3);
  }

 private:
  struct slot {
    u64 key = 0;
    word_history* word = nullptr;
  };

  [[gnu::noinline]] word_history& add(u64 key) {
    if (words_.size() * 2 >= slots_.size()) grow();
    auto& made = words_.emplace_back();
    made.parts[0].id = static_cast<u32>(2 * words_.size());
    made.parts[1].id = made.parts[0].id + 1;
    slot_of(key) = {key, &made};
    return made;
  }

  WARPHEAP_NO_TSAN slot& slot_of(u64 key) {
    u64 const mask = slots_.size() - 1;
    for (u64 i = key * 0x9e37'79b9'7f4a'7c15ull >> 20;; ++i) {
      auto& found = slots_[i & mask];
      if (!found.word || found.key == key) return found;
    }
  }

  void grow() {
    raw_vector<slot> const old{static_cast<raw_vector<slot>&&>(slots_)};
    slots_.resize(4 * old.size());
    for (auto const& each : old) {
      if (each.word) slot_of(each.key) = each;
    }
  }

  std::deque<word_history> words_;
  raw_vector<slot> slots_;
};

}  // namespace warpheap::host::detail
