// SPDX-License-Identifier: Apache-2.0
// Chooses the backend: CUDA under nvcc and NVRTC, lanes as fibers under any other C++20 compiler.
// The only file that does. With WARPHEAP_READER such a compiler gets no lanes, and only code that
// looks into heaps of another program (heap/c_inspection.hpp).
#pragma once

#include "simt_backend.hpp"
#include "types.hpp"

#if defined(__CUDACC__)
#include "cuda/atomic.hpp"
#include "cuda/contents.hpp"
#include "cuda/simt.hpp"
#if defined(__CUDACC_RTC__)
#include "cuda/setup.hpp"
#else
#include "cuda/launch.hpp"
#include "cuda/memory.hpp"
#endif
namespace warpheap { inline namespace WARPHEAP_BACKEND {
namespace backend = cuda_backend;
}}  // namespace warpheap::WARPHEAP_BACKEND
#else
#if defined(WARPHEAP_READER)
#include "reader/memory.hpp"
#include "reader/simt.hpp"
namespace warpheap { inline namespace WARPHEAP_BACKEND {
namespace backend = reader;
}}  // namespace warpheap::WARPHEAP_BACKEND
#else
#include "host/atomic.hpp"
#include "host/contents.hpp"
#include "host/launch.hpp"
#include "host/memory.hpp"
#include "host/simt.hpp"
namespace warpheap { inline namespace WARPHEAP_BACKEND {
namespace backend = host;
}}  // namespace warpheap::WARPHEAP_BACKEND
#endif
#endif

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// The functions of one thread: its place, votes and shuffles, waiting.
using simt = backend::simt;
static_assert(simt_backend<simt>);

/// An atomic in memory: integers, floats, doubles and pointers.
template <class T, scope Scope = scope::device>
using atomic_ref = backend::atomic_ref<T, Scope>;
static_assert(atomic_integer_reference<atomic_ref<u32>, u32> && atomic_integer_reference<atomic_ref<i32>, i32>);
static_assert(atomic_integer_reference<atomic_ref<u64>, u64> && atomic_integer_reference<atomic_ref<i64>, i64>);
static_assert(atomic_counter<atomic_ref<float>, float> && atomic_counter<atomic_ref<double>, double>);
static_assert(atomic_counter<atomic_ref<u32*>, u32*, i64> && atomic_reference<atomic_ref<void*>, void*>);

using backend::contents;
using backend::full_fence;
using backend::load_pair;
using backend::release_fence;

using backend::launch;
using backend::stream_view;
#if !defined(__CUDACC_RTC__)
using backend::set_device_variable;
using backend::stream;
using backend::synchronize;
#endif

/// Index of the calling thread in its grid.
WARPHEAP_DEVICE inline u64 global_thread_index() {
  return static_cast<u64>(simt::block_index()) * simt::block_dim() + simt::thread_index();
}

}}  // namespace warpheap::WARPHEAP_BACKEND
