// SPDX-License-Identifier: Apache-2.0
// The rows of a join's result on their way to the host: windows of them, each as large as a buffer,
// copied out of the pages.
#pragma once

#include "output.hpp"

namespace warpheap::tool::join { inline namespace WARPHEAP_BACKEND {

/// Where rows [first, first + size) of the result go. Rows are numbered along the chains, and
/// within each chain from its head.
struct row_window {
  u64 first, size;
  u32* keys;
  u32* build_payloads;
  u32* probe_payloads;
};

/// Kernel: thread i copies the rows of chain i that are in the window. `numbers[i]` is the number
/// of its first row.
struct copy_rows {
  WARPHEAP_DEVICE void operator()(chain const* chains, u64 const* numbers, u64 count, u32 slots, row_window to) const {
    u64 const i = global_thread_index();
    if (i >= count || numbers[i] >= to.first + to.size || numbers[i + 1] <= to.first) return;
    page here{reinterpret_cast<u8*>(chains[i].head), slots};
    u32 used = chains[i].used;
    u64 number = numbers[i];
    for (u32 left = chains[i].pages; left > 0 && number < to.first + to.size; --left) {
      copy_page(here, number, used, to);
      number += used;
      here = here.before();
      used = slots;  // join.O1
    }
  }

 private:
  WARPHEAP_DEVICE static void copy_page(page from, u64 number, u32 used, row_window to) {
    for (u32 slot = 0; slot < used; ++slot) {
      // before the window: wraps around to a large number
      u64 const place = number + slot - to.first;
      if (place >= to.size) continue;
      to.keys[place] = from.key(slot);
      to.build_payloads[place] = from.build(slot);
      to.probe_payloads[place] = from.probe(slot);
    }
  }
};

/// Gives `take` all rows in the pages of `chains`, at most `window_rows` at a time.
template <class Take>
void give_rows(device_buffer<chain> const& chains, u32 slots, Take const& take, u64 window_rows = u64{1} << 20) {
  std::vector<u64> numbers{0};
  for (auto const& each : chains.to_host())
    numbers.push_back(numbers.back() + (each.pages ? u64{each.pages - 1} * slots + each.used : 0));
  u64 const rows = numbers.back();
  device_buffer<u64> const first_rows{numbers};
  for (u64 first = 0; first < rows; first += window_rows) {
    u64 const size = std::min(window_rows, rows - first);
    device_buffer<u32> const keys(size), build_payloads(size), probe_payloads(size);
    launch(thread_each(chains.size()), copy_rows{}, chains.data(), first_rows.data(), chains.size(), slots,
           row_window{first, size, keys.data(), build_payloads.data(), probe_payloads.data()});
    take(join_rows{keys.to_host(), build_payloads.to_host(), probe_payloads.to_host()});
  }
}

}}  // namespace warpheap::tool::join::WARPHEAP_BACKEND
