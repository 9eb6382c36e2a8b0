// The certain answer when a walk found no page: every word is looked at, by the lanes of a warp side by side, and what they
// find they share.
//
// The search ends without a page only if it saw every word full, marked each (K3), and then the epoch as it was before its
// first look; or if the certificates of vacancy.hpp say that somebody else did. A word that is locked and not full has pages
// that its holder may give or leave: it counts as neither, and the search starts again.
//
// Cost: a load for every 32 words in a warp, 5 to 10 ms for the 2^20 words of 8 GiB in pages of 256 bytes; nothing where a
// certificate stands.
#pragma once

#include "page_walk.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {

/// Looks at every word of a heap.
template <creation::random_walk_config Config, class Steps>
class walk_search {
  using pages_type = walk_pages<Config>;
  static constexpr bool by_lock = Config.kind == creation::walk_kind::collaborative;

 public:
  static constexpr u32 none = pages_type::none;
  /// Others of the company were served, and we were not: that says nothing.
  static constexpr u32 again = none - 1;

  /// What a lane has of a search.
  struct answer {
    u32 page;   ///< its page; none: at one instant of the call every page was owned or promised; or `again`
    u32 steps;  ///< words it looked at
  };

  /// All lanes of `company` call together, with the same heap.
  WARPHEAP_COLD static answer run(pages_type pages, u32 company, u32 start) {
    walk_search search{pages, company};
    if constexpr (!Steps::searches) return answer{none, 0};
    start = simt::shuffle(company, start, lowest_bit(company));
    u64 const number = pages.vacancy().begin(company);
    WARPHEAP_NO_UNROLL
    for (;;) {
      u64 const epoch = pages.vacancy().epoch(company);
      if (search.is_certain(number, epoch)) break;
      bool const sure = search.look(start, number);
      if (simt::ballot(company, search.page_ != none) != 0) {
        if (search.page_ == none) search.page_ = again;
        break;
      }
      if (Steps::may_refuse(sure, sure && pages.vacancy().newest_epoch(company) == epoch)) {
        if (group_of(company).leads) pages.vacancy().publish({}, number, epoch);
        break;
      }
      simt::pause(pause_nanoseconds);
    }
    // As at the end of page_walk::together().
    simt::sync_warp(company);
    return answer{search.page_, search.steps_};
  }

 private:
  static constexpr u32 pause_nanoseconds = 128;
  static constexpr u32 steps_between_questions = 8;
  static constexpr u32 lane_words = 8;  // looked at side by side, so that their loads overlap

  WARPHEAP_DEVICE walk_search(pages_type const& pages, u32 company) : pages_{pages}, company_{company} {}

  /// Whether somebody else has the answer. The leader's acquire is everybody's before all return.
  WARPHEAP_DEVICE bool is_overtaken(u64 number) const {
    return simt::ballot(company_, group_of(company_).leads && pages_.vacancy().is_overtaken({}, number)) != 0;
  }
  WARPHEAP_DEVICE bool is_certain(u64 number, u64 epoch) const {
    bool const known = group_of(company_).leads && pages_.vacancy().is_certified({}, epoch);
    return simt::ballot(company_, known) != 0 || is_overtaken(number);
  }

  /// Looks at all words from `start` on, and around, until every lane has a page, or some have one and it would take long
  /// until the others do, or somebody else has the answer. True if every word was full.
  WARPHEAP_DEVICE bool look(u32 start, u64 number) {
    u32 const words = pages_.words(), lanes = popcount(company_), rank = popcount(company_ & simt::lanes_below());
    bool unsure = false;
    u32 turn = 0;
    WARPHEAP_NO_UNROLL
    for (u32 done = 0; done < words; done += lanes * lane_words) {
      bool const plain = all_full(done + rank, lanes, start);
      WARPHEAP_NO_UNROLL
      for (u32 i = 0; i < lane_words; ++i) {
        ++steps_;
        if (!plain && !empty_word(place_of(done + i * lanes + rank, start))) unsure = true;
      }
      u32 const served = simt::ballot(company_, page_ != none);
      if (served == company_) return false;
      if (++turn % steps_between_questions != 0) continue;
      if (served != 0) return false;
      if (!is_overtaken(number)) continue;
      unsure = true;  // of what we saw; run() asks again
      break;
    }
    return simt::ballot(company_, unsure) == 0;
  }

  /// The word to be looked at as the `mine`-th; none if there are not so many.
  WARPHEAP_DEVICE u32 place_of(u32 mine, u32 start) const {
    u32 const words = pages_.words();
    return mine < words ? (start < words - mine ? start + mine : start - (words - mine)) : none;
  }

  /// A glance at some words of each lane, all of them: whether they are full, and marked as such.
  WARPHEAP_DEVICE bool all_full(u32 mine, u32 lanes, u32 start) const {
    bool full = true;
    for (u32 i = 0; i < lane_words; ++i) {
      u32 const index = place_of(mine + i * lanes, start);
      walk_word const seen = index != none ? pages_.look_at(index) : walk_word{walk_word::watched_bit | full_mask};
      full = full && seen.watched() && seen.free(pages_type::valid) == 0;
    }
    return simt::ballot(company_, !full) == 0;
  }

  /// Deals out the pages of a word for each lane, `none` for no word, as long as they are needed. False if the lane cannot
  /// tell whether its word was full.
  WARPHEAP_DEVICE bool empty_word(u32 index) {
    walk_word seen = index != none ? pages_.look_at(index) : walk_word{walk_word::watched_bit | full_mask};
    bool passed = false;  // what the word has left is in the hands of its holder
    for (;;) {
      // K3.
      if (seen.free(pages_type::valid) == 0 && !seen.watched()) seen = Steps::mark(pages_.word(index));
      u32 const free = passed ? 0 : seen.free(pages_type::valid);
      bool const some_needed = simt::ballot(company_, page_ == none) != 0;
      if (simt::ballot(company_, free != 0) == 0 || !some_needed) return !passed || !Steps::doubts_locked_words;
      if constexpr (by_lock) passed = deal_locked(index, free, seen) || passed;
      else deal_claimed(index, free, seen);
    }
  }

  /// One round with words that are locked first. True if ours is in other hands.
  WARPHEAP_DEVICE bool deal_locked(u32 index, u32 free, walk_word& seen) {
    bool mine = false;
    if (free != 0) {
      seen = Steps::try_lock(pages_.word(index));
      mine = !seen.locked();
    }
    u32 const left = mine ? seen.free(pages_type::valid) : 0;
    page_deal const dealt{company_, left, index * pages_type::word_pages, page_};
    page_ = dealt.page;
    if (mine) seen = walk_word{Steps::publish(pages_.word(index), dealt.taken).word | dealt.taken};
    return free != 0 && !mine;
  }

  /// One round with pages that are taken one by one, each for somebody.
  WARPHEAP_DEVICE void deal_claimed(u32 index, u32 free, walk_word& seen) {
    u32 const below = simt::lanes_below();
    u32 const needing = simt::ballot(company_, page_ == none), having = simt::ballot(company_, free != 0);
    u32 got = 0;
    if (free != 0 && popcount(having & below) < popcount(needing)) {
      u32 const first = free & (0 - free);
      seen = Steps::take(pages_.word(index), first);
      got = seen.free(first);
      seen.word |= first;
    }
    page_ = page_deal{company_, got, index * pages_type::word_pages, page_}.page;
  }

  pages_type pages_;
  u32 company_;
  u32 page_ = none;
  u32 steps_ = 0;
};

}  // namespace warpheap::inline WARPHEAP_BACKEND
