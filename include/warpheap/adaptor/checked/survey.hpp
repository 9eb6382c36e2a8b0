// SPDX-License-Identifier: Apache-2.0
// Questions of the host to the blocks of a checked heap: kernels that visit all of them.
#pragma once

#include "checked_ref.hpp"

#if !defined(__CUDACC_RTC__)

#include <algorithm>
#include <vector>

#include "../../platform/device_buffer.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace checked_parts {

/// A live block, as a kernel lists it.
struct live_block {
  u64 address = 0;
  u64 bytes = 0;
  recorded_call allocated;  ///< without a file if the block's header was overwritten
};

/// Calls `visit(address, bits)` for the known blocks of this thread's share of the map.
template <u32 Ranges, class Visit>
WARPHEAP_DEVICE void visit_blocks(block_map<Ranges> const& map, Visit visit) {
  u64 const threads = u64{simt::grid_dim()} * simt::block_dim();
  for (auto const& range : map.ranges)
    for (u64 word = global_thread_index(); word < range.word_count(); word += threads) {
      // relaxed: the heap is quiet; the launch orders it.
      u64 const bits = atomic_ref<u64>{range.words[word]}.load(order::relaxed);
      for (u64 rest = bits & map.every_known; rest != 0; rest &= rest - 1) {
        u32 const at = lowest_bit(rest);
        visit(reinterpret_cast<void*>(range.begin + (word * 32 + at / 2) * map.granule), bits >> at & 3);
      }
    }
}

/// Kernel: examines all known blocks.
struct check_blocks {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap) const {
    visit_blocks(heap.state().map, [&](void* memory, u64 bits) { heap.look().check_block(memory, bits); });
  }
};

/// What list_blocks counts.
struct live_counts {
  u64 blocks = 0;
  u64 bytes = 0;
};

/// Kernel: counts the live blocks, and lists as many of them as there is room for.
struct list_blocks {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, live_counts* counts, live_block* list, u64 room) const {
    visit_blocks(heap.state().map, [&](void* memory, u64 bits) {
      if (!(bits & block_bits::live)) return;
      block_record record;
      bool const readable = heap.look().block_at(memory).read(record);
      // relaxed: counts; places are distinct.
      u64 const place = atomic_ref<u64>{counts->blocks}.fetch_add(1, order::relaxed);
      atomic_ref<u64>{counts->bytes}.fetch_add(readable ? record.bytes() : 0, order::relaxed);
      if (place >= room) return;
      list[place].address = reinterpret_cast<u64>(memory);
      if (!readable) return;
      list[place].bytes = record.bytes();
      list[place].allocated = record.allocated();
    });
  }
};

/// Kernel: forgets the blocks, after the upstream heap did.
struct forget_held {
  template <u32 Ranges>
  WARPHEAP_DEVICE void operator()(shared_state<Ranges>* state, quarantine fresh) const {
    state->held = fresh;
  }
};

/// Runs a kernel over all blocks, and waits for it.
template <class Kernel, class Ref, class... Arguments>
void survey(Kernel kernel, Ref const& heap, u64 words, Arguments... arguments) {
  launch(shape_for(std::clamp<u64>(words, 1, 16384), 128), kernel, heap, arguments...);
  synchronize();
}

/// All live blocks, in address order.
template <class Ref>
std::vector<live_block> list_live(Ref const& heap, u64 words) {
  device_buffer<live_counts> const counts(1);
  survey(list_blocks{}, heap, words, counts.data(), static_cast<live_block*>(nullptr), u64{0});
  u64 const blocks = counts[0].blocks;
  device_buffer<live_block> const list(blocks);
  device_buffer<live_counts> const again(1);
  survey(list_blocks{}, heap, words, again.data(), list.data(), blocks);
  auto live = list.to_host();
  std::sort(live.begin(), live.end(), [](auto const& a, auto const& b) { return a.address < b.address; });
  return live;
}

}}}  // namespace warpheap::WARPHEAP_BACKEND::checked_parts

#endif
