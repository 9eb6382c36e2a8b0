// SPDX-License-Identifier: Apache-2.0
// Processes that this one starts as a job, and that end with it: none is left when one fails, when
// one cannot be started, or when this process is killed.
#pragma once

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <optional>
#include <system_error>
#include <vector>

namespace warpheap::tool {

class child_processes {
 public:
  // Where SIGCHLD is ignored, the system forgets children that end, and none is left to wait for.
  child_processes() : before_{std::signal(SIGCHLD, SIG_DFL)} {}
  child_processes(child_processes const&) = delete;
  child_processes& operator=(child_processes const&) = delete;
  ~child_processes() {
    kill_all();
    while (wait_for_one()) {
    }
    std::signal(SIGCHLD, before_);
  }

  /// Runs `child()` in a process of its own, where it must not return. Throws std::system_error.
  template <class Child>
  void start(Child const& child, pid_t (*make)() = fork) {
    pid_t const parent = getpid(), made = make();
    if (made < 0) throw std::system_error{errno, std::generic_category(), "cannot start another process"};
    if (made == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);  // lasts beyond exec
      if (getppid() == parent) child();
      _exit(127);
    }
    running_.push_back(made);
  }

  /// Waits for all. Returns 0 if all returned 0. When one ends otherwise, the rest are ended too,
  /// since they would wait for it forever.
  int wait_for_all() {
    int result = 0;
    while (auto const status = wait_for_one()) {
      if (*status == 0 || result != 0) continue;
      result = *status;
      kill_all();
    }
    return result;
  }

 private:
  /// The exit status of the next one that ends, 1 if by a signal; none if none is left.
  std::optional<int> wait_for_one() {
    while (!running_.empty()) {
      int status = 0;
      pid_t const ended = wait(&status);
      if (ended < 0 && errno != EINTR) running_.clear();
      else if (std::erase(running_, ended) != 0) return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    }
    return {};
  }

  void kill_all() const {
    for (pid_t const each : running_) kill(each, SIGKILL);
  }

  void (*before_)(int);
  std::vector<pid_t> running_;
};

}  // namespace warpheap::tool
