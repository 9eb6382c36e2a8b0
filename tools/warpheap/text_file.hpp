// Text files as readers of formats take them: the whole contents, and what of them may be shown in a message.
#pragma once

#include <string>
#include <string_view>

namespace warpheap::tool {

/// The contents of a file. Throws usage_error, which names the file, if it cannot be read.
std::string read_text_file(std::string const& path);

/// The start of `text` as a message shows it: short, and without control characters.
std::string excerpt(std::string_view text);

}  // namespace warpheap::tool
