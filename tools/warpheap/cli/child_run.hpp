// SPDX-License-Identifier: Apache-2.0
// A program that this one starts, and what came of it.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <vector>

namespace warpheap::tool {

struct child_outcome {
  bool succeeded = false;
  bool was_stopped = false;  ///< by us: its time was over, or `is_wanted` no longer held
  std::string ending;        ///< how it ended, in words
  std::string output;        ///< what it wrote, both streams
};

/// How a program ended that was stopped after `limit`.
std::string ending_after(std::chrono::milliseconds limit);

/// Runs `arguments` with these `NAME=VALUE` texts in the environment, in place of others of the
/// same names, and waits for its end, for `limit` at most, and while `is_wanted` holds. Throws
/// usage_error if it cannot be started. Any thread.
child_outcome run_child(std::vector<std::string> const& arguments, std::vector<std::string> const& environment,
                        std::chrono::milliseconds limit, std::atomic<bool> const& is_wanted);

}  // namespace warpheap::tool
