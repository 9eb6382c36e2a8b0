// SPDX-License-Identifier: Apache-2.0
#include "standard_output.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "interruption.hpp"

namespace warpheap::tool {

namespace {

/// The error number of the first write that failed.
int first_error = 0;

void keep_error() {
  if (!first_error) first_error = errno ? errno : EIO;
}

}  // namespace

void write_output(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) keep_error();
}

std::string output_fault() {
  errno = 0;
  if (std::fflush(stdout) != 0) keep_error();
  if (std::ferror(stdout)) keep_error();
  if (!first_error) return {};
  if (first_error == EPIPE && !is_ignored_from_outside(SIGPIPE)) die_of(SIGPIPE);
  return std::string{"standard output: "} + std::strerror(first_error);
}

void complain(std::string const& command, std::string const& message) {
  std::string line = message;
  std::replace(line.begin(), line.end(), '\n', ' ');
  fmt::print(stderr, "warpheap{}{}: {}\n", command.empty() ? "" : " ", command, printable(line));
}

}  // namespace warpheap::tool
