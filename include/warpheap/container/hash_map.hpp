// SPDX-License-Identifier: Apache-2.0
// A hash map for any threads of any kernels at once, which grows while they use it.
//
// A table of fixed size must be sized before the kernel that fills it, and fails in the middle of
// the kernel if it is too small. This one then takes another level of slots from a heap, and moves
// nothing (hash_map/levels.hpp). At the right size, it works like an open-addressing table: most
// searches read 32 bytes once, and an insertion adds one compare-exchange. If the size was guessed
// a hundred times too small, it has seven more levels, and a search for a new key looks at all of
// them until the next compact().
//
//   keys and values          a slot holds
//   of at most 4 bytes each  both
//   larger                   the address of a block of the heap with both. Blocks of erased keys
//                            and of replaced values, which others may be reading, are freed by
//                            compact() and reserve()
//
// An erased key keeps its slot until compact() or reserve(). So a map in which new keys keep
// replacing old ones must be compacted now and then.
#pragma once

#include "container_heap.hpp"
#include "hash_map/block_slots.hpp"
#include "hash_map/levels.hpp"
#include "hash_map/packed_slots.hpp"
#include "hash_map/parts.hpp"
#include "hash_map/quiet_work.hpp"
#include "insert_result.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// What hash_map's inspect() counts.
struct hash_map_figures {
  u64 entries;   ///< keys with their values
  u64 erased;    ///< slots of keys that are not in the map
  u64 capacity;  ///< slots of all levels
  u32 levels;    ///< 1 after reserve() and compact(), 0 without memory
  bool refused;  ///< the last reserve(), compact() or clear() got no memory
};

namespace map_parts {

template <class K, class V, class Parts, bool Packed>
struct slot_format {
  using type = packed_slots<K, V, Parts>;
};
template <class K, class V, class Parts>
struct slot_format<K, V, Parts, false> {
  using type = block_slots<K, V, Parts>;
};

}  // namespace map_parts

/// Keys with one value each, in device memory. Zeroed memory is an empty map. Keys are equal if
/// their bits are.
///
/// Any threads may call its functions at the same time, diverged or not, except where a function
/// says otherwise. Only an insertion that needs a new level may wait for another thread, the one
/// that makes the level.
template <class K, class V, class Parts = map_parts::standard>
class hash_map {
  static_assert(map_parts::compared_by_bits<K>,
                "hash_map: keys are compared by their bits, so they have no padding and are no floats");
  static_assert(__is_trivially_copyable(V), "hash_map: values are bits that need no constructor");
  static_assert(alignof(K) <= 16 && alignof(V) <= 16, "hash_map: a heap's blocks are aligned to 16 bytes");
  // NOLINTNEXTLINE(bugprone-sizeof-expression): V may be a pointer
  static constexpr bool packed = sizeof(K) <= 4 && sizeof(V) <= 4;

  using format = typename map_parts::slot_format<K, V, Parts, packed>::type;
  using sought = typename format::sought;
  using levels = map_parts::levels<Parts>;
  friend map_parts::count_entries;
  friend map_parts::plan_levels;
  friend map_parts::move_entries;
  friend map_parts::drop_blocks;
  friend map_parts::drop_all;
  friend map_parts::forget_all;
  friend map_parts::adopt_levels;
  template <class Heap, class Map, class... Steps>
  friend WARPHEAP_DEVICE bool map_parts::take_alone(Heap const& upstream, Map* map, Steps... steps);
#if !defined(__CUDACC_RTC__)
  template <class Key, class Value, class Others>
  friend hash_map_figures inspect(hash_map<Key, Value, Others>* map, stream_view on);
#endif

 public:
  /// The type of keys.
  using key_type = K;
  /// The type of values.
  using mapped_type = V;

  /// Whether keys and values are in blocks of the heap.
  static constexpr bool in_blocks = format::in_blocks;

  /// Inserts a key that is not in the map. If several threads insert the same key, one of them
  /// succeeds.
  template <container_heap Heap>
  WARPHEAP_DEVICE insert_result insert(Heap const& upstream, K const& key, V const& value) {
    return put<false>(upstream, key, value);
  }

  /// Inserts the key, or replaces its value. In a map of blocks the old one's memory is freed by
  /// the next compact().
  template <container_heap Heap>
  WARPHEAP_DEVICE insert_result insert_or_assign(Heap const& upstream, K const& key, V const& value) {
    return put<true>(upstream, key, value);
  }

  /// Inserts the key with `initial`, or replaces its value v by change(v), in one step: `change`
  /// may be called several times.
  template <container_heap Heap, class Change>
  WARPHEAP_DEVICE insert_result insert_or_update(Heap const& upstream, K const& key, V const& initial,
                                                 Change change) requires(!in_blocks) {
    for (;;) {
      if (update(key, change)) return insert_result::exists;
      auto const done = insert(upstream, key, initial);
      if (done != insert_result::exists) return done;
    }
  }

  /// Replaces the key's value v by change(v), in one step, if the key is in the map; returns
  /// whether it is.
  template <class Change>
  WARPHEAP_DEVICE bool update(K const& key, Change change) requires(!in_blocks) {
    return replace(locate(sought{key}),
                   [&](u64 word) { return format::with_value(word, change(format::value(word))); });
  }

  /// Returns whether the key is in the map, and copies its value.
  WARPHEAP_DEVICE bool find(K const& key, V& value) const {
    auto const found = locate(sought{key});
    if (!found.is_entry()) return false;
    value = format::value(found.word);
    return true;
  }

  /// The key's value, or null. It does not move until the key is erased or assigned to and the map
  /// is then compacted. Threads that change it must use atomics, as on any shared memory.
  WARPHEAP_DEVICE V* find(K const& key) const requires in_blocks {
    auto const found = locate(sought{key});
    return found.is_entry() ? &format::value(found.word) : nullptr;
  }

  /// As find(key), but first inserts the key with `initial` if it is not in the map; null if the
  /// heap refused.
  template <container_heap Heap>
  WARPHEAP_DEVICE V* find_or_insert(Heap const& upstream, K const& key, V const& initial) requires in_blocks {
    for (;;) {
      if (V* const found = find(key)) return found;
      if (insert(upstream, key, initial) == insert_result::refused) return nullptr;
    }
  }

  /// Whether this call erased the key; false if it was not in the map.
  WARPHEAP_DEVICE bool erase(K const& key) {
    return replace(locate(sought{key}), [](u64 word) { return format::erased(word); });
  }

  /// Calls visit(key, value) for the entry of every `stride`th slot, from slot `first`; with 0 to
  /// stride - 1 as `first`, the calls visit all entries. In a map of blocks `value` is a reference,
  /// as from find(). An entry that is inserted or erased meanwhile may be visited or not.
  template <class Visit>
  WARPHEAP_DEVICE void for_each(u64 first, u64 stride, Visit visit) const {
    for_each_slot(first, stride, [&](u64& slot, u64 word) {
      if (word != 0 && format::is_entry(word)) format::visit(word, &slot == &alone_, visit);
    });
  }

  /// One thread, while no other uses the map. Makes room for `entries` entries, in one level that
  /// they half fill, and frees what compact() frees. False if the heap refused: the map is then
  /// unchanged.
  template <container_heap Heap>
  WARPHEAP_DEVICE bool reserve(Heap const& upstream, u64 entries) {
    using namespace map_parts;
    return take_alone(upstream, this, count_entries{}, plan_levels{entries}, move_entries{}, drop_blocks{},
                      adopt_levels{});
  }

  /// One thread, while no other uses the map. Frees all memory; the map is then empty.
  template <container_heap Heap>
  WARPHEAP_DEVICE void destroy(Heap const& upstream) {
    using namespace map_parts;
    take_alone(upstream, this, drop_all{}, forget_all{false}, adopt_levels{});
  }

  /// While no thread changes the map: how many of every `stride`th slot, from slot `first`, violate
  /// map.M2 or map.M3.
  WARPHEAP_DEVICE u64 misplaced_slots(u64 first, u64 stride) const {
    u64 count = 0;
    for_each_slot_of_levels(first, stride, [&](u64& slot, u64 word) {
      if (word == 0) return;
      auto const wanted = format::sought_of(word);
      entry found{};
      u32 i = 0;
      while (i < now_.count() && !now_[i].search(wanted.place(), now_.pairs(i), finder{wanted, found})) ++i;
      count += found.slot != &slot;
    });
    return count;
  }

 private:
  static constexpr u64 entries_of_sector = levels::sector_slots / 2;

  /// A slot and what it holds: a key's entry, or its erased one; or none.
  struct entry {
    u64* slot;
    u64 word;

    WARPHEAP_DEVICE bool is_entry() const { return slot && format::is_entry(word); }
  };

  /// Looks for a key in a window, until it is found or known to be absent.
  struct finder {
    sought const& wanted;
    entry& found;

    WARPHEAP_DEVICE bool operator()(u64& slot, u64 word) const {
      if (word == 0) return true;  // map.M2
      if (!format::holds(slot, word, wanted)) return false;
      found = {&slot, word};
      return true;
    }
  };

  /// An insertion under way.
  template <bool Assigns, class Heap>
  struct insertion {
    Heap const& upstream;
    sought const& wanted;
    K const& key;
    V const& value;
    u64 made = 0;  ///< the word that is to be in a slot
    insert_result result = insert_result::refused;

    /// Whether the slot, which held `seen`, decides the insertion.
    WARPHEAP_DEVICE bool operator()(u64& slot, u64 seen) {
      for (;;) {
        bool const is_ours = seen != 0 && format::holds(slot, seen, wanted);
        if (seen != 0 && !is_ours) return false;  // map.M1
        if (!wants_to_change(is_ours && format::is_entry(seen))) return true;
        format::put_before(made, seen);
        bool const done = atomic_ref<u64>{slot}.compare_exchange(seen, made, format::publishes, format::observes);
        if (done) made = 0;
        if (done || !Parts::minds_lost_races) return true;
      }
    }

    /// Whether the slot is to change, and there is a word for it.
    WARPHEAP_DEVICE bool wants_to_change(bool is_entry) {
      result = is_entry ? insert_result::exists : insert_result::inserted;
      if (is_entry && !Assigns) return false;
      if (made == 0) made = format::make(upstream, wanted, key, value);
      if (made == 0) result = insert_result::refused;
      return made != 0;
    }
  };

  template <bool Assigns, class Heap>
  WARPHEAP_DEVICE insert_result put(Heap const& upstream, K const& key, V const& value) {
    sought const wanted{key};
    insertion<Assigns, Heap> brought{upstream, wanted, key, value};
    auto const claim = [&](u64& slot, u64 seen) { return brought(slot, seen); };
    // relaxed: the slot of a key that has one of its own holds no address.
    if (wanted.is_alone) claim(alone_, atomic_ref<u64>{alone_}.load(order::relaxed));
    else if (!now_.search_and_grow(upstream, wanted.place(), claim)) brought.result = insert_result::refused;
    if (brought.made != 0) format::discard(upstream, brought.made);
    return brought.result;
  }

  /// The key's slot. Two sectors of the first level decide it nearly always, unless the map has
  /// grown: then most keys are in its newest levels.
  WARPHEAP_DEVICE entry locate(sought const& wanted) const {
    entry found{};
    if (wanted.is_alone) {
      auto& slot = const_cast<u64&>(alone_);
      finder{wanted, found}(slot, atomic_ref<u64>{slot}.load(order::relaxed));
      return found;
    }
    constexpr u32 some = Parts::planned_window < 2 ? 2 : 4;
    if (now_.has_first() && now_.first().search(wanted.place(), some, finder{wanted, found})) return found;
    return locate_in_all(&now_, wanted);
  }
  WARPHEAP_COLD static entry locate_in_all(levels const* all, sought wanted) {
    entry found{};
    WARPHEAP_NO_UNROLL
    for (u32 i = all->published(); i-- > 0 && !found.slot;)
      (*all)[i].search(wanted.place(), all->pairs(i), finder{wanted, found});
    return found;
  }

  /// Replaces the word of an entry by next(word), as long as it is one; whether it was.
  template <class Next>
  WARPHEAP_DEVICE static bool replace(entry at, Next next) {
    // The word that we lost to is of the same key, by map.M1.
    while (at.is_entry())
      if (atomic_ref<u64>{*at.slot}.compare_exchange(at.word, next(at.word), format::publishes, format::observes))
        return true;
    return false;
  }

  /// Calls visit(slot, word) for every `stride`th slot.
  template <class Visit>
  WARPHEAP_DEVICE void for_each_slot(u64 first, u64 stride, Visit visit) const {
    auto& slot = const_cast<u64&>(alone_);
    if (first == 0) visit(slot, atomic_ref<u64>{slot}.load(order::relaxed));
    for_each_slot_of_levels(first, stride, visit);
  }
  template <class Visit>
  WARPHEAP_DEVICE void for_each_slot_of_levels(u64 first, u64 stride, Visit visit) const {
    u32 const count = now_.published();
    for (u32 i = 0; i < count; ++i) {
      auto const level = now_[i];
      for (u64 at = first; at < u64{level.sectors} * levels::sector_slots; at += stride)
        visit(level.begin[at], atomic_ref<u64>{level.begin[at]}.load(format::observes));
    }
  }

  WARPHEAP_DEVICE void plan(u64 sectors) {
    next_ = {};
    if (sectors != 0) next_.plan(sectors);
    refused_ = 0;
    counted_ = {};
  }

  template <class Heap>
  WARPHEAP_DEVICE void drop([[maybe_unused]] Heap const& upstream, [[maybe_unused]] map_parts::share of,
                            [[maybe_unused]] bool keeps_entries) {
    if constexpr (in_blocks) {
      for_each_slot_of_levels(of.first, of.stride, [&](u64&, u64 word) {
        if (word != 0) format::drop(upstream, word, keeps_entries);
      });
    }
  }

  levels now_;
  levels next_;    ///< what the entries are being moved into, by the steps of quiet_work.hpp
  u64 alone_ = 0;  ///< the slot of the key that packed slots cannot hold
  map_parts::tally counted_{};
  u32 refused_ = 0;
};

#if !defined(__CUDACC_RTC__)

// The host's functions are for a map in device memory that no kernel uses meanwhile. They run in
// order on stream `on`. Only inspect() waits; the others may be captured in a CUDA graph.

/// Makes room for `entries` entries, in one level that they half fill, and frees what compact()
/// frees. If the heap refuses, the map is unchanged.
template <container_heap Heap, class K, class V, class Parts>
void reserve(Heap upstream, hash_map<K, V, Parts>* map, u64 entries, stream_view on = {}) {
  using namespace map_parts;
  take_together(upstream, map, on, count_entries{});
  take_by_one(upstream, map, on, plan_levels{entries});
  take_together(upstream, map, on, move_entries{});
  if constexpr (hash_map<K, V, Parts>::in_blocks) take_together(upstream, map, on, drop_blocks{});
  take_by_one(upstream, map, on, adopt_levels{});
}

/// Puts all entries into one level that they half fill, and frees the memory of erased keys and
/// replaced values. If the heap refuses, the map is unchanged.
template <container_heap Heap, class K, class V, class Parts>
void compact(Heap upstream, hash_map<K, V, Parts>* map, stream_view on = {}) {
  reserve(upstream, map, 0, on);
}

/// Erases all entries, and keeps the room for as many.
template <container_heap Heap, class K, class V, class Parts>
void clear(Heap upstream, hash_map<K, V, Parts>* map, stream_view on = {}) {
  using namespace map_parts;
  if constexpr (hash_map<K, V, Parts>::in_blocks) take_together(upstream, map, on, drop_all{});
  take_by_one(upstream, map, on, forget_all{true});
  take_together(upstream, map, on, move_entries{});
  take_by_one(upstream, map, on, adopt_levels{});
}

/// Frees all memory; the map is then empty.
template <container_heap Heap, class K, class V, class Parts>
void destroy(Heap upstream, hash_map<K, V, Parts>* map, stream_view on = {}) {
  using namespace map_parts;
  if constexpr (hash_map<K, V, Parts>::in_blocks) take_together(upstream, map, on, drop_all{});
  take_by_one(upstream, map, on, forget_all{false});
  take_by_one(upstream, map, on, adopt_levels{});
}

/// Counts what is in the map; waits for it.
template <class K, class V, class Parts>
hash_map_figures inspect(hash_map<K, V, Parts>* map, stream_view on = {}) {
  map_parts::take_together(nullptr, map, on, map_parts::count_entries{});
  synchronize(on);
  hash_map<K, V, Parts> seen;
  backend::copy_bytes(&seen, map, sizeof seen);
  backend::fill_bytes(&map->counted_, 0, sizeof seen.counted_, on);
  return {seen.counted_.entries, seen.counted_.erased, seen.now_.capacity(), seen.now_.count(), seen.refused_ != 0};
}

#endif

}}  // namespace warpheap::WARPHEAP_BACKEND
