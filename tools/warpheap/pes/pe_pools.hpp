// SPDX-License-Identifier: Apache-2.0
// Where this process's GPU reaches the pools and the boxes of all PEs.
#pragma once

#include "cli/usage_error.hpp"
#include "from_pes.hpp"
#include "warpheap/nvshmem/symmetric_heap.hpp"
#include "workloads/graph/backend/pe_cluster.hpp"

namespace warpheap::tool::graph { inline namespace WARPHEAP_BACKEND {

/// Owns the table of pools. All PEs make one.
class pe_pools {
 public:
  /// Throws usage_error on every PE if one of them cannot reach the memory of another by pointer.
  template <class Heap>
  explicit pe_pools(Heap& heap) {
    auto* const own = static_cast<u8*>(heap.heap().ref().oom().view().address(0, 0));
    std::vector<pool_place> places;
    u64 unreached = heap.pes();
    for (u64 const there : gather_from_pes(reinterpret_cast<u64>(own))) {
      auto const pe = static_cast<u32>(places.size());
      places.push_back({there, reinterpret_cast<u64>(at_pe(own, pe))});
      if (places.back().here == 0) unreached = pe;
    }
    check_reach(gather_from_pes(unreached));
    places_ = device_buffer<pool_place>{places};
  }

  pool_map view() const { return {places_.data(), static_cast<u32>(places_.size())}; }

 private:
  /// `unreached[i]` is a PE that PE i cannot reach; their number if it reaches all.
  static void check_reach(std::vector<u64> const& unreached) {
    for (size_t pe = 0; pe < unreached.size(); ++pe)
      if (unreached[pe] != unreached.size())
        throw usage_error{"graph --pes reads other processes' memory by pointer, and the GPU of PE " +
                          std::to_string(pe) + " cannot reach that of PE " + std::to_string(unreached[pe]) +
                          ": NVLink or PCIe must join them"};
  }

  device_buffer<pool_place> places_;
};

/// This PE's boxes as each PE has them, by addresses that are valid here.
inline std::vector<member_boxes> boxes_of_pes(member_boxes const& own, u32 pes) {
  std::vector<member_boxes> all;
  all.reserve(pes);
  for (u32 pe = 0; pe < pes; ++pe)
    all.push_back({.messages = {at_pe(own.messages.slots, pe), at_pe(own.messages.counts, pe), own.messages.capacity},
                   .found = {at_pe(own.found.locals, pe), at_pe(own.found.counts, pe)}});
  return all;
}

}}  // namespace warpheap::tool::graph::WARPHEAP_BACKEND
