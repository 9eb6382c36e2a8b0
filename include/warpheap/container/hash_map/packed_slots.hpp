// SPDX-License-Identifier: Apache-2.0
// Slots that hold a key and a value of at most 32 bits each: one word, one compare-exchange.
//
//    63      32 31       0
//   |  value   |   key    |   an entry; key is not 0
//   |   key    |    0     |   erased
//   |    0     |    0     |   empty
//
// So every value is legal, and every key but 0, which has a slot of its own, where it is called 1.
// Nothing but the word is read by its means, so all orders are relaxed.
#pragma once

#include "levels.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace map_parts {

/// Whether objects of T are alike where their bits are.
template <class T>
concept compared_by_bits = __is_trivially_copyable(T) && __has_unique_object_representations(T);

template <class K, class V, class Parts>
struct packed_slots {
  static constexpr bool in_blocks = false;
  static constexpr order publishes = order::relaxed, observes = order::relaxed;

  /// What is looked for.
  struct sought {
    u32 key;
    bool is_alone;  ///< in a slot of its own

    WARPHEAP_DEVICE explicit sought(K const& of) : key{bits_of(of)}, is_alone{key == 0} {
      if (is_alone) key = 1;
    }
    WARPHEAP_DEVICE key_place place() const {
      u32 const hash = mix32(key);
      return {hash, hash * 0x9e37'79b9u};
    }
  };

  /// An entry's word; never refused.
  template <class Heap>
  WARPHEAP_DEVICE static u64 make(Heap const&, sought wanted, K const&, V const& value) {
    return with_value(wanted.key, value);
  }
  template <class Heap>
  WARPHEAP_DEVICE static void discard(Heap const&, u64) {}
  WARPHEAP_DEVICE static void put_before(u64, u64) {}

  /// Whether `word`, which is not 0, is of that key, erased or not.
  WARPHEAP_DEVICE static bool holds(u64&, u64& word, sought wanted) {
    return static_cast<u32>(word) == wanted.key || word == u64{wanted.key} << 32;
  }
  WARPHEAP_DEVICE static bool is_entry(u64 word) { return static_cast<u32>(word) != 0; }
  WARPHEAP_DEVICE static u64 erased(u64 word) { return Parts::keeps_erased_keys ? word << 32 : 0; }
  WARPHEAP_DEVICE static u64 with_value(u64 word, V const& value) {
    return u64{bits_of(value)} << 32 | static_cast<u32>(word);
  }

  /// What `word`, which is not 0 nor in the slot of its own, is of.
  WARPHEAP_DEVICE static sought sought_of(u64 word) {
    return sought{object_of<K>(static_cast<u32>(is_entry(word) ? word : word >> 32))};
  }

  // Of an entry:
  WARPHEAP_DEVICE static V value(u64 word) { return object_of<V>(static_cast<u32>(word >> 32)); }
  template <class Visit>
  WARPHEAP_DEVICE static void visit(u64 word, bool is_alone, Visit& visit) {
    visit(object_of<K>(is_alone ? 0 : static_cast<u32>(word)), value(word));
  }

 private:
  template <class T>
  WARPHEAP_DEVICE static u32 bits_of(T const& object) {
    u32 bits = 0;
    memcpy(&bits, &object, sizeof object);
    return bits;
  }
  template <class T>
  WARPHEAP_DEVICE static T object_of(u32 bits) {
    T object;
    memcpy(&object, &bits, sizeof object);
    return object;
  }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::map_parts
