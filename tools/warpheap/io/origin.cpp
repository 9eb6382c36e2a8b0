// SPDX-License-Identifier: Apache-2.0
// The one source whose compilation depends on the commit.
#include "origin.hpp"

namespace warpheap::tool {

std::string commit() { return WARPHEAP_COMMIT; }

std::string report_source() { return WARPHEAP_REPORT_SOURCE; }

}  // namespace warpheap::tool
