// SPDX-License-Identifier: Apache-2.0
#include <new>

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

struct alignas(256) line {
  unsigned words[64];
};

struct alignas(64) counted_line {
  __device__ counted_line() : counts{nullptr} {}
  __device__ ~counted_line() { atomicAdd(&counts->destroyed, 1); }
  tally* counts;
};

__device__ void expect_aligned(void const* memory, std::size_t alignment, tally* counts) {
  if (!memory || reinterpret_cast<std::size_t>(memory) % alignment) atomicAdd(&counts->wrong, 1);
}

__global__ void use_aligned(unsigned threads, tally* counts) {
  unsigned const me = blockIdx.x * blockDim.x + threadIdx.x;
  if (me >= threads) return;
  auto* const one = new line;
  auto* const several = new line[1 + me % 3];
  auto* const row = new counted_line[1 + me % 3];
  expect_aligned(one, 256, counts);
  expect_aligned(several, 256, counts);
  expect_aligned(row, 64, counts);
  for (unsigned i = 0; i < 1 + me % 3; ++i) row[i].counts = counts;
  atomicAdd(&counts->made, 1 + me % 3);
  delete one;
  delete static_cast<line*>(nullptr);
  delete[] several;
  delete[] row;

  // By hand, with the size and alignment that the compiler would pass.
  void* const plain = ::operator new(40);
  void* const wide = ::operator new (40, std::align_val_t{128});
  expect_aligned(plain, 16, counts);
  expect_aligned(wide, 128, counts);
  ::operator delete (plain, std::size_t{40});
  ::operator delete (wide, std::size_t{40}, std::align_val_t{128});
}

}  // namespace

cudaError_t sum_and_free_lists(unsigned threads, node** lists, unsigned* sums) {
  sum_and_free<<<(threads + 127) / 128, 128>>>(threads, lists, sums);
  return cudaDeviceSynchronize();
}

cudaError_t make_aligned(unsigned threads, tally* counts) {
  use_aligned<<<(threads + 127) / 128, 128>>>(threads, counts);
  return cudaDeviceSynchronize();
}

}  // namespace override_test
