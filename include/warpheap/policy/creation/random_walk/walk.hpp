// SPDX-License-Identifier: Apache-2.0
// The walks: a lane alone looks at one page after another, or at one word of pages after another,
// or the lanes of a warp walk together.
//
// A walk that ends without a page proves nothing. Its number of steps grows as pages become few,
// and without a bound it would never end if there were none. It ends early if it sees a full word
// after some steps and the heap was full once: a pass over everything (search.hpp) may have
// its answer soon.
//
// Source: Pham et al. 2022, algorithms 1 to 4. Differs: docs/design/random_walk.md.
#pragma once

#include "../../../sync/lane_random.hpp"
#include "deal.hpp"
#include "table.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace random_walk_parts {

/// One walk of one lane over the pages of a heap.
template <creation::random_walk_config Config, class Faults>
class walk {
  using table_type = table<Config>;
  using mask_type = typename table_type::mask_type;
  static constexpr u32 none = table_type::none;
  static constexpr bool by_page = Config.kind == creation::walk_kind::plain;

 public:
  WARPHEAP_DEVICE explicit walk(table_type const& table) : table_{table}, random_{lane_random_sequence()} {}

  /// Steps that the lane took.
  WARPHEAP_DEVICE u32 steps() const { return steps_; }

  /// Times that the lane found a page or a lock taken that it had seen free; 0 where steps are not
  /// counted.
  WARPHEAP_DEVICE u32 collisions() const { return collisions_; }

  /// A word to begin a search at.
  WARPHEAP_DEVICE u32 somewhere() { return random_.below(table_.words()); }

  /// A page for the calling lane, or `none`, which proves nothing. Any lane alone; lock-free.
  WARPHEAP_DEVICE u32 alone() {
    u32 const places = by_page ? table_.pages() : table_.words(), most = most_steps(places);
    while (steps_ < most) {
      u32 const place = random_.below(places), index = by_page ? place / table_type::word_pages : place;
      ++steps_;
      mask_type const wanted = by_page ? table_type::bit_of(place) : table_type::valid;
      walk_word seen = table_.look_at(index);
      for (mask_type free = seen.free(wanted); free != 0; free &= seen.free(~mask_type{0})) {
        mask_type const first = free & (0 - free);
        seen = Faults::take(table_.word(index), first);
        if (seen.free(first)) return index * table_type::word_pages + lowest_bit(first);
        count_collision(true);
        free &= ~first;
      }
      if (asks_early() && is_full_again(seen)) break;
    }
    return none;
  }

  /// A page for each lane of `active`, or `none`, which proves nothing. All these lanes call
  /// together with the same heap, and take the same number of steps. A word that another lane has
  /// locked is passed over.
  WARPHEAP_DEVICE u32 together(lane_mask active) {
    u32 const words = table_.words(), most = most_steps(words);
    u32 page = none;
    for (lane_mask needing = active; needing != 0 && steps_ < most;) {
      u32 const index = random_.below(words);
      ++steps_;
      walk_word seen = table_.look_at(index);
      bool mine = false;
      if (!seen.locked() && seen.free(table_type::valid)) {
        seen = Faults::try_lock(table_.word(index));
        mine = !seen.locked();
        count_collision(!mine || seen.free(table_type::valid) == 0);
      }
      deal<mask_type> const dealt{active, mine ? seen.free(table_type::valid) : 0, index * table_type::word_pages,
                                  page};
      page = dealt.page;
      if (mine) Faults::publish(table_.word(index), dealt.taken);
      needing = simt::ballot(active, page == none);
      if (asks_early() && simt::ballot(active, is_full_again(seen)) != 0) break;
    }
    // Pages that other lanes found for us are published, and what their old owners wrote happens
    // before our return.
    simt::sync_warp(active);
    return page;
  }

 private:
  static constexpr u32 least_steps = 8;

  WARPHEAP_DEVICE void count_collision(bool is_one) {
    if constexpr (Config.counts_steps) collisions_ += is_one;
  }

  /// Steps after which a walk gives up: enough to find a page if one in a thousand is free, but no
  /// more than four times the number of places.
  WARPHEAP_HOST_DEVICE static u32 most_steps(u32 places) {
    constexpr u32 usual = by_page ? 8192 : 512, most = Config.walk_steps != 0 ? Config.walk_steps : usual;
    return 4 * u64{places} < most ? 4 * places : most;
  }

  /// Whether the walk should end: the heap was full once, and may be again. Asked now and then.
  WARPHEAP_DEVICE bool asks_early() const { return steps_ >= least_steps && is_power_of_two(steps_); }
  WARPHEAP_DEVICE bool is_full_again(walk_word seen) const {
    return seen.free(table_type::valid) == 0 && table_.pass().ever_failed();
  }

  table_type table_;
  random_sequence random_;
  u32 steps_ = 0;
  u32 collisions_ = 0;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::random_walk_parts
