// What the scenarios of primitives share: two contenders that take turns, so that a drift of the machine meets both, and
// times that are means over sizes of thread blocks, as Gelado and Garland 2019 (section 5) takes them from 1 to 1,024.
#pragma once

#include <algorithm>

#include "measure.hpp"

namespace warpheap::bench {
inline namespace WARPHEAP_BACKEND {

/// The shapes in which `threads` threads are launched; thread blocks larger than that say nothing new.
inline std::vector<launch_shape> shapes_of(u64 threads, request const& asked) {
  std::vector<launch_shape> shapes;
  for (u64 const size : asked.thread_blocks)
    if (size <= threads) shapes.push_back(shape_for(threads, static_cast<u32>(size)));
  if (shapes.empty()) shapes.push_back(shape_for(threads, static_cast<u32>(std::min<u64>(threads, 256))));
  return shapes;
}

/// The sizes of the shapes, for a row.
inline void add_thread_blocks(result& row, std::vector<launch_shape> const& shapes) {
  auto const [least, most] = std::minmax_element(
      shapes.begin(), shapes.end(), [](launch_shape left, launch_shape right) { return left.threads < right.threads; });
  row.parameters.push_back({"least_thread_block", least->threads});
  row.parameters.push_back({"most_thread_block", most->threads});
  row.parameters.push_back({"shapes", shapes.size()});
}

/// What one contender has shown so far.
struct lap {
  std::vector<double> times_us = {};
  double figure = 0;  ///< of the last run
  std::string fault = {};
};

/// One run: its time, what it measured beside, and what was wrong.
struct run_outcome {
  double microseconds = 0;
  double figure = 0;
  std::string fault = {};
};

/// Runs `first(shape)` and `second(shape)` in turn, once to warm up and `repeat` times to keep. Stops at the first fault.
template <class First, class Second>
std::pair<lap, lap> take_turns(std::vector<launch_shape> const& shapes, u32 repeat, First first, Second second) {
  std::pair<lap, lap> laps;
  auto const play = [&](auto& run, lap& into, bool keep) {
    double sum = 0;
    for (auto const shape : shapes) {
      run_outcome const one = run(shape);
      if (into.fault.empty()) into.fault = one.fault;
      into.figure = one.figure;
      sum += one.microseconds;
    }
    if (keep) into.times_us.push_back(sum / static_cast<double>(shapes.size()));
  };
  for (u32 round = 0; round <= repeat; ++round) {
    play(first, laps.first, round > 0);
    play(second, laps.second, round > 0);
    if (!laps.first.fault.empty() || !laps.second.fault.empty()) break;
  }
  return laps;
}

/// The median, over rounds, of the first's time over the second's: how many times as fast the second is.
inline double speedup(lap const& first, lap const& second) {
  std::vector<double> ratios;
  for (size_t i = 0; i < first.times_us.size(); ++i) ratios.push_back(first.times_us[i] / second.times_us[i]);
  return median(ratios);
}

/// Appends a row for each of two contenders that took turns: `first` and `second` say who they are, and have parameters and
/// operations; `figure` names what they measured beside. The second's has `ratio`, too. False if either was at fault.
inline bool append_pair(std::vector<result>& rows, result first, result second, char const* figure,
                        std::pair<lap, lap> const& laps) {
  auto const append = [&](result row, lap const& made) {
    row.figures = {{figure, made.figure}};
    row.times_us = made.times_us;
    row.fault = made.fault;
    rows.push_back(row);
  };
  append(std::move(first), laps.first);
  append(std::move(second), laps.second);
  rows.back().figures.push_back({"ratio", speedup(laps.first, laps.second)});
  return laps.first.fault.empty() && laps.second.fault.empty();
}

}  // namespace WARPHEAP_BACKEND
}  // namespace warpheap::bench
