// The certain answer when a walk found no run: every word is looked at in order, by the lanes of a warp side by side, and
// runs are joined across words and across what the lanes see at once. Also the way of blocks larger than a window, and of
// those that are to be aligned.
//
// One length at a time, the least that any lane wants: where there is no run for that, there is none for the others. A word
// in somebody's hands counts as what it shows: its holder may take more of it, and gives nothing back, so a search that
// sees no run in it misses none. A run that it sees it locks, word by word in ascending order, and only then believes.
//
// Blocks go to multiples of their length first, so that those of one length leave no gaps that fit none; only when there is
// no such place in the whole heap, anywhere.
//
// The search refuses only if it saw no run, marked each word (K3), and then saw the epoch as it was before its first look.
//
//   S1  who waits for a locked word holds only words below it. So lanes wait in no circle.
#pragma once

#include "../../../platform/backoff.hpp"
#include "../../../sync/warp_aggregate.hpp"
#include "unit_table.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {

/// Looks for runs in all words of a heap.
template <creation::rw_malloc_config Config, class Steps>
class run_search {
  using table_type = unit_table<Config>;

 public:
  static constexpr u64 none = table_type::none;
  /// Others of the company were served, and we were not: that says nothing.
  static constexpr u64 again = none - 1;

  /// What a lane has of a search.
  struct answer {
    u64 unit;   ///< the first of its block; none: at one instant of the call there was no run for it; or `again`
    u32 steps;  ///< words it looked at
  };

  /// All lanes of `company` call together, with the same heap and each with its wish.
  WARPHEAP_COLD static answer run(table_type table, u32 company, run_wish wish, u32 start) {
    if constexpr (!Steps::searches) return answer{none, 0};
    run_search search{table, company, wish};
    start = simt::shuffle(company, start, lowest_bit(company));
    u64 const number = table.vacancy().begin(company);
    WARPHEAP_NO_UNROLL
    for (;;) {
      u64 const epoch = table.vacancy().epoch(company);
      search.refuse_if_known(number, epoch);
      u32 const pending = simt::ballot(company, !search.refused_);
      if (pending == 0) break;
      u32 const least = search.least_of(pending);
      bool const sure = search.look(least, start, number);
      if (simt::ballot(company, search.unit_ != none) != 0) {
        if (search.unit_ == none && !search.refused_) search.unit_ = again;
        break;
      }
      bool const is_quiet = sure && table.vacancy().newest_epoch(company) == epoch;
      if (Steps::may_refuse(sure, is_quiet)) search.refuse_like(least, number, epoch);
      else simt::pause(pause_nanoseconds);
    }
    // As at the end of window_walk::run().
    simt::sync_warp(company);
    return answer{search.unit_, search.steps_};
  }

 private:
  static constexpr u32 pause_nanoseconds = 128;
  static constexpr u32 steps_between_questions = 16;
  static constexpr u32 lane_words = 8;  // consecutive words that a lane looks at, so that their loads overlap

  WARPHEAP_DEVICE run_search(table_type const& table, u32 company, run_wish wish)
      : table_{table},
        company_{company},
        rank_{popcount(company & simt::lanes_below())},
        lanes_{popcount(company)},
        wish_{wish} {}

  /// Whether it is known already that there is nothing for us.
  WARPHEAP_DEVICE void refuse_if_known(u64 number, u64 epoch) {
    auto const size = vacancy_size::of_run(wish_.units, false);
    refused_ = refused_ || table_.vacancy().is_certified(size, epoch) || table_.vacancy().is_overtaken(size, number);
    // What a lane acquired with a certificate is of no use to others: each asks for itself.
  }

  /// Nothing was found for what lane `least` wants: nor is there for those that want more. All know it from now on.
  WARPHEAP_DEVICE void refuse_like(u32 least, u64 number, u64 epoch) {
    u64 const units = simt::shuffle(company_, wish_.units, least), align = simt::shuffle(company_, wish_.align, least);
    if (simt::lane_id() == least && align == 1)
      table_.vacancy().publish(vacancy_size::of_run(units, true), number, epoch);
    refused_ = refused_ || (wish_.units >= units && wish_.align >= align);
  }

  /// Of the lanes of `pending` one with the least alignment, and with that the least length.
  WARPHEAP_DEVICE u32 least_of(u32 pending) const {
    u32 best = lowest_bit(pending);
    u64 best_units = simt::shuffle(company_, wish_.units, best),
        best_align = simt::shuffle(company_, wish_.align, best);
    WARPHEAP_NO_UNROLL
    for (u32 rest = pending & (pending - 1); rest != 0; rest &= rest - 1) {
      u64 const units = simt::shuffle(company_, wish_.units, lowest_bit(rest));
      u64 const align = simt::shuffle(company_, wish_.align, lowest_bit(rest));
      if (align > best_align || (align == best_align && units >= best_units)) continue;
      best = lowest_bit(rest);
      best_units = units;
      best_align = align;
    }
    return best;
  }

  /// Looks at all words from `start` on, and around, for runs like the wish of lane `least`, until all lanes with that wish
  /// have one, or some have one and it would take long until the others do, or somebody else has the answer. True if there
  /// was no run.
  WARPHEAP_DEVICE bool look(u32 least, u32 start, u64 number) {
    run_wish const sought{simt::shuffle(company_, wish_.units, least), simt::shuffle(company_, wish_.align, least),
                          simt::shuffle(company_, wish_.phase, least)};
    bool const is_like = !refused_ && wish_.units == sought.units && wish_.align == sought.align;
    if (!look_for(sought, is_like, start, number, sought.align != 1)) return false;
    if (simt::ballot(company_, saw_other_places_) == 0) return true;
    return look_for(sought, is_like, start, number, true);
  }

  /// The same in one kind of places.
  WARPHEAP_DEVICE bool look_for(run_wish sought, bool is_like, u32 start, u64 number, bool anywhere) {
    unsure_ = saw_other_places_ = false;
    anywhere_ = anywhere;
    u64 const words = table_.words(), overlap = start + sought.units / 32 + 2;
    // The second time round up to where every run has been seen that goes beyond the start.
    return sweep(start, words, sought, is_like, number) &&
           sweep(0, overlap < words ? overlap : words, sought, is_like, number) && !unsure_;
  }

  /// The words of [from, to). False if the look is to end.
  WARPHEAP_DEVICE bool sweep(u64 from, u64 to, run_wish sought, bool is_like, u64 number) {
    u64 carry = 0;  // free units up to where we look
    u32 turn = 0;
    WARPHEAP_NO_UNROLL
    for (u64 at = from; at < to; at += lanes_ * lane_words) {
      ++steps_;
      if (!take_all_here(at, to, sought, is_like, carry)) return false;
      if (++turn % steps_between_questions != 0) continue;
      if (simt::ballot(company_, unit_ != none) != 0) return false;
      bool const known = table_.vacancy().is_overtaken(vacancy_size::of_run(sought.units, false), number);
      if (simt::ballot(company_, known) != 0) return false;
    }
    return true;
  }

  /// What a lane sees in its words.
  struct view {
    u64 at_start = 0;    ///< free units from the first word's start on
    u64 at_end = 0;      ///< free units up to the last word's end
    bool is_all = true;  ///< all of them are free
    u64 place = none;    ///< where the block goes that runs between the two are good for
  };

  /// Takes the runs that end in the words from `at` on, some a lane, as long as somebody wants them. False if nobody does any
  /// more.
  WARPHEAP_DEVICE bool take_all_here(u64 at, u64 to, run_wish sought, bool is_like, u64& carry) {
    u64 const first = at + rank_ * lane_words, end = first + lane_words < to ? first + lane_words : to;
    WARPHEAP_NO_UNROLL
    for (;;) {
      view const seen = view_of(first, end, sought);
      u32 const stopping = simt::ballot(company_, !seen.is_all);
      u64 const before = free_before(seen, stopping & simt::lanes_below(), carry);
      u64 place = place_in_run(sought, 32 * first - before, before + seen.at_start);
      if (place == none) place = seen.place;
      u32 const finding = simt::ballot(company_, place != none);
      if (finding == 0) {
        carry = free_after(seen, stopping, carry);
        return true;
      }
      place = simt::shuffle(company_, place, lowest_bit(finding));
      bool const ours = take(unit_run{place, sought.units});
      if (place < 32 * at) {
        // What we know of the units before these words is no longer true.
        carry = 0;
        unsure_ = unsure_ || !ours;
      }
      u32 const wanting = simt::ballot(company_, is_like && unit_ == none);
      if (ours && simt::lane_id() == lowest_bit(wanting)) unit_ = place;
      if (ours && (wanting & (wanting - 1)) == 0) return false;
    }
  }

  /// The words of [first, end), which may be none.
  WARPHEAP_DEVICE view view_of(u64 first, u64 end, run_wish sought) {
    view seen;
    if (first >= end) return view{0, 0, false, none};
    u32 words[lane_words];  // loads before their use
    for (u32 i = 0; i < lane_words; ++i) words[i] = first + i < end ? free_units(static_cast<u32>(first + i)) : 0;
    for (u32 i = 0; i < lane_words; ++i) {
      if (first + i >= end) continue;
      u32 const free = words[i];
      u64 const base = 32 * (first + i);
      if (seen.place == none && !seen.is_all && seen.at_end != 0)
        seen.place = place_in_run(sought, base - seen.at_end, seen.at_end + free_at_start(free));
      if (seen.place == none) seen.place = place_in_word(sought, base, free);
      if (seen.is_all) seen.at_start += free_at_start(free);
      seen.at_end = free == full_mask ? seen.at_end + 32 : free_at_end(free);
      seen.is_all = seen.is_all && free == full_mask;
    }
    if (first + lane_words > end) {  // nothing comes after these
      seen.is_all = false;
      seen.at_end = 0;
    }
    return seen;
  }

  /// Where the block goes, in the kind of places that we look for; notes that there are others.
  WARPHEAP_DEVICE u64 place_in_run(run_wish sought, u64 start, u64 length) {
    u64 const place = sought.place_in_run(start, length, anywhere_);
    saw_other_places_ = saw_other_places_ || (place == none && length >= sought.units);
    return place;
  }
  WARPHEAP_DEVICE u64 place_in_word(run_wish sought, u64 base, u32 free) {
    if (free == 0 || sought.units > 32) return none;
    u64 const place = sought.place_in_word(base, free, anywhere_);
    saw_other_places_ = saw_other_places_ || (place == none && run_starts(free, static_cast<u32>(sought.units)) != 0);
    return place;
  }

  /// The free units of a word, which must tell from now on of what comes free (K3).
  WARPHEAP_DEVICE u32 free_units(u32 index) const {
    walk_word seen = table_.look_at(index);
    if (!seen.watched()) seen = Steps::mark(table_.word(index));
    return seen.locked() && !Steps::doubts_locked_words ? 0 : seen.free();
  }

  /// Free units right before the lane's words; `stopping` are the lanes below whose words are not all free.
  WARPHEAP_DEVICE u64 free_before(view const& seen, u32 stopping, u64 carry) const {
    u32 const nearest = stopping != 0 ? highest_bit(stopping) : simt::lane_id();
    u64 const theirs = simt::shuffle(company_, seen.at_end, nearest);
    if (stopping == 0) return carry + 32 * lane_words * rank_;
    return theirs + 32 * lane_words * popcount(company_ & simt::lanes_below() & ~low_mask32(nearest + 1));
  }

  /// Free units right after the last lane's words.
  WARPHEAP_DEVICE u64 free_after(view const& seen, u32 stopping, u64 carry) const {
    u32 const nearest = stopping != 0 ? highest_bit(stopping) : simt::lane_id();
    u64 const theirs = simt::shuffle(company_, seen.at_end, nearest);
    if (stopping == 0) return carry + 32 * lane_words * lanes_;
    return theirs + 32 * lane_words * popcount(company_ & ~low_mask32(nearest + 1));
  }

  /// Takes a run, whose words the lanes lock side by side: true if all of it was free.
  WARPHEAP_DEVICE bool take(unit_run run) {
    u32 const words = run.words();
    u32 locked = 0;  // of its words, from the first on
    bool free = true;
    backoff nap;
    WARPHEAP_NO_UNROLL
    while (free && locked < words) {
      u32 const i = locked + rank_;
      bool const has = i < words;
      u32 const index = run.first_word() + i;
      // Only words below the first that somebody holds: crowds that lock what they cannot keep would never be done.
      u32 const held = simt::ballot(company_, has && table_.look_at(index).locked());
      bool const tries = has && (held == 0 || simt::lane_id() < lowest_bit(held));
      walk_word const seen = tries ? Steps::try_lock(table_.word(index)) : walk_word{0};
      bool const ours = tries && !seen.locked();
      // What is taken while somebody else holds the word stays taken.
      free = simt::ballot(company_, tries && (run.part(i) & ~seen.free()) != 0) == 0;
      u32 const failing = simt::ballot(company_, has && !ours);
      u32 const kept = failing != 0 ? company_ & low_mask32(lowest_bit(failing)) : company_;
      bool const keeps = ours && (kept >> simt::lane_id() & 1) != 0;
      if (ours && !keeps) Steps::publish(table_.word(index), 0);  // S1
      locked += popcount(simt::ballot(company_, keeps));
      if (failing != 0 && free) nap.pause();
    }
    WARPHEAP_NO_UNROLL
    for (u32 i = rank_; i < locked; i += lanes_) {
      u64 const taken = run.part(i) | u64{run.extent(i)} << table_type::extent_shift;
      Steps::publish(table_.word(run.first_word() + i), free ? taken : 0);
    }
    // What one of us saw of the words, all of us see at the next look.
    simt::sync_warp(company_);
    return free;
  }

  table_type table_;
  u32 company_;
  u32 rank_;
  u32 lanes_;
  run_wish wish_;
  u64 unit_ = none;
  bool refused_ = false;
  bool unsure_ = false;
  bool anywhere_ = false;
  bool saw_other_places_ = false;
  u32 steps_ = 0;
};

}  // namespace warpheap::inline WARPHEAP_BACKEND
