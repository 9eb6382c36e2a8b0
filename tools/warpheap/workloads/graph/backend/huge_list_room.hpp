// SPDX-License-Identifier: Apache-2.0
// Room for a batch's huge lists, which a second kernel does with a thread block each.
#pragma once

#include <algorithm>

#include "teams.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace warpheap::tool::graph { inline namespace WARPHEAP_BACKEND {

/// Made with its device current.
class huge_list_room {
 public:
  /// Room for `lists` lists, of a batch after which all lists together have at most `entries`
  /// entries.
  huge_list_room(u64 lists, u64 entries)
      : blocks_{static_cast<u32>(
            std::min<u64>({warpheap::backend::multiprocessors() * 2, lists, entries / huge_list}))},
        items_(lists),
        count_(1),
        scratch_(u64{blocks_} * huge_team::scratch_words) {}

  huge_items view() const { return {items_.data(), count_.data(), scratch_.data()}; }
  /// Of the second kernel; no thread blocks if no list can be huge.
  launch_shape shape() const { return {blocks_, huge_team::size}; }

 private:
  u32 blocks_ = 0;
  device_buffer<u64> items_;
  device_buffer<u32> count_;
  device_buffer<u64> scratch_;
};

}}  // namespace warpheap::tool::graph::WARPHEAP_BACKEND
