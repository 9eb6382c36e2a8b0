// SPDX-License-Identifier: Apache-2.0
// The suite `papers`: the data of docs/design/*_figures.md, on the axes of the papers' own figures.
#pragma once

#include <vector>

#include "suite_table.hpp"

namespace warpheap::tool {

std::vector<suite_entry> paper_entries();

/// An entry cut down to a few small measurements that a CPU makes in a moment: what it shows is
/// that the entry runs.
suite_entry sample_of(suite_entry entry);

}  // namespace warpheap::tool
