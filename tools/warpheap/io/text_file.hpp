// Text files for the readers of formats: the whole contents, and excerpts that may be shown in a
// message.
#pragma once

#include <string>
#include <string_view>

namespace warpheap::tool {

/// The path that means standard input, and the name that messages give it.
inline constexpr char const* standard_input = "-";
std::string input_name(std::string const& path);

/// The contents of a file, or of standard input. Throws usage_error, which names the file, if it
/// cannot be read or is compressed. For a compressed file the remedy in the message ends with
/// `piped`, the end of a command that reads standard input.
std::string read_text_file(std::string const& path, std::string const& piped);

/// The start of `text` as a message shows it: short, and without control characters.
std::string excerpt(std::string_view text);

}  // namespace warpheap::tool
