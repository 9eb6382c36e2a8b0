// SPDX-License-Identifier: Apache-2.0
// The members of a heap that an adaptor around it leaves unchanged.
#pragma once

#include "../heap/heap.hpp"

#if !defined(__CUDACC_RTC__)

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// Base class of an adaptor: owns the upstream heap.
template <class Heap>
class upstream_heap {
 public:
  /// The upstream heap.
  using heap_type = Heap;
  /// The smallest pool.
  static constexpr size_t minimum_bytes = Heap::minimum_bytes;

  /// As basic_heap's, for a heap whose pool grows.
  size_t grow(size_t bytes, stream_view on = {}) requires requires(Heap heap) { heap.grow(bytes, on); }
  { return upstream_.grow(bytes, on); }
  /// As basic_heap's. Blocks that a checked heap holds in quarantine keep their memory.
  size_t trim() requires requires(Heap heap) { heap.trim(); }
  { return upstream_.trim(); }
  /// As basic_heap's, for a heap whose refused calls request memory.
  size_t poll(stream_view on = {}) requires requires(Heap heap) { heap.poll(on); }
  { return upstream_.poll(on); }
  /// As basic_heap's, for a growth_service.
  size_t serve() requires requires(Heap heap) { heap.serve(); }
  { return upstream_.serve(); }
  /// As basic_heap's, including the bytes that an adaptor puts around the caller's.
  u64 requested_bytes() const requires requires(Heap const heap) { heap.requested_bytes(); }
  { return upstream_.requested_bytes(); }
  /// Bytes of the pool of the upstream heap that have memory.
  size_t committed_bytes() const requires requires(Heap const heap) { heap.committed_bytes(); }
  { return upstream_.committed_bytes(); }

  /// Counts of the upstream heap, when it is quiet.
  heap_statistics statistics() const requires Heap::takes_snapshots { return upstream_.statistics(); }
  /// The violated invariants of the upstream heap; none if all is well.
  invariant_report check_invariants() const requires Heap::takes_snapshots { return upstream_.check_invariants(); }
  /// Calls `visit(address, bytes)` for every live block of a quiet heap.
  template <class Visitor>
  void for_each_live(Visitor visit) const requires requires(Heap const heap) {
    heap.for_each_live(visit);
  }
  { upstream_.for_each_live(visit); }
  /// Blocks of `bytes` that could be allocated now, by lanes that call alone.
  u64 available_slots(size_t bytes) const requires requires(Heap const heap) { heap.available_slots(bytes); }
  { return upstream_.available_slots(bytes); }
  /// Bytes of the pool of the upstream heap.
  size_t pool_bytes() const { return upstream_.pool_bytes(); }

  /// The heap that serves the calls. The adaptor does not see calls that kernels make on its ref().
  Heap const& upstream() const noexcept { return upstream_; }

 protected:
  template <class... Arguments>
  explicit upstream_heap(Arguments&&... arguments) : upstream_(std::forward<Arguments>(arguments)...) {}

  Heap upstream_;
};

}}  // namespace warpheap::WARPHEAP_BACKEND

#endif
