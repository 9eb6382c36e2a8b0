// SPDX-License-Identifier: Apache-2.0
// The chunks of a throughput heap: TBuddy's blocks.
#pragma once

#include "../shared/bins/table.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace throughput_parts {

/// A supply of chunks: TBuddy's blocks of one order. TBuddy's handle lies among the table's words.
template <class Layout, class Buddy>
class buddy_chunks {
  static_assert(sizeof(Buddy) <= 64 && __is_trivially_copyable(Buddy));

 public:
  WARPHEAP_HOST_DEVICE explicit buddy_chunks(bins::far_table<Layout> const& table) : table_{table} {}

  WARPHEAP_DEVICE void* create_chunk() const { return buddy().create_kept(order()); }
  WARPHEAP_DEVICE void destroy_chunk(void* memory) const { buddy().destroy_kept(memory); }
  WARPHEAP_DEVICE u64 chunks_available() const { return buddy().available_slots(table_.chunk().bytes()); }

  /// Nothing to do: TBuddy initializes itself.
  WARPHEAP_DEVICE void open() const {}
  /// Stores the handle, before any other use of the supply.
  WARPHEAP_DEVICE void keep(Buddy const& buddy) const { *at() = buddy; }
  WARPHEAP_DEVICE Buddy buddy() const { return *at(); }

 private:
  WARPHEAP_DEVICE Buddy* at() const {
    return reinterpret_cast<Buddy*>(table_.words() + bins::far_place::supply_offset);
  }
  WARPHEAP_DEVICE u32 order() const { return table_.chunk().log2 - log2_floor(Buddy::traits.alignment); }

  bins::far_table<Layout> table_;
};

/// Kernel of one thread: gives a supply its handle.
struct keep_buddy {
  template <class Supply, class Buddy>
  WARPHEAP_DEVICE void operator()(Supply supply, Buddy buddy) const {
    supply.keep(buddy);
  }
};

/// Kernel of one thread: TBuddy was given pages before, and searches are to look again.
struct tell_of_pages {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap) const {
    heap.tell_of_pages();
  }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::throughput_parts
