// SPDX-License-Identifier: Apache-2.0
// The pool from a memory resource: anything that allocates like CCCL's cuda::mr or RMM. The two
// spellings are distinguished by which one compiles, so no library is included here:
// `allocate_sync(bytes, alignment)` since CCCL 3.1, and `allocate(bytes, alignment)` before.
#pragma once

#if !defined(__CUDACC_RTC__)

#include <new>
#include <optional>
#include <string>
#include <utility>

#include "../../platform/errors.hpp"
#include "../../platform/simt.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace reserve_pool {

/// Resources of CCCL 3.
template <class Resource>
concept allocates_sync = requires(Resource& resource, void* memory, size_t bytes) {
  { resource.allocate_sync(bytes, bytes) } -> same_type<void*>;
  resource.deallocate_sync(memory, bytes, bytes);
};

/// Resources of earlier ones, and of std::pmr.
template <class Resource>
concept allocates_aligned = requires(Resource& resource, void* memory, size_t bytes) {
  { resource.allocate(bytes, bytes) } -> same_type<void*>;
  resource.deallocate(memory, bytes, bytes);
};

/// A resource that a heap can take its memory from.
template <class Resource>
concept memory_source = allocates_sync<Resource> || allocates_aligned<Resource>;

/// Holds a resource, or with `Resource&` a reference to one, and one range of memory from it.
/// Movable. The resource's memory must be accessible to kernels, and to the host if the heap's host
/// functions are called.
template <class Resource>
  requires memory_source<Resource>
class memory_resource {
 public:
  static constexpr char const* name = "memory_resource";

  explicit memory_resource(Resource resource) : resource_{std::forward<Resource>(resource)} {}
  memory_resource(memory_resource&& other) noexcept
      : resource_{std::forward<Resource>(other.resource_)},
        memory_{std::exchange(other.memory_, nullptr)},
        bytes_{other.bytes_} {}
  /// Returns its memory to the resource.
  memory_resource& operator=(memory_resource&& other) noexcept {
    if (this == &other) return *this;
    std::destroy_at(this);
    return *std::construct_at(this, std::move(other));
  }
  ~memory_resource() {
    if (!memory_) return;
    if constexpr (allocates_sync<Resource>) resource_.deallocate_sync(memory_, bytes_, alignment);
    else resource_.deallocate(memory_, bytes_, alignment);
  }

  /// Takes `bytes` bytes and returns where they start. Called once. A std::bad_alloc of the
  /// resource becomes out_of_memory; its other exceptions pass.
  void* acquire(size_t bytes) {
    try {
      if constexpr (allocates_sync<Resource>) memory_ = resource_.allocate_sync(bytes, alignment);
      else memory_ = resource_.allocate(bytes, alignment);
    } catch (std::bad_alloc const& error) {
      throw out_of_memory{"the memory resource refused " + std::to_string(bytes) + " bytes: " + error.what()};
    }
    bytes_ = bytes;
    return memory_;
  }

 private:
  static constexpr size_t alignment = 256;

  Resource resource_;
  void* memory_ = nullptr;
  size_t bytes_ = 0;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::reserve_pool

#endif
