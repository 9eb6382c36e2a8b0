// SPDX-License-Identifier: Apache-2.0
// What changes a hash map as a whole, while no thread uses it: other levels for its entries, memory
// given back. Each step may be shared by all threads of a kernel, and they follow each other as
// kernels of one stream; or one thread takes them all.
//
//   rehash   count_entries  plan_levels   move_entries  drop_blocks  adopt_levels
//   clear    drop_all       forget_all    move_entries               adopt_levels
//   destroy  drop_all       forget_all                               adopt_levels
//
// Entries are moved into levels beside those that there are. If the heap refuses one of these, they
// are given back, and the map is as before.
#pragma once

#include "levels.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace map_parts {

/// Which part of the slots a thread looks at: first, first + stride, ...
struct share {
  u64 first, stride;
};

/// The members of a map that only these steps use; zero between two of them.
struct tally {
  u64 entries, erased;
};

struct count_entries {
  template <class Heap, class Map>
  WARPHEAP_DEVICE void operator()(Heap const&, Map* map, share of) const {
    tally mine{};
    map->for_each_slot(of.first, of.stride, [&](u64&, u64 word) {
      if (word != 0) ++(Map::format::is_entry(word) ? mine.entries : mine.erased);
    });
    // relaxed: read in a later step.
    if (mine.entries) atomic_ref<u64>{map->counted_.entries}.fetch_add(mine.entries, order::relaxed);
    if (mine.erased) atomic_ref<u64>{map->counted_.erased}.fetch_add(mine.erased, order::relaxed);
  }
};

/// One thread. Plans levels for `entries` entries, or for those that there are.
struct plan_levels {
  u64 entries;

  template <class Heap, class Map>
  WARPHEAP_DEVICE void operator()(Heap const&, Map* map, share) const {
    u64 const wanted = map->counted_.entries > entries ? map->counted_.entries : entries;
    map->plan(div_ceil(wanted, Map::entries_of_sector));
  }
};

struct move_entries {
  template <class Heap, class Map>
  WARPHEAP_DEVICE void operator()(Heap const& heap, Map* map, share of) const {
    using format = typename Map::format;
    auto& next = map->next_;
    if (!next.is_planned()) return;
    bool refused = !Map::levels::make(heap, &next, 0);
    map->for_each_slot_of_levels(of.first, of.stride, [&](u64&, u64 word) {
      if (word == 0 || !format::is_entry(word) || refused) return;
      refused = !next.search_and_grow(heap, format::sought_of(word).place(), [&](u64& slot, u64 seen) {
        // relaxed: read in a later step.
        return seen == 0 && atomic_ref<u64>{slot}.compare_exchange(seen, word, order::relaxed, order::relaxed);
      });
    });
    if (refused) atomic_ref<u32>{map->refused_}.store(1, order::relaxed);
  }
};

/// Frees the blocks of keys that were erased, and of values that were replaced.
struct drop_blocks {
  template <class Heap, class Map>
  WARPHEAP_DEVICE void operator()(Heap const& heap, Map* map, share of) const {
    if (!map->refused_) map->drop(heap, of, true);
  }
};

struct drop_all {
  template <class Heap, class Map>
  WARPHEAP_DEVICE void operator()(Heap const& heap, Map* map, share of) const {
    map->drop(heap, of, false);
  }
};

/// One thread. The map is empty, and plans for as many entries as it had room for if it `stays`.
struct forget_all {
  bool stays;

  template <class Heap, class Map>
  WARPHEAP_DEVICE void operator()(Heap const& heap, Map* map, share) const {
    u64 const sectors = map->now_.sectors();
    map->now_.destroy(heap);
    map->alone_ = 0;
    map->plan(stays ? sectors : 0);
  }
};

/// One thread.
struct adopt_levels {
  template <class Heap, class Map>
  WARPHEAP_DEVICE void operator()(Heap const& heap, Map* map, share) const {
    (map->refused_ ? map->next_ : map->now_).destroy(heap);
    if (map->refused_) return;
    map->now_ = map->next_;
    map->now_.keep_first();
    map->next_ = {};
    if (!Map::format::is_entry(map->alone_)) map->alone_ = 0;
  }
};

/// One thread takes the steps.
template <class Heap, class Map, class... Steps>
WARPHEAP_DEVICE bool take_alone(Heap const& heap, Map* map, Steps... steps) {
  (steps(heap, map, share{0, 1}), ...);
  return !map->refused_;
}

#if !defined(__CUDACC_RTC__)

struct take_share {
  template <class Step, class Heap, class Map>
  WARPHEAP_DEVICE void operator()(Step step, Heap heap, Map* map) const {
    step(heap, map, share{global_thread_index(), u64{simt::grid_dim()} * simt::block_dim()});
  }
};

template <class Heap, class Map, class Step>
void take_together(Heap heap, Map* map, stream_view on, Step step) {
  launch(on, {backend::multiprocessors(), 256}, take_share{}, step, heap, map);
}
template <class Heap, class Map, class Step>
void take_by_one(Heap heap, Map* map, stream_view on, Step step) {
  launch(on, {1, 1}, take_share{}, step, heap, map);
}

#endif

}}}  // namespace warpheap::WARPHEAP_BACKEND::map_parts
