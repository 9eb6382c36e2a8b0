// SPDX-License-Identifier: Apache-2.0
// A scenario's request and its results. Plain data without device code, so that the program around
// the scenarios is compiled once, and without a GPU compiler.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "warpheap/platform/types.hpp"

namespace warpheap::bench {

/// Called now and then with the progress of the work, from the host thread that does it, between
/// kernels.
using progress = std::function<void(std::string const& task, u64 done, u64 total)>;

/// Called before each measurement with the progress of the work. False: stop here, and keep the
/// rows that are finished.
using checkpoint = std::function<bool(std::string const& task, u64 done, u64 total)>;

/// Sizes drawn uniformly from [least, most], bytes.
struct size_range {
  u64 least = 16;
  u64 most = 16;
};

/// Groups of threads that draw one random number together, and so do the same.
enum class divergence { per_thread, per_warp, per_thread_block };

/// A value of 0 or an empty list means the scenario's default on its backend.
struct request {
  u64 pool_bytes = 0;
  u64 seed = 1;
  u32 repeat = 7;
  u64 threads = 0;
  u32 rounds = 64;
  std::vector<u64> sizes = {};
  std::vector<size_range> ranges = {};
  std::vector<u64> workers = {};
  std::vector<u64> thread_blocks = {};       ///< of exhaust and primitives: their threads
  u32 batch = 512;                           ///< units that a maker makes
  u32 batch_ns = 0;                          ///< how long making a batch takes, beside one atomic
  std::vector<u64> readers_per_writer = {};  ///< of rcu_delegation
  std::vector<divergence> divergences = {};  ///< of two_phase
  /// Of two_phase: how likely a thread allocates, or frees, in an even step and in an odd one.
  std::vector<double> allocate_shares = {0.95, 0.55}, free_shares = {0.55, 0.95};
  std::vector<double> levels = {};       ///< shares of the pool that live
  std::vector<double> left_shares = {};  ///< of fragmentation: blocks that are not freed
  std::vector<double> page_shares = {};  ///< of random_walk: shares of the pages that are free
  u64 kernels = 0;                       ///< of fill_level, long_churn, map
  double seconds = 0;                    ///< of long_churn, on the device
  u32 scale = 0;                         ///< of graph_scaling: 2^scale vertices
  std::vector<int> devices = {};         ///< of graph_scaling, one for each member
  checkpoint proceed = [](std::string const&, u64, u64) { return true; };
};

/// One operation measured `times_us.size()` times. A result carries its own check: `fault` says
/// what was wrong with the blocks that the operation returned or freed, and a result with a fault
/// has no times.
struct result {
  std::string scenario = {};
  std::string allocator = {};
  std::string primitive = {};  ///< where no allocator is measured
  std::string operation = {};
  std::vector<std::pair<std::string, u64>> parameters = {};
  /// measured beside the time: utilisation, cycles
  std::vector<std::pair<std::string, double>> figures = {};
  /// what belongs to each of many places, like the cells of a map
  std::vector<std::pair<std::string, std::vector<u64>>> lists = {};
  std::vector<double> times_us = {};
  double operations = 0;  ///< done in each of the times
  double bytes = 0;       ///< asked for by these mallocs; 0 where no rate of bytes is told
  u64 failures = 0;       ///< calls that returned nullptr, in the last of the times
  std::string fault = {};
  std::string skipped = {};  ///< why nothing was measured; empty if it was

  bool checked() const { return fault.empty(); }
  std::string const& subject() const { return primitive.empty() ? allocator : primitive; }
};

/// The middle value, or the mean of the two in the middle; 0 of none.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  auto const middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// The median, over rounds, of one time over another of the same round.
inline double median_ratio(std::vector<double> const& times, std::vector<double> const& others) {
  std::vector<double> ratios;
  for (size_t i = 0; i < times.size(); ++i) ratios.push_back(times[i] / others.at(i));
  return median(ratios);
}

/// The least value that at least `share` of all values do not exceed; 0 of none.
template <class Value>
Value quantile(std::vector<Value> values, double share) {
  if (values.empty()) return 0;
  auto const wanted = static_cast<size_t>(std::ceil(share * static_cast<double>(values.size())));
  auto const at = values.begin() + static_cast<std::ptrdiff_t>(std::clamp<size_t>(wanted, 1, values.size()) - 1);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace warpheap::bench
