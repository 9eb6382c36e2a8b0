// SPDX-License-Identifier: Apache-2.0
// The pool of a run of `stress`. Most are of a fixed size. One that grows starts small, gets memory
// from a service while kernels wait for it, and gives back what it can when they have ended.
#pragma once

#include <algorithm>
#include <exception>
#include <optional>

#include "measure/patient_heap.hpp"
#include "warpheap/heap/growth_service.hpp"
#include "workloads/stress/settings.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND {

template <class Allocator>
class stress_pool {
 public:
  static constexpr bool grows = false;

  explicit stress_pool(basic_heap<Allocator>&) {}
  template <class Look>
  void with_all_memory(Look look) {
    look();
  }
  u64 refused_too_soon(u64) { return 0; }
  void trim() {}
  std::optional<stress_growth> growth() const { return {}; }
};

template <class Allocator>
  requires growing_pool<typename Allocator::reserve_pool_type>
class stress_pool<Allocator> {
 public:
  static constexpr bool grows = true;

  explicit stress_pool(basic_heap<Allocator>& heap) : heap_{heap}, service_{heap} {
    seen_.initial_bytes = seen_.most_bytes = heap.committed_bytes();
    seen_.limit_bytes = seen_.least_bytes = heap.pool_bytes();
  }

  /// Calls `look()`, at rest, while the pool is as large as it may be.
  template <class Look>
  void with_all_memory(Look look) {
    heap_.grow(heap_.pool_bytes());
    look();
    heap_.trim();
  }

  /// When kernels have ended of which `refused` calls were refused: how many of those need not have
  /// been. A refusal comes when no more memory does. Throws what ended the service.
  u64 refused_too_soon(u64 refused) {
    if (auto const failure = service_.failure()) std::rethrow_exception(failure);
    u64 const now = heap_.committed_bytes();
    seen_.most_bytes = std::max(seen_.most_bytes, now);
    return now < heap_.pool_bytes() ? refused : 0;
  }

  /// At rest.
  void trim() {
    seen_.trims += heap_.trim() != 0;
    seen_.least_bytes = std::min<u64>(seen_.least_bytes, heap_.committed_bytes());
  }

  std::optional<stress_growth> growth() const {
    auto seen = seen_;
    seen.growths = service_.growths();
    return seen;
  }

 private:
  basic_heap<Allocator>& heap_;
  growth_service service_;
  stress_growth seen_;
};

}}  // namespace warpheap::tool::WARPHEAP_BACKEND
