// SPDX-License-Identifier: Apache-2.0
// Text of files, traces and other programs, as a terminal may get it: everything that the tool
// prints for people goes through printable().
#pragma once

#include <string>
#include <string_view>

namespace warpheap::tool {

/// `text` with '?' for each byte of a control character (`C0`, DEL and `C1`), and for each that is
/// not UTF-8, which some terminals take for `C1`. Those in `kept` stay.
std::string printable(std::string_view text, std::string_view kept = {});

/// The start of `text` as a message quotes it: short and printable.
std::string excerpt(std::string_view text);

/// The path as a word of a command that a shell, given the command, passes on unchanged.
std::string shell_word(std::string path);

}  // namespace warpheap::tool
