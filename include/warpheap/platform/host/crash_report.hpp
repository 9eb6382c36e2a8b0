// SPDX-License-Identifier: Apache-2.0
// A lane that crashes, by a null pointer, an abort or the end of its stack, is named before the
// process dies, with what replays it. That takes a signal handler. It only writes a line, from a
// buffer of fixed size; then the signal does what it would have done without us.
//
// host.C1  the handlers are installed once, before the first kernel runs. The first crash restores
//     the handler that was there before, and that gets the same signal: the system's end of the
//     process, a user's handler, a sanitizer's report.
// host.C2  a handler runs on a stack of its own, because the lane's may be used up. An OS thread
//     that has such a stack already keeps it.
#pragma once

#include <csignal>
#include <memory>

#include "asan_report.hpp"

namespace warpheap::host::detail {

struct crash_signal {
  int number;
  char const* name;
};
inline constexpr crash_signal crash_signals[] = {
    {SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGFPE, "SIGFPE"}, {SIGILL, "SIGILL"}, {SIGABRT, "SIGABRT"}};
inline constexpr u32 crash_signal_count = sizeof crash_signals / sizeof crash_signals[0];

/// What each signal did before us (host.C1).
inline struct sigaction actions_before[crash_signal_count];

/// Writes the line: the lane, its crash, and the settings that replay it.
WARPHEAP_NO_TSAN inline void report_crash(worker const& here, char const* signal_name, siginfo_t const& info) {
  lane const& self = here.running();
  auto const address = reinterpret_cast<u64>(info.si_addr);
  bool const has_address = info.si_code > 0;  // else a process sent it, as abort() does
  fixed_text text;
  add_to(text, {"warpheap: "});
  if (has_address && self.stack->ends_above(address)) {
    add_overflow(text, self);
  } else {
    add_name(text, self);
    add_to(text, {" crashed: ", signal_name});
    if (has_address) {
      add_to(text, {" at address 0x"});
      text.add(address, 16);
    }
  }
  add_to(text, {"\n  "});
  add_settings(text, here.settings());
  add_to(text, {", step ", here.steps(), "\n"});
  text.write_to_standard_error();
}

WARPHEAP_NO_TSAN inline void on_crash(int signal, siginfo_t* info, void*) {
  u32 which = 0;
  while (which + 1 < crash_signal_count && crash_signals[which].number != signal) ++which;
  worker const* const here = worker_of_thread;
  if (here && here->runs_a_lane()) report_crash(*here, crash_signals[which].name, *info);
  // host.C1: an instruction that faulted is tried again when we return, and faults again. A signal
  // that was sent is sent again.
  sigaction(signal, &actions_before[which], nullptr);
  if (info->si_code <= 0) raise(signal);
}

/// host.C1, for the process.
inline void catch_crashes() {
  struct sigaction ours {};
  ours.sa_sigaction = on_crash;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&ours.sa_mask);
  for (u32 i = 0; i < crash_signal_count; ++i) sigaction(crash_signals[i].number, &ours, &actions_before[i]);
}

/// host.C2, for an OS thread, until it ends.
class signal_stack {
 public:
  signal_stack() {
    stack_t found{};
    if (sigaltstack(nullptr, &found) != 0 || !(found.ss_flags & SS_DISABLE)) return;
    memory_ = std::make_unique_for_overwrite<u8[]>(bytes);
    stack_t ours{};
    ours.ss_sp = memory_.get();
    ours.ss_size = bytes;
    sigaltstack(&ours, nullptr);
  }
  signal_stack(signal_stack const&) = delete;
  signal_stack& operator=(signal_stack const&) = delete;
  ~signal_stack() {
    stack_t found{};
    if (!memory_ || sigaltstack(nullptr, &found) != 0 || found.ss_sp != memory_.get()) return;
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
  }

 private:
  static constexpr size_t bytes = 64 * 1024;

  std::unique_ptr<u8[]> memory_;
};

/// Called before an OS thread runs lanes. Only the first call of a process and of a thread does
/// something: 13 system calls for each run took 15 us of a launch's 47.
inline void prepare_for_crashes() {
  [[maybe_unused]] static bool const caught = (catch_crashes(), catch_asan_reports(), true);
  [[maybe_unused]] static thread_local signal_stack const stack;
}

}  // namespace warpheap::host::detail
