#include "kernels.hpp"

namespace override_test {

namespace {

__global__ void sum_and_free(unsigned threads, node** lists, unsigned* sums) {
  unsigned const me = blockIdx.x * blockDim.x + threadIdx.x;
  if (me >= threads) return;
  unsigned sum = 0;
  for (node* list = lists[me]; list;) {
    node* const next = list->next;
    sum += list->value;
    free(list);
    list = next;
  }
  sums[me] = sum;
}

}  // namespace

cudaError_t sum_and_free_lists(unsigned threads, node** lists, unsigned* sums) {
  sum_and_free<<<(threads + 127) / 128, 128>>>(threads, lists, sums);
  return cudaDeviceSynchronize();
}

}  // namespace override_test
