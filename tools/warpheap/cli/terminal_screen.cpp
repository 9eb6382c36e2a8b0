// SPDX-License-Identifier: Apache-2.0
#include "terminal_screen.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "standard_output.hpp"

namespace warpheap::tool {

namespace {

constexpr char cursor_to_start[] = "\x1b[H", wipe_rest_of_line[] = "\x1b[K", wipe_rest_of_screen[] = "\x1b[J";

/// The terminal's size; 80 by 24 if it does not say.
winsize size_of_terminal() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {24, 80, 0, 0};
  return size;
}

void write_now(std::string const& text) {
  write_output(text);
  std::fflush(stdout);
}

}  // namespace

size_t terminal_columns() { return isatty(STDOUT_FILENO) == 1 ? size_of_terminal().ws_col : 0; }

terminal_screen::terminal_screen() {
  termios now{};
  if (isatty(STDIN_FILENO) == 1 && tcgetattr(STDIN_FILENO, &now) == 0) {
    before_ = now;
    changed_.emplace(*before_);
    // Keys are read one by one and not shown. Ctrl-Z would leave the terminal like that.
    now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    now.c_cc[VSUSP] = _POSIX_VDISABLE;
    tcsetattr(STDIN_FILENO, TCSANOW, &now);
  }
  write_now(std::string{hide_cursor} + cursor_to_start + wipe_rest_of_screen);
}

terminal_screen::~terminal_screen() {
  write_now(show_cursor);
  if (before_) tcsetattr(STDIN_FILENO, TCSANOW, &*before_);
}

void terminal_screen::show(std::string const& text) {
  auto const size = size_of_terminal();
  write_now(screen_text(text, size.ws_col, size.ws_row));
}

bool terminal_screen::is_ended_within(std::chrono::milliseconds time) {
  auto const end = std::chrono::steady_clock::now() + time;
  for (;;) {
    auto const left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd keys{STDIN_FILENO, POLLIN, 0};
    char key = 0;
    if (!before_) std::this_thread::sleep_for(left);
    else if (poll(&keys, 1, static_cast<int>(left.count())) == 1 && read(STDIN_FILENO, &key, 1) != 1) return true;
    if (key == 'q' || key == 'Q') return true;
  }
}

std::string screen_text(std::string const& text, size_t columns, size_t lines) {
  std::string made = cursor_to_start;
  size_t begin = 0;
  for (size_t line = 0; line + 1 < lines && begin < text.size(); ++line) {
    size_t const end = std::min(text.find('\n', begin), text.size());
    made += text.substr(begin, std::min(end - begin, columns)) + wipe_rest_of_line + "\n";
    begin = end + 1;
  }
  return made + wipe_rest_of_screen;
}

}  // namespace warpheap::tool
