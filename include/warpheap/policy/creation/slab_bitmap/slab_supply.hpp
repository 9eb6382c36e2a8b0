// Which slab serves a request: the one this multiprocessor uses, another listed one of the class, a free one, an empty one
// of another class, a scarce one. When there is none, slab_search.hpp has the certain answer.
//
// Every row (one of a few of a multiprocessor) keeps a hint for each class: the slab it uses, and the demand that found no
// room. Who takes that slab to its soft limit finds the row another one; those who find it full before that take blocks
// of any listed slab. Where none is listed, demand is a ticket: of every slab's worth of blocks demanded since the hint
// changed, one caller makes a slab and the others wait for it a little, then share what is listed. A request for a good
// part of a slab goes by no hint: the index is as near.
//
// Memory buys speed, but not all of it: a slab that was made for one class is lost to the others until it is empty. So what
// is made early (a row's first slab, another one while listed slabs have room) leaves a share of the slabs free; and who is
// not the one to make a slab counts its wish with those of all others of the class, and makes one only for a slab's worth
// of wishes. A crowd whose members each decided by what they saw took all of a pool for half of its bytes.
#pragma once

#include "../../../sync/warp_aggregate.hpp"
#include "../../../util/random.hpp"
#include "slab_lock.hpp"
#include "slab_search.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {

/// What a request begins with, in one register.
///
///    31 30 29   28 27 25 24      0
///   | kind |  0   | row | slab + 1 |     slab + 1 = 0: no slab
struct slab_lead {
  enum kind_of : u32 {
    promised,  ///< blocks were promised; what the slab has for the request is not known yet
    granted,   ///< all blocks were promised, and the slab has them
    named,     ///< a search saw room in the slab
    refused    ///< a search found that there is none
  };

  u32 word = 0;

  slab_lead() = default;
  /// `row` says which of its rows the multiprocessor uses; its lowest bits count.
  WARPHEAP_HOST_DEVICE constexpr slab_lead(kind_of kind, u32 row, u32 slab_plus_1)
      : word{kind << 30 | (row & 7) << 25 | slab_plus_1} {}

  WARPHEAP_HOST_DEVICE constexpr u32 row() const { return (word >> 25) & 7; }
  WARPHEAP_HOST_DEVICE constexpr u32 slab_plus_1() const { return word & ((1u << 25) - 1); }
  WARPHEAP_HOST_DEVICE constexpr bool is(kind_of kind) const { return word >> 30 == kind && slab_plus_1() != 0; }
  /// That there is no slab.
  WARPHEAP_HOST_DEVICE static constexpr slab_lead refusal() { return {refused, 0, 0}; }
  WARPHEAP_HOST_DEVICE constexpr bool is_refusal() const { return word >> 30 == refused; }
  /// The same row, and no slab.
  WARPHEAP_HOST_DEVICE constexpr slab_lead row_alone() const { return {promised, row(), 0}; }
};

static_assert(slab_lead{slab_lead::named, 0xffff'fffd, 8}.is(slab_lead::named) && !slab_lead{}.is(slab_lead::promised));
static_assert(slab_lead{slab_lead::granted, 13, 1u << 24}.row() == 5);
static_assert(slab_lead{slab_lead::granted, 13, 1u << 24}.slab_plus_1() == 1u << 24);

/// Finds room for the requests of one class. All of it becomes part of one call off the common path.
class slab_supply {
 public:
  WARPHEAP_DEVICE slab_supply(slab_table const& table, u32 size_class) : table_{table}, size_class_{size_class} {}

  /// The same supply, of whose class and sizes the compiler knows nothing from here on. Loops work with it: what depends
  /// on class and sizes alone would be computed ahead of them, and held in thirty registers.
  WARPHEAP_DEVICE slab_supply afresh() const { return {table_.afresh(), warpheap::afresh(size_class_)}; }

  /// Whether requests of `wanted` blocks go by the hint.
  WARPHEAP_HOST_DEVICE static bool goes_by_hint(u32 wanted, u32 capacity) { return hint_serves * wanted <= capacity; }

  /// Promises up to `wanted` blocks to the caller; none if it saw no room, which is no certain answer. Any lane alone.
  ///
  /// lead   what is known of a slab with room
  /// old    of a lead that says `promised`: the slab's word before
  WARPHEAP_DEVICE slab_reservation reserve(u32 wanted, slab_lead lead, slab_state old) const {
    u32 const named = lead.is(slab_lead::named) ? lead.slab_plus_1() - 1 : none;
    u32 tried = lead.is(slab_lead::promised) ? lead.slab_plus_1() : 0;  // the hint that has no room
    u32 const entry = entry_for(wanted, lead.row());
    standing_of standing = hintless;
    slab_reservation taken;
    if (named == none) {
      taken = reserve_at_once(wanted, entry, tried, old);
      if (taken.blocks() != 0 || is_certified()) return taken;
      if (entry != slab_table::no_hint) standing = standing_in_row(entry, wanted, tried);
    }
    // Turn by turn, so that lanes that provide go before lanes of their warp that wait.
    WARPHEAP_NO_UNROLL
    for (u32 where = named == none ? fresh : relisted; taken.blocks() == 0 && where != nowhere; ++where) {
      if (where == fresh) {
        if (standing != waiting) taken = afresh().take_early(wanted, entry, standing);
      } else if (where == awaited) {
        if (standing == waiting) taken = afresh().await(wanted, entry, tried);
      } else if (where != shared || standing != providing) {
        taken = afresh().take_any(where, named, wanted, entry);
      }
    }
    return taken;
  }

  /// Finds another slab for a row whose slab `left` was brought to its soft limit by a request of `wanted` blocks: a
  /// listed one at most half full, or a free one while enough of them are left.
  WARPHEAP_DEVICE void move_on(u32 wanted, u32 left, u32 row) const {
    u32 const entry = entry_for(wanted, row);
    if (entry == slab_table::no_hint || hint(entry).current() != left + 1) return;
    demand(entry, 1);  // tells others that somebody is at work on it
    u32 const roomy = slab_limits{table_.geometry().capacity(size_class_)}.roomy;
    WARPHEAP_NO_UNROLL
    for (u32 turn = 0; turn < 2; ++turn) {
      u32 const slab = find(slab_table::listed(size_class_));
      if (slab == none) break;
      slab_state const now = table_.load(slab);
      if (now.serves(size_class_) && now.used() < roomy) return table_.set_hint(entry, slab);
    }
    if (u32 const slab = lock_spare(spared_by_demand); slab != none)
      slab_lock::publish(table_, slab, size_class_, 0, entry);
  }

  static constexpr u32 none = slab_search::none;

 private:
  static constexpr u32 hint_serves = 8;  // requests that a slab must serve to be worth a hint
  // Attempts at slabs that an index names: few where another may know better, many before every slab is looked at.
  static constexpr u32 few = 8, many = 32;
  static constexpr u32 turns_to_wait = 16;               // pauses for a slab that somebody else is making
  static constexpr u32 turns_a_wish = 4;                 // looks at listed slabs between two wishes for another
  static constexpr u32 sharing_pause_nanoseconds = 512;  // a slab takes 2 us to be made
  static constexpr u32 lanes_a_first_slab = 4;
  // Of the 64 slabs around one, how many are left free by who takes it early: for a row's first one, by chance, for demand.
  static constexpr u32 spared_by_beginners = 40, spared_by_chance = 32, spared_by_demand = 16;
  static constexpr u32 pause_nanoseconds = 128;

  /// Who a request is among those of its class that find no room at once.
  enum standing_of : u32 {
    hintless,   ///< goes by no hint
    waiting,    ///< somebody else makes a slab for the row
    providing,  ///< is the one to make it
    beginning   ///< the same, and the row never had one
  };

  /// Where room may be, in the order in which it is looked for.
  enum place : u32 {
    fresh,     ///< free slabs for who provides or goes by no hint, while enough of them are left
    awaited,   ///< the slab that somebody else provides for the row
    listed,    ///< listed slabs
    shared,    ///< listed slabs, for longer, for who is not the one to make another
    unused,    ///< free slabs
    emptied,   ///< empty slabs of any class
    scarce,    ///< slabs of the class that are not known to be full
    relisted,  ///< listed slabs, for longer: where the last ones are fought for
    nowhere
  };

  WARPHEAP_DEVICE u32 index_of(u32 where) const {
    if (where == listed || where == shared || where == relisted) return slab_table::listed(size_class_);
    if (where == scarce) return slab_table::scarce(size_class_);
    return where == emptied ? slab_table::empty_slabs : slab_table::free_slabs;
  }

  WARPHEAP_DEVICE u32 random_slab() const { return scale_below(slab_search::random_bits(), table_.geometry().slabs()); }
  /// A slab of an index; `none` if it saw none.
  WARPHEAP_DEVICE u32 find(u32 which) const { return table_.afresh().index(which).find(random_slab()); }

  /// The hint for requests of `wanted` blocks; no_hint where a slab serves too few of them.
  WARPHEAP_DEVICE u32 entry_for(u32 wanted, u32 row) const {
    if (!goes_by_hint(wanted, table_.geometry().capacity(size_class_))) return slab_table::no_hint;
    return table_.hint_entry(size_class_, row);
  }

  /// Demands `blocks` of a row's next slab: while one is at work on it, others wait. Returns the hint as it was.
  WARPHEAP_DEVICE slab_hint demand(u32 entry, u32 blocks) const {
    // relaxed: a hint.
    return {table_.hint(entry).fetch_add(slab_hint::demand_of(blocks), order::relaxed)};
  }
  /// What a request by a hint is that found no room, not in slab `tried` - 1 either.
  WARPHEAP_DEVICE standing_of standing_in_row(u32 entry, u32 wanted, u32 tried) const {
    u32 const round = 1u << log2_floor(table_.geometry().capacity(size_class_));
    u32 const before = demand(entry, wanted).demand() % round;
    if (before != 0 && before + wanted <= round) return waiting;
    return begins(entry, tried) ? beginning : providing;
  }

  /// Whether nothing was found for the class and no room has appeared since.
  WARPHEAP_DEVICE bool is_certified() const {
    // acquire: pairs with the release in search(); the certificate's epoch counts happen before ours.
    u64 const seen = table_.certificate(size_class_).load(order::acquire);
    return seen != 0 && seen == table_.epoch_sum() + 1;
  }

  /// A promise of `slab`; if that was made before, when its word was `old`, what is left to do for it.
  WARPHEAP_DEVICE slab_reservation reserve_at(u32 slab, u32 wanted, bool promised = false, slab_state old = {}) const {
    if (!promised) old = table_.promise(slab, wanted);
    return table_.keep(slab, size_class_, wanted, old);
  }

  // relaxed: a hint.
  WARPHEAP_DEVICE slab_hint hint(u32 entry) const { return {table_.hint(entry).load(order::relaxed)}; }

  /// The slab that the row uses, unless that is `tried` still, which is then that one; `none` if there is none.
  WARPHEAP_DEVICE u32 slab_of_row(u32 entry, u32& tried) const {
    u32 const current = entry == slab_table::no_hint ? 0 : hint(entry).current();
    if (current == tried || current == 0) return none;
    tried = current;
    return current - 1;
  }

  /// A promise of slab `tried` - 1, of which `wanted` blocks were promised when its word was `old`, if there is one; of the
  /// slab in use; of a listed one, which becomes the row's if it was at most half full. No waiting.
  WARPHEAP_DEVICE slab_reservation reserve_at_once(u32 wanted, u32 entry, u32& tried, slab_state old) const {
    u32 slab = tried - 1;
    WARPHEAP_NO_UNROLL
    for (u32 turn = tried != 0 ? 0 : 1; turn < 3; ++turn) {
      if (turn == 1) slab = slab_of_row(entry, tried);
      // Not for a row without a slab: a burst begins, and all of it would come to the few slabs there are. Nor for a
      // request that goes by no hint: it fills much of what it finds, and of a crowd that comes to one slab one is served.
      if (turn == 2)
        slab = entry == slab_table::no_hint || begins(entry, tried) ? none : find(slab_table::listed(size_class_));
      if (slab == none) continue;
      slab_reservation const taken = afresh().reserve_at(slab, wanted, turn == 0, old);
      if (turn == 2 && taken.blocks() != 0 && taken.roomy()) table_.set_hint(entry, slab);
      if (taken.blocks() != 0) return taken;
    }
    return {};
  }

  /// Whether the row never had a slab for the class, as far as we saw.
  WARPHEAP_DEVICE static bool begins(u32 entry, u32 tried) { return entry != slab_table::no_hint && tried == 0; }

  /// A promise of the slab that somebody else finds for the row. When a burst begins, that takes longer.
  WARPHEAP_DEVICE slab_reservation await(u32 wanted, u32 entry, u32 tried) const {
    WARPHEAP_NO_UNROLL
    for (u32 turns = begins(entry, tried) ? 2 * turns_to_wait : turns_to_wait; turns != 0; --turns) {
      simt::pause(pause_nanoseconds);
      u32 const slab = slab_of_row(entry, tried);
      if (slab == none) continue;
      slab_reservation const taken = afresh().reserve_at(slab, wanted);
      if (taken.blocks() != 0) return taken;
    }
    return {};
  }

  /// A promise of a slab that is made although listed ones may have room. Leaves the more slabs free, the less is known of
  /// the need for it: a row's first one, where many classes begin at once, may serve one request and no other.
  WARPHEAP_DEVICE slab_reservation take_early(u32 wanted, u32 entry, standing_of standing) const {
    u32 const capacity = table_.geometry().capacity(size_class_);
    u32 spare = spared_by_demand;
    if (standing == beginning) {
      if (!is_time_for_one(wanted, lanes_a_first_slab)) return {};
      spare = spared_by_beginners;
    } else if (standing == hintless) {
      // Half a slab or more: of a crowd that comes to a listed slab one is served. Else as many make one as fill half of it.
      bool const by_chance = 2 * wanted < capacity;
      if (by_chance && scale_below(slab_search::random_bits(), capacity) >= 2 * wanted) return {};
      if (by_chance) spare = spared_by_chance;
    }
    u32 const slab = lock_spare(spare);
    return slab == none ? slab_reservation{} : slab_lock::publish(table_, slab, size_class_, wanted, entry);
  }

  /// Adds a wish for `wanted` blocks to those of the class. True for one caller of every `blocks_a_slab` blocks wished for,
  /// and for the first.
  WARPHEAP_DEVICE bool is_time_for_one(u32 wanted, u32 blocks_a_slab) const {
    // relaxed: a count alone.
    u32 const before = static_cast<u32>(table_.wishes(size_class_).fetch_add(wanted, order::relaxed));
    return before == 0 || before % blocks_a_slab + wanted >= blocks_a_slab;
  }

  /// The same for a whole slab's blocks.
  WARPHEAP_DEVICE bool is_time_for_one(u32 wanted) const {
    return is_time_for_one(wanted, table_.geometry().capacity(size_class_));
  }

  /// A promise of the slab `named`, or of one found at `where`, after a look: blind promises of a crowd that found one
  /// slab keep one another out. Who shares waits for slabs to be listed, unless there are no free ones to be made so, or so
  /// much was wished for in the class that the caller is to make one.
  WARPHEAP_DEVICE slab_reservation take_any(u32 where, u32 named, u32 wanted, u32 entry) const {
    u32 const turns = where == shared || where == unused || where == relisted ? many : few;
    WARPHEAP_NO_UNROLL
    for (u32 turn = 0; turn < turns; ++turn) {
      if (where == shared && turn % turns_a_wish == 0 && afresh().is_time_for_one(wanted)) break;
      u32 const slab = named == none ? find(index_of(where)) : named;
      if (slab != none) {
        slab_reservation const taken = afresh().take_room(where, slab, wanted, entry);
        if (taken.blocks() != 0) return taken;
      } else {
        if (where != shared || find(slab_table::free_slabs) == none) break;
        simt::pause(sharing_pause_nanoseconds);
      }
      if (named != none) break;
    }
    return {};
  }

  /// What a slab of the class has room for; or a free or empty slab, made one of the class. It becomes the row's if it was
  /// at most half full.
  WARPHEAP_DEVICE slab_reservation take_room(u32 where, u32 slab, u32 wanted, u32 entry) const {
    slab_state const now = table_.load(slab);
    // What the set of empty slabs names in vain is to be taken out of it.
    if (now.serves(size_class_) && where != emptied) {
      slab_reservation const taken = table_.try_reserve(slab, size_class_, wanted);
      if (taken.blocks() != 0 && taken.roomy()) table_.set_hint(entry, slab);
      return taken;
    }
    bool const locked = now.kind() == slab_kind::free ? slab_lock::take_free(table_, slab, size_class_)
                                                      : slab_lock::take_empty(table_, slab, size_class_);
    return locked ? slab_lock::publish(table_, slab, size_class_, wanted, entry) : slab_reservation{};
  }

  /// Locks a free slab near a random place, if that leaves `spare` of the 64 around it free; `none` if it does not.
  WARPHEAP_DEVICE u32 lock_spare(u32 spare) const {
    u32 const near = random_slab();
    // relaxed: a hint, which spares the toggles.
    u64 const around = atomic_ref<u64>{table_.index_words(slab_table::free_slabs)[near / 64]}.load(order::relaxed);
    if (popcount(around) <= spare) return none;
    u32 const ahead = lowest_bit(rotate_left(around, 0 - near));
    u32 const slab = near - near % 64 + (near + ahead) % 64;
    return slab_lock::take_spare(table_, slab, size_class_, spare) ? slab : none;
  }

  slab_table table_;
  u32 size_class_;
};

}  // namespace warpheap::inline WARPHEAP_BACKEND
