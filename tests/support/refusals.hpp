// SPDX-License-Identifier: Apache-2.0
// Whether refusals are true: nullptr says that no suitable block stayed free during the whole call.
// Lanes take blocks of one size and give them back, in a heap with fewer blocks than lanes, and
// record the times. The record then shows a call that was refused while some place had no owner
// from the call's begin to its end.
//
// Times are drawn from one counter by read-modify-writes that acquire and release. So an earlier
// time also happens before a later one, as the promise asks: a call that begins after a free has
// returned knows of it.
#pragma once

#include <algorithm>
#include <vector>

#include "warpheap/platform/device_buffer.hpp"
#include "warpheap/platform/simt.hpp"
#include "warpheap/util/random.hpp"

namespace warpheap::test {

/// From the begin of a call to its end, if it was refused; else to the end of the call that freed
/// the block.
struct diary_entry {
  u64 from = 0, to = 0;
  u64 address = 0;  ///< 0: refused
};

/// Kernel: every lane asks, holds what it got for a while, frees it, `rounds` times.
struct keep_a_diary {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, u64 bytes, u32 rounds, u64 seed, u64* now, diary_entry* diary) const {
    u64 const me = global_thread_index();
    random_sequence random{seed * 1024 + me};
    for (u32 round = 0; round < rounds; ++round) {
      auto& entry = diary[me * rounds + round];
      for (u32 wait = random.below(5); wait != 0; --wait) simt::pause(1);
      entry.from = tick(now);
      void* const memory = ask(heap, bytes);
      entry.address = reinterpret_cast<u64>(memory);
      if (memory) {
        for (u32 wait = random.below(5); wait != 0; --wait) simt::pause(1);
        give_back(heap, memory);
      }
      entry.to = tick(now);
    }
  }

 private:
  // acq_rel: each moment happens after those before it.
  WARPHEAP_DEVICE static u64 tick(u64* now) { return atomic_ref<u64>{*now}.fetch_add(1, order::acq_rel) + 1; }

  template <class Heap>
  WARPHEAP_DEVICE static void* ask(Heap const& heap, u64 bytes) {
    if constexpr (requires { heap.malloc(bytes); }) return heap.malloc(bytes);
    else return heap.create(bytes);
  }
  template <class Heap>
  WARPHEAP_DEVICE static void give_back(Heap const& heap, void* memory) {
    if constexpr (requires { heap.free(memory); }) heap.free(memory);
    else heap.destroy(memory);
  }
};

/// The outcome of the diaries.
struct refusals {
  u64 served = 0;
  u64 refused = 0;
  u64 unfounded = 0;  ///< refused while one place was free from the begin of the call to its end
};

inline std::vector<u64> addresses_of(std::vector<void*> const& blocks) {
  std::vector<u64> addresses(blocks.size());
  std::transform(blocks.begin(), blocks.end(), addresses.begin(),
                 [](void* block) { return reinterpret_cast<u64>(block); });
  return addresses;
}

/// `places` are where blocks of `bytes` bytes fit into the heap, all free; blocks may lie between
/// two.
inline refusals judge(std::vector<diary_entry> const& diary, std::vector<u64> places, u64 bytes) {
  std::sort(places.begin(), places.end());
  std::vector<std::vector<std::pair<u64, u64>>> owned(places.size());
  refusals found;
  for (auto const& entry : diary) {
    if (entry.address == 0) {
      ++found.refused;
      continue;
    }
    ++found.served;
    auto place = std::upper_bound(places.begin(), places.end(), entry.address);
    while (place != places.begin() && *(place - 1) + bytes > entry.address) --place;
    for (; place != places.end() && *place < entry.address + bytes; ++place)
      owned[static_cast<size_t>(place - places.begin())].emplace_back(entry.from, entry.to);
  }
  std::vector<std::pair<u64, u64>> gaps;  // when some place had no owner
  for (auto& intervals : owned) {
    std::sort(intervals.begin(), intervals.end());
    u64 end = 0;
    for (auto const& [from, to] : intervals) {
      if (from > end + 1) gaps.emplace_back(end, from);
      end = std::max(end, to);
    }
    gaps.emplace_back(end, ~u64{0});
  }
  std::sort(gaps.begin(), gaps.end());
  for (size_t i = 1; i < gaps.size(); ++i) gaps[i].second = std::max(gaps[i].second, gaps[i - 1].second);
  for (auto const& entry : diary) {
    if (entry.address != 0) continue;
    auto const after = std::lower_bound(gaps.begin(), gaps.end(), std::pair<u64, u64>{entry.from, 0});
    if (after != gaps.begin() && (after - 1)->second > entry.to) ++found.unfounded;
  }
  return found;
}

/// Runs the lanes of `shape` against a heap whose free places for `bytes` bytes are `places`.
/// `run(shape, kernel, arguments...)` launches a kernel and waits for it.
template <class Heap, class Run>
refusals refusals_of(Heap heap, launch_shape shape, std::vector<u64> const& places, u64 bytes, u32 rounds, u64 seed,
                     Run run) {
  device_buffer<u64> const now(1);
  device_buffer<diary_entry> const diary(u64{shape.blocks} * shape.threads * rounds);
  run(shape, keep_a_diary{}, heap, bytes, rounds, seed, now.data(), diary.data());
  return judge(diary.to_host(), places, bytes);
}

template <class Heap>
refusals refusals_of(Heap heap, launch_shape shape, std::vector<u64> const& places, u64 bytes, u32 rounds, u64 seed) {
  return refusals_of(heap, shape, places, bytes, rounds, seed, [](auto... kernel) {
    launch(kernel...);
    synchronize();
  });
}

}  // namespace warpheap::test
