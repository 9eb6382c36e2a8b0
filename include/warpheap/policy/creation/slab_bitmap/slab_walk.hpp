// Where blocks come from when the quick path finds none: a walk of one leader over places, in one order. Each step names a
// slab, and what is done with it is the same at every place: blocks of a slab in use are promised, a free one becomes a
// slab of the class.
//
//   row      the slab that this row uses
//   near     a listed slab of the class, for a row that has a slab; it becomes the row's if it is
//            roomy
//   ticket   no slab: decides whether the request makes one for the row, or waits
//   fresh    a free slab, for requests that make one, while enough of them are left
//   awaited  the slab that somebody else makes for the row
//   listed   listed slabs; for longer, with pauses, while there are free slabs for others to make
//   resting  no slab: a pause, if free slabs are left
//   unused   free slabs
//   moving   of a row whose slab came to its soft limit: a roomy listed slab, or a free one
//
// These are guides: what they miss costs time, and slab_search.hpp has the answer.
//
// Every row (one of a few of a multiprocessor) keeps a hint for each class: the slab it uses, and the demand that found no
// room there. The request that takes that slab to its soft limit moves the row on to another. Demand is a ticket: of every
// slab's worth of blocks demanded since the hint changed, one request makes a slab and the others wait for it a little.
// A request for a good part of a slab goes by no hint: the index is as near.
//
// Memory buys speed, but not all of it: a slab that was made for one class is lost to the others until it is empty. So what
// is made early leaves a share of the slabs free; and a request that is not the one to make a slab counts its wish with
// those of all others of the class, and makes one only for a slab's worth of wishes. A crowd whose members each decided by
// what they saw took all of a pool for half of its bytes.
#pragma once

#include "../../../util/random.hpp"
#include "slab_lock.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {

/// One request's walk, in one word.
///
///   63 60 59  57 56 53 52   51 50  49  25 24      0
///  | place | rank | row | moves | 0 | turn | slab + 1 |
///
/// moves  steps left of those that find the row another slab
/// turn   steps taken at this place
/// slab   the row's as last seen, 0 if none
class slab_walk {
 public:
  static constexpr u32 none = slab_index::none;

  /// A walk that has ended.
  slab_walk() = default;
  /// The walk of a request of row `row_number`, of which the lowest bits count.
  WARPHEAP_DEVICE explicit slab_walk(u32 row_number) : word_{u64{row_number & 15} << row_shift} {}

  WARPHEAP_DEVICE bool has_ended() const { return place() == over; }
  /// Whether the row needs another slab, which the next steps find.
  WARPHEAP_DEVICE bool is_moving() const { return moves() != 0; }
  /// For what the request has not got it begins again.
  WARPHEAP_DEVICE void begin_again() {
    if (!has_ended()) word_ &= u64{15} << row_shift;
  }

  /// Whether requests of `wanted` blocks go by the hint.
  WARPHEAP_HOST_DEVICE static bool goes_by_hint(u32 wanted, u32 capacity) { return hint_serves * wanted <= capacity; }

  /// One step: looks at one slab, and promises up to `wanted` blocks of it to the caller; often none. A leader alone.
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
        taken = table.afresh().keep(slab, warpheap::afresh(size_class), wanted, table.promise(slab, wanted), false);
      hints = at == moving ? has_room : taken.roomy() && (at == near || at == listed);
    } else if (now.kind() == slab_kind::free && spare != not_to_be_taken && slab_lock::take_free(table, slab, spare)) {
      u32 const entry = entry_for(table.afresh(), warpheap::afresh(size_class), wanted);
      taken = slab_lock::publish(table.afresh(), slab, warpheap::afresh(size_class), at == moving ? 0 : wanted, entry);
    }
    if (hints || taken.reaches_soft()) {
      u32 const entry = entry_for(table.afresh(), warpheap::afresh(size_class), wanted);
      u32 const current = hint(table, entry).current();
      // Not in place of a slab that another request has found for the row meanwhile: rows that share a slab fill it.
      if (hints && (at == moving || current == this->slab())) table.set_hint(entry, slab);
      if (hints && at == moving) set_moves(0);
      if (taken.reaches_soft() && current == slab + 1) {
        demand(table, entry, 1);  // tells others that the next slab is on its way
        set_moves(looks_to_move + 1);
      }
    }
    return taken;
  }

 private:
  static constexpr u32 hint_serves = 8;  // requests that a slab must serve to be worth a hint
  // Attempts at slabs that an index names: few where another may know better, many where not.
  static constexpr u32 few = 8, many = 32;
  static constexpr u32 turns_to_wait = 16;               // pauses for a slab that somebody else is making
  static constexpr u32 turns_a_wish = 4;                 // looks at listed slabs between two wishes for another
  static constexpr u32 looks_to_move = 2;                // at listed slabs, for one that the row may move to
  static constexpr u32 sharing_pause_nanoseconds = 512;  // a slab takes 2 us to be made
  static constexpr u32 pause_nanoseconds = 128;
  static constexpr u32 tries_at_fresh = 2;       // others may be faster
  static constexpr u32 blocks_a_first_slab = 4;  // wished for in the class
  // Of the 64 slabs around one that is made early, how many are left free: for a row's first one, by chance, for demand.
  static constexpr u32 spared_by_beginners = 40, spared_by_chance = 32, spared_by_demand = 16;
  static constexpr u32 not_to_be_taken = ~0u;
  enum place_of : u32 { at_row, near, ticket, fresh, awaited, listed, resting, unused, moving, over };

  /// What a request is among those of its class that find no room at once.
  enum rank_of : u32 {
    hintless,   ///< goes by no hint
    waiting,    ///< somebody else makes a slab for the row
    providing,  ///< is the one to make it
    beginning,  ///< the same, and the row has none
    denied      ///< there are no free slabs
  };

  static constexpr u32 place_shift = 60, rank_shift = 57, row_shift = 53, moves_shift = 51, turn_shift = 25;
  static constexpr u32 slab_mask = (1u << 25) - 1;

  WARPHEAP_DEVICE u32 place() const { return static_cast<u32>(word_ >> place_shift); }
  WARPHEAP_DEVICE u32 rank() const { return static_cast<u32>(word_ >> rank_shift) & 7; }
  WARPHEAP_DEVICE u32 row() const { return static_cast<u32>(word_ >> row_shift) & 15; }
  WARPHEAP_DEVICE u32 moves() const { return static_cast<u32>(word_ >> moves_shift) & 3; }
  WARPHEAP_DEVICE u32 turn() const { return static_cast<u32>(word_ >> turn_shift) & slab_mask; }
  WARPHEAP_DEVICE u32 slab() const { return static_cast<u32>(word_) & slab_mask; }

  WARPHEAP_DEVICE void set_moves(u32 moves) { word_ = (word_ & ~(u64{3} << moves_shift)) | u64{moves} << moves_shift; }
  WARPHEAP_DEVICE void set_slab(u32 slab) { word_ = (word_ & ~u64{slab_mask}) | slab; }
  WARPHEAP_DEVICE void pass(u32 turns) { word_ += u64{turns} << turn_shift; }
  WARPHEAP_DEVICE void go_to(u32 place, u32 rank) {
    word_ = (word_ & (u64{63} << moves_shift | slab_mask)) | u64{place} << place_shift | u64{rank} << rank_shift;
  }
  WARPHEAP_DEVICE void go_to(u32 place) { go_to(place, rank()); }
  /// As go_to(), with the turns that were taken.
  WARPHEAP_DEVICE void set_place(u32 place) { word_ = (word_ & low_mask(place_shift)) | u64{place} << place_shift; }

  WARPHEAP_DEVICE static u32 random_slab(slab_table const& table) {
    return scale_below(slab_table::random_bits(), table.geometry().slabs());
  }
  /// A slab of an index; `none` if it saw none.
  WARPHEAP_DEVICE static u32 find(slab_table const& table, u32 which) {
    slab_table const here = table.afresh();
    return here.index(which).find(random_slab(here));
  }
  /// A free slab near a random place, if that leaves `spare` of the 64 around it free; `none` if it does not.
  WARPHEAP_DEVICE static u32 find_spare(slab_table const& table, u32 spare) {
    u32 const near = random_slab(table);
    u64 const around = table.index(slab_table::free_slabs).load(near);
    if (popcount(around) <= spare) return none;
    return near - near % 64 + (near + lowest_bit(rotate_left(around, 0 - near))) % 64;
  }

  /// The hint for requests of `wanted` blocks; no_hint where a slab serves too few of them.
  WARPHEAP_DEVICE u32 entry_for(slab_table const& table, u32 size_class, u32 wanted) const {
    bool const goes = goes_by_hint(wanted, table.geometry().capacity(size_class));
    return goes ? table.hint_entry(size_class, row()) : slab_table::no_hint;
  }
  // relaxed, both: a hint.
  WARPHEAP_DEVICE static slab_hint hint(slab_table const& table, u32 entry) {
    return {entry != slab_table::no_hint ? table.hint(entry).load(order::relaxed) : 0};
  }
  /// Demands `blocks` of a row's next slab: while one request is at work on it, others wait. Returns the hint as it was.
  WARPHEAP_DEVICE static slab_hint demand(slab_table const& table, u32 entry, u32 blocks) {
    return {table.hint(entry).fetch_add(slab_hint::demand_of(blocks), order::relaxed)};
  }

  /// Adds a wish for `wanted` blocks to those of the class. True for one caller of every `blocks_a_slab` blocks wished for,
  /// and for the first.
  WARPHEAP_DEVICE static bool is_time_for_one(slab_table const& table, u32 size_class, u32 wanted, u32 blocks_a_slab) {
    // relaxed: a count alone.
    u32 const before = static_cast<u32>(table.wishes(size_class).fetch_add(wanted, order::relaxed));
    return before == 0 || before % blocks_a_slab + wanted >= blocks_a_slab;
  }

  /// The next slab to look at, `none` where there is none yet; goes on to the next place where this one has no more.
  ///
  /// spare  becomes how many slabs around it are to be left free, if it may be taken
  WARPHEAP_DEVICE u32 next_guess(slab_table const& table, u32 size_class, u32 wanted, u32& spare) {
    u32 const at = is_moving() ? moving : place();
    if (at == at_row || at == awaited) return slab_of_row(table, size_class, wanted);
    if (at == moving) set_moves(moves() - 1);
    if (at == fresh || (at == moving && !is_moving()))
      return slab_to_make(table, size_class, wanted, at == moving, spare);
    u32 const passed = turn();
    if (at == listed) {
      if (is_done_with_listed(table, size_class, wanted)) return leave_listed(table, size_class, wanted), none;
      pass(1);
    }
    bool const by_class = at == near || at == listed || at == moving;
    u32 const found = find(table, by_class ? slab_table::listed(size_class) : slab_table::free_slabs);
    if (at == near) go_to(ticket);
    if (at == listed && found == none) {
      if (rank() == hintless && passed < few) pass(few - 1 - passed);  // nobody makes one for it
      else if (shares()) set_place(resting);
      else leave_listed(table, size_class, wanted);
    }
    if (at == ticket) {
      if (found == none) go_to(listed, denied);
      else draw_ticket(table, size_class, wanted);
      return none;
    }
    if (at == resting) {
      if (found == none) return go_to(unused), none;
      simt::pause(sharing_pause_nanoseconds);
      return set_place(listed), none;
    }
    if (at == unused) {
      spare = 0;
      pass(1);
      if (found == none || passed >= many) go_to(over);
    }
    return found;
  }

  /// The slab that the row uses, if we have not seen it yet: the one that it has, or the one that another request makes.
  WARPHEAP_DEVICE u32 slab_of_row(slab_table const& table, u32 size_class, u32 wanted) {
    bool const waits = place() == awaited;
    u32 const most = slab() == 0 ? 2 * turns_to_wait : turns_to_wait;  // longer as a burst begins
    if (!waits) go_to(near);
    else if (turn() >= most) go_to(listed);
    else simt::pause(pause_nanoseconds), pass(1);
    u32 const current = hint(table, entry_for(table, size_class, wanted)).current();
    // A row without a slab leaves listed slabs alone: a burst begins, and all of it would come to the few there are. So does a
    // request that goes by no hint: it fills much of what it finds, and of a crowd that comes to one slab one is served.
    if (current == 0 && !waits) go_to(ticket);
    if (current == slab()) return none;
    set_slab(current);
    return current - 1;
  }

  /// A free slab, to be made one of the class although listed slabs may have room.
  WARPHEAP_DEVICE u32 slab_to_make(slab_table const& table, u32 size_class, u32 wanted, bool moves, u32& spare) {
    spare = spared_by_demand;
    if (moves) return find_spare(table, spare);
    u32 const capacity = table.geometry().capacity(size_class), passed = turn();
    bool takes = passed < tries_at_fresh;
    pass(1);
    if (rank() == beginning) {
      spare = spared_by_beginners;
      takes = takes && is_time_for_one(table, size_class, wanted, blocks_a_first_slab);
    } else if (rank() == hintless && 2 * wanted < capacity) {
      // As many requests make one as fill half of it. For larger ones every request does: of a crowd that comes to one
      // listed slab one is served.
      spare = spared_by_chance;
      takes = takes && scale_below(slab_table::random_bits(), capacity) < 2 * wanted;
    }
    u32 const found = takes ? find_spare(table, spare) : none;
    if (found == none) go_to(listed);
    return found;
  }

  /// Whether the request looks at listed slabs for longer, while free slabs are left for others to make.
  WARPHEAP_DEVICE bool shares() const { return rank() != denied && rank() != providing; }

  /// Whether there were enough looks at listed slabs, or so much was wished for that the request is to make another slab.
  WARPHEAP_DEVICE bool is_done_with_listed(slab_table const& table, u32 size_class, u32 wanted) const {
    u32 const most = rank() == providing ? few : rank() == denied ? many : few + many;
    if (turn() >= most) return true;
    bool const wishes = shares() && turn() >= few && turn() % turns_a_wish == 0;
    return wishes && is_time_for_one(table, size_class, wanted, table.geometry().capacity(size_class));
  }

  /// On from the listed slabs: to free ones, unless there are none.
  WARPHEAP_DEVICE void leave_listed(slab_table const& table, u32 size_class, u32 wanted) {
    if (rank() != denied) return go_to(unused);
    go_to(over);
    // Promises by the hint would only disturb a full slab.
    // relaxed: a hint.
    u32 const entry = entry_for(table, size_class, wanted);
    if (entry != slab_table::no_hint) table.hint(entry).store(0, order::relaxed);
  }

  /// Demands what the request wants of its row's next slab, which tells whether to make it or to wait for it.
  WARPHEAP_DEVICE void draw_ticket(slab_table const& table, u32 size_class, u32 wanted) {
    u32 const capacity = table.geometry().capacity(size_class), round = 1u << log2_floor(capacity);
    if (!goes_by_hint(wanted, capacity)) return go_to(fresh, hintless);
    u32 const before = demand(table, table.hint_entry(size_class, row()), wanted).demand() % round;
    if (before != 0 && before + wanted <= round) go_to(awaited, waiting);
    else go_to(fresh, slab() == 0 ? beginning : providing);
  }

  u64 word_ = u64{over} << place_shift;
};

}  // namespace warpheap::inline WARPHEAP_BACKEND
