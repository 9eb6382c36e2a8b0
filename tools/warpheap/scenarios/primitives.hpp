// SPDX-License-Identifier: Apache-2.0
// What the scenarios of primitives share. Subjects take turns, so that a drift of the machine
// affects all of them. Times are means over sizes of thread blocks, from 1 to 1,024 as in Gelado
// and Garland 2019 (section 5).
#pragma once

#include <algorithm>
#include <array>

#include "measure/measure.hpp"
#include "options.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

/// The shapes in which `threads` threads are launched. Thread blocks larger than that are left out:
/// they would show nothing new.
inline std::vector<launch_shape> shapes_of(u64 threads, request const& asked) {
  std::vector<launch_shape> shapes;
  for (u64 const size : asked[options::thread_blocks])
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

/// What one subject has shown so far.
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

/// Runs each `run(shape)` in turn, once to warm up and `repeat` times to keep. Stops at the first
/// fault.
template <class... Runs>
std::array<lap, sizeof...(Runs)> take_turns(std::vector<launch_shape> const& shapes, u32 repeat, Runs... runs) {
  std::array<lap, sizeof...(Runs)> laps;
  bool sound = true;
  auto const play = [&](auto& run, lap& into, bool keep) {
    double sum = 0;
    for (auto const shape : shapes) {
      run_outcome const one = run(shape);
      if (into.fault.empty()) into.fault = one.fault;
      into.figure = one.figure;
      sum += one.microseconds;
    }
    if (keep) into.times_us.push_back(sum / static_cast<double>(shapes.size()));
    sound = sound && into.fault.empty();
  };
  for (u32 round = 0; round <= repeat && sound; ++round) {
    size_t next = 0;
    (play(runs, laps[next++], round > 0), ...);
  }
  return laps;
}

/// The median, over rounds, of the first's time over the second's: the speed of the second over the
/// first's.
inline double speedup(lap const& first, lap const& second) { return median_ratio(first.times_us, second.times_us); }

/// Appends the rows of the subjects that took turns, which come with names, parameters and
/// operations. `figure` names what they measured beside the time. All but the first have `ratio`,
/// too. False if any was at fault.
template <size_t N>
bool append_laps(std::vector<result>& rows, std::array<result, N> subjects, char const* figure,
                 std::array<lap, N> const& laps) {
  bool sound = true;
  for (size_t i = 0; i < N; ++i) {
    subjects[i].figures = {{figure, laps[i].figure}};
    if (i > 0) subjects[i].figures.emplace_back("ratio", speedup(laps[0], laps[i]));
    subjects[i].times_us = laps[i].times_us;
    subjects[i].fault = laps[i].fault;
    sound = sound && laps[i].fault.empty();
    rows.push_back(std::move(subjects[i]));
  }
  return sound;
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
