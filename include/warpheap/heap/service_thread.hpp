// SPDX-License-Identifier: Apache-2.0
// A host thread that works for a heap as long as its owner lives. fork() copies the owner but not
// the thread, so the child must neither wait for it nor trust a lock that it may have held.
#pragma once

#if !defined(__CUDACC_RTC__)

#include <unistd.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace warpheap {

class service_thread {
 public:
  /// Does nothing.
  service_thread() = default;
  template <class Body>
  explicit service_thread(Body body) : thread_{std::move(body)} {}
  service_thread(service_thread const&) = delete;
  service_thread& operator=(service_thread&&) = default;
  /// Waits for the body to end, which the owner must have requested.
  ~service_thread() {
    if (!thread_.joinable()) return;
    if (is_here()) thread_.join();
    else thread_.detach();
  }

  /// Whether this process made it; otherwise it does not run here.
  bool is_here() const { return maker_ == getpid(); }
  /// An error for the child of a fork; null in the process that made the thread. `owner`: what the
  /// child must make anew.
  std::exception_ptr loss(char const* owner) const {
    if (is_here()) return nullptr;
    return std::make_exception_ptr(std::logic_error{
        std::string{owner} + " of the process that forked: its thread is not in the child; make another one here"});
  }

 private:
  pid_t maker_ = getpid();
  std::thread thread_;
};

}  // namespace warpheap

#endif
