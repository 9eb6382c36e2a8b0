// SPDX-License-Identifier: Apache-2.0
// What all scenarios share on a backend: a stopwatch for device work, the type of the subjects, and
// the checks of a heap from which everything was freed. On a GPU times are those between two CUDA
// events around the launch; on the host backend, of a monotonic clock around it.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "result.hpp"
#include "warpheap/heap/heap.hpp"
#include "warpheap/platform/device_buffer.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

#if defined(__CUDACC__)
inline constexpr bool on_gpu = true;
#else
inline constexpr bool on_gpu = false;
#endif

/// `asked`, or the backend's default where that is 0: as much as keeps a GPU busy, or what a CPU
/// does in a moment.
constexpr u64 default_for_backend(u64 asked, u64 gpu, u64 cpu) {
  if (asked) return asked;
  return on_gpu ? gpu : cpu;
}

/// The subject of a scenario: an allocator to be measured.
template <class Allocator>
struct test_subject {
  using heap_type = basic_heap<Allocator>;
  std::string name;
  bool resets = true;  ///< heap.reset() frees everything
};

#if defined(__CUDACC__)
class stopwatch {
 public:
  stopwatch() {
    cuda_backend::throw_on_error(cudaEventCreate(&start_), "cudaEventCreate");
    cuda_backend::throw_on_error(cudaEventCreate(&stop_), "cudaEventCreate");
  }
  stopwatch(stopwatch const&) = delete;
  stopwatch& operator=(stopwatch const&) = delete;
  ~stopwatch() {
    cudaEventDestroy(start_);
    cudaEventDestroy(stop_);
  }

  /// Device time of what `work` puts on the default stream; waits for it.
  template <class Work>
  double microseconds(Work work) {
    cuda_backend::throw_on_error(cudaEventRecord(start_), "cudaEventRecord");
    work();
    cuda_backend::throw_on_error(cudaEventRecord(stop_), "cudaEventRecord");
    synchronize();
    float milliseconds = 0;
    cuda_backend::throw_on_error(cudaEventElapsedTime(&milliseconds, start_, stop_), "cudaEventElapsedTime");
    return 1e3 * milliseconds;
  }

 private:
  cudaEvent_t start_ = nullptr;
  cudaEvent_t stop_ = nullptr;
};
#endif

#if defined(__CUDACC__)
/// Device times between marks on the default stream.
class lap_watch {
 public:
  explicit lap_watch(size_t marks) : events_(marks) {
    for (auto& event : events_) cuda_backend::throw_on_error(cudaEventCreate(&event), "cudaEventCreate");
  }
  lap_watch(lap_watch const&) = delete;
  lap_watch& operator=(lap_watch const&) = delete;
  ~lap_watch() {
    for (auto const event : events_) cudaEventDestroy(event);
  }

  void mark() { cuda_backend::throw_on_error(cudaEventRecord(events_.at(passed_++)), "cudaEventRecord"); }

  /// Microseconds from each mark to the next; waits. The next mark is the first again.
  std::vector<double> laps() {
    synchronize();
    std::vector<double> made;
    for (size_t i = 1; i < passed_; ++i) {
      float milliseconds = 0;
      cuda_backend::throw_on_error(cudaEventElapsedTime(&milliseconds, events_[i - 1], events_[i]),
                                   "cudaEventElapsedTime");
      made.push_back(1e3 * milliseconds);
    }
    passed_ = 0;
    return made;
  }

 private:
  std::vector<cudaEvent_t> events_;
  size_t passed_ = 0;
};
#else
/// Times between marks, by a clock that waits for what was launched.
class lap_watch {
 public:
  explicit lap_watch(size_t) {}

  void mark() {
    synchronize();
    passed_.push_back(std::chrono::steady_clock::now());
  }

  /// Microseconds from each mark to the next. The next mark is the first again.
  std::vector<double> laps() {
    std::vector<double> made;
    for (size_t i = 1; i < passed_.size(); ++i)
      made.push_back(std::chrono::duration<double, std::micro>{passed_[i] - passed_[i - 1]}.count());
    passed_.clear();
    return made;
  }

 private:
  std::vector<std::chrono::steady_clock::time_point> passed_;
};
#endif

/// Time on the wall's clock.
class wall_clock {
 public:
  /// Until `work` and all that it launched have ended.
  template <class Work>
  double microseconds(Work work) {
    return microseconds_of_call([&] {
      work();
      synchronize();
    });
  }

  /// Until `work` returns, which may be before what it launched has ended.
  template <class Work>
  double microseconds_of_call(Work work) {
    auto const start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::micro>{std::chrono::steady_clock::now() - start}.count();
  }
};

#if !defined(__CUDACC__)
using stopwatch = wall_clock;
#endif

/// Why calls for `bytes` are not worth measuring; empty if they are.
template <class Allocator>
std::string unsupported_reason(test_subject<Allocator> const& subject, u64 bytes) {
  u64 const largest = Allocator::traits.largest_bytes;
  if (bytes <= largest) return {};
  return subject.name + " serves at most " + std::to_string(largest) + " bytes";
}

/// Appends `row` as one that was skipped, if there is a reason why.
inline bool skip(std::vector<result>& rows, result row, std::string const& why) {
  if (why.empty()) return false;
  row.skipped = why;
  rows.push_back(row);
  return true;
}

/// What is wrong with a heap from which everything was freed; empty if nothing is, or the allocator
/// cannot tell.
template <class Heap>
std::string fault_of_emptied(Heap const& heap) {
  if constexpr (requires { heap.statistics(); }) {
    auto const now = heap.statistics();
    if (now.live_blocks) return std::to_string(now.live_blocks) + " blocks lost: live after everything was freed";
    if (now.double_frees) return std::to_string(now.double_frees) + " frees took a block for one freed before";
    if (now.foreign_frees) return std::to_string(now.foreign_frees) + " frees took a block for a foreign pointer";
  }
  if constexpr (requires { heap.check_invariants(); }) {
    auto const violated = heap.check_invariants();
    if (!violated.empty()) return violated.front();
  }
  return {};
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
