// SPDX-License-Identifier: Apache-2.0
// Blocks of up to 1 or 2 KiB from bins: what ualloc and throughput have in common. The chunks come
// from a supply.
//
// malloc has two stages. In the first, the lanes of a warp that ask for one class have one leader,
// which gets units for all of them (unit_source): a block of the class for each unit is then sure
// to be in the arena. In the second, the group finds the blocks. One lane for each bin's worth of
// units lowers the free blocks of some bin, claims bits of its bitmap a word at a time, and shares
// the blocks out by rank. free clears bits, those of one word together, raises the count, and
// signals.
//
// What free reads of a pointer's chunk and bin is a hint, which may be old if the pointer came by a
// shuffle or a relaxed store, or if the block was freed before. The exchange that raises the count
// checks it (bins.N6). Before a pointer is counted as misuse, all of it is read again by
// read-modify-writes.
//
// A lane that is alone needs no collectives, and a full warp need not ask which lanes it has. Both
// take the same steps in functions of their own.
#pragma once

#include "../../../../sync/warp_aggregate.hpp"
#include "../../../../util/random.hpp"
#include "../../slot_survey.hpp"
#include "unit_source.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace bins {

/// Which block a pointer leads to, if any.
struct block_address {
  enum kind_of : u32 { block, was_block, foreign } kind;
  u32 page;
  u32 index;
  bin_role role;
};

/// How free reads words that may change: by loads, whose values may be old, or by
/// read-modify-writes, which return the newest.
enum class look { hint, newest };

template <class Layout, class Supply, class Faults = no_faults>
class bin_allocator {
  using table_type = bins::table<Layout>;
  using source_type = unit_source<Layout, Supply, Faults>;
  using recycler_type = recycler<Layout, Supply, Faults>;

 public:
  using layout = Layout;

  bin_allocator() = default;
  WARPHEAP_HOST_DEVICE explicit bin_allocator(table_type const& table) : table_{table} {}

  WARPHEAP_HOST_DEVICE table_type const& table() const { return table_; }

  /// A block of one class for each lane of a group, all of which hold this heap; nullptr for lanes
  /// for which there is none. All lanes of the group call.
  WARPHEAP_DEVICE void* create(lane_group const& group, u32 size_class) const {
    if constexpr (Layout::config.shares_requests) {
      if (group.mask == full_mask) return serve_warp(table_, size_class);
      if (group.size != 1) return serve_group(table_, group.mask, size_class);
    }
    return serve_alone(table_, size_class);
  }

  /// Gives back the blocks of lanes that call together. `memory` is not nullptr.
  WARPHEAP_DEVICE void destroy(void* memory) const {
    block_address const at = locate<look::hint>(table_, memory);
    if (at.kind != block_address::block || !destroy_together(at)) destroy_anew(table_.as_far(), memory);
  }

  /// Bytes of the live block at `memory`; 0 if there is none.
  WARPHEAP_DEVICE size_t usable_size(void const* memory) const {
    block_address const at = locate<look::newest>(table_, memory);
    if (at.kind != block_address::block) return 0;
    u64 const word = read<look::newest>(table_.bin(at.page).bits(at.index / 64));
    return word >> (at.index % 64) & 1 ? Layout::class_bytes(at.role.size_class()) : 0;
  }

  /// Returns to the supply every chunk of a part's arenas that has no live block. Any lane alone.
  WARPHEAP_COLD static void return_chunks(far_table<Layout> table, slot_share share) {
    for (u64 i = share.part; i < table.arenas(); i += share.parts) {
      u32 const arena = static_cast<u32>(i);
      recycler_type::sweep(table, arena);
      while (page_store<Layout, Supply>{table, arena}.return_idle_chunk()) {
      }
    }
  }

  /// Returns to the supply every chunk that has no live block. False if another call may be about
  /// to return one more. Any lane alone.
  WARPHEAP_COLD static bool return_chunks(far_table<Layout> table) {
    bool all = true;
    for (u32 arena = 0; arena < table.arenas(); ++arena) {
      // acquire, release: bins.W1.
      u64 room = table.room(arena).fetch_add(0, order::acq_rel);
      if (room_word::idle_classes(room) != 0 || room_word::in_limbo(room) != 0) {
        all = recycler_type::sweep(table, arena) && all;
        room = table.room(arena).fetch_add(0, order::acq_rel);
        all = all && room_word::in_limbo(room) == 0;
      }
      if (room_word::free_pages(room) < table.chunk().usable_pages()) continue;
      while (page_store<Layout, Supply>{table, arena}.return_idle_chunk()) {
      }
    }
    return all;
  }

  /// The key that groups lanes: equal for one heap and one `what`, which is less than the words'
  /// bytes.
  WARPHEAP_DEVICE u64 key_of(u32 what) const { return reinterpret_cast<u64>(table_.words()) + what; }

 private:
  /// Blocks chosen in one word of a bin's bitmap.
  struct chosen_blocks {
    u32 page = 0;
    u32 word = 0;
    u64 bits = 0;
  };

  /// Claims some blocks of a share; at least one. Any lane alone.
  WARPHEAP_DEVICE chosen_blocks choose(bin_share& share, u32 size_class) const {
    u32 const words = Layout::words(size_class);
    u32 const random = mix32(static_cast<u32>(simt::clock()) + warp_lanes * simt::sm_id() + simt::lane_id());
    bin_view const bin = table_.bin(share.page);
    u32 word = scale_below(random, words);
    // bins.N1: there are clear bits for us. Those that we do not see yet were cleared before.
    for (backoff nap;; nap.while_working()) {
      for (u32 i = 0; i < words; ++i) {
        u64 const bits = bin.claim(word, share.blocks, Layout::valid_mask(size_class, word), random);
        if (bits != 0) {
          share.blocks -= popcount(bits);
          return {share.page, word, bits};
        }
        word = word + 1 < words ? word + 1 : 0;
      }
    }
  }

  // All three are calls, so that a kernel need not keep the registers of a search: their arguments
  // are all that they know.

  WARPHEAP_COLD static void* serve_warp(table_type table, u32 size_class) {
    return bin_allocator{table}.serve(group_of(full_mask), size_class);
  }
  WARPHEAP_COLD static void* serve_group(table_type table, lane_mask mask, u32 size_class) {
    return bin_allocator{table}.serve(group_of(mask), size_class);
  }
  WARPHEAP_COLD static void* serve_alone(table_type table, u32 size_class) {
    lane_group const alone = group_of(lane_bit(simt::lane_id()));
    bin_allocator const self{table};
    unit_grant const grant = source_type{table, size_class}.obtain(alone, 1);
    if (grant.units == 0) return self.refuse(1);
    bin_share share = bin_list<Layout, known_place>{table, grant.arena, size_class}.take(1);
    chosen_blocks const got = self.choose(share, size_class);
    return table.block(got.page, size_class, got.word * 64 + lowest_bit(got.bits));
  }

  /// All lanes of the group call. Only lanes of one group take part in its collectives: of two
  /// groups of a warp, one may search while the other holds units (bins.V1).
  WARPHEAP_DEVICE void* serve(lane_group const& group, u32 size_class) const {
    void* mine = nullptr;
    u32 served = 0;
    WARPHEAP_NO_UNROLL
    while (served < group.size) {
      unit_grant const grant = source_type{table_, size_class}.obtain(group, group.size - served);
      if (grant.units == 0) break;
      void* const block = share_out(group, grant, served, size_class);
      if (block) mine = block;
      served += grant.units;
    }
    if (group.leads && served < group.size) table_.add_count(count::failures, group.size - served);
    return mine;
  }

  /// The second stage: a block for each lane of rank `first` to below `first` + the grant's units;
  /// nullptr for the others. One lane for each bin's worth of units takes and claims, side by side.
  WARPHEAP_DEVICE void* share_out(lane_group const& group, unit_grant grant, u32 first, u32 size_class) const {
    u32 const capacity = Layout::capacity(size_class);
    bool const waits = group.rank - first < grant.units;
    u32 const part_begin = waits ? first + (group.rank - first) / capacity * capacity : 0;
    u32 const part_units = waits ? at_most(first + grant.units - part_begin, capacity) : 0;
    u32 const leader = waits ? nth_bit(group.mask, part_begin) : simt::lane_id();
    bool const leads = waits && group.rank == part_begin;
    u32 const rank = group.rank - part_begin;
    bin_share share{};
    void* mine = nullptr;
    u32 done = 0;
    WARPHEAP_NO_UNROLL
    do {
      chosen_blocks got{};
      if (leads && done < part_units) {
        if (share.blocks == 0)
          share = bin_list<Layout, known_place>{table_, grant.arena, size_class}.take(part_units - done);
        got = choose(share, size_class);
      }
      // The leader's acquire covers the other lanes' blocks: what the previous owners wrote happens
      // before our return.
      simt::sync_warp(group.mask);
      got.page = simt::shuffle(group.mask, got.page, leader);
      got.word = simt::shuffle(group.mask, got.word, leader);
      got.bits = simt::shuffle(group.mask, got.bits, leader);
      u32 const place = rank - done, found = popcount(got.bits);
      if (waits && place < found) mine = table_.block(got.page, size_class, got.word * 64 + nth_bit(got.bits, place));
      done += found;
    } while (simt::ballot(group.mask, done < part_units) != 0);
    return mine;
  }

  WARPHEAP_HOST_DEVICE static u32 at_most(u32 value, u32 most) { return value < most ? value : most; }

  WARPHEAP_DEVICE void* refuse(u32 lanes) const {
    table_.add_count(count::failures, lanes);
    return nullptr;
  }

  /// Which block starts at `memory`, live or not.
  template <look How, class Place>
  WARPHEAP_DEVICE static block_address locate(basic_table<Layout, Place> const& table, void const* memory) {
    u64 const offset = reinterpret_cast<u64>(memory) - reinterpret_cast<u64>(table.pool());
    if (offset >= table.pool_bytes()) return {block_address::foreign, 0, 0, {}};
    u32 const chunk = static_cast<u32>(offset >> table.chunk().log2);
    u32 const owner = read<How>(table.arena_of_chunk(chunk));
    if (owner == 0) return {block_address::foreign, 0, 0, {}};
    place const at = head_of<How>(
        table, chunk,
        Layout::place_of(table.chunk(), static_cast<u32>(offset) & static_cast<u32>(table.chunk().bytes() - 1)));
    if (at.page == place::none) return {block_address::foreign, 0, 0, {}};
    u32 const page = table.first_page(chunk) + at.page;
    bin_role const role = bin_life::role_of(read<How>(table.bin(page).life()));
    if (!table.is_role_in(role, owner)) return {block_address::foreign, 0, 0, {}};
    u32 const index = Layout::block_at(role.size_class(), at.offset);
    if (index == Layout::no_block) return {block_address::foreign, 0, 0, {}};
    return {role.is_live() ? block_address::block : block_address::was_block, page, index, role};
  }

  template <look How, class Word>
  WARPHEAP_DEVICE static Word read(atomic_ref<Word> const& word) {
    // relaxed: while a block is live, all of this stays as it was when its owner got it.
    return How == look::hint ? word.load(order::relaxed) : word.fetch_or(0, order::relaxed);
  }

  /// `at`, counted from the first page of its bin; place::none if there is no bin.
  template <look How, class Place>
  WARPHEAP_DEVICE static place head_of(basic_table<Layout, Place> const& table, u32 chunk, place at) {
    if constexpr (Layout::config.wide_bins) {
      if (at.page == place::none) return at;
      u32 const word = at.page / 64;
      u64 const below = read<How>(table.heads(chunk, word)) & low_mask(at.page % 64 + 1);
      u32 const head = below != 0 ? word * 64 + highest_bit(below) : place::none;
      // A tail belongs to the bin that begins at its page.
      if (head == place::none || (at.offset >= page_bytes && head != at.page)) return {place::none, 0};
      return {head, at.offset + (at.page - head) * page_bytes};
    } else {
      return at;
    }
  }

  /// Frees blocks: by one operation those of the lanes here that lie in one bitmap word. False if
  /// our block was not live, or is a lower lane's too.
  WARPHEAP_DEVICE bool destroy_together(block_address const& at) const {
    lane_mask const active = Layout::config.shares_requests ? simt::active_mask() : lane_bit(simt::lane_id());
    // Headers are 128 bytes, so word and class fit beside their address. Lanes that saw different
    // classes are in different groups.
    u64 const word = reinterpret_cast<u64>(table_.header(at.page)) + at.index / 64 + at.role.size_class() * 8;
    static_assert(Layout::classes * 8 <= header_bytes && Layout::max_capacity <= 8 * 64);
    lane_group const group = group_by(active, word);
    u64 const bits = union_of_groups(active, group, u64{1} << at.index % 64);
    // The leader's release covers only what this barrier ordered: the other lanes' last writes to
    // their blocks.
    simt::sync_warp(active);
    u64 cleared = 0;
    if (group.leads) cleared = give_back(at, bits);
    // No lane returns before the blocks are back: its next request must be served even if the heap
    // is otherwise full.
    simt::sync_warp(active);
    lane_mask const whole = simt::ballot(active, popcount(cleared) == group.size);
    return (whole >> group.leader & 1) != 0 || is_ours(group.mask, at.index % 64, cleared);
  }

  /// Clears `bits` of one bitmap word and counts those that were set as free. Returns them; 0 if
  /// the bin has another role by now (bins.N6). Any lane alone.
  WARPHEAP_DEVICE u64 give_back(block_address const& at, u64 bits) const {
    u64 const cleared = table_.bin(at.page).give_back(at.index / 64, bits);
    return cleared != 0 && recycler_type::try_free(table_, at.page, at.role, {at.index / 64, cleared}) ? cleared : 0;
  }

  /// Whether our block is among those that the leader of `mask` freed, and is not a lower lane's
  /// too. All lanes of the mask call.
  WARPHEAP_COLD static bool is_ours(lane_mask mask, u32 index, u64 cleared) {
    bool ours = (simt::shuffle(mask, cleared, lowest_bit(mask)) >> index & 1) != 0;
    for (lane_mask rest = mask; rest != 0; rest &= rest - 1) {
      u32 const other = lowest_bit(rest), its_index = simt::shuffle(mask, index, other);
      if (other < simt::lane_id() && its_index == index) ours = false;
    }
    return ours;
  }

  /// For a pointer that was no block by hints: frees it by the newest values, or counts it as
  /// misuse.
  WARPHEAP_COLD static void destroy_anew(far_table<Layout> table, void* memory) {
    block_address const at = locate<look::newest>(table, memory);
    if (at.kind == block_address::block) {
      u32 const word = at.index / 64;
      u64 const bit = u64{1} << at.index % 64;
      if (table.bin(at.page).give_back(word, bit) != 0 &&
          recycler_type::free_and_keep(table, at.page, at.role, {word, bit}))
        return;
    }
    table.add_count(at.kind == block_address::foreign ? count::foreign_frees : count::double_frees, 1);
  }

  table_type table_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::bins
