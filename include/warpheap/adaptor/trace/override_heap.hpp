// SPDX-License-Identifier: Apache-2.0
// The owner of the heap behind device code's malloc, free, new and delete where that records what
// is asked of it. override_traced.hpp and override_traced_growing.hpp name an allocator for it; for
// another one a program specialises override_allocator with its traced_ref by itself.
#pragma once

#include "../../heap/override_allocator.hpp"
#include "../../heap/process_heap.hpp"
#include "../trace.hpp"

#if !defined(__CUDACC_RTC__)

#include <cstdio>
#include <cstdlib>

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// Room for 4 million calls, which take 96 MiB.
inline constexpr traced_config override_traced_config{.most_records = u64{1} << 22};

/// The heap that records. At its end it saves the trace to the file that the environment variable
/// WARPHEAP_TRACE names, if it names one.
template <class Allocator>
class override_traced_heap : public traced<basic_heap<Allocator>, override_traced_config> {
 public:
  using traced<basic_heap<Allocator>, override_traced_config>::traced;
  override_traced_heap(override_traced_heap const&) = delete;
  override_traced_heap& operator=(override_traced_heap const&) = delete;
  ~override_traced_heap() {
    char const* const path = std::getenv("WARPHEAP_TRACE");
    if (!path || !*path) return;
    try {
      this->save(path);
    } catch (std::exception const& error) {
      std::fprintf(stderr, "warpheap: no trace: %s\n", error.what());
    }
  }
};

template <class Allocator>
struct owner_of<traced_ref<Allocator>> {
  using type = override_traced_heap<Allocator>;
};

}}  // namespace warpheap::WARPHEAP_BACKEND

#endif
