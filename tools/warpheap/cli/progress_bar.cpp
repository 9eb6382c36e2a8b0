// SPDX-License-Identifier: Apache-2.0
#include "progress_bar.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "interruption.hpp"
#include "printable.hpp"

namespace warpheap::tool {

using namespace std::chrono_literals;

progress_bar::progress_bar() : terminal_{isatty(STDERR_FILENO) == 1} {}

void progress_bar::show(std::string const& task, u64 done, u64 total) {
  auto const now = clock::now();
  if (!terminal_ || now - start_ < 1s || now - last_ < 100ms) return;
  last_ = now;
  drawn_ = true;
  set_line_drawn(true);
  fmt::print(stderr, "{}{}", wipe_line, progress_line(task, done, total));
  std::fflush(stderr);
}

void progress_bar::clear() {
  if (!drawn_) return;
  drawn_ = false;
  fmt::print(stderr, "{}", wipe_line);
  std::fflush(stderr);
  set_line_drawn(false);
}

std::string progress_line(std::string const& task, u64 done, u64 total) {
  constexpr u64 width = 30;
  u64 const part = total ? std::min(done, total) : 0;
  u64 const whole = total ? total : 1;
  auto const filled = static_cast<size_t>(width * part / whole);
  return fmt::format("[{}{}] {:>3}%  {}", std::string(filled, '#'), std::string(width - filled, '-'),
                     100 * part / whole, printable(task));
}

}  // namespace warpheap::tool
