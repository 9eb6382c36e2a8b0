// SPDX-License-Identifier: Apache-2.0
// What a kernel holds of a traced or profiled heap: the calls of the upstream heap. A log records
// each of them.
#pragma once

#include "../../heap/allocator.hpp"
#include "../../util/source_site.hpp"
#include "trace_log.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// A traced heap as kernels take it, by value: 16 bytes over the upstream heap, whose members and
/// promises it has. A log that takes places gets those of the calls in the source.
template <class Upstream, class Log = trace_log>
class traced_ref : public typed_calls<traced_ref<Upstream, Log>> {
 public:
  using creation_type = typename Upstream::creation_type;
  static constexpr allocator_traits traits = Upstream::traits;

  traced_ref() = default;
  WARPHEAP_HOST_DEVICE traced_ref(Upstream upstream, Log log) : upstream_{upstream}, log_{log} {}

  WARPHEAP_DEVICE void* malloc(size_t bytes, source_site site = source_site::current()) const {
    return recorded(call_kind::malloc, bytes, upstream_.malloc(bytes), site);
  }

  WARPHEAP_DEVICE void free(void* memory) const {
    if (memory) log_.add(call_kind::free, 0, memory);  // trace.T2
    upstream_.free(memory);
  }

  /// Not recorded if the product overflows.
  WARPHEAP_DEVICE void* calloc(size_t count, size_t size, source_site site = source_site::current()) const {
    void* const memory = upstream_.calloc(count, size);
    bool const overflows = size && count > ~size_t{0} / size;
    return recorded(call_kind::calloc, overflows ? 0 : count * size, memory, site);
  }

  /// Recorded as a malloc if `memory` is null, and as a free if `bytes` is 0.
  WARPHEAP_DEVICE void* realloc(void* memory, size_t old_bytes, size_t bytes,
                                source_site site = source_site::current()) const {
    u64 const begun = begin_realloc(memory, bytes);
    return end_realloc(memory, bytes, begun, upstream_.realloc(memory, old_bytes, bytes), site);
  }
  WARPHEAP_DEVICE void* realloc(void* memory, size_t bytes, source_site site = source_site::current()) const requires
      requires(Upstream upstream) {
    upstream.realloc(memory, bytes);
  }
  {
    u64 const begun = begin_realloc(memory, bytes);
    return end_realloc(memory, bytes, begun, upstream_.realloc(memory, bytes), site);
  }

  /// Not recorded if `alignment` is no power of two.
  WARPHEAP_DEVICE void* aligned_alloc(size_t alignment, size_t bytes,
                                      source_site site = source_site::current()) const requires
      requires(Upstream upstream) {
    upstream.aligned_alloc(alignment, bytes);
  }
  {
    void* const memory = upstream_.aligned_alloc(alignment, bytes);
    bool const valid = is_power_of_two(alignment);
    return recorded(call_kind::aligned_alloc, valid ? bytes : 0, memory, site, valid ? lowest_bit(u64{alignment}) : 0);
  }

  /// Recorded as a malloc.
  WARPHEAP_DEVICE void* malloc_warp(lane_mask mask, size_t bytes,
                                    source_site site = source_site::current()) const requires
      requires(Upstream upstream) {
    upstream.malloc_warp(mask, bytes);
  }
  { return recorded(call_kind::malloc, bytes, upstream_.malloc_warp(mask, bytes), site); }

  // Questions are not recorded.

  WARPHEAP_DEVICE size_t usable_size(void const* memory) const requires requires(Upstream upstream) {
    upstream.usable_size(memory);
  }
  { return upstream_.usable_size(memory); }
  WARPHEAP_DEVICE bool owns(void const* memory) const requires requires(Upstream upstream) { upstream.owns(memory); }
  { return upstream_.owns(memory); }
  WARPHEAP_DEVICE bool contains(void const* memory) const requires requires(Upstream upstream) {
    upstream.contains(memory);
  }
  { return upstream_.contains(memory); }
  WARPHEAP_DEVICE u64 available_slots(size_t bytes) const requires requires(Upstream upstream) {
    upstream.available_slots(bytes);
  }
  { return upstream_.available_slots(bytes); }
  WARPHEAP_DEVICE u64 available_slots_warp(lane_mask mask, size_t bytes) const requires requires(Upstream upstream) {
    upstream.available_slots_warp(mask, bytes);
  }
  { return upstream_.available_slots_warp(mask, bytes); }

  WARPHEAP_HOST_DEVICE Upstream const& upstream() const { return upstream_; }
  WARPHEAP_HOST_DEVICE Log const& log() const { return log_; }

 private:
  /// `memory`, after it was recorded (trace.T1). A call for 0 bytes is none.
  WARPHEAP_DEVICE void* recorded(call_kind kind, size_t bytes, void* memory, [[maybe_unused]] source_site site,
                                 u32 log2_alignment = 0) const {
    if (!bytes) return memory;
    if constexpr (requires { log_.add(kind, bytes, memory, log2_alignment, site); })
      log_.add(kind, bytes, memory, log2_alignment, site);
    else log_.add(kind, bytes, memory, log2_alignment);
    return memory;
  }

  WARPHEAP_DEVICE u64 begin_realloc(void* memory, size_t bytes) const {
    u64 ticket = 0;
    if (memory) ticket = log_.add(bytes ? call_kind::realloc_begins : call_kind::free, bytes, memory);
    return ticket;
  }
  WARPHEAP_DEVICE void* end_realloc(void* before, size_t bytes, u64 begun, void* memory, source_site site) const {
    if (!before) return recorded(call_kind::malloc, bytes, memory, site);
    if (!bytes) return memory;
    if constexpr (requires { log_.add_realloc(before, bytes, memory, site); })
      log_.add_realloc(before, bytes, memory, site);
    else log_.add(call_kind::realloc, begun, memory);
    return memory;
  }

  Upstream upstream_;
  Log log_;
};

}}  // namespace warpheap::WARPHEAP_BACKEND
