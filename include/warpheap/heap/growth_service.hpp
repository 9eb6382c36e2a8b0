// SPDX-License-Identifier: Apache-2.0
// A host thread that maps memory for a heap while kernels run and wait for it.
// docs/guide/how_large_a_pool.md says what may prevent that, and what happens then.
#pragma once

#if !defined(__CUDACC_RTC__)

#include <atomic>
#include <chrono>
#include <exception>

#include "heap.hpp"
#include "service_thread.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// Heaps whose refused calls request memory.
template <class Heap>
concept served_heap = requires(Heap& heap) {
  heap.serve();
};

/// Serves one heap as long as it lives. The heap must outlive it, and not be moved. Without a
/// service, waiting calls of kernels get nullptr at their deadline. The child of a fork has no
/// service until it makes one.
class growth_service {
 public:
  /// `pause`: how long the thread sleeps when nothing was requested.
  template <served_heap Heap>
  explicit growth_service(Heap& served, std::chrono::microseconds pause = std::chrono::microseconds{20})
      : thread_{[this, &served, pause, device = backend::current_device()] {
          backend::device_scope const on{device};
          serve(served, pause);
        }} {}
  growth_service(growth_service const&) = delete;
  growth_service& operator=(growth_service const&) = delete;
  /// Ends the thread and the service.
  ~growth_service() { stops_ = true; }

  /// How many times it has mapped memory.
  u64 growths() const { return growths_; }

  /// What ended the service early, if anything did: an error of the backend, or a fork.
  std::exception_ptr failure() const {
    auto const loss = thread_.loss("growth_service");
    return loss || !has_failed_ ? loss : failure_;
  }

 private:
  template <class Heap>
  void serve(Heap& served, std::chrono::microseconds pause) {
    try {
      while (!stops_) {
        if (served.serve() != 0) ++growths_;
        else std::this_thread::sleep_for(pause);
      }
    } catch (...) {
      failure_ = std::current_exception();
      has_failed_ = true;
    }
  }

  std::atomic<bool> stops_{false}, has_failed_{false};
  std::atomic<u64> growths_{0};
  std::exception_ptr failure_;
  service_thread thread_;
};

}}  // namespace warpheap::WARPHEAP_BACKEND

#endif
