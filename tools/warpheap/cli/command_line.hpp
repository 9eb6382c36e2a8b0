#pragma once

namespace warpheap::tool {

/// The whole program: parses the arguments, runs the subcommand, turns every error into one line on
/// standard error. Returns the exit status: 0 when all is well, 1 when a check of results failed, 2
/// for bad usage, bad input, or output that could not be written.
int run(int count, char const* const* arguments);

}  // namespace warpheap::tool
