// SPDX-License-Identifier: Apache-2.0
// The slabs of a halloc heap: where their words lie, and what may be done to a live one.
//
//   pool   slab 0 | slab 1 | ... | rest   TBuddy's, and slabs are blocks of it; of a split pool,
//                                         the part that is slabs alone
//   base   rows                           128 bytes a row and size: head and counter, its lock,
//                                         where in a slab blocks are looked for, the next heads
//          record 0 | record 1 | ...      a slab's state and note, 128 bytes; words of 32 chunks
//          roles                          what free reads: 1 + the kind of a slab's chunks, or 0
//                                         for TBuddy's memory. A free slab keeps its last kind
//          sets                           of slabs: free; sparse and busy by kind; normal by size
//          control                        numbers of searches, a mutex, counts
//
//   halloc.A7  a live slab that is no head and has room is in a set: in its sparse, normal or busy
//       one, by how much of it is taken, or in another one. The thread that takes it from another
//       one finds where it belongs (slab_set.S1, slab_set.S2).
//   halloc.A8  a slab is in the set of free slabs if and only if it is free: both change while it
//       is locked.
#pragma once

#include "../../../structure/slab_set.hpp"
#include "../../../sync/spin_mutex.hpp"
#include "../../../util/random.hpp"
#include "faults.hpp"
#include "geometry.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace halloc_parts {

/// What a row has for a size, beside its head: where blocks are looked for in a slab.
struct alignas(16) place_rule {
  hash_probe probe;
  u32 capacity;    ///< chunks
  u32 replace_at;  ///< chunks taken at which a head is replaced
};
static_assert(sizeof(place_rule) == 32);

/// View of a heap; 40 bytes, trivially copyable, owns nothing.
template <creation::halloc_config Config, class Faults>
class table {
 public:
  static constexpr creation::halloc_config config = Config;
  using steps = Faults;

  table() = default;
  WARPHEAP_HOST_DEVICE table(u8* base, u8* pool, slab_geometry geometry, large_heap const& large)
      : base_{base}, pool_{pool}, geometry_{geometry}, large_{large} {}

  /// A copy of this table whose sizes are opaque to the compiler. For loops off the common path,
  /// where values that follow from the sizes would be kept in registers.
  WARPHEAP_DEVICE table opaque() const { return {base_, pool_, {warpheap::opaque(geometry_.packed)}, large_}; }

  WARPHEAP_HOST_DEVICE slab_geometry geometry() const { return geometry_; }
  WARPHEAP_HOST_DEVICE large_heap const& large() const { return large_; }
  WARPHEAP_HOST_DEVICE u8* metadata() const { return base_; }
  WARPHEAP_HOST_DEVICE u8* pool() const { return pool_; }
  WARPHEAP_HOST_DEVICE u32 slabs() const { return geometry_.slabs(); }
  WARPHEAP_HOST_DEVICE u32 slab_order() const { return geometry_.slab_log2() - 12; }
  WARPHEAP_HOST_DEVICE u64 offset_of(void const* memory) const {
    return reinterpret_cast<u64>(memory) - reinterpret_cast<u64>(pool_);
  }
  /// The slab that an offset lies in, if it is below slabs().
  WARPHEAP_HOST_DEVICE u64 slab_at(u64 offset) const { return offset >> geometry_.slab_log2(); }
  WARPHEAP_HOST_DEVICE u8* data(u32 slab) const { return pool_ + (u64{slab} << geometry_.slab_log2()); }
  WARPHEAP_HOST_DEVICE void* address(u32 slab, u32 kind, u32 chunk) const {
    return data(slab) + u64{chunk} * chunk_bytes(kind);
  }

  WARPHEAP_DEVICE atomic_ref<u64> state(u32 slab) const { return atomic_ref<u64>{*record(slab)}; }
  WARPHEAP_DEVICE slab_state load(u32 slab) const { return {state(slab).load(order::relaxed)}; }
  WARPHEAP_DEVICE atomic_ref<u64> note(u32 slab) const { return atomic_ref<u64>{record(slab)[1]}; }
  /// Whether a search has noted that a slab in the state `now` has no room for 2^length chunks
  /// (halloc.A4).
  WARPHEAP_DEVICE bool is_noted_full(u32 slab, slab_state now, u32 length) const {
    // relaxed, as the state: equal versions in both say that they belong together.
    u64 const noted = note(slab).load(order::relaxed);
    return Faults::compares_versions ? now.is_full_by(noted, length) : (noted >> length & 1) != 0;
  }
  WARPHEAP_DEVICE atomic_ref<u64> word(u32 slab, u32 i) const {
    return atomic_ref<u64>{record(slab)[slab_geometry::spacing / 8 + i]};
  }
  WARPHEAP_DEVICE atomic_ref<u32> role(u32 slab) const {
    return atomic_ref<u32>{reinterpret_cast<u32*>(base_ + geometry_.roles_offset())[slab]};
  }

  // Rows.
  WARPHEAP_DEVICE u32 entry_of(u32 row, u32 size) const { return row * sizes + size; }
  WARPHEAP_DEVICE u32 my_entry(u32 size) const { return entry_of(simt::sm_id() & (geometry_.rows() - 1), size); }
  /// Counter * 2^24 + head slab + 1; 0 in the low part: no head.
  WARPHEAP_DEVICE atomic_ref<u64> head(u32 entry) const { return atomic_ref<u64>{*row_words(entry)}; }
  /// row_lock, set while a thread replaces the head; and beside it, how many next heads the row
  /// wants to have beyond the first.
  WARPHEAP_DEVICE atomic_ref<u64> lock_of(u32 entry) const { return atomic_ref<u64>{row_words(entry)[lock_word]}; }
  /// One of the next heads, + 1; 0: none.
  WARPHEAP_DEVICE atomic_ref<u64> next_head(u32 entry, u32 i) const {
    return atomic_ref<u64>{row_words(entry)[next_word + i]};
  }
  WARPHEAP_DEVICE place_rule const& rule(u32 entry) const {
    return *reinterpret_cast<place_rule const*>(row_words(entry) + 8);
  }
  static constexpr u32 lock_word = 4, next_word = 12, most_ahead = 4;

  // Sets.
  WARPHEAP_DEVICE slab_set set(u32 which) const { return {set_words(which), geometry_.slabs()}; }
  static constexpr u32 free_slabs = 0;
  WARPHEAP_HOST_DEVICE static constexpr u32 sparse(u32 kind) { return 1 + kind; }
  WARPHEAP_HOST_DEVICE static constexpr u32 busy(u32 kind) { return 5 + kind; }
  WARPHEAP_HOST_DEVICE static constexpr u32 normal(u32 size) { return 9 + size; }
  /// Chunks up to which a slab of a kind is sparse, and up to which it is not busy.
  WARPHEAP_HOST_DEVICE u32 sparse_limit(u32 kind) const { return share(kind, config.sparse_up_to); }
  WARPHEAP_HOST_DEVICE u32 busy_limit(u32 kind) const { return share(kind, config.busy_above); }
  /// The set where a live slab belongs.
  WARPHEAP_HOST_DEVICE u32 set_of(slab_state now) const {
    if (now.used() > busy_limit(now.kind())) return busy(now.kind());
    return now.used() <= sparse_limit(now.kind()) ? sparse(now.kind()) : normal(now.size());
  }

  /// Promises `chunks` of a slab without a look at its state, and returns the state before. Chunks
  /// that this state does not allow must be given back by subtract().
  WARPHEAP_DEVICE slab_state promise(u32 slab, u32 chunks) const {
    // acquire: what the slab's maker did to it happens before our use; pairs with the release in
    // slab_supply::publish().
    return {state(slab).fetch_add(chunks, order::acquire)};
  }

  /// Leaves room for this many chunks, whose bits were cleared or never set (halloc.A2).
  WARPHEAP_DEVICE void subtract(u32 slab, u32 chunks) const {
    // release: the cleared bits happen before the next look for room, or the next life of the slab;
    // pairs with the acquires in lock_empty() and slab_supply::lock_unused().
    slab_state const old{state(slab).fetch_add(slab_state::leaving(chunks), order::release)};
    slab_state const now{old.word + slab_state::leaving(chunks)};
    if (now.live() && (now.used() == 0 || moves_down(old, now))) settle(*this, slab, old, now);
  }

  /// subtract() where it is rare: a call.
  WARPHEAP_COLD static void give_back(table self, u32 slab, u32 chunks) { self.subtract(slab, chunks); }

  /// The passes that searches share: a class of them for each size, then one for each order of
  /// TBuddy's blocks.
  WARPHEAP_DEVICE slab_geometry::pass_type pass() const {
    return slab_geometry::pass_type{reinterpret_cast<u64*>(base_ + geometry_.pass_offset())};
  }
  WARPHEAP_HOST_DEVICE static constexpr pass_size pass_for_size(u32 size) { return {size}; }
  WARPHEAP_HOST_DEVICE static constexpr pass_size pass_for_order(u32 order) { return {sizes + order}; }
  /// Whether a search that began after a call drew `number` found nothing for that call.
  WARPHEAP_DEVICE bool is_answered(pass_size what, u64 number) const {
    return Faults::compares_numbers ? pass().answers(number, what) : pass().ever_failed(what.size_class);
  }

  /// The mutex that is held while slabs move from TBuddy or to it; and the count of such moves
  /// (halloc.P1).
  WARPHEAP_DEVICE spin_mutex moving() const {
    return spin_mutex{*reinterpret_cast<u32*>(base_ + geometry_.moving_offset())};
  }
  WARPHEAP_DEVICE u64 moves() const {
    // acquire: the moves that it counts, and the slabs' states after them, happen before; pairs
    // with count_move().
    return at(geometry_.moving_offset(), 1).load(order::acquire);
  }
  WARPHEAP_DEVICE void count_move() const {
    // release: the slabs' new states come before; pairs with moves().
    at(geometry_.moving_offset(), 1).fetch_add(1, order::release);
  }

  WARPHEAP_DEVICE void add_count(count which, u64 more) const {
    // relaxed: it is not read before the kernel ends.
    at(geometry_.counts_offset(), static_cast<u32>(which)).fetch_add(more, order::relaxed);
  }
  /// Adds to a count that a heap keeps only if its configuration says counts_work.
  WARPHEAP_DEVICE void add_work(count which, u64 more) const {
    if constexpr (config.counts_work) add_count(which, more);
  }
  WARPHEAP_DEVICE static u64 work_clock() { return config.counts_work ? simt::clock() : 0; }
  /// Adds the cycles of this multiprocessor since `began`, a work_clock(), to a sum. Raises the
  /// count after the sum to these cycles if it is less: it is of the longest part.
  WARPHEAP_DEVICE void add_cycles(count which, u64 began) const {
    if constexpr (config.counts_work) {
      u64 const taken = simt::clock() - began;
      add_count(which, taken);
      auto const longest = at(geometry_.counts_offset(), static_cast<u32>(which) + 1);
      // relaxed: as in add_count().
      u64 seen = longest.load(order::relaxed);
      while (seen < taken && !longest.compare_exchange(seen, taken, order::relaxed, order::relaxed)) {
      }
    }
  }

  WARPHEAP_HOST_DEVICE u64* row_words(u32 entry) const {
    return reinterpret_cast<u64*>(base_ + u64{entry} * slab_geometry::spacing);
  }
  WARPHEAP_HOST_DEVICE u64* set_words(u32 which) const {
    return reinterpret_cast<u64*>(base_ + geometry_.sets_offset() + which * geometry_.set_bytes());
  }

  /// Locks a live slab without a taken chunk, whether it is a head or not (halloc.A3). It stays in
  /// the sets that have it (slab_set.S2).
  WARPHEAP_DEVICE bool lock_empty(u32 slab) const {
    slab_state seen = load(slab);
    if (!seen.live() || !Faults::may_lock(seen)) return false;
    // acquire: all clears of its bits happen before its next life; pairs with the release in
    // subtract().
    return state(slab).compare_exchange(seen.word, seen.locked().word, order::acquire, order::relaxed);
  }

  /// Makes a locked slab free.
  WARPHEAP_DEVICE void unlock_free(u32 slab) const {
    set(free_slabs).add(slab);  // halloc.A8
    // release: what happened to the slab so far happens before its next lock; pairs with the
    // acquire in lock_free().
    state(slab).fetch_sub(slab_state::of(slab_phase::locked) - slab_state::of(slab_phase::free), order::release);
  }

  /// Makes all slabs of [first, end) free, which are locked and lie in one word of the set.
  WARPHEAP_DEVICE void unlock_free(u32 first, u32 end) const {
    set(free_slabs).add_all(first / 64, low_mask(end - first) << first % 64);  // halloc.A8
    release_fence();
    // fenced: as above, by one fence for all of them.
    WARPHEAP_NO_UNROLL
    for (u32 slab = first; slab != end; ++slab)
      state(slab).fetch_sub(slab_state::of(slab_phase::locked) - slab_state::of(slab_phase::free), order::fenced);
  }

 private:
  WARPHEAP_DEVICE u64* record(u32 slab) const {
    return reinterpret_cast<u64*>(base_ + geometry_.records_offset() + u64{slab} * geometry_.record_bytes());
  }
  WARPHEAP_DEVICE atomic_ref<u64> at(u64 offset, u32 i) const {
    return atomic_ref<u64>{reinterpret_cast<u64*>(base_ + offset)[i]};
  }
  WARPHEAP_HOST_DEVICE u32 share(u32 kind, u32 thousandths) const {
    return static_cast<u32>(u64{geometry_.capacity(kind)} * thousandths / 1000);
  }

  /// Whether a slab that is no head came down to what belongs in another set (halloc.A7).
  WARPHEAP_DEVICE bool moves_down(slab_state old, slab_state now) const {
    if (now.head()) return false;
    u32 const sparse = sparse_limit(now.kind()), busy = busy_limit(now.kind());
    return (old.used() > sparse && now.used() <= sparse) || (old.used() > busy && now.used() <= busy);
  }

  WARPHEAP_COLD static void settle(table self, u32 slab, slab_state old, slab_state now) {
    if (now.used() != 0) {
      if (self.moves_down(old, now)) self.set(self.set_of(now)).add(slab);
      return;
    }
    if (!now.head() && self.lock_empty(slab)) self.unlock_free(slab);
  }

  u8* base_ = nullptr;
  u8* pool_ = nullptr;
  slab_geometry geometry_;
  large_heap large_;
};

/// Kernel of one thread block: writes the words of a fresh heap that are not zero.
struct fill_rows {
  template <class Table>
  WARPHEAP_DEVICE void operator()(Table table) const {
    auto const geometry = table.geometry();
    u32 const first = simt::thread_index(), stride = simt::block_dim();
    for (u32 entry = first; entry < geometry.rows() * sizes; entry += stride) {
      u32 const length = length_of(entry % sizes), capacity = geometry.capacity(kind_of(entry % sizes));
      u64 const limit = u64{capacity} * Table::config.replace_at / 1000;
      *reinterpret_cast<place_rule*>(table.row_words(entry) + 8) = {
          hash_probe::over(capacity >> length, Table::config.hash, word_chunks >> length), capacity,
          static_cast<u32>(limit != 0 ? limit : 1)};
    }
    if constexpr (Table::config.split_percent != 0) {
      // relaxed: no other kernel uses the heap yet, and the end of this one orders all.
      for (u32 slab = first; slab < geometry.slabs(); slab += stride) {
        table.state(slab).store(slab_state::of(slab_phase::free), order::relaxed);
        table.set(Table::free_slabs).add(slab);
      }
    }
  }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::halloc_parts
