// The output of a join: pages, each a block of a heap, in a chain for every warp that probes. A warp takes its first page
// with its first match, and another when one is full; so who knows nothing of the size of a result writes it in one pass.
//
//   page   | link to the page taken before, u64 | keys | build payloads | probe payloads |   u32 each, `slots` of them
//
// O1  of a chain's pages only the head, which was taken last, may have slots that are free: chain.used are not.
// O2  a page belongs to the warp that took it until the kernel ends; then anybody may read or free it.
#pragma once

#include "../join_tuple.hpp"
#include "tables.hpp"
#include "warpheap/util/bits.hpp"

namespace warpheap::tool::join {
inline namespace WARPHEAP_BACKEND {

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

/// The pages of one warp.
struct chain {
  u64 head;  ///< address of the page taken last
  u32 pages;
  u32 used;  ///< slots of the head
};

/// What all warps share beside the heap.
struct shortage {
  u32 noticed;   ///< somebody got nullptr: what is missing will not come, so nobody asks any more
  u32 failures;  ///< calls that returned nullptr
};

/// The memory of a page, or nullptr. A call: what registers malloc takes are not those of the loop that probes.
template <class Heap>
WARPHEAP_COLD u8* page_memory(Heap heap, u64 bytes, shortage* missing) {
  // relaxed, both: they say only that nothing came.
  if (atomic_ref<u32>{missing->noticed}.load(order::relaxed)) return nullptr;
  auto* const memory = static_cast<u8*>(heap.malloc(bytes));
  if (memory) return memory;
  atomic_ref<u32>{missing->noticed}.store(1, order::relaxed);
  atomic_ref<u32>{missing->failures}.fetch_add(1, order::relaxed);
  return nullptr;
}

/// A whole warp's chain while it grows. All lanes hold the same.
class chain_writer {
 public:
  WARPHEAP_DEVICE explicit chain_writer(u64 page_bytes)
      : bytes_{page_bytes}, here_{nullptr, slots_of(page_bytes)}, used_{here_.slots} {}

  /// Writes the tuples of the lanes of `writers`; all lanes call. False if there was no page for some of them.
  template <class Heap>
  WARPHEAP_DEVICE bool write(Heap heap, shortage* missing, u32 writers, u32 key, u32 build, u32 probe) {
    u32 const all = popcount(writers), rank = popcount(writers & simt::lanes_below());
    bool const writes = writers >> simt::lane_id() & 1;
    for (u32 done = 0; done < all;) {
      if (used_ == here_.slots && !take_page(heap, missing)) return false;
      u32 const room = here_.slots - used_, now = room < all - done ? room : all - done;
      if (writes && rank >= done && rank < done + now) {
        u32 const slot = used_ + rank - done;
        here_.key(slot) = key;
        here_.build(slot) = build;
        here_.probe(slot) = probe;
      }
      used_ += now;
      done += now;
    }
    return true;
  }

  WARPHEAP_DEVICE chain written() const {
    return {reinterpret_cast<u64>(here_.memory), pages_, here_.memory ? used_ : 0};
  }

 private:
  template <class Heap>
  WARPHEAP_DEVICE bool take_page(Heap heap, shortage* missing) {
    u8* memory = nullptr;
    if (simt::lane_id() == 0) {
      memory = page_memory(heap, bytes_, missing);
      if (memory) page{memory, here_.slots}.link() = reinterpret_cast<u64>(here_.memory);
    }
    // What was done with the memory before it was freed happens before what the other lanes write there: malloc orders it for
    // lane 0, and this for all.
    simt::sync_warp(full_mask);
    memory = simt::shuffle(full_mask, memory, 0);
    if (!memory) return false;
    here_.memory = memory;  // O1: the page before is full
    used_ = 0;
    ++pages_;
    return true;
  }

  u64 bytes_;
  page here_;
  u32 used_;
  u32 pages_ = 0;
};

/// Kernel: warp i adds the checksums of the tuples in chain i to one of `sum_slots` sums.
struct sum_chains {
  static constexpr u32 sum_slots = 256;

  WARPHEAP_DEVICE void operator()(chain const* chains, u64 count, u32 slots, u64* sums) const {
    u64 const warp = global_thread_index() / warp_lanes;
    if (warp >= count) return;
    page here{reinterpret_cast<u8*>(chains[warp].head), slots};
    u32 used = chains[warp].used;
    u64 sum = 0;
    for (u32 left = chains[warp].pages; left > 0 && here; --left) {
      for (u32 slot = simt::lane_id(); slot < used; slot += warp_lanes)
        sum += build_factor(here.key(slot), here.build(slot)) * probe_factor(here.key(slot), here.probe(slot));
      here = here.before();
      used = slots;  // O1
    }
    // relaxed: read after the kernel.
    if (sum) atomic_ref<u64>{sums[warp % sum_slots]}.fetch_add(sum, order::relaxed);
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

}  // namespace WARPHEAP_BACKEND
}  // namespace warpheap::tool::join
