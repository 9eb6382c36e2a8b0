// SPDX-License-Identifier: Apache-2.0
// What `warpheap top` shows of published heaps, as text.
#pragma once

#include <string>

#include "warpheap/heap/gauge_page.hpp"

namespace warpheap::tool {

/// Live bytes over committed ones.
double live_share(gauge_figures const& figures);

/// A table with a line for each heap, if lines have room for it, and notes on heaps that were not
/// read lately or cannot be shown. What programs say of themselves is printed as plain text.
std::string heap_list(published_heaps const& seen, size_t line_columns);

/// `bytes` in three digits and a binary unit, for a column: "1.25 GiB".
std::string short_bytes(u64 bytes);

}  // namespace warpheap::tool
