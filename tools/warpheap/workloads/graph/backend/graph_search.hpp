// SPDX-License-Identifier: Apache-2.0
// One member's part of a breadth-first search, as the host drives it, and the search by a team.
#pragma once

#include <algorithm>

#include "frontier.hpp"
#include "measure/measure.hpp"
#include "member_team.hpp"
#include "warpheap/platform/device_buffer.hpp"
#include "workloads/graph/dealt_parts.hpp"

namespace warpheap::tool::graph { inline namespace WARPHEAP_BACKEND {

/// The search of one member: its arrays, and its kernels on a stream of its device. Made with that
/// device current. `Shared` is as a member's.
template <template <class> class Shared>
class basic_member_search {
 public:
  /// `entries` is how many adjacency entries the member's lists have.
  basic_member_search(vertex_deal deal, u32 rank, adjacency_list const* lists, u64 entries)
      : deal_{deal},
        lists_{lists},
        levels_{std::vector<u32>(deal.count(rank), unreached)},
        seen_((u64{deal.vertices()} + 31) / 32),
        found_(deal.vertices()),
        found_counts_(deal.members()),
        sizes_(2),
        told_{1} {
    for (auto& pieces : pieces_) pieces = device_buffer<frontier_piece>(levels_.size() + entries / piece_length);
  }

  found_boxes boxes() const { return {found_.data(), found_counts_.data()}; }

  template <cluster Cluster>
  void start(stream_view on, Cluster const& among, u32 source) const {
    launch(on, {1, 1}, start_search{}, among, deal_, lists_, source, levels_.data(), next());
  }
  template <cluster Cluster>
  void expand(stream_view on, Cluster const& among) const {
    launch(on, shape_of_loop(pieces() * warp_lanes), expand_frontier{}, among, deal_, lists_, now(), seen_.data());
  }
  /// `pieces` is how many all members have expanded, since each may have found vertices of this
  /// one. With a thread block for each piece, a thread rarely has a second turn, and the launch is
  /// as small as the level: a path of 100,000 vertices has as many levels.
  template <cluster Cluster>
  void settle(stream_view on, Cluster const& among, u32 level, u64 pieces) const {
    u64 const most = std::min<u64>(levels_.size(), pieces * block_threads);
    launch(on, shape_of_loop(most), settle_level{}, among, deal_, lists_, level, levels_.data(), next());
  }
  /// The level that was next is the last one from here on.
  void close(stream_view on) {
    launch(on, {1, 1}, close_level{}, now(), next(), boxes(), deal_.members(), told_.device());
    is_odd_ = !is_odd_;
  }

  /// Pieces of the last level, once close() has ended.
  u64 pieces() const { return told_.load(0); }
  std::vector<u32> levels() const { return levels_.to_host(); }

 private:
  static constexpr u32 block_threads = 128;

  /// Threads for a loop of `turns` turns: no more than a device holds at once.
  static launch_shape shape_of_loop(u64 turns) {
    constexpr u32 resident_blocks = 16;
    auto const enough = shape_for(turns, block_threads);
    return {std::min(enough.blocks, warpheap::backend::multiprocessors() * resident_blocks), block_threads};
  }

  frontier_view now() const { return {pieces_[is_odd_].data(), sizes_.data() + is_odd_}; }
  frontier_view next() const { return {pieces_[!is_odd_].data(), sizes_.data() + !is_odd_}; }

  vertex_deal deal_;
  adjacency_list const* lists_;
  device_buffer<u32> levels_, seen_;
  Shared<u32> found_, found_counts_;
  device_buffer<frontier_piece> pieces_[2];  ///< of an even level, of an odd one
  device_buffer<u32> sizes_;
  warpheap::backend::shared_words told_;
  bool is_odd_ = false;
};

using member_search = basic_member_search<device_buffer>;

/// Searches from `source` by all members, and waits. `among[i]` is the cluster of member i's
/// kernels. Only the host knows when no member has a next level, so it waits once a level.
template <class Clusters>
search_levels run_search(member_team& team, vertex_deal deal, std::vector<member_search>& parts, Clusters const& among,
                         u32 source) {
  /// How many pieces the next level has.
  auto const close_step = [&] {
    team.step(phase::other, [&](u32 i) { parts[i].close(team.stream(i)); });
    team.finish();
    u64 pieces = 0;
    for (auto const& part : parts) pieces += part.pieces();
    return pieces;
  };
  search_levels made;
  made.seconds = 1e-6 * bench::wall_clock{}.microseconds_of_call([&] {
    team.step(phase::other, [&](u32 i) { parts[i].start(team.stream(i), among[i], source); });
    u32 level = 0;
    while (u64 const pieces = close_step()) {
      ++level;
      team.step(phase::expand, [&](u32 i) { parts[i].expand(team.stream(i), among[i]); });
      team.step(phase::settle, [&](u32 i) { parts[i].settle(team.stream(i), among[i], level, pieces); });
    }
  });
  std::vector<std::vector<u32>> levels;
  levels.reserve(parts.size());
  for (auto const& part : parts) levels.push_back(part.levels());
  made.of_vertex = in_order_of_vertices(deal, levels);
  return made;
}

}}  // namespace warpheap::tool::graph::WARPHEAP_BACKEND
