// SPDX-License-Identifier: Apache-2.0
// A heap shown to other programs of this user, of which `warpheap top` is one. A host thread
// reads the heap's gauge every now and then, and writes the reading to a page of shared memory.
// Calls of malloc and free take no time for it.
#pragma once

#if !defined(__CUDACC_RTC__)

#include <errno.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

#include "gauge.hpp"
#include "gauge_page.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// Publishes one heap as long as it lives. The heap must outlive it, and not be moved. Its end
/// waits for a reading in progress.
template <class Allocator>
class published_gauge {
 public:
  /// `name`: of the heap, 1 to 63 bytes. `interval`: between two readings; with 0 there is no
  /// thread, and publish() alone reads. Throws std::invalid_argument, std::system_error if the
  /// page cannot be made, and what gauge::read() throws.
  published_gauge(basic_heap<Allocator> const& observed, std::string const& name,
                  std::chrono::milliseconds interval = std::chrono::milliseconds{500})
      : gauge_{observed, stream::apart()}, memory_{gauge_page::prefix, sizeof(gauge_page)} {
    if (name.empty() || name.size() >= gauge_page::text_bytes)
      throw std::invalid_argument{"a published heap's name has " + std::to_string(name.size()) + " bytes: 1 to " +
                                  std::to_string(gauge_page::text_bytes - 1) + " are possible"};
    page().process = static_cast<u64>(getpid());
    write(page().program, program_invocation_short_name);
    write(page().heap, name);
    write(page().allocator, Allocator::creation_type::name);
    write(page().device, backend::device_name());
    publish();
    page().show();
    if (interval.count() > 0)
      thread_ = std::thread{[this, interval, device = backend::current_device()] {
        backend::device_scope const on{device};
        publish_every(interval);
      }};
  }
  published_gauge(published_gauge const&) = delete;
  published_gauge& operator=(published_gauge const&) = delete;
  ~published_gauge() {
    if (!thread_.joinable()) return;
    {
      std::lock_guard const lock{mutex_};
      stops_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

  /// Reads the gauge and publishes the reading now. Any host thread may call, with the heap's
  /// device current.
  gauge_reading publish() {
    std::lock_guard const lock{mutex_};
    return publish_locked();
  }

  /// What ended the thread before its time, if anything did: an error of the backend, say.
  std::exception_ptr failure() const {
    std::lock_guard const lock{mutex_};
    return failure_;
  }

 private:
  gauge_page& page() const { return *static_cast<gauge_page*>(memory_.data()); }

  /// As much of `text` as there is room for, before a zero.
  static void write(char (&to)[gauge_page::text_bytes], std::string const& text) {
    text.copy(to, gauge_page::text_bytes - 1);
  }

  void publish_every(std::chrono::milliseconds interval) {
    std::unique_lock lock{mutex_};
    try {
      backend::stay_out_of_captures();
      while (!changed_.wait_for(lock, interval, [this] { return stops_; })) publish_locked();
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

  gauge_reading publish_locked() {
    auto made = gauge_.read();
    page().publish({.read_at = page_parts::steady_nanoseconds(),
                    .pool_bytes = made.pool_bytes,
                    .committed_bytes = made.committed_bytes,
                    .live_bytes = made.live_bytes,
                    .live_blocks = made.live_blocks,
                    .highest_live_bytes = made.highest_live_bytes,
                    .failures = made.failures,
                    .largest_failed_bytes = made.largest_failed_bytes});
    return made;
  }

  gauge<Allocator> gauge_;
  shared_page memory_;
  mutable std::mutex mutex_;  ///< of the gauge, the page's readings, and what follows
  std::condition_variable changed_;
  bool stops_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

}}  // namespace warpheap::WARPHEAP_BACKEND

#endif
