// SPDX-License-Identifier: Apache-2.0
// The kernels of few_lanes.hpp as a program whose schedules are searched. The environment's CASE
// says what it does.
#include "few_lanes.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

using namespace planted;

/// Aborts in a lane that comes after the other one.
struct come_first {
  WARPHEAP_DEVICE void operator()(u32* word) const {
    if (global_thread_index() == 0) atomic_ref<u32>{*word}.store(1, order::relaxed);
    else if (atomic_ref<u32>{*word}.load(order::relaxed) == 1) std::abort();
  }
};

struct add_up {
  WARPHEAP_DEVICE void operator()(u32* sum, u32 times) const {
    for (u32 i = 0; i < times; ++i) atomic_ref<u32>{*sum}.fetch_add(1, order::relaxed);
  }
};

/// Adds a line to the file LOG, whatever becomes of this execution's output.
void log_line(std::string const& line) {
  auto* const log = std::fopen(std::getenv("LOG"), "a");
  std::fprintf(log, "%s\n", line.c_str());
  std::fclose(log);
}

bool is_wrong_by_two_preemptions() {
  auto const seen = sights();
  bool const is_wrong = seen == "011";
  std::printf("it sees %s%s\n", seen.c_str(), is_wrong ? "" : ", as it may");
  return is_wrong;
}

int main() {
  std::string const wanted = std::getenv("CASE");
  device_buffer<u32> const word(1);
  if (wanted == "right") log_line(signatures());
  if (wanted == "two preemptions" && is_wrong_by_two_preemptions()) return 3;
  if (wanted == "abort") launch({2, 1}, come_first{}, word.data());
  if (wanted == "hang")
    while (sights() == "002") pause();
  if (wanted.starts_with("crowd")) static_cast<void>(sights(128));
  if (wanted == "crowd and few") static_cast<void>(signatures());
  // Differs from one execution to the next.
  if (wanted == "by process") launch({2, 1}, add_up{}, word.data(), 1 + static_cast<u32>(getpid()) % 5);
  return 0;
}
