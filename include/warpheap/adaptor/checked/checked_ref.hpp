// SPDX-License-Identifier: Apache-2.0
// What a kernel holds of a checked heap: the calls of the upstream heap, each of which lays out or
// examines the block around the caller's bytes.
#pragma once

#include "../../heap/allocator.hpp"
#include "../../policy/alignment/shrink.hpp"
#include "examiner.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {
namespace checked_parts {

/// What a checked heap promises: what the upstream heap does, as far as its blocks keep it.
template <checked_config Config>
WARPHEAP_HOST_DEVICE constexpr allocator_traits guarded_traits(allocator_traits upstream) {
  constexpr size_t kept = Config.keeps_alignment_up_to, around = block_plan<Config>::total(kept, 16);
  constexpr auto lesser = [](size_t a, size_t b) { return a < b ? a : b; };
  allocator_traits left = upstream;
  left.alignment = 16;
  left.self_aligned_up_to = lesser(upstream.self_aligned_up_to, kept);
  left.multiples_aligned_up_to = lesser(upstream.multiples_aligned_up_to, kept);
  left.padded_aligned_up_to = lesser(upstream.padded_aligned_up_to, kept);
  left.detects_misuse = true;
  left.whole_pool = false;
  if (upstream.largest_bytes != ~size_t{0})
    left.largest_bytes = upstream.largest_bytes > around ? upstream.largest_bytes - around : 0;
  return left;
}

}  // namespace checked_parts

/// A checked heap as kernels take it, by value: 24 bytes over the default heap. Has the members of
/// the upstream heap and their promises; malloc() and free() also take the place in the source, or
/// a name in its stead.
template <class Upstream, u32 Ranges, checked_config Config>
class checked_ref : public typed_calls<checked_ref<Upstream, Ranges, Config>> {
  using guarded_block = checked_parts::guarded_block;
  using block_record = checked_parts::block_record;
  using block_plan = checked_parts::block_plan<Config>;
  using block_bits = checked_parts::block_bits;
  using examiner = checked_parts::examiner<Ranges, Config>;
  using state_type = checked_parts::shared_state<Ranges>;

 public:
  static constexpr checked_config config = Config;
  static constexpr allocator_traits traits = checked_parts::guarded_traits<Config>(Upstream::traits);
  static_assert(is_valid(Config), "checked: redzones of 16 bytes to 64 KiB, the front one a multiple of 16");
  static_assert(are_aligned_if_all_padded<alignment::shrink<16>>(Upstream::traits),
                "checked: blocks are headed by words of 16 bytes, to which the upstream heap does not align");

  checked_ref() = default;
  WARPHEAP_HOST_DEVICE checked_ref(Upstream upstream, state_type* state) : upstream_{upstream}, state_{state} {}

  /// As the upstream heap. `site` goes into the reports about the block.
  WARPHEAP_DEVICE void* malloc(size_t bytes, source_site site = source_site::current()) const {
    return create(bytes, kept_alignment(bytes), site);
  }

  /// As the upstream heap; what is no live block is reported, and ignored.
  WARPHEAP_DEVICE void free(void* memory, source_site site = source_site::current()) const {
    if (!memory) return;
    block_bits const bits = state_->map.find(memory);
    if (!bits || !(bits.end_life() & block_bits::live)) return examiner::report_bad_free(look(), memory, site);
    retire(examiner::block_at(memory), bits, site);
  }

  WARPHEAP_DEVICE void* calloc(size_t count, size_t size, source_site site = source_site::current()) const {
    if (size && count > ~size_t{0} / size) return nullptr;
    void* const memory = malloc(count * size, site);
    warp_fill_zero(memory, memory ? count * size : 0);
    return memory;
  }

  /// As the upstream heap, but that the block always moves while there is memory: pointers to where
  /// it was are then found. `old_bytes` is not relied on.
  WARPHEAP_DEVICE void* realloc(void* memory, size_t old_bytes, size_t bytes,
                                source_site site = source_site::current()) const {
    size_t const known = memory ? usable_size(memory) : 0;
    void* const moved = memory && known == 0 ? nullptr : malloc(bytes, site);
    size_t const held = known < old_bytes ? known : old_bytes, kept = held < bytes ? held : bytes;
    warp_copy(moved, memory, memory && moved ? kept : 0);
    bool const stays = known != 0 && !moved && bytes != 0 && bytes <= known && shrink(memory, bytes, site);
    // what is no block is reported by free(), once
    free((moved || bytes == 0 || (memory && known == 0)) ? memory : nullptr, site);
    return stays ? memory : moved;
  }
  WARPHEAP_DEVICE void* realloc(void* memory, size_t bytes, source_site site = source_site::current()) const {
    return realloc(memory, ~size_t{0}, bytes, site);
  }

  WARPHEAP_DEVICE void* aligned_alloc(size_t alignment, size_t bytes, source_site site = source_site::current()) const {
    if (!is_power_of_two(alignment)) return nullptr;
    return create(bytes, alignment > 16 ? alignment : 16, site);
  }

  WARPHEAP_DEVICE void* malloc_warp(lane_mask mask, size_t bytes,
                                    source_site site = source_site::current()) const requires
      requires(Upstream upstream) {
    upstream.malloc_warp(mask, bytes);
  }
  {
    u64 const alignment = kept_alignment(bytes), total = block_plan::total(alignment, bytes);
    void* const created = upstream_.malloc_warp(mask, total);
    return lay_out(created ? created : create_again(*this, total, site), alignment, bytes, site);
  }

  /// Bytes that were asked for at `memory`, a live block; 0 for any other address.
  WARPHEAP_DEVICE size_t usable_size(void const* memory) const {
    block_record record;
    return owns(memory) && examiner::block_at(memory).read(record) ? record.bytes() : 0;
  }
  /// Whether `memory` is a live block of this heap.
  WARPHEAP_DEVICE bool owns(void const* memory) const {
    block_bits const bits = state_->map.find(memory);
    return bits && (bits.seen() & block_bits::live);
  }
  /// Whether `memory` lies in this heap's memory, in a block or not.
  WARPHEAP_DEVICE bool contains(void const* memory) const { return state_->map.contains(memory); }

  /// As the upstream heap. Blocks in quarantine count as taken.
  WARPHEAP_DEVICE u64 available_slots(size_t bytes) const requires requires(Upstream upstream) {
    upstream.available_slots(bytes);
  }
  { return upstream_.available_slots(created_bytes(bytes)); }
  WARPHEAP_DEVICE u64 available_slots_warp(lane_mask mask, size_t bytes) const requires requires(Upstream upstream) {
    upstream.available_slots_warp(mask, bytes);
  }
  { return upstream_.available_slots_warp(mask, created_bytes(bytes)); }

  /// Bytes that the upstream heap is asked for.
  WARPHEAP_HOST_DEVICE static constexpr size_t created_bytes(size_t bytes) {
    return block_plan::total(kept_alignment(bytes), bytes);
  }

  WARPHEAP_HOST_DEVICE Upstream const& upstream() const { return upstream_; }
  WARPHEAP_HOST_DEVICE state_type& state() const { return *state_; }
  WARPHEAP_HOST_DEVICE examiner look() const { return examiner{state_}; }

 private:
  /// What the upstream heap aligns this size to, as far as the configuration keeps it.
  WARPHEAP_HOST_DEVICE static constexpr u64 kept_alignment(size_t bytes) {
    u64 const own = bytes & (~bytes + 1);
    u64 const most = traits.multiples_aligned_up_to, as_multiple = most < own ? most : own;
    u64 const kept = own == bytes && own <= traits.self_aligned_up_to ? own : as_multiple;
    return kept > 16 ? kept : 16;
  }

  WARPHEAP_DEVICE void* create(size_t bytes, u64 alignment, source_site const& site) const {
    u64 const total = block_plan::total(alignment, bytes);
    void* const created = upstream_.malloc(total);
    return lay_out(created || total == 0 ? created : create_again(*this, total, site), alignment, bytes, site);
  }

  /// The second try, with nothing left in quarantine: what is refused now would be refused without
  /// one too (checked.Q1).
  WARPHEAP_COLD static void* create_again(checked_ref by, u64 total, source_site site) {
    if (total == 0) return nullptr;
    bool const emptied = by.state_->held.empty([&](void* memory) { return give_back(by, memory, site); });
    return emptied ? by.upstream_.malloc(total) : nullptr;
  }

  WARPHEAP_DEVICE void* lay_out(void* created, u64 alignment, size_t bytes, source_site const& site) const {
    if (!created) return nullptr;
    u64 const earliest = reinterpret_cast<u64>(created) + block_plan::before;
    u64 const address = align_up(earliest, alignment);
    void* const memory = reinterpret_cast<void*>(address);
    examiner::block_at(memory).begin_life(bytes, address - earliest, site);
    state_->map.find(memory).add();
    return memory;
  }

  /// Ends the life of a block that is ours (checked.M3).
  WARPHEAP_DEVICE void retire(guarded_block const& block, block_bits const& bits, source_site const& site) const {
    void* const memory = block.address();
    block_record record;
    // The header says where the block begins. Without it the block stays known, and never goes
    // back.
    if (!block.read(record)) return examiner::report_overwritten(look(), memory, found_in::free, site);
    look().report_redzones(block, record, found_in::free, site);
    if (!state_->held.accepts(record.bytes())) {
      bits.remove();
      return upstream_.free(block.created(record));
    }
    block.poison(record.bytes());
    block.note_free(record, site);
    state_->held.hold(memory, record.bytes(),
                      [heap = *this, site](void* other) { return give_back(heap, other, site); });
  }

  /// Gives a block that left the quarantine to the upstream heap. Returns its bytes.
  WARPHEAP_COLD static u64 give_back(checked_ref by, void* memory, source_site site) {
    guarded_block const block = examiner::block_at(memory);
    block_record record;
    if (!block.read(record)) {
      examiner::report_overwritten(by.look(), memory, found_in::quarantine, site);
      return 0;
    }
    by.look().report_redzones(block, record, found_in::quarantine, site);
    by.look().report_writes(block, record, found_in::quarantine, site);
    by.state_->map.find(memory).remove();
    by.upstream_.free(block.created(record));
    return record.bytes();
  }

  /// Ends a live block earlier. Returns whether it is one.
  WARPHEAP_DEVICE bool shrink(void* memory, size_t bytes, source_site const& site) const {
    guarded_block const block = examiner::block_at(memory);
    block_record record;
    if (!block.read(record)) return false;
    look().report_redzones(block, record, found_in::free, site);
    block.resize(record, bytes, site);
    return true;
  }

  Upstream upstream_;
  state_type* state_ = nullptr;
};

}}  // namespace warpheap::WARPHEAP_BACKEND
