// SPDX-License-Identifier: Apache-2.0
// What `warpheap explore` is asked, and what it found.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "warpheap/platform/types.hpp"

namespace warpheap::tool {

/// Programs of malloc and free by a few lanes on a small pool, and the schedules to try of them.
struct exploration_request {
  u32 lanes = 3;
  u64 pool_bytes = 0;
  /// Calls of a lane, at most.
  u32 calls = 4;
  std::vector<u64> sizes = {};
  /// Of the first program; the next one has the next seed.
  u64 seed = 1;
  u64 programs = 1;
  /// Search every schedule up to this many preemptions. Without it schedules are drawn.
  std::optional<u32> preemptions = std::nullopt;
  /// Drawn schedules, of all programs together.
  u64 schedules = 0;
  double seconds = 0;
  bool weak_memory = false;
  /// A schedule to execute again, as a row gave it.
  std::string replay = {};
  /// Called with what is done so far. False ends the exploration.
  std::function<bool(struct exploration_row const&)> proceed = nullptr;
};

struct exploration_row {
  std::string allocator = {};
  u64 programs = 0;
  u64 schedules = 0;
  u64 cut = 0;
  u64 states = 0;
  double seconds = 0;
  /// A search has tried all schedules of all programs within its bound.
  bool ended = false;
  std::string fault = {};
  /// The seed of the program that failed, and the schedule under which it did.
  u64 seed = 0;
  std::string replay = {};
};

/// A backend's part: tries schedules. Throws usage_error on a backend that cannot choose them.
struct explore_job {
  exploration_row (*run)(std::string const& allocator, exploration_request const& asked);
  /// Why run() cannot take the allocator; empty if it can.
  std::string (*why_not)(std::string const& allocator, exploration_request const& asked);
};

}  // namespace warpheap::tool
