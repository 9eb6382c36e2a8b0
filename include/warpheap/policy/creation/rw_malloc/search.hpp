// SPDX-License-Identifier: Apache-2.0
// The certain answer when a walk found no run: the lanes of a warp look at all words side by side,
// group by group (words.hpp). Groups known to have neither a run of that length nor a part of
// one are passed over, hundreds at a glance. In the other groups every word is looked at, and what
// was seen is noted for later searches. Blocks larger than a window, and aligned ones, are found in
// this way too.
//
// It looks for one length at a time, the least that any lane wants: if there is no run for that,
// there is none for the other lanes. A locked word counts as what it shows: its holder may take
// more of it, and gives nothing back, so a search that sees no run in it misses none. A run that is
// seen is locked before it is believed (take.hpp).
//
// There is one pass over all groups. A unit that was taken when we tried to lock it counts as taken
// for the rest of the pass, so every lost race leaves less to be looked at. Lanes that have their
// block stay, and look for the others. A search gives up when a pass that began after it found
// nothing (sync/shared_pass.hpp).
#pragma once

#include "../../../sync/warp_aggregate.hpp"
#include "look.hpp"
#include "take.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace rw_malloc_parts {

/// Looks for runs in all words of a heap, once.
template <creation::rw_malloc_config Config, class Faults>
class search {
  using table_type = table<Config>;
  using look_type = rw_malloc_parts::look<Config, Faults>;

 public:
  static constexpr u64 none = table_type::none;

  /// A lane's result of a search.
  struct answer {
    /// first unit of its block, which is marked; none if no run for it stayed free during the whole
    /// call
    u64 unit;
    u32 steps;  ///< times it looked, at up to eight words or groups a lane
  };

  /// All lanes of `active` call together with the same heap, each with its wish. `unit` is the
  /// block that the lane has already; none if it needs one.
  WARPHEAP_COLD static answer run(table_type table, lane_mask active, run_wish wish, u64 unit, u32 start) {
    if constexpr (!Faults::searches) return answer{unit, 0};
    search search{table, active, wish, unit};
    start = simt::shuffle(active, start, lowest_bit(active));
    u64 const number = table.pass().begin(active);
    WARPHEAP_NO_UNROLL
    while (lane_mask const pending = simt::ballot(active, search.needs_)) {
      u32 const least = search.least_of(pending);
      pass_end const end = search.look(least, start, number);
      if (end != pass_end::served) search.refuse_like(least, number, end == pass_end::exhausted);
    }
    // As at the end of walk::run().
    simt::sync_warp(active);
    return answer{search.unit_, search.steps_};
  }

 private:
  static constexpr u32 pause_nanoseconds = 128;
  static constexpr u32 steps_between_questions = 16;
  // consecutive groups that a lane looks at, so that their loads overlap
  static constexpr u32 lane_groups = 8;
  static constexpr u32 most_moves = 16;  // to a better place; after them any place will do

  /// How a look ends.
  enum class pass_end : u32 {
    served,    ///< every lane that wanted such a block has one
    answered,  ///< another search saw everything, and no run
    exhausted  ///< this search did
  };

  WARPHEAP_DEVICE search(table_type const& table, lane_mask active, run_wish wish, u64 unit)
      : table_{table}, active_{active}, look_{table, active}, wish_{wish}, unit_{unit}, needs_{unit == none} {}

  /// Gives up for the lanes that want as many units as lane `least` and as much alignment, or more.
  WARPHEAP_DEVICE void refuse_like(u32 least, u64 number, bool saw_everything) {
    u64 const units = simt::shuffle(active_, wish_.units, least), align = simt::shuffle(active_, wish_.align, least);
    if (simt::lane_id() == least && align == 1 && saw_everything)
      table_.pass().publish(number, pass_size::of_run(units, true));
    needs_ = needs_ && !(wish_.units >= units && wish_.align >= align);
  }

  /// The lane of `pending` with the least alignment and, among those, the least length.
  WARPHEAP_DEVICE u32 least_of(lane_mask pending) const {
    u32 best = lowest_bit(pending);
    u64 best_units = simt::shuffle(active_, wish_.units, best), best_align = simt::shuffle(active_, wish_.align, best);
    WARPHEAP_NO_UNROLL
    for (lane_mask rest = pending & (pending - 1); rest != 0; rest &= rest - 1) {
      u64 const units = simt::shuffle(active_, wish_.units, lowest_bit(rest));
      u64 const align = simt::shuffle(active_, wish_.align, lowest_bit(rest));
      if (align > best_align || (align == best_align && units >= best_units)) continue;
      best = lowest_bit(rest);
      best_units = units;
      best_align = align;
    }
    return best;
  }

  /// Looks for runs for the wish of lane `least`: first in a few words from `start` on, then in all
  /// groups from there on and around.
  WARPHEAP_DEVICE pass_end look(u32 least, u32 start, u64 number) {
    run_wish const sought{simt::shuffle(active_, wish_.units, least), simt::shuffle(active_, wish_.align, least),
                          simt::shuffle(active_, wish_.phase, least)};
    bool const is_like = needs_ && wish_.units == sought.units && wish_.align == sought.align;
    if (!glance(start, sought, is_like)) return pass_end::served;
    // The second sweep ends where every run that crosses the start has been seen to its end, or up
    // to a suitable place.
    u64 const groups = table_.groups(), from = start / Config.group_words;
    u64 const overlap = from + 2 * sought.units / table_type::group_units + 2;
    pass_end const end = sweep(from, groups, sought, is_like, number);
    if (end != pass_end::exhausted || from == 0) return end;
    return sweep(0, overlap < groups ? overlap : groups, sought, is_like, number);
  }

  /// Looks at some words from a random place on. Without this, all contending threads would begin
  /// at the first run of a group and meet there. False if the look is to end.
  WARPHEAP_DEVICE bool glance(u64 first, run_wish sought, bool is_like) {
    u64 const words = u64{look_.lanes()} * look_type::lane_words;
    if (sought.units > 32 * words) return glance_at_places(first, sought, is_like);
    u64 const end = first + words < table_.words() ? first + words : table_.words();
    WARPHEAP_NO_UNROLL
    for (;;) {
      ++steps_;
      u64 const place = look_.at(first, end, sought, {.start = 32 * first, .begins = false}, watching::no).place;
      if (place == none || take(place, sought).how != run_taken::done) return true;
      if (!serve(place, is_like)) return false;
    }
  }

  /// As glance(), for longer runs: tries some places that look free where they begin.
  WARPHEAP_DEVICE bool glance_at_places(u64 first, run_wish sought, bool is_like) {
    u64 place = 32 * first;
    WARPHEAP_NO_UNROLL
    for (u32 i = 0; i < places_at_a_glance; ++i) {
      ++steps_;
      place += sought.padding(place);
      if (place + sought.units > table_.units()) return true;
      walk_word const begin = table_.look_at(static_cast<u32>(place / 32));
      bool const seems_free = !begin.locked() && (begin.free() >> place % 32 & 1) != 0;
      if (simt::ballot(active_, seems_free) == active_ && take(place, sought).how == run_taken::done &&
          !serve(place, is_like))
        return false;
      place += sought.units;
    }
    return true;
  }
  static constexpr u32 places_at_a_glance = 4;

  /// Looks at the groups of [from, to).
  WARPHEAP_DEVICE pass_end sweep(u64 from, u64 to, run_wish sought, bool is_like, u64 number) {
    open_run before{from * table_type::group_units, from == 0};
    u32 turn = 0;
    WARPHEAP_NO_UNROLL
    for (u64 at = from; at < to;) {
      ++steps_;
      bool const is_answered =
          turn++ % steps_between_questions == 0 &&
          simt::ballot(active_, Faults::may_share(table_.pass(), number, pass_size::of_run(sought.units, false))) != 0;
      if (is_answered) return pass_end::answered;
      group_word noted{0};
      if (next_group(at, to, sought.units, before, noted) && !visit(at, sought, is_like, before, noted))
        return pass_end::served;
    }
    return pass_end::exhausted;
  }

  /// Reads the notes of the next groups from `at` on, some for each lane. Moves `at` to the first
  /// that may have a run of `units` or its end, sets `found` to its note, and returns true; else
  /// moves `at` behind them all. `before` is the run that reaches up to `at`, on entry and on
  /// return.
  WARPHEAP_DEVICE bool next_group(u64& at, u64 to, u64 units, open_run& before, group_word& found) const {
    u64 const first = at + look_.rank() * lane_groups;
    group_view seen = view_of(first, to, units);
    lane_mask const stopping = simt::ballot(active_, seen.stops);
    open_run const mine = look_.opened_below(stopping & simt::lanes_below(), seen.tail, before);
    // a run from before may be long enough, somewhere in our first groups
    if (first < to && seen.head - mine.start >= units) seen.hit = {0, seen.first_noted, none};
    lane_mask const hitting = simt::ballot(active_, seen.hit.which != lane_groups);
    if (hitting == 0) {
      before = look_.opened_below(stopping, seen.tail, before);
      u64 const end = at + u64{look_.lanes()} * lane_groups;
      at = end < to ? end : to;
      return false;
    }
    u32 const lane = lowest_bit(hitting);
    bool const in_lane = seen.hit.opened != none;
    u64 const start = simt::shuffle(active_, in_lane ? seen.hit.opened : mine.start, lane);
    before = {start, simt::shuffle(active_, u32{in_lane || mine.begins}, lane) != 0};
    at = simt::shuffle(active_, first + seen.hit.which, lane);
    found.word = simt::shuffle(active_, seen.hit.noted.word, lane);
    return true;
  }

  /// A group that may have a run, or the end of one.
  struct group_hit {
    u32 which = lane_groups;  ///< of the lane's groups; lane_groups: none
    group_word noted{0};
    u64 opened = 0;  ///< start of the run open there; `none` if before the lane's groups
  };
  /// What the notes of a lane's groups show.
  struct group_view {
    u64 head, tail;  ///< as in a look at words, of the groups before the hit
    bool stops;
    group_word first_noted;
    group_hit hit;
  };

  /// Of the groups from `first` on, those before `to`.
  WARPHEAP_DEVICE group_view view_of(u64 first, u64 to, u64 units) const {
    u64 const base = first * table_type::group_units;
    group_word noted[lane_groups];  // loads before their use
    for (u32 i = 0; i < lane_groups; ++i)
      noted[i] = first + i < to ? Faults::read_note(table_.group(first + i)) : group_word{0};
    group_view seen{base, base, false, noted[0], {}};
    for (u32 i = 0; i < lane_groups; ++i) {
      if (seen.hit.which != lane_groups || first + i >= to) continue;
      u64 const here = base + i * table_type::group_units;
      u32 const all = table_.units_of_group(first + i);
      u64 const joined = seen.stops ? here + noted[i].at_start() - seen.tail : 0;
      if (!noted[i].noted() || noted[i].longest() >= units || joined >= units) {
        seen.hit = {i, noted[i], seen.stops ? seen.tail : none};
        continue;
      }
      if (!seen.stops) seen.head = here + noted[i].at_start();
      if (noted[i].at_start() == all) continue;
      seen.stops = true;
      seen.tail = here + all - noted[i].at_end();
    }
    return seen;
  }

  /// Looks at the words of group `at`, whose note some lane read as `noted`. Takes the runs that
  /// end there as long as a lane wants them, notes what is left, and moves `at` to the next group,
  /// or back to an earlier one. False if no lane wants any more. `before` is as in next_group().
  WARPHEAP_DEVICE bool visit(u64& at, run_wish sought, bool is_like, open_run& before, group_word noted) {
    noted = note_anew(at, noted);
    u64 const first = 32 * at * Config.group_words;
    u64 lost = none;  // a taken unit, before which there is more to look at
    WARPHEAP_NO_UNROLL
    for (;;) {
      u64 const place = lost < first ? sought.place_in_run(before.start, lost - before.start, before.begins)
                                     : look_at_group(at, sought, before, lost, noted);
      if (place == none && lost == none) return true;
      if (place == none) {
        before = {lost + 1, true};
        lost = none;
        continue;
      }
      run_taken const got = take(place, sought);
      if (got.how == run_taken::done) {
        if (!serve(place, is_like)) return false;
        u64 const behind = place + sought.units;
        if (place < first) before = {behind < first ? behind : first, true};
      } else if (got.how == run_taken::lost) {
        lost = look_on(lost, before, place, sought, got);
      } else {
        go_back(at, before, place, sought);
        return true;
      }
    }
  }

  /// After units of a place were lost to others: the taken unit before which there is more to look
  /// at, or `none`.
  WARPHEAP_DEVICE u64 look_on(u64 lost, open_run& before, u64 place, run_wish sought, run_taken got) const {
    // The place was the first of its run, so what is left of the run before it is too short,
    // unless the first units of the place are free too, and the block may lie anywhere.
    bool const settled = sought.align != 1 || got.first == place;
    if (place > lost || settled) before = {(settled ? got.last : lost) + 1, true};
    return settled ? none : got.last;
  }

  /// The unit before the place was seen taken, so all that lies before is settled: we come back
  /// only for a better place.
  WARPHEAP_DEVICE void go_back(u64& at, open_run& before, u64 place, run_wish sought) {
    u64 const back = (place > sought.units ? place - sought.units : 0) / table_type::group_units;
    before = {back * table_type::group_units, back == 0};
    at = back;
    --moves_left_;
    simt::pause(pause_nanoseconds);
  }

  /// A place in the words of group `at`. Units below the start of `before`, and the unit `lost`,
  /// count as taken. If there is no place and no unit `lost`, notes what was seen and moves `at` to
  /// the next group.
  WARPHEAP_DEVICE u64 look_at_group(u64& at, run_wish sought, open_run& before, u64 lost, group_word noted) const {
    u64 const first = at * Config.group_words, end = first + table_.units_of_group(at) / 32;
    bool const is_behind = before.start > 32 * first;
    taken_units const taken{is_behind ? before.start : 0, lost};
    auto const seen = look_.at(first, end, sought, is_behind ? open_run{32 * first} : before, watching::yes, taken);
    if (seen.place != none || lost != none) return seen.place;
    if (!is_behind) note(at, noted, seen.runs);
    before = seen.after;
    ++at;
    return none;
  }

  /// The note of a group that some lane read as `seen`: `seen` if it is noted; else the group noted
  /// anew, or 0 if another lane changed its word meanwhile (rw.G2).
  WARPHEAP_DEVICE group_word note_anew(u64 group, group_word seen) const {
    auto const lanes = group_of(active_);
    if (!seen.noted()) {
      group_word const anew = seen.noted_anew(table_.units_of_group(group));
      // acq_rel: our look at the words sees all that came free before, and (rw.G2) so does the look
      // of each thread that reads this; pairs with the release in disturb(), and the acquire in
      // read_note().
      bool const sets =
          lanes.leads && table_.group(group).compare_exchange(seen.word, anew.word, order::acq_rel, order::relaxed);
      seen.word = broadcast(lanes, sets ? anew.word : 0);
    }
    simt::sync_warp(active_);  // what one lane acquired, all have
    return seen;
  }

  /// Notes what runs there were, unless something came free since `noted` was read (rw.G2).
  WARPHEAP_DEVICE void note(u64 group, group_word noted, free_span runs) const {
    group_word const now = noted.with(runs);
    if (!noted.noted() || now.word == noted.word || !group_of(active_).leads) return;
    Faults::note(table_.group(group), noted.word, now.word);
  }

  /// Gives the block at `place`, which is ours, to the lowest lane that wants it. False if no lane
  /// wants another.
  WARPHEAP_DEVICE bool serve(u64 place, bool is_like) {
    lane_mask const wanting = simt::ballot(active_, is_like && unit_ == none);
    if (simt::lane_id() == lowest_bit(wanting)) {
      unit_ = table_.template own<Faults>(place, wish_.units);
      needs_ = false;
    }
    return (wanting & (wanting - 1)) != 0;
  }

  /// Takes the block at `place`, which was seen free.
  WARPHEAP_DEVICE run_taken take(u64 place, run_wish sought) const {
    // else it is the beginning of a run that has no suitable place
    bool const is_suitable = sought.padding(place) == 0;
    return rw_malloc_parts::take<Config, Faults>{table_, active_}(unit_run{place, sought.units},
                                                                  !is_suitable && moves_left_ != 0);
  }

  table_type table_;
  lane_mask active_;
  look_type look_;
  run_wish wish_;
  u64 unit_;
  bool needs_;
  u32 moves_left_ = most_moves;
  u32 steps_ = 0;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::rw_malloc_parts
