// SPDX-License-Identifier: Apache-2.0
// Members that are processes of an NVSHMEM job, whose memory a GPU reaches by pointer: all of it is
// mapped here, a pool at another address than its own process has it at.
//
//   graph.R1  places[p].here + i is byte i of PE p's pool, whose own address is places[p].there +
//       i.
#pragma once

#include "cluster.hpp"

namespace warpheap::tool::graph { inline namespace WARPHEAP_BACKEND {

/// Where a PE's pool begins: in its own process, and in this one.
struct pool_place {
  u64 there;
  u64 here;
};

/// The pools of all PEs, in this PE's memory.
struct pool_map {
  pool_place const* places;
  u32 pes;

  /// The address in this process of what is at `address` in PE `pe`'s (graph.R1).
  WARPHEAP_DEVICE u64 reach(u32 pe, u64 address) const { return address - places[pe].there + places[pe].here; }
};

class pe_cluster {
 public:
  /// `boxes` are those of all PEs at addresses in this process, in this PE's memory.
  pe_cluster(u32 rank, pool_map pools, member_boxes const* boxes) : rank_{rank}, pools_{pools}, boxes_{boxes} {}

  WARPHEAP_DEVICE u32 rank() const { return rank_; }
  WARPHEAP_DEVICE u32 size() const { return pools_.pes; }
  WARPHEAP_DEVICE member_boxes boxes(u32 member) const { return boxes_[member]; }
  WARPHEAP_DEVICE message* reach(u32 member, message* block) const {
    return reinterpret_cast<message*>(pools_.reach(member, reinterpret_cast<u64>(block)));
  }

 private:
  u32 rank_;
  pool_map pools_;
  member_boxes const* boxes_;
};
static_assert(cluster<pe_cluster>);

}}  // namespace warpheap::tool::graph::WARPHEAP_BACKEND
