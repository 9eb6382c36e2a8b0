// A slab_bitmap over a handful of slabs, so that a few lanes can fill it, empty it and fight over it: what a heap of a
// mebibyte or more shows rarely, this shows in every schedule.
#pragma once

#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/warpheap.hpp"

namespace warpheap::test {

using slab_allocator = creation::slab_bitmap<>;

/// Owns the memory of a pool of `slabs` slabs of 16 KiB.
class tiny_pool {
 public:
  static constexpr size_t slab_bytes = 16384;

  explicit tiny_pool(u32 slabs)
      : memory_{slab_allocator::required_bytes(slabs * slab_bytes)},
        allocator_{slab_allocator::place(memory_.data(), slabs * slab_bytes)} {
    allocator_.initialize({});
    synchronize();
  }

  slab_allocator const& allocator() const { return allocator_; }

 private:
  device_buffer<u8> memory_;
  slab_allocator allocator_;
};

/// Everything that a churn of random sizes reports.
struct churn_report {
  u32 served = 0;
  u32 refused = 0;
  u32 broken = 0;  ///< blocks whose first or last word somebody else wrote
};

/// Every lane keeps up to `held_max` blocks of random sizes in [min_bytes, max_bytes], writes a tag into both ends of each,
/// and checks the tags before it frees. All are freed at the end.
struct churn {
  static constexpr u32 held_max = 3;
  u32 rounds;
  u32 min_bytes;
  u32 max_bytes;
  u64 seed;

  WARPHEAP_DEVICE void operator()(slab_allocator heap, churn_report* report) const {
    u32 const me = static_cast<u32>(global_thread_index());
    random_sequence random{seed + me};
    u32* held[held_max] = {};
    u32 bytes[held_max] = {};
    for (u32 round = 0; round < rounds + held_max; ++round) {
      u32 const slot = round % held_max;
      if (held[slot]) drop(heap, held[slot], bytes[slot], me * 64 + slot, report);
      held[slot] = nullptr;
      if (round >= rounds || random.below(4) == 0) continue;
      bytes[slot] = min_bytes + random.below(max_bytes - min_bytes + 1);
      held[slot] = static_cast<u32*>(heap.create(bytes[slot]));
      atomic_ref<u32>{held[slot] ? report->served : report->refused}.fetch_add(1, order::relaxed);
      if (!held[slot]) continue;
      held[slot][0] = me * 64 + slot;
      held[slot][bytes[slot] / 4 - 1] = me * 64 + slot;
    }
  }

  WARPHEAP_DEVICE static void drop(slab_allocator const& heap, u32* block, u32 bytes, u32 tag, churn_report* report) {
    if (block[0] != tag || block[bytes / 4 - 1] != tag) atomic_ref<u32>{report->broken}.fetch_add(1, order::relaxed);
    heap.destroy(block);
  }
};

/// Every thread asks once for `bytes` bytes and stores what it got.
struct allocate_each {
  WARPHEAP_DEVICE void operator()(slab_allocator heap, void** blocks, u64 bytes) const {
    blocks[global_thread_index()] = heap.create(bytes);
  }
};

/// Every thread frees one block.
struct free_each {
  WARPHEAP_DEVICE void operator()(slab_allocator heap, void** blocks) const {
    heap.destroy(blocks[global_thread_index()]);
  }
};

}  // namespace warpheap::test
