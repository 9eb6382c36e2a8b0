// SPDX-License-Identifier: Apache-2.0
// Processes of one job, each with a heap: each builds lists on its GPU, and its neighbour, on this
// machine or another, reads and frees them. A process alone is its own neighbour.
//
//   nvcc -std=c++20 -rdc=true pass_the_list.cu libnvshmem_device.a -lnvshmem_host -lcuda
//   NVSHMEM_BOOTSTRAP=MPI mpirun -n 2 ./a.out
#include <warpheap/nvshmem/symmetric_heap.hpp>

#include <cstdio>

namespace {

using warpheap::remote_ptr;

struct node {
  unsigned value;
  remote_ptr next;  // of any PE
};

constexpr unsigned lists = 4096, length = 10;

__global__ void build(warpheap::symmetric_heap::ref_type heap, remote_ptr* heads) {
  unsigned const i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= lists) return;
  remote_ptr head;
  for (unsigned n = 0; n < length; ++n) {
    auto* const made = static_cast<node*>(heap.malloc(sizeof(node)));
    if (!made) break;
    *made = {i + n, head};
    head = heap.remote(made);
  }
  heads[i] = head;
}

// Adds up the lists of another PE, and frees them.
__global__ void take(warpheap::symmetric_heap::ref_type heap, remote_ptr const* heads, int from,
                     unsigned long long* sum) {
  unsigned const i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= lists) return;
  remote_ptr block;
  nvshmem_getmem(&block, heads + i, sizeof block, from);
  while (block) {
    node seen;
    heap.get(&seen, block, sizeof seen);
    atomicAdd(sum, seen.value);
    heap.free(block);  // posted to the mailbox of the PE that made it
    block = seen.next;
  }
}

int run() {
  warpheap::symmetric_heap heap{64u << 20};
  warpheap::symmetric_memory const heads{lists * sizeof(remote_ptr)};
  auto* const names = static_cast<remote_ptr*>(heads.begin());
  warpheap::device_buffer<unsigned long long> const sum{1};

  build<<<lists / 128, 128>>>(heap.ref(), names);
  warpheap::synchronize();
  nvshmem_barrier_all();
  int const neighbour = (nvshmem_my_pe() + 1) % nvshmem_n_pes();
  take<<<lists / 128, 128>>>(heap.ref(), names, neighbour, sum.data());
  warpheap::synchronize();
  nvshmem_barrier_all();
  heap.drain();
  warpheap::synchronize();

  unsigned long long const expected = length * (lists * (lists - 1ull) / 2) + lists * (length * (length - 1ull) / 2);
  auto const left = heap.statistics().live_blocks;
  std::printf("PE %u of %u: sum %llu of %llu, %llu blocks left\n", heap.pe(), heap.pes(), sum[0], expected,
              static_cast<unsigned long long>(left));
  return sum[0] == expected && left == 0 ? 0 : 1;
}

}  // namespace

int main() {
  nvshmem_init();
  int devices = 0;
  cudaGetDeviceCount(&devices);
  cudaSetDevice(nvshmem_team_my_pe(NVSHMEMX_TEAM_NODE) % devices);
  int const status = run();  // heaps are destroyed before NVSHMEM
  nvshmem_finalize();
  return status;
}
