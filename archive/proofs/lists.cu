// SPDX-License-Identifier: Apache-2.0
// A program in C++11, whose kernels know nothing of Warpheap: each thread makes a list by `new`,
// adds it up and deletes it. Its lists need more memory than CUDA's device heap has at first. The
// host makes the heap, and binds the device code to it, by the archive's C interface.
#include <cstdio>
#include <cstdlib>
#include <new>  // has clang's new and delete of device code

#include "warpheap.h"

struct node {
  unsigned value;
  node* next;
};

__global__ void sum_lists(unsigned long long* sum, unsigned* refused, unsigned length) {
  unsigned const i = blockIdx.x * blockDim.x + threadIdx.x;
  node* first = nullptr;
  for (unsigned k = 0; k < length; ++k) {
    node* const one = new node;
    if (!one) {
      atomicAdd(refused, 1);
      break;
    }
    one->value = i + k;
    one->next = first;
    first = one;
  }
  while (first) {
    node* const one = first;
    atomicAdd(sum, one->value);
    first = one->next;
    delete one;
  }
}

// nvcc registers the device code with which libwarpheap_device.a is linked, and other compilers do
// not. There a kernel says where the variable is by which device code finds its heap.
#if !defined(__NVCC__)
extern "C" __device__ char warpheap_device_heap[];
__global__ void find_variable(unsigned long long* address) {
  *address = reinterpret_cast<unsigned long long>(warpheap_device_heap);
}
#endif

static void check(cudaError_t status, char const* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}

static void check(warpheap_status status, char const* what) {
  if (status == WARPHEAP_OK) return;
  std::fprintf(stderr, "%s: %s\n", what, warpheap_last_error());
  std::exit(1);
}

static warpheap_status bind(warpheap_heap* heap) {
#if defined(__NVCC__)
  return warpheap_bind_program(heap);
#else
  unsigned long long* address = nullptr;
  check(cudaMallocManaged(&address, sizeof *address), "cudaMallocManaged");
  find_variable<<<1, 1>>>(address);
  check(cudaDeviceSynchronize(), "find_variable");
  warpheap_status const status = warpheap_bind_variable(heap, *address, 0);
  cudaFree(address);
  return status;
#endif
}

int main() {
  unsigned const blocks = 512, threads = 256, length = 64;
  unsigned const n = blocks * threads;
  warpheap_settings settings = {};
  settings.size = "1GiB";
  settings.counts = 1;
  warpheap_heap* heap = nullptr;
  check(warpheap_create(&heap, &settings), "warpheap_create");
  check(bind(heap), "bind");

  unsigned long long* sum = nullptr;
  unsigned* refused = nullptr;
  check(cudaMallocManaged(&sum, sizeof *sum), "cudaMallocManaged");
  check(cudaMallocManaged(&refused, sizeof *refused), "cudaMallocManaged");
  *sum = *refused = 0;
  sum_lists<<<blocks, threads>>>(sum, refused, length);
  check(cudaDeviceSynchronize(), "sum_lists");

  unsigned long long expected = 0;
  for (unsigned i = 0; i < n; ++i)
    for (unsigned k = 0; k < length; ++k) expected += i + k;
  warpheap_statistics seen = {};
  seen.struct_bytes = sizeof seen;
  check(warpheap_read_statistics(heap, &seen), "warpheap_read_statistics");
  check(warpheap_destroy(heap), "warpheap_destroy");
  std::printf("sum %llu of %llu, %u refused; the heap counted %llu calls, %llu frees, %llu live\n", *sum, expected,
              *refused, seen.calls, seen.frees, seen.live_blocks);
  unsigned long long const calls = 1ull * n * length;
  bool const right =
      *sum == expected && *refused == 0 && seen.calls == calls && seen.frees == calls && seen.live_blocks == 0;
  std::puts(right ? "PASSED" : "FAILED");
  return right ? 0 : 1;
}
