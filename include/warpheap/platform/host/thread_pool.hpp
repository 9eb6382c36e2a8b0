// SPDX-License-Identifier: Apache-2.0
// OS threads that wait for parallel runs. The caller's own thread is always the first worker, so a
// small launch wakes no other.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "../types.hpp"

namespace warpheap::host::detail {

class thread_pool {
 public:
  thread_pool() = default;
  thread_pool(thread_pool const&) = delete;
  thread_pool& operator=(thread_pool const&) = delete;
  ~thread_pool() {
    {
      std::lock_guard const lock{mutex_};
      closing_ = true;
    }
    called_.notify_all();
    for (auto& thread : threads_) thread.join();
  }

  /// Calls `task(context, i)` for each i in [0, members), each on an OS thread of its own; returns
  /// when all have.
  void run(u32 members, void (*task)(void* context, u32 member), void* context) {
    while (threads_.size() + 1 < members) {
      threads_.emplace_back([this, member = static_cast<u32>(threads_.size() + 1)] { serve(member); });
    }
    {
      std::lock_guard const lock{mutex_};
      task_ = task;
      context_ = context;
      members_ = members;
      busy_ = members - 1;
      ++calls_;
    }
    if (members > 1) called_.notify_all();
    task(context, 0);
    std::unique_lock lock{mutex_};
    while (busy_ > 0) done_.wait(lock);
  }

 private:
  void serve(u32 member) {
    std::unique_lock lock{mutex_};
    for (u64 served = 0;;) {
      while (!closing_ && (calls_ == served || member >= members_)) called_.wait(lock);
      if (closing_) return;
      served = calls_;
      lock.unlock();
      task_(context_, member);
      lock.lock();
      if (--busy_ == 0) done_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable called_, done_;
  std::vector<std::thread> threads_;
  void (*task_)(void*, u32) = nullptr;
  void* context_ = nullptr;
  u32 members_ = 0;
  u32 busy_ = 0;
  u64 calls_ = 0;
  bool closing_ = false;
};

}  // namespace warpheap::host::detail
