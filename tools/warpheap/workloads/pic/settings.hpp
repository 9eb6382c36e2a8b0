// SPDX-License-Identifier: Apache-2.0
// A simulation of `warpheap pic`: what it is asked for, and what it gives.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "measure/result.hpp"
#include "warpheap/adaptor/trace/calls.hpp"

namespace warpheap::tool {

/// One particle-in-cell simulation.
struct pic_settings {
  u32 cells_x = 32, cells_y = 32;  ///< powers of two
  u32 particles_per_cell = 8;      ///< of each species
  u32 species = 2;
  u32 steps = 10;
  u64 frame_bytes = 8192;
  u64 pool_bytes = 0;
  u64 seed = 1;
  u32 repeat = 1;
  bench::progress report = [](std::string const&, u64, u64) {};
  /// If set, the calls of the default allocator are recorded, and it is given their trace at the
  /// end.
  std::function<void(call_trace const&)> take_trace = {};
};

/// The outcome: the times of whole steps and of their part that allocates.
struct pic_outcome {
  std::vector<bench::result> results = {};
  u64 state = 0;  ///< a checksum of all particles at the end: the same for all allocators
};

/// A backend's part.
struct pic_job {
  pic_outcome (*run)(std::string const& allocator, pic_settings const& settings);
  /// How many particles one species can have: a row for each number of species up to the one given.
  std::vector<bench::result> (*capacities)(std::string const& allocator, pic_settings const& settings);
};

}  // namespace warpheap::tool
