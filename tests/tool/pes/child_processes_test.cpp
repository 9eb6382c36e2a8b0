// SPDX-License-Identifier: Apache-2.0
// Processes of a job end with it, whatever happens to one of them or to the process that started
// them.
#include "pes/child_processes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>

namespace warpheap::tool { namespace {

/// A pipe whose end at `to` each process of a job holds open: the end at `from` tells when all of
/// them have ended.
struct life_line {
  int from = -1, to = -1;

  life_line() {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe(ends.data()), 0);
    from = ends[0], to = ends[1];
  }
  ~life_line() { close(from); }

  /// Whether all that held it are gone, after this process let go of it.
  bool has_ended() {
    close(to);
    char byte = 0;
    return read(from, &byte, 1) == 0;
  }
};

/// Runs `child(number)` in `count` processes.
template <class Child>
int run_processes(int count, Child const& child, pid_t (*make)() = fork) {
  child_processes processes;
  for (int number = 0; number < count; ++number) processes.start([&] { child(number); }, make);
  return processes.wait_for_all();
}

[[noreturn]] void wait_forever() {
  for (;;) pause();
}

TEST(ChildProcesses, ReturnTheStatusOfOneThatFails) {
  EXPECT_EQ(run_processes(3, [](int) { _exit(0); }), 0);
  EXPECT_EQ(run_processes(3, [](int number) { number == 1 ? _exit(7) : wait_forever(); }), 7);
  EXPECT_EQ(run_processes(2, [](int number) { number == 1 ? std::abort() : wait_forever(); }), 1);
}

TEST(ChildProcesses, AreWaitedForWhereTheirEndIsIgnored) {
  auto* const before = std::signal(SIGCHLD, SIG_IGN);
  EXPECT_EQ(run_processes(3, [](int number) { _exit(number == 2 ? 5 : 0); }), 5);
  EXPECT_EQ(std::signal(SIGCHLD, before), SIG_IGN) << "as it was";
}

int forks_made = 0;
pid_t make_two() {
  if (++forks_made > 2) return errno = EAGAIN, -1;
  return fork();
}

TEST(ChildProcesses, EndIfOneCannotBeStarted) {
  life_line line;
  forks_made = 0;
  EXPECT_THROW(run_processes(
                   4, [](int) { wait_forever(); }, make_two),
               std::system_error);
  EXPECT_TRUE(line.has_ended());
}

TEST(ChildProcesses, EndWithTheProcessThatStartedThem) {
  life_line line;
  pid_t const parent = fork();
  if (parent == 0) {
    child_processes children;
    for (int number = 0; number < 3; ++number) children.start(wait_forever);
    kill(getpid(), SIGKILL);
  }
  EXPECT_TRUE(line.has_ended());
  waitpid(parent, nullptr, 0);
}

TEST(ChildProcesses, OtherChildrenOfTheProgramAreNoneOfTheJob) {
  pid_t const other = fork();
  if (other == 0) _exit(9);
  EXPECT_EQ(run_processes(2, [](int) { usleep(20'000), _exit(0); }), 0);
}

}}  // namespace warpheap::tool
