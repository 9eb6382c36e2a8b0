// SPDX-License-Identifier: Apache-2.0
// The search of a program's schedules, as a process.
#pragma once

#include "cli/child_run.hpp"
#include "warpheap/explore/search_record.hpp"

namespace warpheap::tool {

/// What a search has covered, in words.
std::string coverage_of(explore::search_record const& record);

class program_search {
 public:
  /// `file` is to hold its record; an execution of more than `limit` counts as hung. Throws
  /// usage_error if there can be no such file.
  program_search(std::string file, std::chrono::milliseconds limit);

  /// Searches for `time` at most, and while `is_wanted` holds. `program` includes
  /// `explore/program_search.hpp`. The outcome is that of the execution that failed, and a success
  /// if none has. Any thread, once.
  child_outcome run(std::string const& program, std::chrono::milliseconds time, std::atomic<bool> const& is_wanted);

  /// So far. Any thread.
  u64 executions() const { return record_.executions.load(std::memory_order_relaxed); }

  // After run().
  std::string coverage() const { return coverage_of(record_); }
  /// The schedule of the last execution.
  std::string schedule() const { return explore::text_of(record_.schedule()); }

 private:
  std::string file_;
  std::chrono::milliseconds limit_;
  explore::search_record& record_;
};

}  // namespace warpheap::tool
