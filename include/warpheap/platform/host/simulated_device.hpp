// SPDX-License-Identifier: Apache-2.0
// The host as a device: its workers, its streams, and the run of the work put on them.
//
// host.F1  fork() waits for the run of another host thread, for a second at most. A child that
//     forked between runs has all of the device but the OS threads, and makes its own. One that
//     forked during a run refuses to launch, since what the run held stays held.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "crash_report.hpp"
#include "simt.hpp"
#include "thread_pool.hpp"
#include "worker_blocks.hpp"

namespace warpheap::host::detail {

class simulated_device {
 public:
  /// The one simulated device of the process. It runs one set of streams at a time; host threads
  /// that launch together wait for each other.
  static simulated_device& instance() {
    static simulated_device only;
    return only;
  }

  void add(stream_queue& made) {
    std::lock_guard const lock{streams_mutex_};
    streams_.push_back(&made);
  }

  void remove(stream_queue const& gone) {
    std::lock_guard const lock{streams_mutex_};
    for (size_t i = 0; i < streams_.size(); ++i) {
      if (streams_[i] == &gone) streams_.erase(streams_.begin() + static_cast<std::ptrdiff_t>(i--));
    }
  }

  /// Runs all that is pending on all streams.
  void run_streams() {
    std::vector<stream_queue*> queues;
    {
      std::lock_guard const lock{streams_mutex_};
      queues = streams_;
    }
    run(queues);
  }

  /// Runs all that is pending on `queues`; throws what ended the run, with the queues emptied.
  void run(std::vector<stream_queue*> const& queues) {
    if (worker_of_thread) throw backend_error{"synchronize called inside a kernel: it is for host code"};
    if (forked_in_run_) {
      throw backend_error{
          "launch in the child of a fork() that was made while a kernel ran: fork when no kernel runs, or start a "
          "new program"};
    }
    std::lock_guard const lock{run_mutex_};
    u64 blocks = 0, lanes = 0;
    bool pending = false;
    for (auto const* queue : queues) {
      pending |= !queue->pending.empty();
      for (auto const& work : queue->pending) {
        blocks += work.kernel.shape.blocks;
        lanes += u64{work.kernel.shape.blocks} * work.kernel.shape.threads;
      }
    }
    if (!pending) return;
    auto how = checked(current_execution());
    bool const directed = how.policy == schedule_policy::directed && how.director;
    if (directed && !how.director->takes(lanes)) how.policy = schedule_policy::round_robin;
    bool const deterministic = how.mode == execution_mode::deterministic;
    u64 const workers = deterministic ? 1 : useful_workers(how, blocks);
    while (workers_.size() < workers) workers_.push_back(std::make_unique<worker>());
    // ThreadSanitizer takes 1.3 ms to make a fiber, and allows few: the first worker keeps all of
    // its own if it runs alone. Else each keeps some, and the others may make the rest.
    for (u64 i = workers == 1 ? 1 : 0; under_tsan && i < workers_.size(); ++i) workers_[i]->trim_stacks(1024);

    std::unique_ptr<memory_model> model;
    if (deterministic && how.weak_memory && !under_tsan) model = std::make_unique<memory_model>(how.seed);
    dispatcher work{queues, static_cast<u32>(workers)};
    struct job {
      simulated_device& self;
      dispatcher& work;
      execution const& how;
      u32 workers;
      memory_model* model;
    } context{*this, work, how, static_cast<u32>(workers), model.get()};
    if (!pool_) pool_ = std::make_unique<thread_pool>();
    pool_->run(
        context.workers,
        [](void* opaque, u32 member) {
          prepare_for_crashes();
          auto& task = *static_cast<job*>(opaque);
          race_scope const races{*task.self.workers_[member], task.model};
          task.self.workers_[member]->run(task.work, task.how, member, task.workers, task.model);
        },
        &context);
    last_ = {};
    for (u32 i = 0; i < workers; ++i) add(last_, workers_[i]->statistics());
    for (auto* queue : queues) {
      // left over from a failed run
      for (auto& left : queue->pending) tsan_acquire(&left.kernel.finished_blocks);
      queue->pending.clear();
    }
    if (auto const error = work.error()) std::rethrow_exception(error);
  }

  run_statistics const& last_run() const { return last_; }

 private:
  simulated_device() {
    allocations();  // made before this is, so that the workers' shared memory ends first
    pthread_atfork([] { instance().before_fork(); }, [] { instance().after_fork(false); },
                   [] { instance().after_fork(true); });
  }

  ~simulated_device() {
    if (!forked_in_run_) return;
    for (auto& each : workers_) static_cast<void>(each.release());
  }

  /// host.F1
  void before_fork() {
    for (u32 tries = 0; !worker_of_thread && !fork_holds && tries < 1000; ++tries) {
      fork_holds = run_mutex_.try_lock();
      if (!fork_holds) std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
  }
  void after_fork(bool in_child) {
    bool const held = std::exchange(fork_holds, false);
    if (held) run_mutex_.unlock();
    if (!in_child) return;
    static_cast<void>(pool_.release());  // its threads are not here: nothing could end them
    forked_in_run_ = !held;
  }

  /// OS threads that can each run a thread block of `blocks`, at least one.
  static u64 useful_workers(execution const& how, u64 blocks) {
    // Asked once: the system opens files to answer, which took half of the time of a small launch.
    static u32 const processors = std::thread::hardware_concurrency();
    u32 const os_threads = how.os_threads ? how.os_threads : processors;
    return std::max<u64>(1, std::min<u64>({os_threads, u64{how.sm_count} * how.blocks_per_sm, blocks}));
  }

  static execution checked(execution how) {
    if (how.sm_count == 0 || how.blocks_per_sm == 0) {
      throw backend_error{"execution: sm_count and blocks_per_sm must be at least 1"};
    }
    if (how.stack_bytes < 16 * 1024 || how.stack_bytes > u64{1} << 30) {
      throw backend_error{
          format_message({"execution: stack_bytes of ", how.stack_bytes, ": 16384 to 1073741824 are possible"})};
    }
    return how;
  }

  static void add(run_statistics& sum, run_statistics const& part) {
    sum.steps += part.steps;
    sum.schedule_hash ^= part.schedule_hash;
    sum.lanes += part.lanes;
    sum.mixed_site_collectives += part.mixed_site_collectives;
  }

  std::mutex run_mutex_, streams_mutex_;
  std::vector<stream_queue*> streams_;
  std::vector<std::unique_ptr<worker>> workers_;
  run_statistics last_;
  std::unique_ptr<thread_pool> pool_;  // null until the first run of this process
  bool forked_in_run_ = false;
  // this thread holds run_mutex_ from before_fork() to after_fork()
  inline static thread_local bool fork_holds = false;
};

}  // namespace warpheap::host::detail

namespace warpheap::host {

/// Statistics of the last launch or synchronize that ran something.
inline run_statistics const& last_run() { return detail::simulated_device::instance().last_run(); }

}  // namespace warpheap::host
