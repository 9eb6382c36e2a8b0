// SPDX-License-Identifier: Apache-2.0
// A batch on its way between members. Every member has a slice of the batch, and sends each group
// of its slice to the owner of the vertex: a message is a block of the sender's heap. The owner
// copies the message to memory of its own heap, and changes the vertex's list. When all owners have
// read, the sender frees its messages.
//
// Why blocks and not one copy for each pair of members: no pass counts or sorts what goes where,
// and a message is read once, by the lanes that use it, in pieces of 16 bytes.
#pragma once

#include "adjacency.hpp"
#include "cluster.hpp"
#include "warpheap/sync/warp_aggregate.hpp"
#include "workloads/graph/vertex_deal.hpp"

namespace warpheap::tool::graph { inline namespace WARPHEAP_BACKEND {

/// A slice of a batch in device memory.
struct slice_view {
  u32 const* vertices;
  u32 const* first;
  u32 const* targets;
  u32 groups;
};

/// Numbers moved by one access.
template <size_t Bytes>
struct alignas(Bytes) wide_word {
  u32 numbers[Bytes / sizeof(u32)];
};

/// Copies `count` numbers, a multiple of 4, from block to block, by 16 bytes at a time if blocks
/// are aligned so.
template <class Team, class Heap>
WARPHEAP_DEVICE void copy_numbers(Team team, Heap const&, u32* to, u32 const* from, u64 count) {
  using word = wide_word<(Heap::traits.alignment < 16 ? Heap::traits.alignment : 16)>;
  copy_words(team, reinterpret_cast<word*>(to), reinterpret_cast<word const*>(from),
             count * sizeof(u32) / sizeof(word));
}

/// Kernel: lane i of the grid sends group i. The grid is of whole warps, and all their lanes stay
/// to the end.
struct send_groups {
  template <class Heap, cluster Cluster>
  WARPHEAP_DEVICE void operator()(Heap heap, Cluster among, vertex_deal deal, slice_view slice,
                                  graph_tally* total) const {
    u64 const mine = global_thread_index();
    graph_tally tally;
    share_by_length(length_of(slice, mine), mine, [&](auto team, u64 group) {
      send(team, heap, among, deal.find(slice.vertices[group]), slice.targets + slice.first[group],
           slice.first[group + 1] - slice.first[group], tally);
    });
    add(*total, tally);
  }

 private:
  WARPHEAP_DEVICE static item_length length_of(slice_view slice, u64 group) {
    if (group >= slice.groups) return item_length::none;
    return slice.first[group + 1] - slice.first[group] > long_list ? item_length::is_long : item_length::is_short;
  }

  template <class Team, class Heap, class Cluster>
  WARPHEAP_DEVICE static void send(Team team, Heap const& heap, Cluster const& among, vertex_deal::place to,
                                   u32 const* targets, u32 count, graph_tally& tally) {
    u64 block = 0;
    if (team.rank() == 0) block = reinterpret_cast<u64>(heap.malloc(message::bytes_for(count)));
    auto* const made = reinterpret_cast<message*>(team.from_first(block));
    if (made) copy_words(team, made->targets(), targets, count);
    if (team.rank() != 0) return;
    if (!made) {
      ++tally.failures;
      tally.lost += count;
      return;
    }
    ++tally.messages;
    tally.messages_to_others += to.owner != among.rank();
    *made = {.local = to.local, .count = count, .unused = 0};
    auto const boxes = among.boxes(among.rank()).messages;
    boxes.of(to.owner)[aggregated_fetch_add(simt::active_mask(), boxes.counts[to.owner])] = made;
  }
};

/// What a message does to the list of its vertex.
template <class Operation>
struct message_update {
  template <class Team, class Heap>
  WARPHEAP_DEVICE static void run(Team team, Heap const& heap, adjacency_list* lists, u64 address, graph_tally& tally) {
    auto* const from = reinterpret_cast<message*>(address);
    u32 const local = from->local, count = from->count;
    u32* const targets = copy_of(team, heap, from, count);
    if (!targets) {
      if (team.rank() != 0) return;
      ++tally.failures;
      tally.lost += count;
      return;
    }
    u32* const places = targets + message::padded(count);
    Operation::run(team, heap, lists[local], targets, places, count, tally);
    team.sync();  // all lanes are done with the copy
    if (team.rank() == 0) heap.free(targets);
  }

 private:
  /// A copy of the targets in this member's heap, with room for as many places behind it; nullptr
  /// if there is no memory. All lanes of the team may use it.
  template <class Team, class Heap>
  WARPHEAP_DEVICE static u32* copy_of(Team team, Heap const& heap, message* from, u32 count) {
    u64 const padded = message::padded(count);
    u64 block = 0;
    if (team.rank() == 0) block = reinterpret_cast<u64>(heap.malloc((padded + count) * sizeof(u32)));
    auto* const copy = reinterpret_cast<u32*>(team.from_first(block));
    if (copy) copy_numbers(team, heap, copy, from->targets(), padded);
    team.sync();
    return copy;
  }
};

/// Kernel: lane i of the grid has message i of those for this member, and leaves those for huge
/// lists to the next kernel. The grid is of whole warps, and all their lanes stay to the end.
template <class Operation>
struct apply_messages {
  template <class Heap, cluster Cluster>
  WARPHEAP_DEVICE void operator()(Heap heap, Cluster among, adjacency_list* lists, huge_items huge,
                                  graph_tally* total) const {
    auto* const mine = message_for(among, global_thread_index());
    auto const length = mine ? length_for(lists[mine->local].size() + mine->count) : item_length::none;
    u64 const address = reinterpret_cast<u64>(mine);
    graph_tally tally;
    if (length == item_length::is_huge) huge.add(address);
    share_by_length(length, address,
                    [&](auto team, u64 each) { message_update<Operation>::run(team, heap, lists, each, tally); });
    add(*total, tally);
  }

 private:
  /// Message `index` of all members' for this one; nullptr if there are fewer.
  template <class Cluster>
  WARPHEAP_DEVICE static message* message_for(Cluster const& among, u64 index) {
    for (u32 sender = 0; sender < among.size(); ++sender) {
      auto const boxes = among.boxes(sender).messages;
      u32 const count = boxes.counts[among.rank()];
      if (index < count) return among.reach(sender, boxes.of(among.rank())[index]);
      index -= count;
    }
    return nullptr;
  }
};

/// Kernel: those for huge lists.
template <class Operation>
struct apply_huge_messages {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, adjacency_list* lists, huge_items huge, graph_tally* total) const {
    graph_tally tally;
    huge.share([&](auto team, u64 address) { message_update<Operation>::run(team, heap, lists, address, tally); });
    add(*total, tally);
  }
};

/// Kernel: thread i frees message i of those that this member has sent, once all are read.
struct free_messages {
  template <class Heap>
  WARPHEAP_DEVICE void operator()(Heap heap, message_boxes sent, u32 members) const {
    u64 index = global_thread_index();
    for (u32 receiver = 0; receiver < members; ++receiver) {
      u32 const count = sent.counts[receiver];
      if (index < count) return heap.free(sent.of(receiver)[index]);
      index -= count;
    }
  }
};

}}  // namespace warpheap::tool::graph::WARPHEAP_BACKEND
