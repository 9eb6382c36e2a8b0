// SPDX-License-Identifier: Apache-2.0
// A hash map from keys to lists of values, for any threads of any kernels at once: edges by vertex,
// matches by join key.
//
// Each key has an entry in a hash_map with the head of a list, onto which a compare-exchange pushes
// the values. Each value takes its own block: 16 bytes for a value of at most 8.
//
//   multimap.L1  a list only grows while threads use the map; a link never changes once others see
//       it. So a walk needs no protection.
//   multimap.L2  erasing a key erases its entry, with the list; the next value of that key begins a
//       new one. What was pushed onto the old list at that moment is erased with it.
//   multimap.L3  the map's blocks own the lists: a list is freed with the block (map.M8).
#pragma once

#include "hash_map.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

namespace map_parts {

/// One value of a list.
template <class V>
struct link {
  link* next;
  V value;
};

/// A map whose values are heads of lists, which it frees with them.
template <class V, class Parts>
struct of_lists : Parts {
  template <class Heap>
  WARPHEAP_DEVICE static void drop(Heap const& upstream, link<V>*& first) {
    for (auto* each = first; each;) {
      auto* const next = each->next;
      upstream.free(each);
      each = next;
    }
  }
};

}  // namespace map_parts

/// Keys with any number of values each, in no order, in device memory. Zeroed memory is an empty
/// map. Any threads may call its functions at the same time.
///
/// This is a hash_map whose values are lists. So erase(key) erases all values of a key, and the
/// functions for the whole map, reserve(), compact(), clear(), destroy() and inspect(), count keys.
template <class K, class V, class Parts = map_parts::standard>
class hash_multimap : public hash_map<K, map_parts::link<V>*, map_parts::of_lists<V, Parts>> {
  static_assert(__is_trivially_copyable(V), "hash_multimap: values are bits that need no constructor");
  static_assert(alignof(V) <= 16, "hash_multimap: a heap's blocks are aligned to 16 bytes");

  using link = map_parts::link<V>;
  using base = hash_map<K, link*, map_parts::of_lists<V, Parts>>;
  using base::find;
  using base::find_or_insert;
  using base::insert_or_assign;

 public:
  /// The type of the lists' values.
  using mapped_type = V;

  /// Adds a value to the key's. False if the heap refused; the map is then unchanged.
  template <container_heap Heap>
  WARPHEAP_DEVICE bool insert(Heap const& upstream, K const& key, V const& value) {
    auto* const made = static_cast<link*>(upstream.malloc(sizeof(link)));
    if (!made) return false;
    link** const list = find_or_insert(upstream, key, nullptr);
    if (!list) {
      upstream.free(made);
      return false;
    }
    atomic_ref<link*> const first{*list};
    // relaxed: we do not read what it leads to.
    link* seen = first.load(order::relaxed);
    // multimap.L1. release: the link; pairs with the acquire in walk(), which acquires earlier
    // exchanges of this word with the one that it sees.
    backoff pause;
    for (*made = {seen, value}; !first.compare_exchange(seen, made, order::release, order::relaxed); made->next = seen)
      pause.after_race();
    return true;
  }

  /// Calls visit(value) for all values of a key, the last first. Returns how many there were.
  template <class Visit>
  WARPHEAP_DEVICE u64 for_each(K const& key, Visit visit) const {
    link** const list = find(key);
    return list ? walk(*list, visit) : 0;
  }

  /// How many values the key has; walks their list.
  WARPHEAP_DEVICE u64 count(K const& key) const {
    return for_each(key, [](V const&) {});
  }

  /// Calls visit(key, value) for the values of the keys in every `stride`th slot, from slot
  /// `first`; with 0 to stride - 1 as `first`, the calls visit all values.
  template <class Visit>
  WARPHEAP_DEVICE void for_each(u64 first, u64 stride, Visit visit) const {
    base::for_each(first, stride,
                   [&](K const& key, link*& list) { walk(list, [&](V const& value) { visit(key, value); }); });
  }

 private:
  template <class Visit>
  WARPHEAP_DEVICE static u64 walk(link*& list, Visit visit) {
    u64 count = 0;
    // acquire: the values; pairs with the release in insert().
    for (link const* each = atomic_ref<link*>{list}.load(order::acquire); each; each = each->next, ++count)
      visit(each->value);
    return count;
  }
};

}}  // namespace warpheap::WARPHEAP_BACKEND
