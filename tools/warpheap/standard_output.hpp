// Standard output, looked at: a full disk or a closed descriptor is an error that the exit status
// tells. Text is buffered; what became of it is known when output_fault() has flushed it, which
// every path of the program does at its end.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace warpheap::tool {

/// Appends text. A failure is kept for output_fault(), so that what is left to do, like a JSON
/// file, is still done.
void write_output(std::string_view text);

template <class... Values>
void print_output(fmt::format_string<Values...> format, Values&&... values) {
  write_output(fmt::format(format, std::forward<Values>(values)...));
}

/// Flushes standard output, and says in one line what was not written; empty if all was. A reader
/// that has closed the pipe ends the program by SIGPIPE, as it ends others, but only here.
std::string output_fault();

}  // namespace warpheap::tool
