// SPDX-License-Identifier: Apache-2.0
// C++11 kernels that call new and delete, without any reference to Warpheap.
#include "lists.h"

namespace {

struct node {
  unsigned value;
  node* next;
};

__global__ void build_and_sum(unsigned threads, unsigned long long* sum) {
  if (blockIdx.x * blockDim.x + threadIdx.x >= threads) return;
  node* first = nullptr;
  for (unsigned value = 0; value < 10; ++value) {
    node* const made = new node;
    if (!made) break;
    made->value = value;
    made->next = first;
    first = made;
  }
  while (first) {
    node* const next = first->next;
    atomicAdd(sum, first->value);
    delete first;
    first = next;
  }
}

}  // namespace

int sum_lists(unsigned threads, unsigned long long* sum) {
  unsigned long long* on_device = nullptr;
  cudaError_t status = cudaMalloc(&on_device, sizeof *on_device);
  if (status == cudaSuccess) status = cudaMemset(on_device, 0, sizeof *on_device);
  if (status == cudaSuccess) {
    build_and_sum<<<(threads + 255) / 256, 256>>>(threads, on_device);
    status = cudaGetLastError();
  }
  if (status == cudaSuccess) status = cudaMemcpy(sum, on_device, sizeof *sum, cudaMemcpyDeviceToHost);
  cudaFree(on_device);
  return status;
}
