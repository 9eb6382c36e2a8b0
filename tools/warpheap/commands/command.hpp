// SPDX-License-Identifier: Apache-2.0
// How a command is put together: its flags, which hold what is typed, its options, declared on the
// parser, and what it runs.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/options.hpp"
#include "commands.hpp"

namespace warpheap::tool {

/// Adds a command to the program. If it is typed, `status` becomes what `run` returns.
template <class Flags>
void add_command(CLI::App& program, char const* name, char const* text, void (*declare)(CLI::App&, Flags&),
                 int (*run)(Flags const&), int& status) {
  auto* const command = program.add_subcommand(name, text)->group("Commands");
  auto const flags = std::make_shared<Flags>();
  declare(*command, *flags);
  command->callback([&status, flags, run] { status = run(*flags); });
}

}  // namespace warpheap::tool
