// What kernels.cu and other_unit.cu have for the host: plain CUDA, without a word of Warpheap. Each function launches one
// kernel of `threads` threads and waits for it.
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
/// The same function called on the host.
unsigned sum_on_host(unsigned numbers);
/// malloc and new[] of this unit's host code.
void* host_malloc(std::size_t bytes);
char* host_new(std::size_t bytes);

// other_unit.cu

/// Adds the lists up and frees them.
cudaError_t sum_and_free_lists(unsigned threads, node** lists, unsigned* sums);
/// new, new[], delete and delete[] of types with an alignment of their own.
cudaError_t make_aligned(unsigned threads, tally* counts);

}  // namespace override_test
