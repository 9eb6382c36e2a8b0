// SPDX-License-Identifier: Apache-2.0
// The host's share of a job on all cores: passes of tasks that threads take one after the other,
// and a bar that shows the progress. The result never depends on the number of threads: the number
// of a task alone decides what it does.
#pragma once

#include <functional>
#include <string>

#include "measure/result.hpp"

namespace warpheap::tool {

/// Threads that share the work: one for each core that this process may use. Tests set it.
u32& host_threads();

class parallel_work {
 public:
  /// Work that shows no bar.
  parallel_work() = default;
  /// `passes` is about the number of passes to come: the bar's length.
  parallel_work(bench::progress report, std::string task, u64 passes)
      : report_{std::move(report)}, task_{std::move(task)}, passes_{passes} {}

  /// Calls work(i) once for each i in [0, tasks), and returns when all have returned. Tasks run at
  /// the same time, so no task may touch what another writes. An exception of a task ends the pass,
  /// and is thrown here.
  void pass(u64 tasks, std::function<void(u64 task)> const& work);

 private:
  void show(u64 done, u64 tasks) const;

  bench::progress report_;
  std::string task_;
  u64 passes_ = 0;
  u64 passed_ = 0;
};

/// A range of items cut into chunks of equal size, which are tasks.
struct chunked {
  u64 items;
  u64 chunk;  ///< items of each but the last, 1 at least

  /// Chunks of at least `least` items, and few more than there are threads: for work that needs
  /// room for each chunk.
  static chunked for_threads(u64 items, u64 least);

  u64 count() const { return (items + chunk - 1) / chunk; }
  u64 first(u64 i) const { return i * chunk; }
  u64 last(u64 i) const { return i + 1 == count() ? items : (i + 1) * chunk; }
};

/// Items of a chunk where nothing requires another number: some hundred kilobytes.
inline constexpr u64 usual_chunk = u64{1} << 16;

}  // namespace warpheap::tool
