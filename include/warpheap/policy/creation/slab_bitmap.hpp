// The default allocator. The pool is cut into slabs of one size class at a time, each with a bitmap
// of its blocks. A request reserves blocks by an addition to the slab's descriptor, then claims
// them in the bitmap, once for all lanes of a warp that ask for one class. A larger block is a run
// of slabs. nullptr: no suitable block was free during the whole call (docs/design/slab_bitmap.md).
// Cost: 0.8% of the pool; a hint load, an addition and a bitmap operation a warp with room.
// Sources: Gelado & Garland 2019 (two stages), Halloc (slabs left early), ScatterAlloc (places),
// Pham et al. 2022 (whole words claimed), XMalloc (lanes served together); the protocol is ours.
#pragma once

#include "../../sync/same_object.hpp"
#include "../../sync/warp_aggregate.hpp"
#include "../config_text.hpp"
#include "../defaults.hpp"
#include "report.hpp"
#include "slab_bitmap/block_release.hpp"
#include "slab_bitmap/inspection.hpp"
#include "slab_bitmap/slab_search.hpp"
#include "slab_bitmap/slab_walk.hpp"
#include "slot_survey.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {
namespace creation {

struct slab_bitmap_config {
  /// log2 of the largest slab's bytes, 14 to 21. 19: faster in bursts, six times slower in churn.
  u32 max_slab_log2{WARPHEAP_SLAB_BITMAP_MAX_SLAB_LOG2};
};

#if !defined(__CUDACC_RTC__)
inline std::string describe(slab_bitmap_config const& config) {
  return config_text{}("max_slab_log2", config.max_slab_log2).text;
}
#endif

/// A handle on a heap: 16 bytes, trivially copyable; all copies serve the same heap.
template <slab_bitmap_config Config = slab_bitmap_config{}>
class slab_bitmap {
  static_assert(Config.max_slab_log2 >= 14 && Config.max_slab_log2 <= 21, "slab_bitmap: slabs are 16 KiB to 2 MiB");

 public:
  static constexpr char const* name = "slab_bitmap";
  static constexpr slab_bitmap_config config = Config;
  static constexpr allocator_traits traits{.alignment = 16,
                                           .self_aligned_up_to = 4096,
                                           .multiples_aligned_up_to = 4096,
                                           .detects_misuse = true,
                                           .exact_out_of_memory = true,
                                           .one_pass_refusals = true,
                                           .whole_pool = true};
  static constexpr bool supports_mixed_heaps = true;

  slab_bitmap() = default;

  /// A block of `bytes` bytes or more; nullptr for 0 or if none. Any lanes, converged or not.
  WARPHEAP_DEVICE void* create(size_t bytes) const {
    if (bytes == 0) return nullptr;
    if (bytes > slab_bytes()) return create_run(bytes, 1);
    return create_class(size_class_of(bytes));
  }

  /// As create(), at a multiple of `alignment`, a power of two.
  WARPHEAP_DEVICE void* create_aligned(size_t alignment, size_t bytes) const {
    if (bytes == 0) return nullptr;
    if (bytes > slab_bytes() || alignment > slab_bytes()) return create_run(bytes, alignment);
    return create_class(aligned_size_class(alignment, bytes));
  }

  /// As create(), each lane with its own size. All lanes of `mask` call together, with one mask.
  WARPHEAP_DEVICE void* create_warp(u32 mask, size_t bytes) const {
    bool const small = bytes != 0 && bytes <= slab_bytes();
    u32 const together = simt::ballot(mask, small);
    if (!small) return create(bytes);
    u32 const size_class = size_class_of(bytes);
    return serve(together, group_by(together, group_key(size_class)), size_class);
  }

  /// Frees a block. nullptr does nothing; what is no live block is counted and ignored. Any lanes.
  WARPHEAP_DEVICE void destroy(void* memory) const {
    if (memory) block_release{table_}(memory);
  }

  /// Bytes of the live block at `memory`; 0 if it is none.
  WARPHEAP_DEVICE size_t usable_size(void const* memory) const { return block_release{table_}.usable_size(memory); }

  /// Whether `memory` lies in the pool, be it a block or not.
  WARPHEAP_DEVICE bool contains(void const* memory) const {
    return reinterpret_cast<u64>(memory) - reinterpret_cast<u64>(table_.pool()) < geometry().pool_bytes();
  }

  /// Whether `memory` is a live block.
  WARPHEAP_DEVICE bool owns(void const* memory) const { return usable_size(memory) != 0; }
  /// Blocks of `bytes` bytes that could be allocated; exact at rest. One lane looks at every slab.
  WARPHEAP_DEVICE u64 available_slots(size_t bytes) const { return count_slots_alone(*this, bytes); }

  /// For slot_survey.hpp, which counts in parts.
  WARPHEAP_HOST_DEVICE u64 slot_places() const { return geometry().slabs(); }
  WARPHEAP_DEVICE slot_part count_slots(size_t bytes, slot_share share) const {
    u32 const first = static_cast<u32>(share.first(slot_places())), end = static_cast<u32>(share.end(slot_places()));
    if (bytes == 0) return {};
    return bytes <= slab_bytes() ? count_blocks(table_, size_class_of(bytes), first, end)
                                 : count_runs(table_, slabs_for(bytes), first, end);
  }
  WARPHEAP_HOST_DEVICE u64 slots_of_row(size_t bytes, u64, u64 length) const { return length / slabs_for(bytes); }

#if !defined(__CUDACC_RTC__)
  /// Bytes to reserve for a pool of `pool_bytes`: the pool, its metadata, and room to align it.
  static size_t required_bytes(size_t pool_bytes) {
    slab_geometry const planned = plan(pool_bytes);
    return planned.pool_bytes() + planned.metadata_bytes() + planned.alignment();
  }

  /// The heap in required_bytes(pool_bytes) bytes at any address. initialize() must follow.
  static slab_bitmap place(void* memory, size_t pool_bytes) {
    slab_geometry const planned = plan(pool_bytes);
    u64 const start = align_up(reinterpret_cast<u64>(memory), planned.alignment());
    slab_bitmap made;
    made.table_ = slab_table{reinterpret_cast<u8*>(start) + planned.pool_bytes(), planned};
    return made;
  }

  /// Makes everything free, in order on stream `on`; does not wait.
  void initialize(stream_view on) const { initialize_table(table_, on); }

  size_t pool_bytes() const { return geometry().pool_bytes(); }
  size_t metadata_bytes() const { return geometry().metadata_bytes(); }
  /// A copy of the heap's state, which answers the host's questions: report.hpp.
  table_snapshot snapshot() const { return table_snapshot{table_}; }
#endif

  WARPHEAP_HOST_DEVICE slab_geometry geometry() const { return table_.geometry(); }
  WARPHEAP_HOST_DEVICE slab_table const& table() const { return table_; }

 private:
  using count = slab_table::count;

#if !defined(__CUDACC_RTC__)
  static slab_geometry plan(size_t pool_bytes) {
    return slab_geometry_for(pool_bytes, backend::multiprocessors(), Config.max_slab_log2);
  }
#endif

  /// Lanes that ask one heap for one class are served together; lanes that need a slab each, alone.
  /// The heap is part of the key, since lanes of a warp may call at one place with different heaps.
  WARPHEAP_DEVICE u64 group_key(u32 size_class) const {
    bool const alone = size_class + classes_of_one_block >= geometry().classes();
    u32 const lane = alone ? simt::lane_id() + 1 : 0;
    return reinterpret_cast<u64>(table_.metadata()) + (lane << 8 | size_class);  // less than a heap
  }
  static constexpr u32 classes_of_one_block = 4;  // the last ones: more than half a slab

  WARPHEAP_DEVICE u32 slab_bytes() const { return geometry().slab_bytes(); }
  /// `bytes` is not 0.
  WARPHEAP_HOST_DEVICE u64 slabs_for(size_t bytes) const { return ((bytes - 1) >> geometry().slab_log2()) + 1; }

  WARPHEAP_DEVICE void* create_run(u64 bytes, u64 alignment) const {
    void* const memory = slab_runs::create(table_, slabs_for(bytes), alignment);
    if (!memory) table_.add_count(count::failures, 1);
    return memory;
  }

  WARPHEAP_DEVICE void* create_class(u32 size_class) const {
    u32 const active = simt::active_mask();
    return serve(active, group_by(active, group_key(size_class)), size_class);
  }

  struct quick_result {
    u32 where = 0;          ///< slab + 1; 0: not served; | scattered: the blocks are not in a row
    u32 first = 0;          ///< first block (scattered: of their word); if not served, the row
    u64 bits = 0;           ///< the blocks from there; if not served, of the word at rest.place()
    slab_reservation rest;  ///< promised beyond these
    static constexpr u32 scattered = 1u << 31;
  };

  /// Blocks for the groups of `active`. All its lanes call: collectives of many masks would run
  /// one after the other. Rare cases are left out: 100 instructions take 32,768 warps 3 us.
  WARPHEAP_DEVICE void* serve(u32 active, lane_group const& group, u32 size_class) const {
    quick_result got{};
    if (group.leads) got = serve_quickly(size_class, group.size);
    // The leader's acquire is every lane's: the old owners' writes happen before our return.
    simt::sync_warp(active);
    u32 const where = simt::shuffle(active, got.where, group.leader);
    u32 const first = simt::shuffle(active, got.first, group.leader);
    u32 rank = group.rank;
    if (simt::ballot(active, where == 0 || (where & quick_result::scattered)) != 0) {
      u64 const bits = simt::shuffle(active, got.bits, group.leader);
      u32 const unserved = simt::ballot(active, where == 0);
      if (where == 0) return serve_slowly(table_, unserved, group.mask, size_class, got.first, got.rest, got.bits);
      rank = nth_bit(bits, rank);
    }
    return address((where & ~quick_result::scattered) - 1, size_class, first + rank);
  }

  WARPHEAP_DEVICE quick_result serve_quickly(u32 size_class, u32 wanted) const {
    u32 const salt = static_cast<u32>(simt::clock()) >> 4;
    u32 const entry = table_.hint_entry(size_class, salt);
    // relaxed: a hint; the reservation checks it.
    u32 const hinted = slab_hint{table_.hint(entry).load(order::relaxed)}.current();
    u64 const limits = table_.hint_limits(entry);
    u32 const slab = hinted - 1, capacity = static_cast<u32>(limits >> 32), soft = static_cast<u32>(limits);
    if (hinted == 0 || !slab_walk::goes_by_hint(wanted, capacity)) return {0, salt, 0, {}};
    slab_state const old = table_.promise(slab, wanted);
    u32 const now_used = old.used() + wanted;
    bool const reaches_soft = old.used() < soft && now_used >= soft;
    if (!old.serves(size_class) || now_used > capacity || reaches_soft)
      return {0, salt, 0, {slab, wanted, slab_reservation::nowhere}};
    // While ever() is below the capacity, the next blocks were never used; later any word will do.
    u32 place = old.ever();
    u64 const row = low_mask(wanted);
    u64 bits = row << (place % 64);
    if (place + wanted > capacity || place % 64 + wanted > 64) {
      u32 const random = mix32(salt + simt::lanes_below());
      place = scale_below(random, (capacity + 63) / 64) * 64;
      u64 const free = ~table_.blocks(slab).load(place / 64) & slab_table::valid_mask(capacity, place / 64);
      // From a random bit on: the lowest free blocks are what all others take.
      bits = rotate_left(lowest_bits(rotate_left(free, random), wanted), 0 - random);
    }
    // acquire: pairs with the release in bitmap::release().
    u64 const ours = table_.blocks(slab).try_claim(place / 64, bits, order::acquire);
    u32 const word = place & ~63u, left = wanted - popcount(ours);
    if (left != 0) return {0, salt, ours, {slab, left, word}};
    u32 const shift = lowest_bit(ours);
    if (ours >> shift == row) return {hinted, word + shift, row, {}};
    return {hinted | quick_result::scattered, word, ours, {}};
  }

  WARPHEAP_DEVICE slab_bitmap opaque() const {
    slab_bitmap same;
    same.table_ = table_.opaque();
    return same;
  }

  /// The rest of serve(). All lanes of whole groups call; the last three are each leader's.
  WARPHEAP_COLD static void* serve_slowly(slab_table table, u32 active, u32 group_mask, u32 size_class, u32 row,
                                          slab_reservation reserved, u64 claimed) {
    slab_bitmap self;
    self.table_ = table;
    slab_walk walk;
    if (group_of(group_mask).leads) walk = slab_walk{row};
    WARPHEAP_NO_UNROLL
    for (;; claimed = 0) {
      WARPHEAP_NO_UNROLL
      while (claimed == 0 && (reserved.blocks() != 0 || !walk.has_ended())) {
        if (reserved.blocks() == 0 || walk.is_moving()) {
          slab_reservation const taken = walk.next(table.opaque(), warpheap::opaque(size_class), popcount(group_mask));
          if (taken.blocks() != 0) reserved = taken;
        }
        if (reserved.blocks() != 0 && !walk.is_moving())
          claimed = self.opaque().claim(reserved, warpheap::opaque(size_class));
      }
      walk.begin_again();
      shared_claim const mine = self.share(active, group_mask, size_class, claimed, reserved);
      u32 const seekers = simt::ballot(active, mine.is_none);
      if (mine.is_none) return search(table, seekers, group_mask, size_class);
      active = simt::ballot(active & ~seekers, mine.block == nullptr);
      if (mine.block != nullptr) return mine.block;
      group_mask &= active;
    }
  }

  /// The answer for groups whose walks have ended. All lanes of `active` call, whole groups.
  WARPHEAP_COLD static void* search(slab_table table, u32 active, u32 group_mask, u32 size_class) {
    slab_bitmap self;
    self.table_ = table;
    u32 const random = scale_below(slab_table::random_bits(), table.geometry().slabs());
    slab_search search{simt::shuffle(active, random, group_of(group_mask).leader), group_of(group_mask).rank};
    slab_reservation reserved;
    WARPHEAP_NO_UNROLL
    for (;;) {
      lane_group const group = group_of(warpheap::opaque(group_mask));
      u32 const mine = search.look(table.opaque(), warpheap::opaque(size_class), group.rank, group.size);
      u32 const finders = simt::ballot(active, mine != slab_search::none) & group.mask;
      u32 const by_count = simt::ballot(active, mine != slab_search::none && search.is_hasty()) & group.mask;
      u32 const finder = lowest_bit(by_count != 0 ? by_count : finders != 0 ? finders : group.mask);
      u32 const slab = simt::shuffle(active, mine, finder);
      bool passes = by_count != 0;
      u64 claimed = 0;
      if (group.leads) {
        if (reserved.blocks() == 0 && finders != 0) {
          reserved = search.take(table.opaque(), warpheap::opaque(size_class), group.size, slab);
          passes = passes || reserved.blocks() != 0;
        }
        if (reserved.blocks() != 0) claimed = self.opaque().claim(reserved, warpheap::opaque(size_class));
      }
      u32 const passing = simt::ballot(active, passes), served = simt::ballot(active, claimed != 0);
      void* block = nullptr;
      if (served != 0) block = self.share(active, group_mask, size_class, claimed, reserved).block;
      if (((served >> group.leader) & 1) != 0) search.note_success();
      else if (finders == 0) search.end_round(group.rank);
      else if (finder == simt::lane_id() && ((passing >> group.leader) & 1) != 0) search.pass_slab(group.size);
      // I4: what any lane saw comes before what any lane looks at next.
      simt::sync_warp(active);
      bool const leaves = block != nullptr || search.has_ended();
      active = simt::ballot(active, !leaves);
      if (leaves) {
        if (block == nullptr && group.leads) table.add_count(count::failures, group.size);
        return block;
      }
      group_mask &= active;
    }
  }

  struct shared_claim {
    void* block;   ///< ours, if there are enough
    bool is_none;  ///< the leader has claimed none
  };

  /// The last ranks go first: the leader leads to the end, and a served lane holds no register.
  WARPHEAP_DEVICE shared_claim share(u32 active, u32 group_mask, u32 size_class, u64 claimed,
                                     slab_reservation reserved) const {
    // The leader's acquire is every lane's: the old owners' writes happen before our return.
    simt::sync_warp(active);
    lane_group const group = group_of(warpheap::opaque(group_mask));
    claimed = simt::shuffle(active, claimed, group.leader);
    u32 const from = simt::shuffle(active, reserved.slab(), group.leader);
    u32 const first = simt::shuffle(active, reserved.place(), group.leader);
    u32 const left = group.size - popcount(claimed);
    if (claimed == 0 || group.rank < left) return {nullptr, claimed == 0};
    return {opaque().address(from, warpheap::opaque(size_class), first + nth_bit(claimed, group.rank - left)), false};
  }

  /// Claims reserved blocks, all in one word, whose first block becomes the reservation's place. 0
  /// if each was seen taken in spite of the promise, which is then given back.
  WARPHEAP_DEVICE u64 claim(slab_reservation& reserved, u32 size_class) const {
    u32 const capacity = geometry().capacity(size_class), words = (capacity + 63) / 64;
    u32 const slab = reserved.slab(), blocks = reserved.blocks(), place = reserved.place();
    u32 word = place / 64;
    u64 claimed = 0;
    if (reserved.is_new()) {
      u64 const wanted = low_mask(blocks) << (place % 64) & slab_table::valid_mask(capacity, word);
      // acquire: pairs with the release in bitmap::release().
      claimed = table_.blocks(slab).try_claim(word, wanted, order::acquire);
    }
    // Not from the next word on: others are to get its blocks in order.
    if (claimed == 0) word = scale_below(slab_table::random_bits(), words);
    WARPHEAP_NO_UNROLL
    for (u32 turn = 0; claimed == 0 && turn < words && place != slab_reservation::nowhere; ++turn) {
      word = word + 1 < words ? word + 1 : 0;
      claimed = table_.blocks(slab).claim(word, blocks, slab_table::valid_mask(capacity, word));
    }
    if (claimed == 0) table_.opaque().give_back(slab, blocks);
    reserved = {slab, claimed != 0 ? blocks - popcount(claimed) : 0, 64 * word};
    return claimed;
  }

  WARPHEAP_DEVICE void* address(u32 slab, u32 size_class, u32 index) const {
    return table_.data(slab) + u64{index} * class_bytes(size_class);
  }

  slab_table table_;
};

}  // namespace creation
}  // namespace warpheap::inline WARPHEAP_BACKEND
