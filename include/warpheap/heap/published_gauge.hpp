// SPDX-License-Identifier: Apache-2.0
// A heap shown to this user's other programs, such as `warpheap top`. A host thread reads the
// heap's gauge at intervals, and writes the reading to a page of shared memory. This costs calls of
// malloc and free nothing.
#pragma once

#if !defined(__CUDACC_RTC__)

#include <errno.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

#include "gauge.hpp"
#include "gauge_page.hpp"
#include "service_thread.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// Publishes one heap as long as it lives. The heap must outlive it, and not be moved. Its
/// destructor waits for a reading in progress. In the child of a fork it publishes nothing: the
/// page is the parent's.
template <class Allocator>
class published_gauge {
 public:
  /// `name`: the heap's name, 1 to 63 bytes. `interval`: the time between two readings; with 0
  /// there is no thread, and only publish() reads. Throws std::invalid_argument, std::system_error
  /// if the page cannot be made, and what gauge::read() throws.
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
      thread_ = service_thread{[this, interval, device = backend::current_device()] {
        backend::device_scope const on{device};
        publish_every(interval);
      }};
  }
  published_gauge(published_gauge const&) = delete;
  published_gauge& operator=(published_gauge const&) = delete;
  ~published_gauge() {
    if (!thread_.is_here()) {
      // The thread may have held the lock when the process forked.
      static_cast<void>(turns_.release());
      return;
    }
    {
      std::lock_guard const lock{turns_->mutex};
      turns_->stops = true;
    }
    turns_->changed.notify_one();
  }

  /// Reads the gauge and publishes the reading now. Any host thread may call, with the heap's
  /// device current. Throws std::logic_error in the child of a fork.
  gauge_reading publish() {
    if (auto const loss = thread_.loss("published_gauge")) std::rethrow_exception(loss);
    std::lock_guard const lock{turns_->mutex};
    return publish_locked();
  }

  /// What ended the thread early, if anything did: an error of the backend, or a fork.
  std::exception_ptr failure() const {
    if (auto const loss = thread_.loss("published_gauge")) return loss;
    std::lock_guard const lock{turns_->mutex};
    return turns_->failure;
  }

 private:
  struct turns {
    std::mutex mutex;  ///< of the gauge, the page's readings, and what follows
    std::condition_variable changed;
    bool stops = false;
    std::exception_ptr failure;
  };

  gauge_page& page() const { return *static_cast<gauge_page*>(memory_.data()); }

  /// As much of `text` as fits before a zero.
  static void write(char (&to)[gauge_page::text_bytes], std::string const& text) {
    text.copy(to, gauge_page::text_bytes - 1);
  }

  void publish_every(std::chrono::milliseconds interval) {
    std::unique_lock lock{turns_->mutex};
    try {
      backend::stay_out_of_captures();
      while (!turns_->changed.wait_for(lock, interval, [this] { return turns_->stops; })) publish_locked();
    } catch (...) {
      turns_->failure = std::current_exception();
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
  std::unique_ptr<turns> turns_ = std::make_unique<turns>();
  service_thread thread_;
};

}}  // namespace warpheap::WARPHEAP_BACKEND

#endif
