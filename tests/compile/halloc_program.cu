// SPDX-License-Identifier: Apache-2.0
// A program as written for Adinetz and Pleiter's library, except for its include, and tuned as
// they do it. Read by scripts/check_architectures.py.
#include <warpheap/heap/halloc_interface_config.hpp>

template <>
struct warpheap::halloc_interface_config<> {
  static constexpr creation::halloc_config value{.replace_at = 870, .sparse_up_to = 50, .split_percent = 75};
};

#include <warpheap/heap/halloc_interface.hpp>

struct list_t {
  int value;
  list_t* next;
};

__global__ void prepend(list_t** lists, int value) {
  list_t** const mine = lists + threadIdx.x;
  list_t* const node = (list_t*)hamalloc(sizeof(list_t));
  if (!node) return;
  node->value = value;
  node->next = *mine;
  *mine = node;
}

__global__ void clear(list_t** lists) {
  while (list_t* const node = lists[threadIdx.x]) {
    lists[threadIdx.x] = node->next;
    hafree(node);
  }
}

int main() {
  halloc_opts_t options(512 * 1024 * 1024);
  options.halloc_fraction = 0.75;
  options.busy_fraction = 0.87;
  options.roomy_fraction = 0.6;
  options.sparse_fraction = 0.05;
  options.sb_sz_sh = 22;
  ha_init(options);
  list_t** lists;
  cudaMalloc(&lists, 256 * sizeof(list_t*));
  cudaMemset(lists, 0, 256 * sizeof(list_t*));
  for (int i = 0; i < 16; ++i) prepend<<<1, 256>>>(lists, i);
  clear<<<1, 256>>>(lists);
  cudaError_t const status = cudaDeviceSynchronize();
  cudaFree(lists);
  ha_shutdown();
  return status == cudaSuccess ? 0 : 1;
}
