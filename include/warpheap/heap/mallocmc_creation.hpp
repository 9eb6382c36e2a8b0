// SPDX-License-Identifier: Apache-2.0
// A creation policy for mallocMC, whose kernels take alpaka's accelerator. A program that uses
// mallocMC::CreationPolicies::Scatter names ours instead, and is otherwise unchanged:
//
//   using allocator = mallocMC::Allocator<
//       Acc, warpheap::mallocmc_creation<>, mallocMC::DistributionPolicies::Noop,
//       mallocMC::OOMPolicies::ReturnNull, mallocMC::ReservePoolPolicies::AlpakaBuf<Acc>,
//       mallocMC::AlignmentPolicies::Shrink<Config>>;
//
// mallocMC owns the pool, and keeps its device allocator, which derives from this policy, in device
// memory. So the policy is a reference to a heap, which initHeap() writes there. This file includes
// no header of alpaka or mallocMC. The accelerator must be one of CUDA's.
//
// mallocMC counts the bytes of a request in 32 bits: it truncates larger ones before they arrive
// here.
#pragma once

#if !defined(__CUDACC_RTC__)

#include <stdexcept>
#include <string>

#include "../policy/reserve_pool/external.hpp"
#include "default_heap.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// mallocMC's creation policy over one of ours that counts its slots.
template <class Creation = creation::slab_bitmap<>>
class mallocmc_creation {
  using heap_type =
      allocator<Creation, distribution::none, oom::return_null, reserve_pool::external, alignment::shrink<16>>;

 public:
  /// For mallocMC: getAvailableSlots() is supported.
  static constexpr bool providesAvailableSlots = true;

  /// A block, or nullptr. mallocMC has padded `bytes`.
  template <class Alignment, class Accelerator>
  WARPHEAP_HOST_DEVICE void* create(Accelerator const&, [[maybe_unused]] u32 bytes) const {
#if defined(__CUDA_ARCH__)
    return heap_.malloc(bytes);
#else
    return nullptr;  // initHeap() has rejected a host accelerator
#endif
  }

  /// Frees a block.
  template <class Accelerator>
  WARPHEAP_HOST_DEVICE void destroy(Accelerator const&, [[maybe_unused]] void* memory) const {
#if defined(__CUDA_ARCH__)
    heap_.free(memory);
#endif
  }

  /// Whether create() found no memory.
  WARPHEAP_HOST_DEVICE bool isOOM(void* memory, size_t bytes) const { return bytes != 0 && memory == nullptr; }

  /// Makes the heap in the `bytes` bytes at `pool`, and writes it to `holder` in device memory.
  /// Waits for both. Throws std::invalid_argument if the pool is too small, or if CUDA's kernels
  /// cannot reach it.
  template <class Accelerator, class Device, class Queue, class DeviceAllocator>
  static void initHeap(Device&, Queue&, DeviceAllocator* holder, void* pool, size_t bytes) {
    if (!kernels_reach(pool))
      throw std::invalid_argument{"mallocmc_creation: CUDA's kernels cannot reach the pool of " +
                                  std::to_string(bytes) + " bytes: the accelerator must be one of CUDA's"};
    // Owns nothing: all of the heap lies in the pool.
    basic_heap<heap_type> const made{pool, bytes};
    heap_type const ref = made.ref();
    backend::copy_bytes(place_in(holder), &ref, sizeof ref);
  }

  /// Blocks of `bytes` bytes that could be allocated now, for the host. Exact on a quiet heap.
  template <class Accelerator, class Device, class Queue, class DeviceAllocator>
  static unsigned getAvailableSlotsHost(Device&, Queue&, size_t bytes, DeviceAllocator* holder) {
    heap_type ref;
    backend::copy_bytes(&ref, place_in(holder), sizeof ref);
    return in_32_bits(count_slots_by_grid(ref.creation(), heap_type::created_bytes(bytes)));
  }

  /// As above, by one thread of a kernel.
  template <class Alignment, class Accelerator>
  WARPHEAP_HOST_DEVICE unsigned getAvailableSlotsAccelerator(Accelerator const&, [[maybe_unused]] size_t bytes) const {
#if defined(__CUDA_ARCH__)
    return in_32_bits(heap_.available_slots(bytes));
#else
    return 0;
#endif
  }

  /// For mallocMC's info().
  static std::string classname() { return "Warpheap " + detail::name_of_policy<Creation>(); }

 private:
  static bool kernels_reach([[maybe_unused]] void const* pool) {
#if defined(__CUDACC__)
    cudaPointerAttributes attributes{};
    cuda_backend::throw_on_error(cudaPointerGetAttributes(&attributes, pool), "cudaPointerGetAttributes");
    return attributes.type != cudaMemoryTypeUnregistered;
#else
    return false;
#endif
  }

  /// The most that mallocMC's count type can hold.
  WARPHEAP_HOST_DEVICE static unsigned in_32_bits(u64 count) {
    constexpr unsigned most = ~0u;
    return count < most ? static_cast<unsigned>(count) : most;
  }

  template <class DeviceAllocator>
  static heap_type* place_in(DeviceAllocator* holder) {
    return &static_cast<mallocmc_creation*>(holder)->heap_;
  }

  heap_type heap_;
};

}}  // namespace warpheap::WARPHEAP_BACKEND

#endif
