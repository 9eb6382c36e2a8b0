// SPDX-License-Identifier: Apache-2.0
// The program's manual page.
#pragma once

#include <string>

#include "command_outline.hpp"

namespace warpheap::tool {

/// In the macros of man(7).
std::string man_page(program_outline const& outline);

}  // namespace warpheap::tool
