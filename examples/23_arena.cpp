// SPDX-License-Identifier: Apache-2.0
// Scratch memory of a thread block: threads store what they find in an arena, which is then reset
// as a whole.
#include <warpheap/container/arena.hpp>
#include <warpheap/platform/device_buffer.hpp>
#include <warpheap/warpheap.hpp>

#include <cstdio>

namespace {

using namespace warpheap;
using namespace warpheap::literals;

struct run {
  u32 length;
  run* next;
};

/// The length of the ascending run from `first` on.
WARPHEAP_DEVICE u32 length_from(u32 const* numbers, u32 size, u32 first) {
  u32 last = first;
  while (last + 1 < size && numbers[last] < numbers[last + 1]) ++last;
  return last + 1 - first;
}

struct longest_runs {
  WARPHEAP_DEVICE void operator()(heap_ref heap, arena<>* arenas, u32 const* numbers, u32 size, u32* longest) const {
    arena_ref const scratch{heap, arenas[simt::block_index()]};
    u32 const mine = static_cast<u32>(global_thread_index());
    run* runs = nullptr;
    for (u32 i = mine; i < size; i += simt::grid_dim() * simt::block_dim()) {
      auto* const found = static_cast<run*>(scratch.malloc(sizeof(run)));
      if (!found) continue;  // no memory: this run does not count
      *found = {length_from(numbers, size, i), runs};
      runs = found;
    }
    u32 most = 0;
    for (; runs; runs = runs->next) most = runs->length > most ? runs->length : most;
    atomic_ref<u32>{*longest}.fetch_max(most, order::relaxed);
    simt::sync_block();  // all threads are done with their blocks
    if (simt::thread_index() == 0) scratch.reset();
  }
};

}  // namespace

int main() {
  heap const heap{64_MiB};
  std::vector<u32> numbers(100'000);
  for (u32 i = 0; i < numbers.size(); ++i) numbers[i] = i * 7919 % 10'007;
  for (u32 i = 0; i < 50; ++i) numbers[60'000 + i] = 20'000 + i;
  device_buffer<u32> const input{numbers}, longest(1);
  device_buffer<arena<>> const arenas(16);
  for (u32 round = 0; round < 3; ++round)  // from the second on no chunk is taken
    launch({16, 128}, longest_runs{}, heap.ref(), arenas.data(), input.data(), static_cast<u32>(input.size()),
           longest.data());
  drop_arenas(stream_view{}, heap.ref(), arenas.data(), arenas.size());
  synchronize();
  auto const live = heap.statistics().live_blocks;
  std::printf("longest run: %u; live blocks: %llu\n", longest[0], static_cast<unsigned long long>(live));
  return longest[0] >= 50 && live == 0 ? 0 : 1;
}
