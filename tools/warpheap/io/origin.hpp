// SPDX-License-Identifier: Apache-2.0
// The source that the program was built from.
#pragma once

#include <string>

namespace warpheap::tool {

/// Its commit; "unknown" if the build did not know.
std::string commit();

/// What it needs at run time and does not hold: `installed`, below the prefix of the installation
/// that the program belongs to, or `in_source`, in the source as it lay when the program was built.
/// Throws usage_error if neither has a file of that name: then `what` is missing.
std::string find_folder(std::string const& installed, std::string const& in_source, std::string const& file,
                        std::string const& what);

}  // namespace warpheap::tool
