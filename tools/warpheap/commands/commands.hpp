// SPDX-License-Identifier: Apache-2.0
// The subcommands. Each adds itself to the program with its options. If it is the one that was
// typed, the parser runs it, and `status` becomes the exit status: 0 when all is well, 1 when a
// check of results failed. Bad usage and bad input are usage_error.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming): the parser's own
class App;
}

namespace warpheap::tool {

void add_info(CLI::App& program, int& status);
void add_graph(CLI::App& program, int& status);
void add_bench(CLI::App& program, int& status);
void add_verify(CLI::App& program, int& status);
void add_stress(CLI::App& program, int& status);
void add_explore(CLI::App& program, int& status);
void add_pic(CLI::App& program, int& status);
void add_join(CLI::App& program, int& status);
void add_top(CLI::App& program, int& status);
void add_report(CLI::App& program, int& status);
void add_replay(CLI::App& program, int& status);
void add_test(CLI::App& program, int& status);
void add_run(CLI::App& program, int& status);

}  // namespace warpheap::tool
