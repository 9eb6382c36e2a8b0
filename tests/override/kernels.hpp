// SPDX-License-Identifier: Apache-2.0
// What kernels.cu and other_unit.cu have for the host: plain CUDA, without a word of Warpheap. Each
// function launches one kernel of `threads` threads and waits for it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace override_test {

struct node {
  unsigned value;
  node* next;
};

/// What the threads of a kernel found, added up.
struct tally {
  unsigned made = 0;       ///< objects that came to be, or blocks that were allocated
  unsigned destroyed = 0;  ///< destructors that ran
  unsigned wrong = 0;      ///< contents or addresses that are not what they must be
  unsigned failed = 0;     ///< nullptr
  unsigned long long sum = 0;
};

// kernels.cu

/// malloc: thread i makes a list of the numbers below `length`.
cudaError_t build_lists(unsigned threads, node** lists, unsigned length);
/// new, new[], delete and delete[] of classes with constructors, destructors and virtual functions.
cudaError_t make_shapes(unsigned threads, tally* counts);
/// delete, delete[] and free of nullptr.
cudaError_t delete_null(unsigned threads);
/// Every thread allocates `bytes` by malloc and new until it gets nullptr, and frees all.
cudaError_t exhaust(unsigned threads, std::size_t bytes, tally* counts);
/// A function for host and device that calls new and delete, called on the device.
cudaError_t sum_on_device(unsigned threads, unsigned numbers, unsigned* sums);
/// That function, called on the host.
unsigned sum_on_host(unsigned numbers);
/// malloc and new[] of this unit's host code.
void* host_malloc(std::size_t bytes);
char* host_new(std::size_t bytes);

// other_unit.cu

/// Adds the lists up and frees them.
cudaError_t sum_and_free_lists(unsigned threads, node** lists, unsigned* sums);
/// new, new[], delete and delete[] of types with an alignment of their own.
cudaError_t make_aligned(unsigned threads, tally* counts);

// spellings.cu

/// A way to ask for memory in device code. `cuda_malloc` is the device runtime's: -rdc=true alone.
enum class spelling {
  malloc,
  std_malloc,
  malloc_of_nothing,
  make,
  make_array,
  make_array_of_nothing,
  make_aligned,
  make_aligned_array,
  operator_new,
  cuda_std_malloc,
  cuda_std_calloc,
  cuda_std_aligned_alloc,
  nv_aligned_device_malloc,
  thrust_seq,
  cuda_malloc,
  end
};
/// Every thread allocates by this spelling, and frees by the one that belongs to it.
cudaError_t allocate_as(spelling how, unsigned threads, void** memory);
cudaError_t free_as(spelling how, unsigned threads, void** memory);

// holding_unit.cu

/// Which call a kernel holds values across. Even ones allocate, odd ones free what the one before
/// made.
enum class held_call { malloc, free, make, destroy, make_aligned, destroy_aligned };
/// Every thread makes one call on its element of `memory`, with 90 values of `in` in registers.
/// `wrong` counts threads whose values changed, `made` those whose pointer is not null afterwards.
cudaError_t hold_values(held_call what, unsigned threads, unsigned const* in, void** memory, tally* counts);

// constants_unit.cu, once for each number

/// Every thread allocates once.
template <int Unit>
cudaError_t allocate_in_unit(unsigned threads, void** memory, tally* counts);
template <>
cudaError_t allocate_in_unit<1>(unsigned threads, void** memory, tally* counts);
template <>
cudaError_t allocate_in_unit<2>(unsigned threads, void** memory, tally* counts);
template <>
cudaError_t allocate_in_unit<3>(unsigned threads, void** memory, tally* counts);
template <>
cudaError_t allocate_in_unit<4>(unsigned threads, void** memory, tally* counts);
template <>
cudaError_t allocate_in_unit<5>(unsigned threads, void** memory, tally* counts);

}  // namespace override_test
