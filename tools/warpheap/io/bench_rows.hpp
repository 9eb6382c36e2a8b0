// SPDX-License-Identifier: Apache-2.0
// Results of measurements as people and programs read them: tables of text, and rows of JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "measure/result.hpp"

namespace warpheap::tool {

double operations_per_second(bench::result const& made);

nlohmann::ordered_json json_of(bench::result const& made, std::string const& backend);

/// A table for each scenario, in the order in which scenarios first occur.
std::string tables_of(std::vector<bench::result> const& results);

}  // namespace warpheap::tool
