// SPDX-License-Identifier: Apache-2.0
// The kernels that most checks are made of. Each serves a list of any length with a grid of any
// shape: thread t takes the entries t, t + threads, …, so that lanes leave the loop at different
// times and call the heap divergently.
#pragma once

#include "holding.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace conformance {

WARPHEAP_DEVICE inline u64 grid_threads() { return static_cast<u64>(simt::grid_dim()) * simt::block_dim(); }

/// Asks once for every entry.
struct allocate_each {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, holding* list, u64 count) const {
    for (u64 i = global_thread_index(); i < count; i += grid_threads())
      list[i].address = reinterpret_cast<u64>(heap.malloc(list[i].bytes));
  }
};

/// Frees every entry, `shift` places away from the thread that asked for it.
struct free_each {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, holding const* list, u64 count, u64 shift) const {
    for (u64 i = global_thread_index(); i < count; i += grid_threads()) heap.free(list[(i + shift) % count].memory());
  }
};

/// Asks for random sizes in [least, most] until a call finds no memory, in every thread. `served`
/// counts the blocks, also those beyond `capacity`, which are lost.
struct fill_until_null {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 least, u64 most, u64 seed, holding* list, u64 capacity,
                                  u64* served) const {
    random_sequence random{seed + global_thread_index()};
    for (;;) {
      u64 const bytes = least + random.next() % (most - least + 1);
      void* const memory = heap.malloc(bytes);
      if (!memory) return;
      u64 const place = atomic_ref<u64>{*served}.fetch_add(1, order::relaxed);
      if (place >= capacity) return;
      list[place] = {reinterpret_cast<u64>(memory), bytes};
    }
  }
};

/// Writes to every entry the pattern of its place in the list plus `salt`, `lanes` threads a block.
struct write_each {
  WARPHEAP_DEVICE void operator()(holding const* list, u64 count, u64 salt, u64 lanes) const {
    for (u64 i = global_thread_index(); i < count * lanes; i += grid_threads())
      if (list[i / lanes].address) write_pattern(list[i / lanes], salt + i / lanes, {i % lanes, lanes});
  }
};

/// Counts the stripes in which another pattern is found, each looked at by another thread than the
/// one that wrote it.
struct verify_each {
  WARPHEAP_DEVICE void operator()(holding const* list, u64 count, u64 salt, u64 lanes, u64* damaged) const {
    for (u64 i = global_thread_index(); i < count * lanes; i += grid_threads()) {
      u64 const entry = (i / lanes + count / 2 + 1) % count;
      if (list[entry].address && !holds_pattern(list[entry], salt + entry, {i % lanes, lanes}))
        atomic_ref<u64>{*damaged}.fetch_add(1, order::relaxed);
    }
  }
};

/// What the heap says of every entry's address.
struct answer {
  u64 usable = 0;
  u64 owned = 0;
};

struct query_each {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, holding const* list, u64 count, answer* answers) const {
    for (u64 i = global_thread_index(); i < count; i += grid_threads()) {
      if constexpr (requires { heap.usable_size(list[i].memory()); })
        answers[i].usable = heap.usable_size(list[i].memory());
      if constexpr (requires { heap.owns(list[i].memory()); }) answers[i].owned = heap.owns(list[i].memory());
    }
  }
};

/// The device's own count of the slots for `bytes`.
struct count_slots {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 bytes, u64* slots) const {
    if (global_thread_index() == 0) *slots = heap.available_slots(bytes);
  }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::conformance
