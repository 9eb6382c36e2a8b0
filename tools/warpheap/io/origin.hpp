// SPDX-License-Identifier: Apache-2.0
// The source that the program was built from.
#pragma once

#include <string>

namespace warpheap::tool {

/// Its commit; "unknown" if the build did not know.
std::string commit();

/// The folder of the script that makes pages, as it lay when the program was built.
std::string report_source();

}  // namespace warpheap::tool
