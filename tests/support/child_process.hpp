// SPDX-License-Identifier: Apache-2.0
// A second program, for tests of what programs show each other: a child of the test that runs one
// function and is killed. The function may use no backend, because CUDA does not survive a fork.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>

namespace warpheap::test {

class child_process {
 public:
  template <class Body>
  explicit child_process(Body body) : id_{fork()} {
    if (id_ < 0) throw std::runtime_error{"fork failed"};
    if (id_ > 0) return;
    try {
      body();
    } catch (...) {
    }
    _exit(1);
  }
  child_process(child_process const&) = delete;
  child_process& operator=(child_process const&) = delete;
  ~child_process() { kill(); }

  /// Also after its end.
  pid_t id() const { return id_; }

  /// Ends the child at once, as a crash would: no destructor of its runs.
  void kill() {
    if (!std::exchange(lives_, false)) return;
    ::kill(id_, SIGKILL);
    waitpid(id_, nullptr, 0);
  }

  /// What `look` returns as soon as that is true; after ten seconds, whatever it is.
  template <class Look>
  static auto wait_until(Look look) {
    for (int i = 0; i < 10'000; ++i) {
      if (auto seen = look(); seen) return seen;
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    return look();
  }

  /// For the child: waits to be killed; a test that was killed itself leaves none behind.
  static void wait_for_kill() { sleep(60); }

 private:
  pid_t id_;
  bool lives_ = true;
};

}  // namespace warpheap::test
