// SPDX-License-Identifier: Apache-2.0
// The output of a join: pages, each a block of a heap, in a chain for every warp that probes, or
// every lane. Its first page is taken with the first match, and another when one is full. So one
// pass writes a result whose size is not known beforehand.
//
//   page   | link to the page taken before, u64 | keys | build payloads | probe payloads |
//                                                 u32 each, `slots` of them
//
// join.O1  Of a chain's pages only the head, which was taken last, may have free slots: those from
//     chain.used on.
// join.O2  A page belongs to the warp or lane that took it until the kernel ends; then any thread
//     may read or free it.
#pragma once

#include "tables.hpp"
#include "warpheap/util/bits.hpp"
#include "workloads/join/tuple.hpp"

namespace warpheap::tool::join { inline namespace WARPHEAP_BACKEND {

WARPHEAP_HOST_DEVICE constexpr u32 slots_of(u64 page_bytes) {
  return static_cast<u32>((page_bytes - join_page_header_bytes) / join_tuple_bytes);
}

/// One page; null where there is none.
struct page {
  u8* memory;
  u32 slots;

  WARPHEAP_DEVICE explicit operator bool() const { return memory != nullptr; }
  WARPHEAP_DEVICE u64& link() const { return *reinterpret_cast<u64*>(memory); }
  WARPHEAP_DEVICE u32& key(u32 slot) const { return word(slot); }
  WARPHEAP_DEVICE u32& build(u32 slot) const { return word(slots + slot); }
  WARPHEAP_DEVICE u32& probe(u32 slot) const { return word(2 * slots + slot); }
  WARPHEAP_DEVICE page before() const { return {reinterpret_cast<u8*>(link()), slots}; }

 private:
  WARPHEAP_DEVICE u32& word(u32 index) const { return reinterpret_cast<u32*>(memory + join_page_header_bytes)[index]; }
};

/// The pages of one warp, or of one lane.
struct chain {
  u64 head;  ///< address of the page taken last
  u32 pages;
  u32 used;  ///< slots of the head
};

/// The memory of a page; nullptr, counted, if there is none. A call that is not inlined, so that
/// malloc's registers are not added to those of the loop that probes.
template <class Heap>
WARPHEAP_COLD u8* page_memory(Heap heap, u64 bytes, u64* failures) {
  auto* const memory = static_cast<u8*>(heap.malloc(bytes));
  // relaxed: read after the kernel
  if (!memory) atomic_ref<u64>{*failures}.fetch_add(1, order::relaxed);
  return memory;
}

/// A chain while it grows.
class growing_chain {
 public:
  WARPHEAP_DEVICE explicit growing_chain(u64 page_bytes)
      : bytes_{page_bytes}, here_{nullptr, slots_of(page_bytes)}, used_{here_.slots} {}

  WARPHEAP_DEVICE u32 room() const { return here_.slots - used_; }

  /// A page's memory, linked to the chain; null if there is none.
  template <class Heap>
  WARPHEAP_DEVICE u8* new_page(Heap heap, u64* failures) const {
    u8* const memory = page_memory(heap, bytes_, failures);
    if (memory) page{memory, here_.slots}.link() = reinterpret_cast<u64>(here_.memory);
    return memory;
  }
  /// Puts the page at the head. join.O1: the page before is full.
  WARPHEAP_DEVICE void add_page(u8* memory) {
    here_.memory = memory;
    used_ = 0;
    ++pages_;
  }

  /// Writes a tuple to the `ahead`-th slot that is free.
  WARPHEAP_DEVICE void put(u32 ahead, u32 key, u32 build, u32 probe) const {
    u32 const slot = used_ + ahead;
    here_.key(slot) = key;
    here_.build(slot) = build;
    here_.probe(slot) = probe;
  }
  /// Marks the next `slots` free slots as used.
  WARPHEAP_DEVICE void use(u32 slots) { used_ += slots; }

  WARPHEAP_DEVICE chain written() const { return {reinterpret_cast<u64>(here_.memory), pages_, here_ ? used_ : 0}; }

 private:
  u64 bytes_;
  page here_;
  u32 used_;
  u32 pages_ = 0;
};

/// Writes what a warp's lanes found to one chain, whose pages lane 0 takes. All lanes hold the same
/// state, and all call write(). It is given the lanes that have a tuple, and returns false if there
/// was no page for one of them.
class warp_writer {
 public:
  static constexpr u32 lanes_a_chain = warp_lanes;

  WARPHEAP_DEVICE explicit warp_writer(u64 page_bytes) : chain_{page_bytes} {}

  template <class Heap>
  WARPHEAP_DEVICE bool write(Heap heap, u64* failures, u32 writers, u32 key, u32 build, u32 probe) {
    u32 const all = popcount(writers), rank = popcount(writers & simt::lanes_below());
    bool const writes = writers >> simt::lane_id() & 1;
    for (u32 done = 0; done < all;) {
      if (chain_.room() == 0 && !take_page(heap, failures)) return false;
      u32 const room = chain_.room(), now = room < all - done ? room : all - done;
      if (writes && rank >= done && rank < done + now) chain_.put(rank - done, key, build, probe);
      chain_.use(now);
      done += now;
    }
    return true;
  }

  WARPHEAP_DEVICE chain written() const { return chain_.written(); }

 private:
  template <class Heap>
  WARPHEAP_DEVICE bool take_page(Heap heap, u64* failures) {
    u8* memory = nullptr;
    if (simt::lane_id() == 0) memory = chain_.new_page(heap, failures);
    // The last owner's accesses to this memory, before its free, happen before what the other lanes
    // write there: malloc orders them for lane 0, and this for all lanes.
    simt::sync_warp(full_mask);
    memory = simt::shuffle(full_mask, memory, 0);
    if (memory) chain_.add_page(memory);
    return memory != nullptr;
  }

  growing_chain chain_;
};

/// Writes what a lane found to a chain of its own. Lanes whose page is full call malloc together,
/// and pages stay emptier. As above, all lanes call write().
class lane_writer {
 public:
  static constexpr u32 lanes_a_chain = 1;

  WARPHEAP_DEVICE explicit lane_writer(u64 page_bytes) : chain_{page_bytes} {}

  template <class Heap>
  WARPHEAP_DEVICE bool write(Heap heap, u64* failures, u32 writers, u32 key, u32 build, u32 probe) {
    bool const writes = writers >> simt::lane_id() & 1;
    bool fails = false;
    if (writes && chain_.room() == 0) {
      u8* const memory = chain_.new_page(heap, failures);
      if (memory) chain_.add_page(memory);
      else fails = true;
    }
    if (writes && !fails) {
      chain_.put(0, key, build, probe);
      chain_.use(1);
    }
    return simt::ballot(full_mask, fails) == 0;
  }

  WARPHEAP_DEVICE chain written() const { return chain_.written(); }

 private:
  growing_chain chain_;
};

/// Kernel: adds the checksums of the tuples in chain i, by `lanes_a_chain` lanes, to one of
/// `sum_slots` sums.
struct sum_chains {
  static constexpr u32 sum_slots = 256;

  u32 lanes_a_chain;

  WARPHEAP_DEVICE void operator()(chain const* chains, u64 count, u32 slots, u64* sums) const {
    u64 const mine = global_thread_index() / lanes_a_chain;
    if (mine >= count) return;
    page here{reinterpret_cast<u8*>(chains[mine].head), slots};
    u32 used = chains[mine].used;
    u64 sum = 0;
    for (u32 left = chains[mine].pages; left > 0 && here; --left) {
      for (u32 slot = simt::lane_id() % lanes_a_chain; slot < used; slot += lanes_a_chain)
        sum += build_factor(here.key(slot), here.build(slot)) * probe_factor(here.key(slot), here.probe(slot));
      here = here.before();
      used = slots;  // join.O1
    }
    // relaxed: read after the kernel.
    if (sum) atomic_ref<u64>{sums[mine % sum_slots]}.fetch_add(sum, order::relaxed);
  }
};

/// Kernel: thread i frees the pages of chain i.
struct free_chains {
  static constexpr u32 most_threads = block_threads, resident_blocks = resident_thread_blocks;

  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, chain const* chains, u64 count, u32 slots) const {
    u64 const i = global_thread_index();
    if (i >= count) return;
    page here{reinterpret_cast<u8*>(chains[i].head), slots};
    for (u32 left = chains[i].pages; left > 0 && here; --left) {
      page const before = here.before();
      heap.free(here.memory);
      here = before;
    }
  }
};

}}  // namespace warpheap::tool::join::WARPHEAP_BACKEND
