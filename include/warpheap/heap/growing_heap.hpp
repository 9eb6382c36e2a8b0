// SPDX-License-Identifier: Apache-2.0
// The default heap over a growing pool, which grows when the host says so, when the host finds that
// calls were refused, or while calls wait. Programs include this header by name, because on CUDA it
// includes the driver's.
//
//   warpheap::growing_heap heap{warpheap::growth{.initial = 64 << 20, .limit = size_t{8} << 30}};
//   build<<<grid, block>>>(heap.ref());
//   heap.grow(size_t{1} << 30);    // between kernels, or beside them
#pragma once

#include "../policy/alignment/shrink.hpp"
#include "../policy/creation/slab_bitmap.hpp"
#include "../policy/distribution/none.hpp"
#include "../policy/oom/grow_on_demand.hpp"
#include "../policy/oom/return_null.hpp"
#if !defined(__CUDACC_RTC__)
#include "../policy/reserve_pool/growing.hpp"
#endif
#include "allocator.hpp"
#include "heap.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

#if defined(__CUDACC_RTC__)
namespace reserve_pool {
struct growing {
  static constexpr bool grows = true;
};
}  // namespace reserve_pool
#endif

/// Bytes to which a creation policy's blocks can be aligned, at most 16.
template <class Creation>
inline constexpr size_t usual_alignment = 16 < Creation::traits.alignment ? 16 : Creation::traits.alignment;

/// A creation policy over a growing pool, with an out-of-memory policy. Only slab_bitmap, tbuddy,
/// halloc and throughput compile.
template <class Oom, class Creation = creation::slab_bitmap<>>
using growing_allocator_with =
    allocator<Creation, distribution::none, Oom, reserve_pool::growing, alignment::shrink<usual_alignment<Creation>>>;

/// The reference for kernels, 16 bytes. The pool grows by grow() alone.
struct growing_allocator : growing_allocator_with<oom::return_null> {
  using growing_allocator_with<oom::return_null>::growing_allocator_with;
};

/// 24 bytes. Refused calls post requests, which poll() serves between kernels.
struct polled_allocator : growing_allocator_with<oom::grow_on_demand<>> {
  using growing_allocator_with<oom::grow_on_demand<>>::growing_allocator_with;
};

/// How long calls of a waiting_heap wait for memory.
inline constexpr oom::grow_on_demand_config wait_20_ms{.deadline_us = 20000};

/// 24 bytes. Refused calls wait up to 20 ms for memory, which a growth_service maps while the
/// kernel runs.
struct waiting_allocator : growing_allocator_with<oom::grow_on_demand<wait_20_ms>> {
  using growing_allocator_with<oom::grow_on_demand<wait_20_ms>>::growing_allocator_with;
};

#if !defined(__CUDACC_RTC__)
/// A heap whose pool grows by grow() alone.
using growing_heap = basic_heap<growing_allocator>;
/// A heap whose pool grows by poll(), as refused calls have requested.
using polled_heap = basic_heap<polled_allocator>;
/// A heap whose calls wait up to 20 ms for a growth_service to grow the pool.
using waiting_heap = basic_heap<waiting_allocator>;
#endif

}}  // namespace warpheap::WARPHEAP_BACKEND
