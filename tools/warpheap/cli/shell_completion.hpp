// SPDX-License-Identifier: Apache-2.0
// Scripts that complete the program's command line in a shell.
#pragma once

#include <string>

#include "command_outline.hpp"

namespace warpheap::tool {

std::string bash_completion(program_outline const& outline);
std::string zsh_completion(program_outline const& outline);
std::string fish_completion(program_outline const& outline);

/// The script for the shell called `shell`. Throws usage_error unless that is bash, zsh or fish.
std::string completion_for(std::string const& shell, program_outline const& outline);

}  // namespace warpheap::tool
