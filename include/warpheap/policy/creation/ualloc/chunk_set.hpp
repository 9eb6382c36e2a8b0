// SPDX-License-Identifier: Apache-2.0
// The chunks of a pool that has nothing else: a count and a bit a chunk. It is exact and takes a
// few instructions. All chunks have one size, so a buddy system over them would add nothing.
//
//   words    available     chunks that may be taken
//            taken         a bit a chunk, 64 to a word
//
//   ualloc.T1  available is lowered before a bit is set, and raised after it is cleared: a thread
//       that lowered it finds a clear bit.
//   ualloc.T2  at rest, available is the number of clear bits that stand for chunks.
#pragma once

#include "../../../util/random.hpp"
#include "../shared/bins/table.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace ualloc_parts {

/// Serves the chunks of a table's pool; its words lie behind the table's.
template <class Layout>
class chunk_set {
 public:
  chunk_set() = default;
  WARPHEAP_HOST_DEVICE explicit chunk_set(bins::far_table<Layout> const& table) : table_{table} {}

  WARPHEAP_HOST_DEVICE static u64 words_bytes(u32 chunks) { return 8 * (1 + (u64{chunks} + 63) / 64); }

  /// A chunk; nullptr if at one instant all were taken. Any lane alone.
  WARPHEAP_DEVICE void* create_chunk() const {
    // relaxed: a chunk whose return happened before this call is found.
    u64 left = available().load(order::relaxed);
    do {
      if (left == 0) return nullptr;
      // acquire: the bits that were cleared before the count was raised (ualloc.T1); pairs with the
      // release in destroy_chunk().
    } while (!available().compare_exchange(left, left - 1, order::acquire, order::relaxed));
    u32 const words = (table_.chunks() + 63) / 64;
    u32 word = scale_below(mix32(simt::sm_id() + 1), words);
    for (backoff nap;; word = word + 1 < words ? word + 1 : 0) {
      u64 const free = ~taken(word).load(order::relaxed) & valid(word);
      u64 const chosen = free & (0 - free);
      // acquire: what was done to the chunk; pairs with the release in destroy_chunk().
      if (chosen != 0 && (taken(word).fetch_or(chosen, order::acquire) & chosen) == 0)
        return table_.chunk_address(word * 64 + lowest_bit(chosen));
      // ualloc.T1: some bit is clear. We have not seen it yet, or another thread took the one that
      // we chose.
      if (chosen == 0) nap.while_working();
      else nap.after_race();
    }
  }

  WARPHEAP_DEVICE void destroy_chunk(void* memory) const {
    u32 const chunk = table_.chunk_at(memory);
    // release: what was done to the chunk; pairs with the acquire in create_chunk().
    taken(chunk / 64).fetch_and(~(u64{1} << chunk % 64), order::release);
    // release: the clear bit (ualloc.T1); pairs with the acquire in create_chunk().
    available().fetch_add(1, order::release);
  }

  /// Makes every chunk of a zeroed set available. One lane, before any other use.
  WARPHEAP_DEVICE void open() const { available().store(table_.chunks(), order::relaxed); }

  WARPHEAP_DEVICE u64 chunks_available() const { return available().load(order::relaxed); }

  /// Bits of word `word` that stand for chunks.
  WARPHEAP_DEVICE u64 valid(u32 word) const {
    u32 const left = table_.chunks() - word * 64;
    return low_mask(left < 64 ? left : 64);
  }

 private:
  WARPHEAP_DEVICE u64* words() const { return reinterpret_cast<u64*>(table_.words() + table_.words_bytes()); }
  WARPHEAP_DEVICE atomic_ref<u64> available() const { return atomic_ref<u64>{words()[0]}; }
  WARPHEAP_DEVICE atomic_ref<u64> taken(u32 word) const { return atomic_ref<u64>{words()[1 + word]}; }

  bins::far_table<Layout> table_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::ualloc_parts
