// SPDX-License-Identifier: Apache-2.0
// The exception of what a user can correct.
#pragma once

#include <stdexcept>

namespace warpheap::tool {

/// Bad usage or bad input: exit status 2. The message is one line that names what was given and
/// what is wrong with it.
struct usage_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace warpheap::tool
