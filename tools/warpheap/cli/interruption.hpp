// SPDX-License-Identifier: Apache-2.0
// Ctrl-C and the like: SIGINT, SIGTERM, SIGHUP. The program ends by the signal itself, as its
// parent expects (a shell reports 130 for SIGINT), after it has wiped the terminal's last line and
// removed a half-written file. Work that has something to show when it ends early may defer the
// end, once: a second signal is never deferred.
//
// SIGPIPE and SIGXFSZ are ignored: a write that fails is an error, which is reported where it
// occurs.
#pragma once

#include <termios.h>

#include <string>

namespace warpheap::tool {

/// Call once, before any thread is started. A signal that the parent ignored, as nohup does, stays
/// ignored.
void handle_signals();

/// Whether the parent asked that this signal be ignored.
bool is_ignored_from_outside(int signal);

/// While it lives, the first signal is only noted.
class deferred_interruption {
 public:
  deferred_interruption();
  deferred_interruption(deferred_interruption const&) = delete;
  deferred_interruption& operator=(deferred_interruption const&) = delete;
  ~deferred_interruption();

  /// The signal that came; 0 if none.
  int signal() const;
};

/// Ends the program as `signal` does.
[[noreturn]] void die_of(int signal);

/// While it lives, a signal that ends the program removes the file `path`, which may not be there
/// yet.
class unfinished_file {
 public:
  explicit unfinished_file(std::string const& path);
  unfinished_file(unfinished_file const&) = delete;
  unfinished_file& operator=(unfinished_file const&) = delete;
  ~unfinished_file();
};

/// Tells whether something stands on the terminal's last line that a signal which ends the program
/// must wipe away.
void set_line_drawn(bool drawn);

/// While it lives, a signal that ends the program restores standard input's terminal to `before`,
/// and shows the cursor.
class changed_terminal {
 public:
  explicit changed_terminal(termios const& before);
  changed_terminal(changed_terminal const&) = delete;
  changed_terminal& operator=(changed_terminal const&) = delete;
  ~changed_terminal();
};

/// Hides and shows a terminal's cursor.
inline constexpr char hide_cursor[] = "\x1b[?25l", show_cursor[] = "\x1b[?25h";

/// Wipes the last line of a terminal.
inline constexpr char wipe_line[] = "\r\x1b[K";

}  // namespace warpheap::tool
