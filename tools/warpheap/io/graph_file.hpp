// SPDX-License-Identifier: Apache-2.0
// Reads a graph from a file of any format that is known.
#pragma once

#include <string>

#include "workloads/graph/edge_list.hpp"

namespace warpheap::tool {

/// The format called `name`; if that is empty, the one of the file's name, and of any other name
/// Matrix Market. Throws usage_error, which names --format, if there is none of this name.
std::string graph_format(std::string const& name, std::string const& path);

/// The graph in the file at `path`, or in standard input, of a format from graph_format(). Throws
/// usage_error: one line with the file, the line in it, and the fault.
edge_list read_graph(std::string const& path, std::string const& format, parallel_work work = {});

}  // namespace warpheap::tool
