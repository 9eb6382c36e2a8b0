// SPDX-License-Identifier: Apache-2.0
// Text files for the readers of all formats: the whole contents as UTF-8 with LF ends of lines,
// whatever program wrote them, or a message with the command that makes them so.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "warpheap/platform/types.hpp"

namespace warpheap::tool {

/// The path that means standard input, and the name that messages give it.
inline constexpr char const* standard_input = "-";
std::string input_name(std::string const& path);

/// The text in a file, or in standard input. Throws usage_error, which names the file, if it cannot
/// be read, and where plain_text() does.
std::string read_text_file(std::string const& path, std::string const& piped);

/// The text in `bytes`, the contents of the file at `path`: without a UTF-8 mark, and with LF for
/// CRLF and for a lone CR. Throws usage_error for an archive, and for compressed text and UTF-16
/// and UTF-32. Its message ends with the command that makes text of them, for `warpheap PIPED` to
/// read from standard input, or for a file if `piped` is empty.
std::string plain_text(std::string const& path, std::string bytes, std::string const& piped);

/// The number that a field stands for: `7`, `+7`, and `7.0` and `1e+05` as programs write them that
/// keep whole numbers as reals. One of more than 63 bits becomes the nearest of 63. Nothing if the
/// field is no whole number.
std::optional<i64> whole_number(std::string_view field);

}  // namespace warpheap::tool
