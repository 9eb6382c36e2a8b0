/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of C++11 that know warpheap.h alone: in the test program, and in a library with an
 * archive of its own. Each function waits for its kernel. */
#pragma once

#include <cuda_runtime_api.h>
#include <stddef.h>

struct unit {
  /* One malloc of `bytes` bytes a thread. */
  cudaError_t (*allocate)(void** blocks, unsigned threads, size_t bytes);
  /* One new of 1 to 64 integers a thread, into which it writes. */
  cudaError_t (*make)(int** arrays, unsigned threads);
  /* One free a thread. */
  cudaError_t (*release)(void** blocks, unsigned threads);
  /* calloc, realloc, aligned_alloc, malloc_usable_size and the prefixed names, by each thread;
   * adds what was wrong to *faults. Seven calls and three frees a thread. */
  cudaError_t (*exercise)(unsigned* faults, unsigned threads);
  /* Adds to *dirty the threads whose block of `bytes` bytes is not zero. */
  cudaError_t (*find_dirty)(void** blocks, unsigned threads, size_t bytes, unsigned* dirty);
};

extern struct unit const unit_of_program, unit_of_library;
