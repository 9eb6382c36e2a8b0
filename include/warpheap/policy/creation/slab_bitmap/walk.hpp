// Where blocks come from when the quick path finds none: a leader's walk over places, in one order.
// A step names a slab: of one in use it promises blocks, and a free one it makes one of the class.
//
//   row_slab  the row's slab
//   near      a listed slab, for a row that has a slab; here and at listed, a roomy one becomes the
//             row's
//   ticket    none: decides whether the request makes a slab for the row, or waits
//   fresh     a free slab, for requests that make one, while enough are left
//   awaited   the slab that another request makes for the row
//   listed    listed slabs; for longer, with pauses, while there are free slabs for others to make
//   resting   none: a pause, if free slabs are left
//   unused    free slabs
//   moving    the row's slab came to its soft limit: a roomy listed slab, or a free one
//
// What these guides miss costs time; search.hpp has the answer. A multiprocessor has a few
// rows, each with a hint a class: its slab, and the demand that found no room there. Of each slab's
// worth of demand one request makes a slab. What is made early leaves slabs free for other classes.
#pragma once

#include "../../../sync/lane_random.hpp"
#include "lock.hpp"

namespace warpheap::inline WARPHEAP_BACKEND::slab_bitmap_parts {

/// One request's walk in one word. moves: steps left of those that find the row another slab.
/// turn: steps taken at this place. slab: the row's as last seen, 0 if none.
///
///   63 60 59  57 56 53 52   51 50  49  25 24      0
///  | place |opener| row | moves | 0 | turn | slab + 1 |
class slab_walk {
 public:
  static constexpr u32 none = slab_index::none;

  /// A walk that has ended.
  slab_walk() = default;
  /// A walk for row `row_number`, of which the four lowest bits count.
  WARPHEAP_DEVICE explicit slab_walk(u32 row_number) : word_{u64{row_number & 15} << row_shift} {}

  WARPHEAP_DEVICE bool has_ended() const { return place() == over; }
  WARPHEAP_DEVICE bool is_moving() const { return moves() != 0; }
  WARPHEAP_DEVICE void begin_again() {
    if (!has_ended()) word_ &= u64{15} << row_shift;
  }

  /// Whether requests of `wanted` blocks go by the hint; for larger ones the index is as near.
  WARPHEAP_HOST_DEVICE static bool goes_by_hint(u32 wanted, u32 capacity) { return hint_serves * wanted <= capacity; }

  /// Looks at one slab and promises up to `wanted` of its blocks, often none. A leader alone.
  WARPHEAP_DEVICE slab_reservation next(slab_table const& table, u32 size_class, u32 wanted) {
    u32 const at = is_moving() ? moving : place();
    u32 spare = not_to_be_taken;
    u32 const slab = next_guess(table, size_class, wanted, spare);
    if (slab == none) return {};
    slab_state const now = table.load(slab);
    slab_reservation taken;
    bool hints = false;
    if (now.serves(size_class)) {
      slab_limits const limits{table.geometry().capacity(size_class)};
      bool const has_room = now.used() < (at == moving ? limits.roomy : limits.capacity);
      if (has_room && at != moving)
        taken = table.opaque().keep(slab, warpheap::opaque(size_class), wanted, table.promise(slab, wanted), false);
      hints = at == moving ? has_room : taken.is_roomy() && (at == near || at == listed);
    } else if (now.kind() == slab_kind::free && spare != not_to_be_taken && slab_lock::take_free(table, slab, spare)) {
      u32 const entry = entry_for(table.opaque(), warpheap::opaque(size_class), wanted);
      taken = slab_lock::publish(table.opaque(), slab, warpheap::opaque(size_class), at == moving ? 0 : wanted, entry);
    }
    if (hints || taken.reaches_soft()) {
      u32 const entry = entry_for(table.opaque(), warpheap::opaque(size_class), wanted);
      u32 const current = hint(table, entry).current();
      // A slab that another request found for the row stays: rows that share a slab fill it.
      if (hints && (at == moving || current == this->slab())) table.set_hint(entry, slab);
      if (hints && at == moving) set_moves(0);
      if (taken.reaches_soft() && current == slab + 1) {
        demand(table, entry, 1);  // others wait for the next slab
        set_moves(looks_to_move + 1);
      }
    }
    return taken;
  }

 private:
  static constexpr u32 hint_serves = 8;                  // requests a slab must serve for a hint
  static constexpr u32 few = 8, many = 32;               // looks; few where another place may do
  static constexpr u32 turns_to_wait = 16;               // pauses for a slab that another makes
  static constexpr u32 looks_a_demand = 4;               // looks for one addition to the demand
  static constexpr u32 looks_to_move = 2;                // looks for a listed slab to move to
  static constexpr u32 sharing_pause_nanoseconds = 512;  // a slab takes 2 us to be made
  static constexpr u32 pause_nanoseconds = 128;
  static constexpr u32 tries_at_fresh = 2;       // others may be faster
  static constexpr u32 blocks_a_first_slab = 4;  // of the class's demand
  // How many of the 64 slabs around a slab that is made early must stay free.
  static constexpr u32 keep_free_first = 40, keep_free_by_chance = 32, keep_free_by_demand = 16;
  static constexpr u32 not_to_be_taken = ~0u;
  enum place_of : u32 { row_slab, near, ticket, fresh, awaited, listed, resting, unused, moving, over };
  // What the ticket says of the request. no_hint: it is too large for a row. waits: for another
  // request that opens the row's next slab. opens: that slab; opens_first: the row's first one.
  // denied: no slab is free.
  enum opener_role : u32 { no_hint, waits, opens, opens_first, denied };

  static constexpr u32 place_shift = 60, opener_shift = 57, row_shift = 53, moves_shift = 51, turn_shift = 25;
  static constexpr u32 slab_mask = (1u << 25) - 1;

  WARPHEAP_DEVICE u32 place() const { return static_cast<u32>(word_ >> place_shift); }
  WARPHEAP_DEVICE u32 opener() const { return static_cast<u32>(word_ >> opener_shift) & 7; }
  WARPHEAP_DEVICE u32 row() const { return static_cast<u32>(word_ >> row_shift) & 15; }
  WARPHEAP_DEVICE u32 moves() const { return static_cast<u32>(word_ >> moves_shift) & 3; }
  WARPHEAP_DEVICE u32 turn() const { return static_cast<u32>(word_ >> turn_shift) & slab_mask; }
  WARPHEAP_DEVICE u32 slab() const { return static_cast<u32>(word_) & slab_mask; }
  WARPHEAP_DEVICE void set_moves(u32 moves) { word_ = (word_ & ~(u64{3} << moves_shift)) | u64{moves} << moves_shift; }
  WARPHEAP_DEVICE void set_slab(u32 slab) { word_ = (word_ & ~u64{slab_mask}) | slab; }
  WARPHEAP_DEVICE void pass(u32 turns) { word_ += u64{turns} << turn_shift; }
  WARPHEAP_DEVICE void go_to(u32 place, u32 opener) {
    word_ = (word_ & (u64{63} << moves_shift | slab_mask)) | u64{place} << place_shift | u64{opener} << opener_shift;
  }
  WARPHEAP_DEVICE void go_to(u32 place) { go_to(place, opener()); }
  /// As go_to(), but keeps turn().
  WARPHEAP_DEVICE void set_place(u32 place) { word_ = (word_ & low_mask(place_shift)) | u64{place} << place_shift; }

  WARPHEAP_DEVICE static u32 random_slab(slab_table const& table) {
    return scale_below(lane_random_bits(), table.geometry().slabs());
  }
  WARPHEAP_DEVICE static u32 find(slab_table const& table, u32 which) {
    slab_table const here = table.opaque();
    return here.index(which).find(random_slab(here));
  }
  /// A free slab near a random place, or `none` if that leaves fewer than `spare` of 64 free.
  WARPHEAP_DEVICE static u32 find_spare(slab_table const& table, u32 spare) {
    u32 const near = random_slab(table);
    u64 const around = table.index(slab_table::free_slabs).load(near);
    if (popcount(around) <= spare) return none;
    return near - near % 64 + (near + lowest_bit(rotate_left(around, 0 - near))) % 64;
  }

  /// The hint for requests of `wanted` blocks; no_entry where a slab serves too few of them.
  WARPHEAP_DEVICE u32 entry_for(slab_table const& table, u32 size_class, u32 wanted) const {
    bool const goes = goes_by_hint(wanted, table.geometry().capacity(size_class));
    return goes ? table.hint_entry(size_class, row()) : slab_table::no_entry;
  }
  // relaxed, here and in demand(): a hint.
  WARPHEAP_DEVICE static slab_hint hint(slab_table const& table, u32 entry) {
    return {entry != slab_table::no_entry ? table.hint(entry).load(order::relaxed) : 0};
  }
  /// Adds to the demand for the row's next slab, and returns the hint as it was.
  WARPHEAP_DEVICE static slab_hint demand(slab_table const& table, u32 entry, u32 blocks) {
    return {table.hint(entry).fetch_add(slab_hint::demand_of(blocks), order::relaxed)};
  }

  /// Adds to the class's unmet demand. True for the first caller, then once every `blocks_a_slab`.
  WARPHEAP_DEVICE static bool should_open_slab(slab_table const& table, u32 size_class, u32 wanted, u32 blocks_a_slab) {
    // relaxed: a count alone.
    u32 const before = static_cast<u32>(table.unmet_demand(size_class).fetch_add(wanted, order::relaxed));
    return before == 0 || before % blocks_a_slab + wanted >= blocks_a_slab;
  }

  /// One step, place by place as the table above has them: the next slab, or `none` yet. `spare`
  /// becomes how many slabs around a free one must stay free, if this place opens slabs.
  WARPHEAP_DEVICE u32 next_guess(slab_table const& table, u32 size_class, u32 wanted, u32& spare) {
    u32 const at = is_moving() ? moving : place();
    if (at == row_slab || at == awaited) return slab_of_row(table, size_class, wanted);
    if (at == moving) set_moves(moves() - 1);
    if (at == fresh || (at == moving && !is_moving()))
      return slab_to_open(table, size_class, wanted, at == moving, spare);
    u32 const passed = turn();
    if (at == listed) {
      if (is_done_with_listed(table, size_class, wanted)) {
        leave_listed(table, size_class, wanted);
        return none;
      }
      pass(1);
    }
    // The other places look at an index each; this is compiled once for all of them.
    bool const by_class = at == near || at == listed || at == moving;
    u32 const found = find(table, by_class ? slab_table::listed(size_class) : slab_table::free_slabs);
    if (at == near) go_to(ticket);
    if (at == listed && found == none) {
      if (opener() == no_hint && passed < few) pass(few - 1 - passed);  // nobody opens one for it
      else if (shares()) set_place(resting);
      else leave_listed(table, size_class, wanted);
    }
    if (at == ticket) {
      if (found == none) go_to(listed, denied);
      else draw_ticket(table, size_class, wanted);
      return none;
    }
    if (at == resting) {
      if (found == none) {
        go_to(unused);
      } else {
        simt::pause(sharing_pause_nanoseconds);
        set_place(listed);
      }
      return none;
    }
    if (at == unused) {
      spare = 0;
      pass(1);
      if (found == none || passed >= many) go_to(over);
    }
    return found;
  }

  /// row_slab, awaited: the row's slab, if it is another than slab().
  WARPHEAP_DEVICE u32 slab_of_row(slab_table const& table, u32 size_class, u32 wanted) {
    bool const waits = place() == awaited;
    u32 const most = slab() == 0 ? 2 * turns_to_wait : turns_to_wait;  // longer as a burst begins
    if (!waits) {
      go_to(near);
    } else if (turn() >= most) {
      go_to(listed);
    } else {
      simt::pause(pause_nanoseconds);
      pass(1);
    }
    u32 const current = hint(table, entry_for(table, size_class, wanted)).current();
    // Not to near: of a burst, or large requests, that come to a few listed slabs few are served.
    if (current == 0 && !waits) go_to(ticket);
    if (current == slab()) return none;
    set_slab(current);
    return current - 1;
  }

  /// fresh, and the last step of moving: a free slab, if enough others are left.
  WARPHEAP_DEVICE u32 slab_to_open(slab_table const& table, u32 size_class, u32 wanted, bool moves, u32& spare) {
    spare = keep_free_by_demand;
    if (moves) return find_spare(table, spare);
    u32 const capacity = table.geometry().capacity(size_class);
    bool is_chosen = turn() < tries_at_fresh;
    pass(1);
    if (opener() == opens_first) {
      spare = keep_free_first;
      is_chosen = is_chosen && should_open_slab(table, size_class, wanted, blocks_a_first_slab);
    } else if (opener() == no_hint && 2 * wanted < capacity) {
      // As many open one as fill half of it; larger requests all do: a listed slab serves one.
      spare = keep_free_by_chance;
      is_chosen = is_chosen && scale_below(lane_random_bits(), capacity) < 2 * wanted;
    }
    u32 const found = is_chosen ? find_spare(table, spare) : none;
    if (found == none) go_to(listed);
    return found;
  }

  /// listed: whether others may open slabs for the class meanwhile. The request then looks for
  /// longer, with pauses.
  WARPHEAP_DEVICE bool shares() const { return opener() != denied && opener() != opens; }

  /// listed: whether there were enough looks, or enough demand to open another slab.
  WARPHEAP_DEVICE bool is_done_with_listed(slab_table const& table, u32 size_class, u32 wanted) const {
    u32 const most = opener() == opens ? few : opener() == denied ? many : few + many;
    if (turn() >= most) return true;
    bool const asks = shares() && turn() >= few && turn() % looks_a_demand == 0;
    return asks && should_open_slab(table, size_class, wanted, table.geometry().capacity(size_class));
  }

  WARPHEAP_DEVICE void leave_listed(slab_table const& table, u32 size_class, u32 wanted) {
    if (opener() != denied) return go_to(unused);
    go_to(over);
    // Promises by the hint would only disturb a full slab. relaxed: a hint.
    u32 const entry = entry_for(table, size_class, wanted);
    if (entry != slab_table::no_entry) table.hint(entry).store(0, order::relaxed);
  }

  /// ticket: decides by the demand before ours whether to open the row's next slab.
  WARPHEAP_DEVICE void draw_ticket(slab_table const& table, u32 size_class, u32 wanted) {
    u32 const capacity = table.geometry().capacity(size_class), round = 1u << log2_floor(capacity);
    if (!goes_by_hint(wanted, capacity)) return go_to(fresh, no_hint);
    u32 const before = demand(table, table.hint_entry(size_class, row()), wanted).demand() % round;
    if (before != 0 && before + wanted <= round) go_to(awaited, waits);
    else go_to(fresh, slab() == 0 ? opens_first : opens);
  }

  u64 word_ = u64{over} << place_shift;
};

}  // namespace warpheap::inline WARPHEAP_BACKEND::slab_bitmap_parts
