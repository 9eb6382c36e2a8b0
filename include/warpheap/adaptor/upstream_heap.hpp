// SPDX-License-Identifier: Apache-2.0
// The members of a heap that an adaptor around it has unchanged.
#pragma once

#include "../heap/heap.hpp"

#if !defined(__CUDACC_RTC__)

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// Base class of an adaptor: owns the upstream heap.
template <class Heap>
class upstream_heap {
 public:
  using heap_type = Heap;
  static constexpr size_t minimum_bytes = Heap::minimum_bytes;

  /// As the upstream heap, if its pool grows.
  size_t grow(size_t bytes, stream_view on = {}) requires requires(Heap heap) { heap.grow(bytes, on); }
  { return upstream_.grow(bytes, on); }
  size_t trim() requires requires(Heap heap) { heap.trim(); }
  { return upstream_.trim(); }
  size_t poll(stream_view on = {}) requires requires(Heap heap) { heap.poll(on); }
  { return upstream_.poll(on); }
  size_t serve() requires requires(Heap heap) { heap.serve(); }
  { return upstream_.serve(); }
  u64 requested_bytes() const requires requires(Heap const heap) { heap.requested_bytes(); }
  { return upstream_.requested_bytes(); }
  size_t committed_bytes() const requires requires(Heap const heap) { heap.committed_bytes(); }
  { return upstream_.committed_bytes(); }

  heap_statistics statistics() const requires Heap::takes_snapshots { return upstream_.statistics(); }
  invariant_report check_invariants() const requires Heap::takes_snapshots { return upstream_.check_invariants(); }
  template <class Visitor>
  void for_each_live(Visitor visit) const requires requires(Heap const heap) {
    heap.for_each_live(visit);
  }
  { upstream_.for_each_live(visit); }
  u64 available_slots(size_t bytes) const requires requires(Heap const heap) { heap.available_slots(bytes); }
  { return upstream_.available_slots(bytes); }
  size_t pool_bytes() const { return upstream_.pool_bytes(); }

  /// The heap that serves the calls. What kernels ask through its ref() is not recorded.
  Heap const& upstream() const noexcept { return upstream_; }

 protected:
  template <class... Arguments>
  explicit upstream_heap(Arguments&&... arguments) : upstream_(std::forward<Arguments>(arguments)...) {}

  Heap upstream_;
};

}}  // namespace warpheap::WARPHEAP_BACKEND

#endif
