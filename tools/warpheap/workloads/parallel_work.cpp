// SPDX-License-Identifier: Apache-2.0
#include "parallel_work.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace warpheap::tool {

namespace {

/// One pass: the threads that work on it take the numbers of tasks from one counter.
class pass_of_tasks {
 public:
  pass_of_tasks(u64 tasks, std::function<void(u64)> const& work) : tasks_{tasks}, work_{work} {}

  /// Takes tasks until there are none, or one has failed. `after` is called after each.
  template <class After>
  void take_tasks(After after) {
    // relaxed: a task reads nothing that another wrote; joining the threads makes their results
    // visible to the caller.
    for (u64 task; (task = next_.fetch_add(1, std::memory_order_relaxed)) < tasks_;) {
      try {
        work_(task);
      } catch (...) {
        // relaxed: only the thread that sets the flag first writes the exception, and it is read
        // after joining.
        if (!failed_.exchange(true, std::memory_order_relaxed)) failure_ = std::current_exception();
        next_.store(tasks_, std::memory_order_relaxed);
      }
      after(done_.fetch_add(1, std::memory_order_relaxed) + 1);  // relaxed: a number for a bar
    }
  }

  /// Call after all threads are joined.
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  u64 const tasks_;
  std::function<void(u64)> const& work_;
  std::atomic<u64> next_{0}, done_{0};
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;
};

/// Starts threads beside the caller's, to be joined at the end. Where the system refuses one, there
/// are fewer.
std::vector<std::thread> start_helpers(u64 wanted, std::function<void()> const& body) {
  std::vector<std::thread> helpers;
  helpers.reserve(wanted);
  try {
    while (helpers.size() < wanted) helpers.emplace_back(body);
  } catch (std::system_error const&) {
  }
  return helpers;
}

}  // namespace

u32& host_threads() {
  static u32 threads = std::max(1u, std::thread::hardware_concurrency());
  return threads;
}

void parallel_work::pass(u64 tasks, std::function<void(u64 task)> const& work) {
  pass_of_tasks pass{tasks, work};
  auto helpers =
      start_helpers(tasks ? std::min<u64>(host_threads(), tasks) - 1 : 0, [&pass] { pass.take_tasks([](u64) {}); });
  pass.take_tasks([&](u64 done) { show(done, tasks); });
  for (auto& helper : helpers) helper.join();
  pass.rethrow();
  if (tasks) show(tasks, tasks);  // the last task may have been another thread's
  ++passed_;
}

void parallel_work::show(u64 done, u64 tasks) const {
  constexpr u64 marks = 1000;  // the bar's steps for a pass
  if (report_) report_(task_, passed_ * marks + done * marks / tasks, passes_ * marks);
}

chunked chunked::for_threads(u64 items, u64 least) {
  // Four times as many chunks as threads: the others wait for the last thread for a quarter of a
  // thread's share.
  return {items, std::max(least, items / (4 * u64{host_threads()}) + 1)};
}

}  // namespace warpheap::tool
