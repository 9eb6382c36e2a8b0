// SPDX-License-Identifier: Apache-2.0
// Standard output, with its errors: a full disk or a closed descriptor shows in the exit status.
// Text is buffered, so write errors are known only after output_fault() has flushed it. Every path
// of the program calls that at its end.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "complaint.hpp"
#include "printable.hpp"

namespace warpheap::tool {

/// Appends text. A failure is kept for output_fault(), so that remaining work, like a JSON file, is
/// still done.
void write_output(std::string_view text);

/// Appends text for people, which a terminal may get.
template <class... Values>
void print_output(fmt::format_string<Values...> format, Values&&... values) {
  write_output(printable(fmt::format(format, std::forward<Values>(values)...), "\n\t"));
}

/// Flushes standard output, and says in one line what was not written; empty if all was. If the
/// reader has closed the pipe, the program ends by SIGPIPE, as others do, but only here.
std::string output_fault();

}  // namespace warpheap::tool
