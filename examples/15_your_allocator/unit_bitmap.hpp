// SPDX-License-Identifier: Apache-2.0
// An allocator in some 150 lines: units of 64 bytes and a bit for each. A block is up to 64 units
// of one word of bits. A call begins behind the words that calls like it found full, looks at each
// once, and takes the first place that is free. docs/guide/your_allocator.md goes through it.
//
//   base   counts and scans | a bit a unit: taken | 4 bytes a unit: length | units, from 4 KiB on
//
//   length[u]  units of the block that starts at unit u; 0 where none does
//
//   I1  create() sets the bits of a block and then its length; destroy() takes the length and then
//       clears the bits. So of all frees of a block one finds the length.
//   I2  all bits of a block change at once. So a bit that a call sees set belongs to a block, and
//       nullptr says that each place was taken at some moment of the call.
#pragma once

#include <warpheap/policy/creation/shared/pool_units.hpp>
#include <warpheap/sync/shared_pass.hpp>
#include <warpheap/warpheap.hpp>

namespace example { inline namespace WARPHEAP_BACKEND {

using namespace warpheap;

class unit_bitmap {
  static constexpr u32 glance = 16, cursors = 1024;
  static constexpr u64 unit_bytes = 64, word_units = 64, word_bytes = word_units * unit_bytes, none = ~u64{0};

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
    if (bytes > word_bytes || alignment > word_bytes) return fail();
    u32 const units = units_of(bytes), step = step_of(alignment > bytes ? alignment : bytes);
    u64 const mine = global_thread_index() % cursors;
    atomic_ref<u32> const cursor{head_->cursors[mine]};
    u32 const passed = cursor.load(order::relaxed);  // words behind the cursor
    u32 const start = static_cast<u32>(mine * words_ / cursors) + passed;
    shared_pass<7> const scans{head_->scans};
    pass_size const size{log2_floor(step), units};
    u64 number = 0;
    for (u32 i = 0; i < glance + words_; ++i) {
      // Nothing at a glance: from here on every word, once. One scan answers all calls that came
      // before it began.
      if (i == glance) number = scans.draw();
      if (i > glance && i % glance == 0 && scans.answers(number, size)) return fail();
      void* const block = take((start + i) % words_, units, step);
      if (block && i != 0) cursor.store((passed + i) % words_, order::relaxed);
      if (block) return block;
    }
    scans.publish(number, size);
    return fail();
  }

  WARPHEAP_DEVICE void destroy(void* memory) const {
    if (!memory) return;
    u64 const unit = unit_of(memory);
    if (unit == none) return add(head_->foreign_frees);
    // I1. relaxed: the word of bits orders what happens to the block. A read-modify-write, because
    // the address may have come without an order.
    u32 const units = length(unit).exchange(0, order::relaxed);
    if (units == 0) return add(head_->double_frees);
    // release: the block's contents were used before; pairs with the acquire in take().
    taken(unit / word_units).fetch_and(~(low_mask(units) << unit % word_units), order::release);
  }

  WARPHEAP_DEVICE size_t usable_size(void const* memory) const {
    u64 const unit = unit_of(memory);
    return unit != none ? length(unit).fetch_or(0, order::relaxed) * unit_bytes : 0;
  }
  WARPHEAP_DEVICE bool owns(void const* memory) const { return usable_size(memory) != 0; }

  /// Blocks of the size that could be had: one part of the words. Exact on a heap at rest.
  WARPHEAP_DEVICE slot_part count_slots(size_t bytes, slot_share share) const {
    slot_part found;
    if (bytes == 0 || bytes > word_bytes) return found;
    for (u64 word = share.first(words_); word < share.end(words_); ++word)
      for (u32 at = 0; at < word_units; at += step_of(bytes))
        found.count += (taken(word).load(order::relaxed) & low_mask(units_of(bytes)) << at) == 0;
    return found;
  }
  WARPHEAP_DEVICE u64 available_slots(size_t bytes) const { return count_slots(bytes, {}).count; }
  WARPHEAP_HOST_DEVICE u64 slot_places() const { return words_; }

  // What the host does: reserve, place, initialise.
  static size_t required_bytes(size_t pool_bytes) {
    return units_offset(words_in(pool_bytes)) + words_in(pool_bytes) * word_bytes + word_bytes + alignof(header);
  }
  static unit_bitmap place(void* memory, size_t pool_bytes) {
    unit_bitmap made;
    made.head_ = reinterpret_cast<header*>(align_up(reinterpret_cast<u64>(memory), alignof(header)));
    made.words_ = words_in(pool_bytes);
    return made;
  }
  void initialize(stream_view on) const { backend::fill_bytes(head_, 0, units_offset(words_), on); }
  size_t pool_bytes() const { return words_ * word_bytes; }
  size_t metadata_bytes() const { return units_offset(words_); }

  // What the host asks of a heap at rest. The policy itself answers what a snapshot would.
  unit_bitmap const& snapshot() const { return *this; }
  heap_statistics statistics() const {
    header const head = copied<header>(head_, 1)[0];
    heap_statistics found{.pool_bytes = pool_bytes(), .metadata_bytes = metadata_bytes()};
    found.double_frees = head.double_frees, found.foreign_frees = head.foreign_frees, found.failures = head.failures;
    for_each_live([&](void*, size_t bytes) { ++found.live_blocks, found.live_bytes += bytes; });
    return found;
  }
  template <class Visitor>
  void for_each_live(Visitor visit) const {
    auto const found = copied<u32>(lengths(), words_ * word_units);
    for (u64 unit = 0; unit < found.size(); ++unit)
      if (found[unit] != 0) visit(pool() + unit * unit_bytes, found[unit] * unit_bytes);
  }
  invariant_report check_invariants() const {
    auto seen = copied<u64>(bits(), words_);
    for_each_live([&](void* block, size_t bytes) {
      u64 const unit = unit_of(block);
      seen[unit / word_units] ^= low_mask(bytes / unit_bytes) << unit % word_units;
    });
    for (u64 word = 0; word < words_; ++word)
      if (seen[word] != 0) return {"I1: bits of word " + std::to_string(word) + " are not those of its blocks"};
    return {};
  }

 private:
  struct alignas(64) header {
    u64 failures, double_frees, foreign_frees;
    u32 cursors[unit_bitmap::cursors];
    alignas(64) u64 scans[shared_pass<7>::bytes / 8];
  };

  WARPHEAP_DEVICE static u32 units_of(size_t bytes) { return static_cast<u32>(div_ceil(bytes, unit_bytes)); }
  /// Blocks begin at multiples of this many units: of the power of two that they fit in.
  WARPHEAP_DEVICE static u32 step_of(size_t bytes) { return u32{1} << log2_ceil(units_of(bytes)); }
  static u32 words_in(size_t pool_bytes) {
    return static_cast<u32>(creation::count_units("unit_bitmap", "words", pool_bytes, word_bytes, u64{1} << 30));
  }
  /// From the header on; the pool follows at the next multiple of 4 KiB.
  WARPHEAP_HOST_DEVICE static u64 units_offset(u64 words) { return sizeof(header) + words * (8 + 4 * word_units); }
  WARPHEAP_HOST_DEVICE u64* bits() const { return reinterpret_cast<u64*>(head_ + 1); }
  WARPHEAP_HOST_DEVICE u32* lengths() const { return reinterpret_cast<u32*>(bits() + words_); }
  WARPHEAP_HOST_DEVICE u8* pool() const {
    return reinterpret_cast<u8*>(align_up(reinterpret_cast<u64>(head_) + units_offset(words_), word_bytes));
  }
  WARPHEAP_DEVICE atomic_ref<u64> taken(u64 word) const { return atomic_ref<u64>{bits()[word]}; }
  WARPHEAP_DEVICE atomic_ref<u32> length(u64 unit) const { return atomic_ref<u32>{lengths()[unit]}; }
  /// The unit that starts at an address; none if none does.
  WARPHEAP_HOST_DEVICE u64 unit_of(void const* memory) const {
    u64 const offset = reinterpret_cast<u64>(memory) - reinterpret_cast<u64>(pool());
    return offset < words_ * word_bytes && offset % unit_bytes == 0 ? offset / unit_bytes : none;
  }
  template <class T>
  static std::vector<T> copied(T const* from, u64 count) {
    std::vector<T> made(count);
    backend::copy_bytes(made.data(), from, count * sizeof(T));
    return made;
  }

  /// A block of one word, at a multiple of `step` units; nullptr if each place was seen taken.
  WARPHEAP_DEVICE void* take(u32 word, u32 units, u32 step) const {
    u64 seen = taken(word).load(order::relaxed);  // what was freed before our call, or later
    for (u32 at = 0; at < word_units;) {
      u64 const mask = low_mask(units) << at;
      // acquire: pairs with the release in destroy(). If it fails, `seen` is what another call made
      // of the word.
      if ((seen & mask) != 0) at += step;
      else if (taken(word).compare_exchange(seen, seen | mask, order::acquire, order::relaxed))
        return begin(u64{word} * word_units + at, units);
    }
    return nullptr;
  }

  /// Writes a block's length. The result is used, so that the length is there before anybody has
  /// the address.
  WARPHEAP_DEVICE void* begin(u64 unit, u32 units) const {
    return length(unit).exchange(units, order::relaxed) == 0 ? pool() + unit * unit_bytes : nullptr;
  }

  WARPHEAP_DEVICE void* fail() const {
    add(head_->failures);
    return nullptr;
  }
  WARPHEAP_DEVICE static void add(u64& count) { atomic_ref<u64>{count}.fetch_add(1, order::relaxed); }

  header* head_ = nullptr;
  u32 words_ = 0;
};

}}  // namespace example::WARPHEAP_BACKEND
