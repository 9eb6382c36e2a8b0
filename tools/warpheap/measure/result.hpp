// SPDX-License-Identifier: Apache-2.0
// The results of a measurement. Plain data without device code, so that the program around the
// measurements is compiled once, and without a GPU compiler.
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

  bool operator==(size_range const&) const = default;
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

/// `first`, `first` * `factor`, … up to `last`.
inline std::vector<u64> powers(u64 first, u64 last, u64 factor = 2) {
  std::vector<u64> all;
  for (u64 each = first; each <= last; each *= factor) all.push_back(each);
  return all;
}

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
