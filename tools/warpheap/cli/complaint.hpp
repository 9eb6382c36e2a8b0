// SPDX-License-Identifier: Apache-2.0
// What the program says of itself on standard error.
#pragma once

#include <string>

namespace warpheap::tool {

/// One line, with the program's name and the command's, if there is one.
void complain(std::string const& command, std::string const& message);

}  // namespace warpheap::tool
