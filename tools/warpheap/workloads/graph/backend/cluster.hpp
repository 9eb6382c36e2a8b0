// SPDX-License-Identifier: Apache-2.0
// How the members of a job reach each other in its kernels. Each member has a heap, and a part of
// the vertices. The kernels are templates over a cluster, so that they do not depend on what
// carries a member's accesses to another one's memory.
//
// Data for other members is in the writer's own memory, and the reader fetches it: first a list of
// what there is for it (boxes), then the messages' blocks themselves. No kernel waits for another
// member: the host ensures that all members have written before one reads.
#pragma once

#include "warpheap/platform/simt.hpp"

namespace warpheap::tool::graph { inline namespace WARPHEAP_BACKEND {

/// What a batch changes of one vertex: a block of the sender's heap, which the receiver reads.
/// `count` targets follow, ascending and without duplicates, in whole pieces of 16 bytes.
struct alignas(8) message {
  u32 local;  ///< number of the vertex at its owner
  u32 count;
  u64 unused;

  WARPHEAP_DEVICE u32* targets() { return reinterpret_cast<u32*>(this + 1); }

  /// Of this many targets, in whole pieces.
  static WARPHEAP_DEVICE u64 padded(u32 targets) { return (u64{targets} + 3) / 4 * 4; }
  static WARPHEAP_DEVICE u64 bytes_for(u32 targets) { return sizeof(message) + padded(targets) * sizeof(u32); }
};

/// One member's messages to each: `counts[i]` for member i, in `slots` from i · capacity on.
struct message_boxes {
  message** slots;
  u32* counts;
  u64 capacity;

  WARPHEAP_DEVICE message** of(u32 receiver) const { return slots + receiver * capacity; }
};

/// The vertices that one member found in a step of a search, for their owners: `counts[i]` of
/// member i, by their numbers there, in `locals` from vertex_deal::first(i) on.
struct found_boxes {
  u32* locals;
  u32* counts;
};

/// What other members read of one.
struct member_boxes {
  message_boxes messages;
  found_boxes found;
};

/// In a kernel of one member:
///
///   rank() size()     which member this is, and how many there are
///   boxes(member)     that member's boxes, at addresses that are valid here
///   reach(member, p)  a block of that member's heap, whose address is `p` there, likewise
template <class Cluster>
concept cluster = requires(Cluster const among, u32 member, message* block) {
  { among.rank() } -> same_type<u32>;
  { among.size() } -> same_type<u32>;
  { among.boxes(member) } -> same_type<member_boxes>;
  { among.reach(member, block) } -> same_type<message*>;
};

/// Members of one process on GPUs that have peer access: every address is valid everywhere.
class peer_cluster {
 public:
  /// `boxes` are those of all members, in this member's memory.
  peer_cluster(u32 rank, u32 size, member_boxes const* boxes) : rank_{rank}, size_{size}, boxes_{boxes} {}

  WARPHEAP_DEVICE u32 rank() const { return rank_; }
  WARPHEAP_DEVICE u32 size() const { return size_; }
  WARPHEAP_DEVICE member_boxes boxes(u32 member) const { return boxes_[member]; }
  WARPHEAP_DEVICE message* reach(u32, message* block) const { return block; }

 private:
  u32 rank_, size_;
  member_boxes const* boxes_;
};
static_assert(cluster<peer_cluster>);

}}  // namespace warpheap::tool::graph::WARPHEAP_BACKEND
