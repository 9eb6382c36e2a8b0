// SPDX-License-Identifier: Apache-2.0
// The progress of the work, on a terminal's last line. Nothing is drawn in the first second, nor if
// standard error is no terminal, and the line is wiped before anything else is written.
#pragma once

#include <chrono>
#include <string>

#include "measure/result.hpp"

namespace warpheap::tool {

class progress_bar {
 public:
  progress_bar();
  progress_bar(progress_bar const&) = delete;
  progress_bar& operator=(progress_bar const&) = delete;
  ~progress_bar() { clear(); }

  /// `done` of `total` steps of `task` are done.
  void show(std::string const& task, u64 done, u64 total);
  void clear();

  /// A function for code that does not know the bar. Valid as long as the bar.
  bench::progress reporter() {
    return [this](std::string const& task, u64 done, u64 total) { show(task, done, total); };
  }

 private:
  using clock = std::chrono::steady_clock;

  bool terminal_;
  bool drawn_ = false;
  clock::time_point start_ = clock::now();
  clock::time_point last_ = {};
};

/// The line itself, without the return to its start: "[######----]  60%  task".
std::string progress_line(std::string const& task, u64 done, u64 total);

}  // namespace warpheap::tool
