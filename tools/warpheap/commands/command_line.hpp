// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the parser's own
class App;
}

namespace warpheap::tool {

/// What a program with this command line consists of.
struct program_parts {
  std::vector<void (*)(CLI::App& program, int& status)> commands;
  /// Says an error, as tool::complain() does.
  std::function<void(std::string const& command, std::string const& message)> complain;
};

/// The whole program: parses the arguments, runs the subcommand, turns every error into one line on
/// standard error. Returns the exit status: 0 when all is well, 1 when a check of results failed, 2
/// for bad usage, bad input, or output that could not be written.
int run(int count, char const* const* arguments);

/// Likewise, of a program with other parts.
int run(int count, char const* const* arguments, program_parts const& parts);

}  // namespace warpheap::tool
