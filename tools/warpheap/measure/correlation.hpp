// SPDX-License-Identifier: Apache-2.0
// How far two measurements rise together: Pearson's coefficient of pairs of them, with a confidence
// interval of 95% by Fisher's transformation. The atanh of the coefficient of n pairs is about
// normal, with a standard deviation of 1 / sqrt(n - 3). The interval supposes pairs that do not
// depend on each other.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

namespace warpheap::bench {

struct correlation {
  double coefficient, least, most;
};

/// None of fewer than four pairs, or where one of the two is the same in all of them.
inline std::optional<correlation> correlation_of(std::vector<std::pair<double, double>> const& pairs) {
  auto const count = static_cast<double>(pairs.size());
  if (pairs.size() < 4) return {};
  double mean_x = 0, mean_y = 0;
  for (auto const& [x, y] : pairs) {
    mean_x += x / count;
    mean_y += y / count;
  }
  double xx = 0, yy = 0, xy = 0;
  for (auto const& [x, y] : pairs) {
    xx += (x - mean_x) * (x - mean_x);
    yy += (y - mean_y) * (y - mean_y);
    xy += (x - mean_x) * (y - mean_y);
  }
  if (xx == 0 || yy == 0) return {};
  double const measured = xy / std::sqrt(xx * yy);
  double const coefficient = std::clamp(measured, -1.0, 1.0);  // rounding
  constexpr double normal_quantile = 1.959963984540054;        // of 0.975
  double const z = std::atanh(coefficient), reach = normal_quantile / std::sqrt(count - 3);
  return correlation{coefficient, std::tanh(z - reach), std::tanh(z + reach)};
}

}  // namespace warpheap::bench
