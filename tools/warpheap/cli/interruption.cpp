// SPDX-License-Identifier: Apache-2.0
#include "interruption.hpp"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <string_view>

namespace warpheap::tool {

namespace {

constexpr int ending_signals[] = {SIGINT, SIGTERM, SIGHUP};

// State that the handler reads and writes. Lock-free, so it may interrupt any of our own code.
//
// The default order, sequentially consistent, throughout: the handler may run in another thread
// than the one that wrote these, and performance does not matter here.
std::atomic<bool> is_deferring{false};
std::atomic<int> noted{0};
std::atomic<bool> is_line_drawn{false};
std::atomic<char const*> unfinished{nullptr};
std::atomic<termios const*> terminal_before{nullptr};
static_assert(std::atomic<char const*>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

/// Written before any handler is installed.
unsigned ignored_mask = 0;

void write_to_terminal(std::string_view text) {
  [[maybe_unused]] auto const ignored = write(STDERR_FILENO, text.data(), text.size());
}

void tidy_up() {
  if (auto const* const before = terminal_before.load()) {
    tcsetattr(STDIN_FILENO, TCSANOW, before);
    [[maybe_unused]] auto const ignored = write(STDOUT_FILENO, show_cursor, sizeof show_cursor - 1);
  }
  if (is_line_drawn) write_to_terminal(wipe_line);
  if (auto const* const path = unfinished.load()) unlink(path);
}

/// Calls only functions that are safe in a signal handler.
void on_signal(int signal) {
  int none = 0;
  if (is_deferring && noted.compare_exchange_strong(none, signal)) {
    if (is_line_drawn) write_to_terminal(wipe_line);
    write_to_terminal("warpheap: ending after this measurement; the same again ends at once\n");
    return;
  }
  tidy_up();
  // The signal is blocked while its handler runs: this one arrives when the handler returns, and
  // ends the program.
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

void handle_signals() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (int const signal : ending_signals) sigaddset(&action.sa_mask, signal);
  for (int const signal : ending_signals) {
    struct sigaction before = {};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler == SIG_IGN) continue;
    sigaction(signal, &action, nullptr);
  }
  for (int const signal : {SIGPIPE, SIGXFSZ})
    if (std::signal(signal, SIG_IGN) == SIG_IGN) ignored_mask |= 1u << signal;
}

bool is_ignored_from_outside(int signal) { return ignored_mask >> signal & 1; }

deferred_interruption::deferred_interruption() { is_deferring = true; }
deferred_interruption::~deferred_interruption() { is_deferring = false; }
int deferred_interruption::signal() const { return noted; }

void die_of(int signal) {
  std::signal(signal, SIG_DFL);
  sigset_t of_it;
  sigemptyset(&of_it);
  sigaddset(&of_it, signal);
  sigprocmask(SIG_UNBLOCK, &of_it, nullptr);
  std::raise(signal);
  _exit(128 + signal);  // reached only if the signal does not end a program
}

unfinished_file::unfinished_file(std::string const& path) { unfinished = path.c_str(); }
unfinished_file::~unfinished_file() { unfinished = nullptr; }

changed_terminal::changed_terminal(termios const& before) { terminal_before = &before; }
changed_terminal::~changed_terminal() { terminal_before = nullptr; }

void set_line_drawn(bool drawn) { is_line_drawn = drawn; }

}  // namespace warpheap::tool
