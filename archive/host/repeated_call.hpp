// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <thread>

#include <warpheap/heap/service_thread.hpp>

#include "context.hpp"

namespace warpheap::archive {

/// Calls a function again and again, in a thread of its own, until the object is destroyed or the
/// function fails. The function returns how long to wait before the next time.
class repeated_call {
 public:
  template <class Function>
  repeated_call(context const& where, Function function)
      : thread_{[where, function, this] {
          try {
            where.enter();
            backend::stay_out_of_captures();
            while (!stops_) std::this_thread::sleep_for(function());
          } catch (std::exception const&) {
            // The next call of the heap's user meets the same error, and reports it.
          }
        }} {}
  repeated_call(repeated_call const&) = delete;
  repeated_call& operator=(repeated_call const&) = delete;
  ~repeated_call() { stops_ = true; }

 private:
  std::atomic<bool> stops_{false};
  service_thread thread_;  ///< destroyed first, which waits for its end
};

}  // namespace warpheap::archive
