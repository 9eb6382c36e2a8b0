// SPDX-License-Identifier: Apache-2.0
#include <thrust/execution_policy.h>
#include <thrust/memory.h>

#include <cstdlib>
#include <cuda/std/cstdlib>
#include <new>

#include "kernels.hpp"

namespace override_test {

namespace {

struct alignas(64) line {
  unsigned words[16];
};

__device__ void* make_by_cuda_malloc() {
  void* memory = nullptr;
#if defined(__CUDACC_RDC__)
  if (cudaMalloc(&memory, 100) != cudaSuccess) return nullptr;
#endif
  return memory;
}

__device__ void* allocate(spelling how, unsigned nothing) {
  switch (how) {
    case spelling::malloc: return malloc(100);
    case spelling::std_malloc: return std::malloc(100);
    case spelling::malloc_of_nothing: return malloc(nothing);
    case spelling::make: return new node;
    case spelling::make_array: return new char[100];
    case spelling::make_array_of_nothing: return new node[nothing];
    case spelling::make_aligned: return new line;
    case spelling::make_aligned_array: return new line[3];
    case spelling::operator_new: return ::operator new(100);
    case spelling::cuda_std_malloc: return cuda::std::malloc(100);
    case spelling::cuda_std_calloc: return cuda::std::calloc(10, 10);
    case spelling::cuda_std_aligned_alloc: return cuda::std::aligned_alloc(128, 64);
    case spelling::nv_aligned_device_malloc: return __nv_aligned_device_malloc(100, 64);
    case spelling::thrust_seq: return thrust::raw_pointer_cast(thrust::malloc(thrust::seq, 100));
    case spelling::cuda_malloc: return make_by_cuda_malloc();
    case spelling::end: break;
  }
  return nullptr;
}

__device__ void release(spelling how, void* memory) {
  switch (how) {
    case spelling::make: delete static_cast<node*>(memory); break;
    case spelling::make_array: delete[] static_cast<char*>(memory); break;
    case spelling::make_array_of_nothing: delete[] static_cast<node*>(memory); break;
    case spelling::make_aligned: delete static_cast<line*>(memory); break;
    case spelling::make_aligned_array: delete[] static_cast<line*>(memory); break;
    case spelling::operator_new: ::operator delete(memory); break;
    case spelling::thrust_seq: thrust::free(thrust::seq, memory); break;
#if defined(__CUDACC_RDC__)
    case spelling::cuda_malloc: cudaFree(memory); break;
#endif
    default: free(memory);
  }
}

__global__ void allocate_all(spelling how, unsigned threads, void** memory, unsigned nothing) {
  unsigned const me = blockIdx.x * blockDim.x + threadIdx.x;
  if (me < threads) memory[me] = allocate(how, nothing);
}

__global__ void free_all(spelling how, unsigned threads, void** memory) {
  unsigned const me = blockIdx.x * blockDim.x + threadIdx.x;
  if (me < threads) release(how, memory[me]);
}

}  // namespace

cudaError_t allocate_as(spelling how, unsigned threads, void** memory) {
  allocate_all<<<(threads + 127) / 128, 128>>>(how, threads, memory, 0);
  return cudaDeviceSynchronize();
}

cudaError_t free_as(spelling how, unsigned threads, void** memory) {
  free_all<<<(threads + 127) / 128, 128>>>(how, threads, memory);
  return cudaDeviceSynchronize();
}

}  // namespace override_test
