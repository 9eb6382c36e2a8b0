// A replacement for override.hpp that records what device code asks of malloc, free, new and
// delete, for `warpheap replay`:
//
//   nvcc -include warpheap/adaptor/override_traced.hpp kernels.cu
//   warpheap::override_heap heap{4_GiB};              as with override.hpp
//   WARPHEAP_TRACE=program.trace ./program            saved when the heap is destroyed
//
// heap.heap().save(path) saves it at another time. docs/guide/traces.md.
#pragma once

#include "../heap/override_allocator.hpp"
#include "../heap/process_heap.hpp"
#include "trace.hpp"

#if !defined(__CUDACC_RTC__)

#include <cstdio>
#include <cstdlib>

namespace warpheap::inline WARPHEAP_BACKEND {

/// Room for 4 million calls, which take 96 MiB.
inline constexpr traced_config override_traced_config{.most_records = u64{1} << 22};

/// The heap that records. At its end it saves the trace to the file that the environment variable
/// WARPHEAP_TRACE names, if it names one.
class override_traced_heap : public traced<basic_heap<default_allocator>, override_traced_config> {
 public:
  using traced::traced;
  override_traced_heap(override_traced_heap const&) = delete;
  override_traced_heap& operator=(override_traced_heap const&) = delete;
  ~override_traced_heap() {
    char const* const path = std::getenv("WARPHEAP_TRACE");
    if (!path || !*path) return;
    try {
      save(path);
    } catch (std::exception const& error) {
      std::fprintf(stderr, "warpheap: no trace: %s\n", error.what());
    }
  }
};

template <>
struct owner_of<traced_ref<default_allocator>> {
  using type = override_traced_heap;
};

}  // namespace warpheap::inline WARPHEAP_BACKEND

#endif

template <>
struct warpheap::override_allocator<> {
  using type = warpheap::traced_ref<warpheap::default_allocator>;
};

#include "../heap/override.hpp"
