// SPDX-License-Identifier: Apache-2.0
// A terminal that shows a text again and again in the same place, until a key ends it.
#pragma once

#include <termios.h>

#include <chrono>
#include <optional>
#include <string>

#include "interruption.hpp"

namespace warpheap::tool {

/// Whether standard output is a terminal, and the columns of its lines: 0 if it is none.
size_t terminal_columns();

/// Standard output, a terminal, and standard input, if that is one too. Its end, and a signal that
/// ends the program, restore both.
class terminal_screen {
 public:
  terminal_screen();
  terminal_screen(terminal_screen const&) = delete;
  terminal_screen& operator=(terminal_screen const&) = delete;
  ~terminal_screen();

  /// Shows `text` in place of the last one: as many of its lines, and of their columns, as there is
  /// room for.
  void show(std::string const& text);

  /// Waits that long, or until the key q is typed. Returns whether it was.
  bool is_ended_within(std::chrono::milliseconds time);

 private:
  std::optional<termios> before_;  ///< of standard input, if it is a terminal
  std::optional<changed_terminal> changed_;
};

/// `text` as it replaces what a terminal of this size shows, with the last line left free.
std::string screen_text(std::string const& text, size_t columns, size_t lines);

}  // namespace warpheap::tool
