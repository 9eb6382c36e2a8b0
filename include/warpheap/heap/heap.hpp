// The owner of a heap, on the host: makes it, resets it, asks about it, and gives kernels a reference by value.
#pragma once

#include "allocator.hpp"

#if !defined(__CUDACC_RTC__)

#include <stdexcept>
#include <string>
#include <utility>

#include "../platform/errors.hpp"
#include "../policy/creation/report.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {

/// Owns a pool and the allocator that manages it. Movable. Outlives every kernel and every CUDA graph that uses it.
/// Host functions other than reset() wait for nothing: call them when no kernel that uses the heap is running.
template <class Allocator>
class basic_heap {
 public:
  using allocator_type = Allocator;
  using creation_type = typename Allocator::creation_type;
  using ref_type = Allocator;

  /// The smallest pool there is.
  static constexpr size_t minimum_bytes = size_t{1} << 20;

  /// A heap whose blocks come from `bytes` bytes, rounded down to whole slabs; metadata comes on top (info() says how
  /// much). Throws std::invalid_argument below minimum_bytes, out_of_memory if the device has not that much, and
  /// cuda_error while a stream is being captured.
  explicit basic_heap(size_t bytes) {
    if (bytes < minimum_bytes)
      throw std::invalid_argument{"heap of " + std::to_string(bytes) + " bytes: the least is " +
                                  std::to_string(minimum_bytes)};
    size_t const metadata_and_pool = creation_type::required_bytes(bytes);
    auto* const memory = static_cast<u8*>(reserve_.acquire(metadata_and_pool + sizeof(ref_type)));
    ref_ = ref_type{creation_type::place(memory, bytes)};
    handle_ = memory + metadata_and_pool;
    backend::copy_bytes(handle_, &ref_, sizeof ref_);
    reset();
    synchronize(stream_view{});
  }

  /// What kernels take, by value: 16 bytes, trivially copyable, valid as long as the heap lives.
  ref_type ref() const noexcept { return ref_; }

  /// Address in device memory of a copy of ref(): what the C entry points take.
  u64 handle() const noexcept { return reinterpret_cast<u64>(handle_); }

  /// Frees everything at once, in order on stream `on`; does not wait. May be captured in a CUDA graph.
  void reset(stream_view on = {}) { ref_.creation().initialize(on); }

  /// Counts of a quiet heap.
  heap_statistics statistics() const requires requires(creation_type c) { c.statistics(); }
  { return ref_.creation().statistics(); }

  /// Blocks of `bytes` that could be allocated now.
  u64 available_slots(size_t bytes) const requires requires(creation_type c) { c.available_slots_on_host(bytes); }
  { return ref_.creation().available_slots_on_host(Allocator::alignment_type::pad(bytes)); }

  /// The violated invariants of a quiet heap; none if all is well.
  invariant_report check_invariants() const requires requires(creation_type c) { c.check_invariants(); }
  { return ref_.creation().check_invariants(); }

  /// Calls `visit(address, bytes)` on the host for every live block of a quiet heap, in address order.
  template <class Visitor>
  void for_each_live(Visitor visit) const requires requires(creation_type c) {
    c.for_each_live(visit);
  }
  { ref_.creation().for_each_live(visit); }

  /// The five policies by name, and the sizes.
  std::string info() const {
    auto const& creation = ref_.creation();
    return std::string{"creation "} + creation_type::name + ", distribution " + Allocator::distribution_type::name +
           ", oom " + Allocator::oom_type::name + ", reserve_pool " + Allocator::reserve_pool_type::name +
           ", alignment " + Allocator::alignment_type::name + "<" + std::to_string(Allocator::alignment_type::bytes) +
           ">; pool " + std::to_string(creation.pool_bytes()) + " bytes, metadata " +
           std::to_string(creation.metadata_bytes()) + " bytes";
  }

 private:
  typename Allocator::reserve_pool_type reserve_;
  ref_type ref_;
  void* handle_ = nullptr;
};

}  // namespace warpheap::inline WARPHEAP_BACKEND

#endif
