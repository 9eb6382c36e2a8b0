// SPDX-License-Identifier: Apache-2.0
// What a heap has done, in one line.
#pragma once

#include <string>

#include "../warpheap.h"

namespace warpheap::archive {

/// `counted`: whether calls were.
std::string report_of(warpheap_statistics const& seen, bool counted);

}  // namespace warpheap::archive
