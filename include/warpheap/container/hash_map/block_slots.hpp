// SPDX-License-Identifier: Apache-2.0
// Slots for keys and values of any size: a word names a block of the heap with both.
//
//    63 62       53 52                     0
//   |E|    tag     |  block's address / 16  |   E: erased; 0: empty
//
// Addresses have up to 57 bits, the most that GPUs and processors translate. The tag is a part of
// the key's hash: one look at another key's block in 1,024.
//
// A block is freed while no thread uses the map, and not before, because others may be reading it.
// So a key that comes back after it was erased, or is given another value, gets a new block, which
// keeps the former one: `former` leads to all that the key has had.
//
//   map.M7  a published block's key and `former` never change. Its value is written by the callers
//       of find() alone.
//   map.M8  from a map's slots each of its blocks is reached once, by a word and then by `former`.
#pragma once

#include "../../heap/generic_calls.hpp"
#include "../../platform/assert.hpp"
#include "levels.hpp"
#include "packed_slots.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace map_parts {

template <class K, class V, class Parts>
struct block_slots {
  static constexpr bool in_blocks = true;
  // A thread that sees the word reads the block: publishing releases it. What a lost race shows is
  // read as well, so it acquires; a GPU's compare-exchange has one order for both.
  static constexpr order publishes = Parts::releases ? order::acq_rel : order::acquire, observes = order::acquire;

  /// Its address is a multiple of 16 also where a heap aligns just multiples of 16 so.
  struct alignas(16) block {
    block* former;
    K key;
    V value;
  };

  /// What is looked for.
  struct sought {
    K key;
    u64 hash;
    static constexpr bool is_alone = false;

    WARPHEAP_DEVICE explicit sought(K const& of) : key{of}, hash{hash_of(of)} {}
    WARPHEAP_DEVICE key_place place() const { return {static_cast<u32>(hash >> 32), static_cast<u32>(hash)}; }
  };

  /// The word of a new block, which no other thread sees; 0 if the heap refused it.
  template <class Heap>
  WARPHEAP_DEVICE static u64 make(Heap const& heap, sought const& wanted, K const& key, V const& value) {
    static_assert(detail::malloc_aligns<Heap, 16>, "hash_map: the heap aligns no block to 16 bytes");
    auto* const made = static_cast<block*>(heap.malloc(sizeof(block)));
    if (!made) return 0;
    *made = {nullptr, key, value};
    u64 const address = reinterpret_cast<u64>(made);
    WARPHEAP_ASSERT(address % 16 == 0 && address >> 57 == 0, "hash_map: a block's address is not aligned, or too high");
    return (wanted.hash & 1023) << 53 | address >> 4;
  }
  /// Frees a block that no other thread has seen.
  template <class Heap>
  WARPHEAP_DEVICE static void discard(Heap const& heap, u64 word) {
    heap.free(block_of(word));
  }
  /// `made`, which no other thread sees, is to replace `seen`.
  WARPHEAP_DEVICE static void put_before(u64 made, u64 seen) {
    block_of(made)->former = seen ? block_of(seen) : nullptr;
  }

  /// Whether `word`, which is not 0, is of that key, erased or not. Then it is what the slot holds
  /// now, and its block may be read.
  WARPHEAP_DEVICE static bool holds(u64& slot, u64& word, sought const& wanted) {
    if (((word >> 53 ^ wanted.hash) & 1023) != 0) return false;
    // acquire: the block; pairs with the release of `publishes`.
    word = atomic_ref<u64>{slot}.load(order::acquire);
    return has_same_bits(block_of(word)->key, wanted.key);
  }
  WARPHEAP_DEVICE static bool is_entry(u64 word) { return word >> 63 == 0; }
  WARPHEAP_DEVICE static u64 erased(u64 word) { return Parts::keeps_erased_keys ? word | u64{1} << 63 : 0; }

  // Of a word whose block may be read:
  WARPHEAP_DEVICE static sought sought_of(u64 word) { return sought{block_of(word)->key}; }
  WARPHEAP_DEVICE static V& value(u64 word) { return block_of(word)->value; }
  template <class Visit>
  WARPHEAP_DEVICE static void visit(u64 word, bool, Visit& visit) {
    visit(static_cast<K const&>(block_of(word)->key), value(word));
  }

  /// Frees the blocks that a slot leads to, but for that of an entry if it `keeps` that. No other
  /// thread uses the map.
  template <class Heap>
  WARPHEAP_DEVICE static void drop(Heap const& heap, u64 word, bool keeps) {
    block* of = block_of(word);
    if (keeps && is_entry(word)) {
      block* const kept = of;
      of = kept->former;
      kept->former = nullptr;
    }
    while (of) {
      block* const former = of->former;
      Parts::drop(heap, of->value);
      heap.free(of);
      of = former;
    }
  }

 private:
  WARPHEAP_DEVICE static block* block_of(u64 word) { return reinterpret_cast<block*>((word & low_mask(53)) << 4); }

  WARPHEAP_DEVICE static u64 hash_of(K const& key) {
    u64 hash = sizeof(K);
    for (u32 i = 0; i < sizeof(K); i += 8) hash = mix(hash ^ word_of(key, i));
    return hash;
  }
  WARPHEAP_DEVICE static bool has_same_bits(K const& left, K const& right) {
    bool same = true;
    for (u32 i = 0; i < sizeof(K); i += 8) same = same && word_of(left, i) == word_of(right, i);
    return same;
  }
  /// The bytes from `begin`, as many as a word has.
  WARPHEAP_DEVICE static u64 word_of(K const& key, u32 begin) {
    u64 word = 0;
    memcpy(&word, reinterpret_cast<u8 const*>(&key) + begin, sizeof(K) - begin < 8 ? sizeof(K) - begin : 8);
    return word;
  }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::map_parts
