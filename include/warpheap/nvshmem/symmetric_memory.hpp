// SPDX-License-Identifier: Apache-2.0
// NVSHMEM as heaps use it: memory at the same offset in every process of a job, accessible to the
// kernels of all of them. A process is a PE (processing element), numbered from 0. Programs include
// this header by name, are compiled as relocatable device code, and link NVSHMEM's device library,
// libnvshmem_device.a. docs/guide/several_machines.md has the command line.
//
// Every PE of the job must call the functions that say "all PEs", in the same order.
#pragma once

#include "../platform/simt.hpp"

#if !defined(__CUDACC__) || defined(__CUDACC_RTC__)
#error NVSHMEM needs nvcc: compile this as CUDA
#include <compilation_stops_here>
#elif defined(__CUDA_ARCH__) && !defined(__CUDACC_RDC__)
#error NVSHMEM needs relocatable device code: compile with -rdc=true
#include <compilation_stops_here>
#endif

#include <nvshmem.h>
#include <nvshmemx.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../platform/errors.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// Symmetric memory, as the host sees it. Owns one range on each PE. Movable.
class symmetric_memory {
 public:
  symmetric_memory() = default;
  /// All PEs, with the same `bytes`. Aligned to 256 bytes. Throws std::logic_error before
  /// nvshmem_init(). If a PE lacks the memory, NVSHMEM 3.4 ends the job; so request no more than
  /// there is.
  explicit symmetric_memory(size_t bytes) {
    if (!is_initialized()) throw std::logic_error{"symmetric memory: NVSHMEM is not initialized in this process"};
    begin_ = nvshmem_align(256, bytes);
    if (!begin_)
      throw out_of_memory{"nvshmem_align of " + std::to_string(bytes) + " bytes failed (NVSHMEM_SYMMETRIC_SIZE)"};
  }
  symmetric_memory(symmetric_memory&& other) noexcept : begin_{std::exchange(other.begin_, nullptr)} {}
  symmetric_memory& operator=(symmetric_memory&& other) noexcept {
    std::swap(begin_, other.begin_);
    return *this;
  }
  /// All PEs. After nvshmem_finalize() there is nothing left to free. While an exception unwinds,
  /// the memory stays: nvshmem_free waits for all PEs, and the exception may be on this one alone.
  ~symmetric_memory() {
    if (begin_ && is_initialized() && std::uncaught_exceptions() == 0) nvshmem_free(begin_);
  }

  void* begin() const noexcept { return begin_; }

 private:
  /// Bootstrapped is enough: if nvshmem_init() came before cudaSetDevice(), NVSHMEM initialises the
  /// rest with the first allocation.
  static bool is_initialized() {
    auto const status = nvshmemx_init_status();
    return status >= NVSHMEM_STATUS_IS_BOOTSTRAPPED && status != NVSHMEM_STATUS_INVALID;
  }

  void* begin_ = nullptr;
};

/// What each PE passed, in the order of their numbers. All PEs.
inline std::vector<u64> gather_from_pes(u64 mine) {
  std::vector<u64> all(static_cast<size_t>(nvshmem_n_pes()));
  symmetric_memory const shared{all.size() * sizeof(u64)};
  auto* const words = static_cast<u64*>(shared.begin());
  for (int pe = 0; pe < nvshmem_n_pes(); ++pe) nvshmem_putmem(words + nvshmem_my_pe(), &mine, sizeof mine, pe);
  nvshmem_barrier_all();
  backend::copy_bytes(all.data(), words, all.size() * sizeof(u64));
  nvshmem_barrier_all();  // before another gather writes there
  return all;
}

/// A thread's access to words of symmetric memory on another PE, by their addresses on its own. For
/// mailbox::post().
class nvshmem_access {
 public:
  WARPHEAP_DEVICE explicit nvshmem_access(int pe) : pe_{pe} {}

  /// Words with different keys are different.
  WARPHEAP_DEVICE u64 key(u64* word) const { return reinterpret_cast<u64>(word) ^ static_cast<u64>(pe_) << 48; }

  WARPHEAP_DEVICE u64 load(u64* word, order how) const {
    u64 const seen = nvshmem_uint64_atomic_fetch(number(word), pe_);
    if (how != order::relaxed) __threadfence_system();
    return seen;
  }
  WARPHEAP_DEVICE u64 fetch_or(u64* word, u64 bits, order how) const {
    if (how != order::relaxed) order_all();
    u64 const before = nvshmem_uint64_atomic_fetch_or(number(word), bits, pe_);
    if (how != order::relaxed) __threadfence_system();
    return before;
  }
  WARPHEAP_DEVICE void add(u64* word, u64 value, order how) const {
    if (how != order::relaxed) order_all();
    nvshmem_uint64_atomic_add(number(word), value, pe_);
  }

 private:
  WARPHEAP_DEVICE static uint64_t* number(u64* word) { return reinterpret_cast<uint64_t*>(word); }
  /// Orders earlier stores and puts before the next atomic. NVSHMEM's atomics order nothing.
  WARPHEAP_DEVICE static void order_all() {
    __threadfence_system();
    nvshmem_fence();
  }

  int pe_;
};

}}  // namespace warpheap::WARPHEAP_BACKEND
