// SPDX-License-Identifier: Apache-2.0
// How the libraries in place of CUDA's tell a test what was asked of them: each call is a line of
// the file that FAKE_CALLS names.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace {

/// Appends a line, in one call: threads of a process write to one file.
[[gnu::format(printf, 1, 2)]] inline void write_down(char const* format, ...) {
  char const* const path = std::getenv("FAKE_CALLS");
  if (path == nullptr) return;
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  int const length = std::vsnprintf(line, sizeof line - 1, format, arguments);
  va_end(arguments);
  line[length] = '\n';
  int const file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
  (void)!write(file, line, static_cast<size_t>(length) + 1);
  close(file);
}

}  // namespace
