// SPDX-License-Identifier: Apache-2.0
// The certain answer when a walk found no page: one pass over all words, by the lanes of a warp
// side by side, which share what they find. A lane that has its page goes on looking for the
// others.
//
// A word has no room if a look or a lost race shows each of its pages taken at some moment of the
// pass. A word that is locked and not full shows nothing, because its holder may take those pages
// or leave them. So the search waits for it. A search gives up when a pass that began after it
// found nothing (sync/shared_pass.hpp).
//
// Cost: a warp loads a word for every 32 pages.
#pragma once

#include "walk.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace random_walk_parts {

/// Looks at every word of a heap, once.
template <creation::random_walk_config Config, class Faults>
class search {
  using table_type = table<Config>;
  using mask_type = typename table_type::mask_type;
  static constexpr bool by_lock = Config.kind == creation::walk_kind::collaborative;

 public:
  static constexpr u32 none = table_type::none;

  /// A lane's result of a search.
  struct answer {
    u32 page;   ///< its page; none if none stayed free during the whole call
    u32 steps;  ///< words it looked at
  };

  /// All lanes of `active` call together, with the same heap.
  WARPHEAP_COLD static answer run(table_type table, lane_mask active, u32 start) {
    if constexpr (!Faults::searches) return answer{none, 0};
    search self{table, active, simt::shuffle(active, start, lowest_bit(active))};
    self.look(table.pass().begin(active));
    // As at the end of walk::together().
    simt::sync_warp(active);
    return answer{self.page_, self.steps_};
  }

 private:
  static constexpr u32 pause_nanoseconds = 128;
  static constexpr u32 steps_between_questions = 8;
  static constexpr u32 lane_words = 8;  // looked at side by side, so that their loads overlap

  WARPHEAP_DEVICE search(table_type const& table, lane_mask active, u32 start)
      : table_{table}, active_{active}, start_{start} {}

  /// Looks at all words, until every lane has a page or another pass has the answer.
  WARPHEAP_DEVICE void look(u64 number) {
    u32 turn = 0;
    WARPHEAP_NO_UNROLL
    for (u32 done = 0; done < table_.words();) {
      u32 const lanes = popcount(active_), first = done + popcount(active_ & simt::lanes_below());
      bool const full = all_full(first, lanes);
      WARPHEAP_NO_UNROLL
      for (u32 i = 0; i < lane_words; ++i) {
        ++steps_;
        if (!full) empty_word(place_of(first + i * lanes));
      }
      done += lanes * lane_words;
      lane_mask const needing = simt::ballot(active_, page_ == none);
      if (needing == 0) return;
      if (++turn % steps_between_questions != 0) continue;
      if (simt::ballot(active_, Faults::may_share(table_.pass(), number)) != 0) return;
    }
    if (simt::lane_id() == lowest_bit(active_)) table_.pass().publish(number, {});
  }

  /// The `mine`-th word that the pass looks at; none if there are fewer words.
  WARPHEAP_DEVICE u32 place_of(u32 mine) const {
    u32 const words = table_.words();
    if (mine >= words) return none;
    return start_ < words - mine ? start_ + mine : start_ - (words - mine);
  }

  WARPHEAP_DEVICE mask_type room_of(u32 index) const {
    return index != none ? table_.look_at(index).free(table_type::valid) : 0;
  }

  /// Looks once at the next words of all lanes, lane_words each: whether all of them are full.
  WARPHEAP_DEVICE bool all_full(u32 first, u32 lanes) const {
    mask_type room = 0;
    for (u32 i = 0; i < lane_words; ++i) room |= room_of(place_of(first + i * lanes));
    return simt::ballot(active_, room != 0) == 0;
  }

  /// Deals out the pages of each lane's word, `none` for no word, as long as lanes need them.
  WARPHEAP_DEVICE void empty_word(u32 index) {
    mask_type room = room_of(index);  // pages that were not seen taken yet
    WARPHEAP_NO_UNROLL
    while (simt::ballot(active_, room != 0) != 0 && simt::ballot(active_, page_ == none) != 0) {
      if constexpr (by_lock) room = deal_locked(index, room);
      else room = deal_claimed(index, room);
    }
  }

  /// One round in which lanes lock their words first. Returns the pages still to be looked at.
  WARPHEAP_DEVICE mask_type deal_locked(u32 index, mask_type room) {
    bool mine = false;
    walk_word seen{full_word};
    if (room != 0) {
      seen = Faults::try_lock(table_.word(index));
      mine = !seen.locked();
    }
    mask_type const left = mine ? seen.free(table_type::valid) : 0;
    deal<mask_type> const dealt{active_, left, index * table_type::word_pages, page_};
    page_ = dealt.page;
    if (mine) Faults::publish(table_.word(index), dealt.taken);
    // We may get the pages that its holder leaves.
    bool const waits = Faults::waits_for_locks && !mine && seen.free(room) != 0;
    if (simt::ballot(active_, waits) != 0) simt::pause(pause_nanoseconds);
    if (mine) return left & ~dealt.taken;
    return waits ? seen.free(room) : 0;
  }

  /// One round in which each lane takes one page of its word, if a lane needs it. Returns the pages
  /// still to be looked at: fewer each time, whatever comes free behind us.
  WARPHEAP_DEVICE mask_type deal_claimed(u32 index, mask_type room) {
    lane_mask const needing = simt::ballot(active_, page_ == none), having = simt::ballot(active_, room != 0);
    mask_type got = 0;
    if (room != 0 && popcount(having & simt::lanes_below()) < popcount(needing)) {
      mask_type const first = room & (0 - room);
      walk_word const seen = Faults::take(table_.word(index), first);
      got = seen.free(first);
      room &= seen.free(~mask_type{0}) & ~first;
    }
    page_ = deal<mask_type>{active_, got, index * table_type::word_pages, page_}.page;
    return room;
  }

  table_type table_;
  lane_mask active_;
  u32 start_;
  u32 page_ = none;
  u32 steps_ = 0;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::random_walk_parts
