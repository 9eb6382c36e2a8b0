// SPDX-License-Identifier: Apache-2.0
// Tables of a join from files of comma-separated values: a record a tuple, `key,payload`, both
// whole numbers below 2^32. The first record may be a header; blank lines count for nothing.
// Everything else is an error that names file, line and fault.
//
// Values may be quoted: commas, line ends and doubled quotes are then part of them. The last line
// need not end. Source: RFC 4180. Differs: a blank record is ignored, and spaces around a value are
// not part of it.
#pragma once

#include <string>
#include <string_view>

#include "workloads/join/settings.hpp"

namespace warpheap::tool {

/// The table in `text`, as plain_text() leaves that of file `name`. Throws usage_error.
join_table parse_csv_table(std::string const& name, std::string_view text);

/// The table in the file at `path`, or in standard input. Throws usage_error likewise, and where
/// read_text_file() does.
join_table read_csv_table(std::string const& path, std::string const& piped);

}  // namespace warpheap::tool
