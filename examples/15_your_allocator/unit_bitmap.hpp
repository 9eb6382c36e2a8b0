// SPDX-License-Identifier: Apache-2.0
// An allocator in some 150 lines: units of 64 bytes and a bit for each. A block is 1, 2, 4, ... 64
// units at a multiple of its size, so of one word of bits. The lanes of a warp that request the
// same size act as one: from the warp's cursor on, each looks at words of its own, and the first
// that find room take blocks for all. docs/guide/your_allocator.md says how to write one.
//
//   pool | counts | scans | cursors, 4 bytes each | a bit a unit: taken | 4 bytes a unit: length
//
//   length[u]  units of the block that starts at unit u; 0 where none does
//
//   I1  create() sets the bits of a block and then its length; destroy() takes the length and then
//       clears the bits. So of all frees of a block one finds the length.
//   I2  all bits of a block change at once. So a bit that a call sees set belongs to a block, and
//       nullptr says that each place was taken at some moment of the call.
#pragma once

#include <warpheap/policy/creation/shared/policy_base.hpp>
#include <warpheap/policy/creation/shared/pool_units.hpp>
#include <warpheap/policy/creation/shared/quiet_view.hpp>
#include <warpheap/policy/creation/shared/unit_pool.hpp>
#include <warpheap/sync/shared_pass.hpp>
#include <warpheap/warpheap.hpp>

namespace example { inline namespace WARPHEAP_BACKEND {

using namespace warpheap;

constexpr u32 word_units = 64, cursors = 8192, glance = 4, stretch = 16;
constexpr u64 unit_bytes = 64, word_bytes = word_units * unit_bytes, none = ~u64{0};

/// The layout. unit_pool has the pool and the counts.
class unit_table : public creation::unit_pool<unit_bytes, word_bytes, u64> {
 public:
  static constexpr u64 cursors_offset = 128 + shared_pass<7>::bytes, bits_offset = cursors_offset + 4 * cursors;
  using unit_pool::unit_pool;

  WARPHEAP_HOST_DEVICE u32 words() const { return static_cast<u32>(units() / word_units); }
  WARPHEAP_HOST_DEVICE u64* bits() const { return reinterpret_cast<u64*>(metadata() + bits_offset); }
  WARPHEAP_HOST_DEVICE u32* lengths() const { return reinterpret_cast<u32*>(bits() + words()); }
  WARPHEAP_DEVICE atomic_ref<u64> taken(u64 word) const { return atomic_ref<u64>{bits()[word]}; }
  WARPHEAP_DEVICE atomic_ref<u32> length(u64 unit) const { return atomic_ref<u32>{lengths()[unit]}; }
  WARPHEAP_DEVICE shared_pass<7> scans() const { return shared_pass<7>{reinterpret_cast<u64*>(metadata() + 128)}; }
  WARPHEAP_DEVICE u32* cursors_at() const { return reinterpret_cast<u32*>(metadata() + cursors_offset); }
  size_t metadata_bytes() const { return bits_offset + words() * (8 + 4 * word_units); }
  void initialize(stream_view on) const { backend::fill_bytes(metadata(), 0, metadata_bytes(), on); }
};

/// The host's view of a heap at rest: a copy of its metadata, from which quiet_view makes reports.
class unit_view : public metadata_copy {
 public:
  explicit unit_view(unit_table const& of) : metadata_copy{of.metadata(), of.metadata_bytes()}, table_{of} {}

  heap_statistics figures() const {
    heap_statistics const empty{.pool_bytes = table_.pool_bytes(), .metadata_bytes = table_.metadata_bytes()};
    return add_calls<creation::count>(empty, 0);
  }
  template <class Visitor>
  void for_each_taken(Visitor visit) const {
    for (u64 unit = 0; unit < table_.units(); ++unit)
      if (length(unit) != 0) visit(table_.address(unit), length(unit) * unit_bytes, 1);
  }
  void check_all(invariant_check& expect) const {
    for (u64 word = 0; word < table_.words(); ++word) {
      u64 held = 0;
      for (u32 unit = 0; unit < word_units; ++unit) held ^= low_mask(length(word * word_units + unit)) << unit;
      expect(held == at(unit_table::bits_offset)[word], "I1: the bits are not those of the blocks, in word ", word);
    }
  }

 private:
  u32 length(u64 unit) const { return at<u32>(unit_table::bits_offset + 8 * table_.words())[unit]; }

  unit_table table_;
};

class unit_bitmap : public creation::policy_base<unit_bitmap, unit_table> {
 public:
  static constexpr char const* name = "unit_bitmap";
  static constexpr allocator_traits traits{.alignment = unit_bytes,
                                           .self_aligned_up_to = word_bytes,
                                           .multiples_aligned_up_to = word_bytes,
                                           .padded_aligned_up_to = word_bytes,
                                           .detects_misuse = true,
                                           .exact_out_of_memory = true,
                                           .one_pass_refusals = true,
                                           .largest_bytes = word_bytes,
                                           .metadata_permille = 66};

  WARPHEAP_DEVICE void* create(size_t bytes) const { return create_aligned(unit_bytes, bytes); }

  WARPHEAP_DEVICE void* create_aligned(size_t alignment, size_t bytes) const {
    if (bytes == 0) return nullptr;
    if (bytes > word_bytes || alignment > word_bytes) return refuse();
    u32 const units = units_of(alignment > bytes ? alignment : bytes);
    // Of the lanes that arrived together, those that request this size from this heap act as one.
    lane_group const group = group_by(simt::active_mask(), key_of(units));
    u64 const unit = find(group, units);
    // The old owner's writes to a block happen before ours, even if another lane took it for us.
    simt::sync_warp(group.mask);
    if (unit == none) return refuse();
    // I1. The result is used, so that the length is stored before any thread has the address.
    return table_.length(unit).exchange(units, order::relaxed) == 0 ? table_.address(unit) : nullptr;
  }

  WARPHEAP_DEVICE void destroy(void* memory) const {
    if (!memory) return;
    u64 const unit = table_.number_of(memory);
    if (unit == none) return table_.add_count(creation::count::foreign_frees);
    // I1. relaxed: the word of bits orders accesses to the block. A read-modify-write, because the
    // address may have arrived without any ordering; since it changes a live block's length, it
    // reads the newest value.
    u32 const units = table_.length(unit).exchange(0, order::relaxed);
    if (units == 0) return table_.add_count(creation::count::double_frees);
    // Lanes whose blocks share a word clear their bits together.
    lane_group const group = group_by(simt::active_mask(), reinterpret_cast<u64>(table_.bits() + unit / word_units));
    u64 const bits = low_mask(units) << unit % word_units;
    u64 const all = group.size == 1 ? bits : union_of_groups(group.mask, group, bits);
    simt::sync_warp(group.mask);
    // release: the blocks' contents were used before; pairs with the acquire in take().
    if (group.leads) table_.taken(unit / word_units).fetch_and(~all, order::release);
  }

  WARPHEAP_DEVICE size_t usable_size(void const* memory) const {
    u64 const unit = table_.number_of(memory);
    return unit != none ? table_.length(unit).fetch_or(0, order::relaxed) * unit_bytes : 0;
  }

  /// Available blocks of the size, in one part of the words. Exact on a heap at rest.
  WARPHEAP_DEVICE slot_part count_slots(size_t bytes, slot_share share) const {
    slot_part found;
    if (bytes == 0 || bytes > word_bytes) return found;
    for (u64 word = share.first(slot_places()); word < share.end(slot_places()); ++word)
      found.count += popcount(room(table_.taken(word).load(order::relaxed), units_of(bytes)));
    return found;
  }
  WARPHEAP_HOST_DEVICE u64 slot_places() const { return table_.words(); }

  /// Units of a pool: whole words.
  static u64 plan(size_t pool) { return word_units * creation::count_units(name, "words", pool, word_bytes, 1 << 30); }

  quiet_view<unit_view> snapshot() const { return quiet_view<unit_view>{table_}; }

 private:
  /// Units of a block: a power of two.
  WARPHEAP_DEVICE static u32 units_of(size_t bytes) { return u32{1} << log2_ceil(div_ceil(bytes, unit_bytes)); }

  /// A bit for each place of a word, seen so, whose `units` units are all free: its first.
  WARPHEAP_DEVICE static u64 room(u64 seen, u32 units) {
    for (u32 reach = 1; reach < units; reach *= 2) seen |= seen >> reach;
    return ~seen & ~u64{0} / low_mask(units);
  }

  /// The first unit of a block for each lane of the group; none if each place was seen taken. All
  /// lanes of the group call.
  WARPHEAP_DEVICE u64 find(lane_group const& group, u32 units) const {
    u32 const words = table_.words(), rows = glance + (words + group.size - 1) / group.size;
    u64 const mine = global_thread_index() / warp_lanes % cursors;
    atomic_ref<u32> const cursor{table_.cursors_at()[mine]};
    u32 const own = static_cast<u32>(mine * words / cursors);
    u32 const start = broadcast(group, own + cursor.load(order::relaxed));
    // In each row of group.size words, a lane has one to look at.
    lane_mask needing = group.mask;
    u32 row = 0, word = 0, at_once = 1;
    u64 unit = none, number = 0, seen = ~u64{0};
    for (u32 turn = 0; row < rows; ++turn) {
      // The quick look found nothing: from here on look at every word. One scan answers all calls
      // that arrived before it began.
      if (turn == glance) number = table_.scans().begin(group.mask), at_once = stretch;
      if (turn > glance && simt::ballot(group.mask, table_.scans().answers(number, {log2_floor(units)}))) return unit;
      u32 const until = row + at_once;
      while (true) {
        // relaxed: it sees the frees that happen before our call.
        for (; row != until && (~seen == 0 || room(seen, units) == 0); ++row) {
          word = (start + row * group.size + group.rank) % words;
          seen = table_.taken(word).load(order::relaxed);
        }
        lane_mask const having = simt::ballot(group.mask, room(seen, units) != 0);
        if (having == 0) break;
        unit = deal(group.mask, needing, having, word, seen, units, unit);
        needing = simt::ballot(group.mask, unit == none);
        if (needing != 0) continue;
        // The warp's next call begins where this one found something.
        if (turn != 0 && group.leads) cursor.store(static_cast<u32>(unit / word_units) - own, order::relaxed);
        return unit;
      }
    }
    if (group.leads) table_.scans().publish(number, {log2_floor(units)});
    return unit;
  }

  /// One round for the lanes of `needing`, which have no unit yet, of the words in which the lanes
  /// of `having` see room. The k-th of these serves the lanes in need from k * most on.
  WARPHEAP_DEVICE u64 deal(lane_mask mask, lane_mask needing, lane_mask having, u32 word, u64& seen, u32 units,
                           u64 unit) const {
    u32 const most = word_units / units;
    lane_mask const below = simt::lanes_below();
    u32 const before = popcount(having & below) * most, place = popcount(needing & below);
    u64 const given = before < popcount(needing) ? take(word, seen, popcount(needing) - before, units) : 0;
    bool const gets = unit == none && place / most < popcount(having);
    u32 const giver = gets ? nth_bit(having, place / most) : simt::lane_id();
    u64 const begins = simt::shuffle(mask, given, giver), from = simt::shuffle(mask, word, giver);
    return gets && place % most < popcount(begins) ? from * word_units + nth_bit(begins, place % most) : unit;
  }

  /// Takes up to `wanted` blocks of a word: a bit for each, at its first unit; 0 if no room.
  WARPHEAP_DEVICE u64 take(u32 word, u64& seen, u32 wanted, u32 units) const {
    while (u64 const begins = lowest_bits(room(seen, units), wanted)) {
      u64 const all = seen | begins * low_mask(units);
      // acquire: pairs with the release in destroy(). If it fails, `seen` is what others made.
      if (table_.taken(word).compare_exchange(seen, all, order::acquire, order::relaxed)) return seen = all, begins;
    }
    return 0;
  }
};

}}  // namespace example::WARPHEAP_BACKEND
