// SPDX-License-Identifier: Apache-2.0
// Hands out the work of a run: kernels and fills, in order within a stream, concurrently between
// streams.
//
// A lock is taken once a thread block, not once a lane's step.
#pragma once

#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "lane.hpp"

namespace warpheap::host::detail {

/// One piece of a stream's work: a kernel with its own copy of functor and arguments, or a fill.
struct stream_work {
  grid kernel{};
  std::unique_ptr<u8[]> closure;  // null: a fill
  void* memory = nullptr;
  size_t bytes = 0;
  u8 value = 0;
};

/// Work that was put on one stream and has not run yet.
struct stream_queue {
  std::deque<stream_work> pending;
  bool runs_apart = false;  ///< alone, by the host thread that synchronizes it
};

/// A thread block to start; `of` is null if there is none now.
struct block_ticket {
  grid* of = nullptr;
  u32 index = 0;
};

class dispatcher {
 public:
  dispatcher(std::vector<stream_queue*> queues, u32 workers)
      : queues_{static_cast<std::vector<stream_queue*>&&>(queues)}, busy_{workers} {}

  /// The next thread block that may start, taking turns between streams.
  block_ticket take(u64 stamp) {
    std::lock_guard const lock{mutex_};
    return take_locked(stamp);
  }

  /// Like take(), but waits for a thread block; null when all work is done or the run has failed.
  block_ticket wait(u64 stamp) {
    std::unique_lock lock{mutex_};
    for (;;) {
      if (failed() || all_done()) return {};
      if (auto const ticket = take_locked(stamp); ticket.of) return ticket;
      // A fill that take_locked ran may have been the last work.
      if (all_done()) continue;
      --busy_;
      changed_.wait(lock);
      ++busy_;
      begin_quiet();
    }
  }

  /// Since when no lane is known to have changed anything: for all_are_quiet().
  u64 quiet_since() {
    std::lock_guard const lock{mutex_};
    return quiet_since_;
  }

  /// A lane changed something.
  void end_quiet() {
    std::lock_guard const lock{mutex_};
    begin_quiet();
  }

  /// host.Q2: a worker with lanes has looked for long enough, and seen none of them change anything
  /// since `since`, which becomes the present. `told`: it has said so before. True if all workers
  /// that have lanes say so for the second time.
  bool all_are_quiet(u64& since, bool& told) {
    std::lock_guard const lock{mutex_};
    if (since != quiet_since_) told = false;
    else if (!told) {
      told = true;
      ++quiet_;
    }
    if (quiet_ == busy_ && is_second_round_) return true;
    if (quiet_ == busy_) {
      begin_quiet();
      is_second_round_ = true;
      told = false;
    }
    since = quiet_since_;
    return false;
  }

  void finish(grid& ended) {
    std::lock_guard const lock{mutex_};
    if (++ended.finished_blocks < ended.shape.blocks) return;
    // Only now: thread blocks that end and start during the kernel must not order its lanes among
    // each other.
    tsan_acquire(&ended.finished_blocks);
    for (auto* queue : queues_) {
      if (!queue->pending.empty() && &queue->pending.front().kernel == &ended) queue->pending.pop_front();
    }
    changed_.notify_all();
  }

  /// Ends the run with `error`; the first one is kept.
  void fail(std::exception_ptr error) {
    std::lock_guard const lock{mutex_};
    if (!error_) error_ = error;
    __atomic_store_n(&failed_, true, __ATOMIC_RELAXED);
    changed_.notify_all();
  }

  // relaxed: workers only stop on it; what failed is read after they have joined.
  WARPHEAP_NO_TSAN bool failed() const { return __atomic_load_n(&failed_, __ATOMIC_RELAXED); }
  std::exception_ptr error() const { return error_; }

  /// Thread blocks that have not started, for the report of a deadlock.
  u64 waiting_blocks() {
    std::lock_guard const lock{mutex_};
    u64 blocks = 0;
    for (auto const* queue : queues_) {
      if (!queue->pending.empty())
        blocks += queue->pending.front().kernel.shape.blocks - queue->pending.front().kernel.next_block;
    }
    return blocks;
  }

 private:
  void begin_quiet() {
    ++quiet_since_;
    quiet_ = 0;
    is_second_round_ = false;
  }

  bool all_done() const {
    for (auto const* queue : queues_) {
      if (!queue->pending.empty()) return false;
    }
    return true;
  }

  block_ticket take_locked(u64 stamp) {
    for (size_t tried = 0; tried < queues_.size(); ++tried) {
      auto& pending = queues_[turn_++ % queues_.size()]->pending;
      while (!pending.empty() && !pending.front().closure) {
        std::memset(pending.front().memory, pending.front().value, pending.front().bytes);
        pending.pop_front();
        changed_.notify_all();
      }
      if (pending.empty()) continue;
      auto& kernel = pending.front().kernel;
      if (kernel.next_block == kernel.shape.blocks) continue;
      if (kernel.next_block == 0) kernel.start_stamp = stamp;
      return {&kernel, kernel.next_block++};
    }
    return {};
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<stream_queue*> queues_;
  size_t turn_ = 0;
  u32 busy_;  // workers that do not wait for a thread block
  u32 quiet_ = 0;
  u64 quiet_since_ = 0;
  bool is_second_round_ = false;
  std::exception_ptr error_;
  bool failed_ = false;
};

}  // namespace warpheap::host::detail
