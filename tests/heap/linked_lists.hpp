// SPDX-License-Identifier: Apache-2.0
// Lists in a heap, which tests save, spoil and restore: a table of lists, one for each thread of
// the kernels here.
#pragma once

#include "warpheap/platform/device_buffer.hpp"

namespace warpheap::test {

struct list_node {
  list_node* next;
  u64 value;
};

inline constexpr u32 list_count = 64, list_length = 5;
struct list_table {
  list_node* first[list_count];
};
/// Blocks of a whole table.
inline constexpr u64 blocks_of_lists = list_count * list_length + 1;

/// What node `position` of list `list` holds.
WARPHEAP_HOST_DEVICE constexpr u64 list_value(u32 list, u32 position) { return 1000 * list + position; }

/// Kernel, one thread.
struct make_table {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, list_table** made) const {
    *made = static_cast<list_table*>(heap.malloc(sizeof(list_table)));
  }
};

struct build_list {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, list_table* table) const {
    u32 const me = static_cast<u32>(global_thread_index());
    list_node* first = nullptr;
    for (u32 i = list_length; i-- > 0;) {
      auto* const node = static_cast<list_node*>(heap.malloc(sizeof(list_node)));
      if (!node) break;
      *node = {first, list_value(me, i)};
      first = node;
    }
    table->first[me] = first;
  }
};

/// Frees two nodes of each list, overwrites the others, and adds some.
struct spoil_list {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, list_table* table) const {
    list_node*& first = table->first[global_thread_index()];
    for (u32 i = 0; i < 2; ++i) {
      auto* const node = first;
      first = node->next;
      heap.free(node);
    }
    for (auto* node = first; node; node = node->next) node->value = ~u64{0};
    for (u32 i = 0; i < 9; ++i) {
      auto* const node = static_cast<list_node*>(heap.malloc(sizeof(list_node)));
      if (!node) break;
      *node = {first, 7};
      first = node;
    }
  }
};

struct free_list {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, list_table* table) const {
    for (auto* node = table->first[global_thread_index()]; node;) {
      auto* const next = node->next;
      heap.free(node);
      node = next;
    }
  }
};

/// Counts the lists that are not as build_list made them.
struct count_spoilt {
  WARPHEAP_DEVICE void operator()(list_table const* table, u64* spoilt) const {
    u32 const me = static_cast<u32>(global_thread_index());
    u32 right = 0;
    list_node const* node = table->first[me];
    for (; node && right < list_length && node->value == list_value(me, right); node = node->next) ++right;
    if (node || right != list_length) atomic_ref<u64>{*spoilt}.fetch_add(1, order::relaxed);
  }
};

inline constexpr launch_shape of_lists{2, list_count / 2};

template <class Kernel, class... Arguments>
void run(launch_shape shape, Kernel kernel, Arguments... arguments) {
  launch(shape, kernel, arguments...);
  synchronize();
}

template <class Heap>
list_table* build_lists(Heap const& heap) {
  device_buffer<list_table*> const made(1);
  run({1, 1}, make_table{}, heap.ref(), made.data());
  run(of_lists, build_list{}, heap.ref(), made[0]);
  return made[0];
}

template <class Heap>
void spoil_lists(Heap const& heap, list_table* table) {
  run(of_lists, spoil_list{}, heap.ref(), table);
}

template <class Heap>
void free_lists(Heap const& heap, list_table* table) {
  run(of_lists, free_list{}, heap.ref(), table);
}

/// Lists that are not as build_lists() made them.
inline u64 spoilt_lists(list_table const* table) {
  device_buffer<u64> const spoilt(1);
  run(of_lists, count_spoilt{}, table, spoilt.data());
  return spoilt[0];
}

}  // namespace warpheap::test
