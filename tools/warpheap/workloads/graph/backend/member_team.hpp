// SPDX-License-Identifier: Apache-2.0
// The members of a job as one host thread drives them: a device and a stream each. Work is launched
// step by step. In a step the members run side by side, and the next one begins, on each member's
// device, when all have ended this one; the host waits for nothing.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "cluster.hpp"
#include "stream_event.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace warpheap::tool::graph { inline namespace WARPHEAP_BACKEND {

/// What a step is for. Times are kept by that.
enum class phase : u32 { send, apply, free, expand, settle, other };
inline constexpr u32 phases = 6;

class member_team {
 public:
  explicit member_team(std::vector<int> const& devices) {
    members_.reserve(devices.size());
    for (int const device : devices) {
      warpheap::backend::device_scope const current{device};
      members_.push_back(std::make_unique<member>(device));
    }
  }

  u32 size() const { return static_cast<u32>(members_.size()); }
  int device(u32 i) const { return members_[i]->device; }
  stream_view stream(u32 i) const { return members_[i]->stream; }

  /// Calls work(i) for every member with its device current.
  template <class Work>
  void for_each(Work work) const {
    for (u32 i = 0; i < size(); ++i) {
      warpheap::backend::device_scope const current{device(i)};
      work(i);
    }
  }

  /// A step: work(i) launches on stream(i).
  template <class Work>
  void step(phase what, Work work) {
    auto const index = static_cast<size_t>(what);
    for_each([&](u32 i) { members_[i]->begin[index].record(stream(i)); });
    for_each(work);
    for_each([&](u32 i) { members_[i]->end[index].record(stream(i)); });
    for_each([&](u32 i) {
      for (u32 other = 0; other < size(); ++other)
        if (other != i) members_[other]->end[index].hold_up(stream(i));
    });
    taken_[index] = true;
  }

  /// Waits for all steps, and adds the time of the last one of each phase since the last call.
  void finish() {
    for_each([&](u32 i) { synchronize(stream(i)); });
    for (size_t what = 0; what < phases; ++what) {
      if (!std::exchange(taken_[what], false)) continue;
      for (auto& each : members_) each->seconds[what] += each->end[what].seconds_since(each->begin[what]);
    }
  }

  /// Time that a member's own work of a phase took.
  double seconds(u32 i, phase what) const { return members_[i]->seconds[static_cast<size_t>(what)]; }

 private:
  /// Made with its device current.
  struct member {
    explicit member(int on) : device{on} {}
    int device;
    warpheap::stream stream;
    std::array<stream_event, phases> begin, end;
    std::array<double, phases> seconds{};
  };

  std::vector<std::unique_ptr<member>> members_;
  std::array<bool, phases> taken_{};
};

/// The clusters of a team, one for the kernels of each member.
class peer_clusters {
 public:
  peer_clusters(member_team const& team, std::vector<member_boxes> const& boxes) {
    tables_.reserve(boxes.size());
    team.for_each([&](u32) { tables_.emplace_back(boxes); });
  }

  peer_cluster operator[](u32 i) const { return {i, static_cast<u32>(tables_.size()), tables_[i].data()}; }

 private:
  std::vector<device_buffer<member_boxes>> tables_;
};

}}  // namespace warpheap::tool::graph::WARPHEAP_BACKEND
