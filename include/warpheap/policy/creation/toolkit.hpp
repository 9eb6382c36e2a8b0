// The allocator that is there already: CUDA's device-side malloc on a GPU, the C library's on the
// host backend. It is the first to compare others with. CUDA's heap has one size for a process,
// fixed when the first kernel that uses it runs.
#pragma once

#include "../../platform/simt.hpp"
#include "report.hpp"

#if !defined(__CUDACC_RTC__)
#include <cstdlib>
#endif
#if !defined(__CUDACC__)
#include <malloc.h>
#endif

namespace warpheap::inline WARPHEAP_BACKEND {
namespace creation {

/// Device-side malloc and free of the toolkit, whose misuse is undefined.
class toolkit {
 public:
  /// Blocks lie in the toolkit's heap, wherever that is, and not in a reserve pool.
  static constexpr bool uses_toolkit_heap = true;
  static constexpr bool supports_mixed_heaps = true;  // there is but one
  static constexpr char const* name = "toolkit";
  static constexpr allocator_traits traits{.alignment = 16};

  /// nullptr for 0 bytes, which C leaves open, and for more bytes than an object may have.
  WARPHEAP_DEVICE void* create(size_t bytes) const { return bytes - 1 < ~size_t{0} / 2 ? ::malloc(bytes) : nullptr; }
  WARPHEAP_DEVICE void destroy(void* memory) const { ::free(memory); }

#if !defined(__CUDACC__)
  size_t usable_size(void const* memory) const { return ::malloc_usable_size(const_cast<void*>(memory)); }
#endif

#if !defined(__CUDACC_RTC__)
  /// Bytes to reserve for a pool: the size that this allocator's own heap should have.
  static size_t required_bytes(size_t pool_bytes) { return pool_bytes; }

  static toolkit place(void*, size_t pool_bytes) {
    toolkit made;
    made.pool_bytes_ = pool_bytes;
    return made;
  }

  /// Nothing to do: what is live stays live.
  void initialize(stream_view) const {}

  size_t pool_bytes() const { return pool_bytes_; }
  size_t metadata_bytes() const { return 0; }
#endif

 private:
  size_t pool_bytes_ = 0;
};

}  // namespace creation
}  // namespace warpheap::inline WARPHEAP_BACKEND
