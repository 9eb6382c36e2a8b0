// SPDX-License-Identifier: Apache-2.0
// What a profiled heap keeps in device memory: how many calls were refused, by size, and the first
// of them; and of about one live block in 2^OneInLog2 where it was allocated. Whether a block is a
// sample, and its place, follow from its address: so that malloc() has two stores to make for a
// sample and free() a look, and neither waits for another thread.
//
//   words:  | refused, by log2 of bytes: 64 | first refusal: 8 | samples: 2 each |
//   sample: | address, 44 bits | log2 of bytes, 8 | 12 unused |   | line, 16 | file, 48 |
//
//   profile.P1  a sample with an address is of a live block, or of one whose malloc() or free() has
//       not returned: it is cleared before the upstream heap gets the block.
//   profile.P2  the first refusal is written by one thread, and complete when `is_told` is 1.
//
// A sample replaces the one that has its place. The two words of a sample may be of two blocks for
// a moment. Both are noise in what is an estimate.
#pragma once

#include "../../sync/warp_aggregate.hpp"
#include "../../util/random.hpp"
#include "../../util/source_site.hpp"
#include "../trace/words.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

namespace profile_parts {

/// The words of the first refusal, behind the 64 counts.
enum class first_word : u32 { is_claimed = 64, is_told, bytes, file, line, place };
inline constexpr u32 header_words = 72, sample_words = 2;

/// A sample's first word; 0: none.
WARPHEAP_HOST_DEVICE constexpr u64 block_word(u64 address, u64 bytes) {
  return address >> 4 << 20 | u64{log2_floor(bytes)} << 12;
}
/// A sample's second word. Lines above 65,535 count as line 65,535.
WARPHEAP_HOST_DEVICE constexpr u64 site_word(u64 file, u32 line) {
  return file << 16 | (line < 0xffff ? line : 0xffff);
}

}  // namespace profile_parts

/// View of the words, by value: the log of a traced_ref.
///
/// OneInLog2  log2 of the blocks for each sample
/// Places     for samples, a power of two from 16 up
template <u32 OneInLog2, u32 Places>
class profile_log {
  static_assert(OneInLog2 < 32 && Places >= 16 && (Places & (Places - 1)) == 0);
  using first_word = profile_parts::first_word;

 public:
  static constexpr u32 words = profile_parts::header_words + profile_parts::sample_words * Places;

  profile_log() = default;
  /// `memory` are `words` words, zeroed; `host` is a word of the host's that becomes 1 at the first
  /// refusal.
  WARPHEAP_HOST_DEVICE profile_log(u64* memory, u64* host) : words_{memory}, host_{host} {}

  /// Notes a call that returned `block`, or is about to free it. Returns the bytes.
  WARPHEAP_DEVICE u64 add(call_kind kind, u64 bytes, void const* block, u32, source_site site = {}) const {
    if (kind == call_kind::free) erase(block);
    else if (kind != call_kind::realloc_begins) note(bytes, block, site);
    return bytes;
  }
  WARPHEAP_DEVICE u64 add(call_kind kind, u64 bytes, void const* block) const { return add(kind, bytes, block, 0); }

  /// Notes a realloc of `before` that returned `block`.
  WARPHEAP_DEVICE void add_realloc(void const* before, u64 bytes, void const* block, source_site site) const {
    if (block) erase(before);
    note(bytes, block, site);
  }

 private:
  WARPHEAP_DEVICE atomic_ref<u64> word(u32 index) const { return atomic_ref<u64>{words_[index]}; }
  WARPHEAP_DEVICE atomic_ref<u64> first(first_word which) const { return word(static_cast<u32>(which)); }

  /// Multiplied by the golden ratio's bits: neighbouring blocks fall apart.
  WARPHEAP_DEVICE static u32 hash_of(void const* block) {
    return static_cast<u32>(reinterpret_cast<u64>(block) >> 4) * 0x9e3779b9u;
  }
  WARPHEAP_DEVICE static bool is_sampled(u32 hash) { return u64{hash} >> (32 - OneInLog2) == 0; }
  /// By another multiplication: the low bits of `hash` are alike for blocks at one place of a slab.
  WARPHEAP_DEVICE static u32 place_of(u32 hash) {
    return profile_parts::header_words + profile_parts::sample_words * scale_below(hash * 0x85eb'ca6bu, Places);
  }

  // relaxed, all: profile.P1 needs no more than the order of one block's malloc and free, which the
  // heap has.

  WARPHEAP_DEVICE void note(u64 bytes, void const* block, source_site site) const {
    if (!block) return refuse(*this, bytes, site);
    u32 const hash = hash_of(block);
    if (!is_sampled(hash)) return;
    word(place_of(hash)).store(profile_parts::block_word(reinterpret_cast<u64>(block), bytes), order::relaxed);
    word(place_of(hash) + 1)
        .store(profile_parts::site_word(reinterpret_cast<u64>(site.file), site.line), order::relaxed);
  }

  WARPHEAP_DEVICE void erase(void const* block) const {
    u32 const hash = hash_of(block);
    if (!block || !is_sampled(hash)) return;
    auto const mine = word(place_of(hash));
    if (mine.load(order::relaxed) >> 20 == reinterpret_cast<u64>(block) >> 4) mine.store(0, order::relaxed);
  }

  /// By value: an address of the log would cost each malloc its stores to local memory.
  WARPHEAP_COLD static void refuse(profile_log self, u64 bytes, source_site site) {
    aggregated_fetch_add(simt::active_mask(), self.words_[log2_floor(bytes)]);
    // relaxed, both: one thread writes (profile.P2).
    if (self.first(first_word::is_claimed).load(order::relaxed) != 0) return;
    if (self.first(first_word::is_claimed).exchange(1, order::relaxed) != 0) return;
    self.first(first_word::bytes).store(bytes, order::relaxed);
    self.first(first_word::file).store(reinterpret_cast<u64>(site.file), order::relaxed);
    self.first(first_word::line).store(site.line, order::relaxed);
    self.first(first_word::place).store(u64{simt::block_index()} << 32 | simt::thread_index(), order::relaxed);
    // release: the words come first; pairs with the acquire in tell_profile.
    self.first(first_word::is_told).store(1, order::release);
    // release: as above, for a host that then launches tell_profile.
    atomic_ref<u64, scope::system>{*self.host_}.store(1, order::release);
  }

  u64* words_ = nullptr;
  u64* host_ = nullptr;
};

}}  // namespace warpheap::WARPHEAP_BACKEND
