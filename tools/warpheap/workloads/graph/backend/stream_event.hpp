// SPDX-License-Identifier: Apache-2.0
// A point in a stream: others wait for it, and the time between two of one stream is measured. The
// host backend has no events. There a point is reached at once, because all that the streams hold
// is run.
#pragma once

#include <chrono>
#include <utility>

#include "warpheap/platform/simt.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND {

#if defined(__CUDACC__)

/// Made with the stream's device current.
class stream_event {
 public:
  stream_event() { cuda_backend::throw_on_error(cudaEventCreate(&event_), "cudaEventCreate"); }
  stream_event(stream_event&& other) noexcept : event_{std::exchange(other.event_, nullptr)} {}
  stream_event& operator=(stream_event&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }
  ~stream_event() {
    if (event_) cudaEventDestroy(event_);
  }

  /// The point is here: behind all that `on` holds now.
  void record(stream_view on) { cuda_backend::throw_on_error(cudaEventRecord(event_, on), "cudaEventRecord"); }

  /// What `on` is given from now on runs once the point is reached.
  void hold_up(stream_view on) const {
    cuda_backend::throw_on_error(cudaStreamWaitEvent(on, event_, 0), "cudaStreamWaitEvent");
  }

  /// Seconds between two points of one stream that both were reached.
  double seconds_since(stream_event const& earlier) const {
    float milliseconds = 0;
    cuda_backend::throw_on_error(cudaEventElapsedTime(&milliseconds, earlier.event_, event_), "cudaEventElapsedTime");
    return 1e-3 * milliseconds;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

#else

class stream_event {
 public:
  void record(stream_view on) {
    synchronize(on);
    reached_ = std::chrono::steady_clock::now();
  }
  void hold_up(stream_view) const {}
  double seconds_since(stream_event const& earlier) const {
    return std::chrono::duration<double>{reached_ - earlier.reached_}.count();
  }

 private:
  std::chrono::steady_clock::time_point reached_;
};

#endif

}}  // namespace warpheap::tool::WARPHEAP_BACKEND
