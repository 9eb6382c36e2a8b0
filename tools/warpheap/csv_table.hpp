// Tables of a join from files of comma-separated values: a line a tuple, `key,payload`, both whole numbers below 2^32. The
// first line may be a header; blank lines count for nothing. Everything else is an error that names file, line and fault.
#pragma once

#include <string>
#include <string_view>

#include "backend/backend.hpp"

namespace warpheap::tool {

/// The table in `text`, the contents of file `name`. Throws usage_error.
join_table parse_csv_table(std::string const& name, std::string_view text);

/// The table in the file at `path`. Throws usage_error likewise, and if the file cannot be read.
join_table read_csv_table(std::string const& path);

}  // namespace warpheap::tool
