// Results of measurements as people and programs read them: a row of a table, and a row of JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "backend/backend.hpp"
#include "text_table.hpp"

namespace warpheap::tool {

double operations_per_second(bench::result const& made);

nlohmann::ordered_json json_of(bench::result const& made, std::string const& backend);

/// The table that add_row adds to.
text_table result_table();
void add_row(text_table& table, bench::result const& made);

}  // namespace warpheap::tool
