// SPDX-License-Identifier: Apache-2.0
// Jobs of several processes that run the same command line: how this program starts one.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "warpheap/platform/types.hpp"

namespace warpheap::tool {

/// The most that a command starts.
inline constexpr u64 most_processes = 64;

/// Runs this command line as `processes` processes, and returns their exit status.
using process_starter = std::function<int(u32 processes)>;

/// From now on jobs are started like that. A program without a starter, such as one that is itself
/// a process of a job, starts none.
void add_process_starter(process_starter start);

/// What the starter returns; none if the program has none.
std::optional<int> run_as_processes(u32 processes);

/// Runs this program with other arguments, waits for it, and returns its exit status; 128 and the
/// signal's number if a signal ended it. Both have the same standard output.
int run_this_program(std::vector<std::string> const& arguments);

/// Makes this process the program warpheap_pes, which lies in the same folder, with the same
/// arguments. Throws usage_error if it is not there or does not run.
[[noreturn]] void become_pes_program(char** arguments);

}  // namespace warpheap::tool
