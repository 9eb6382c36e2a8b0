/* SPDX-License-Identifier: Apache-2.0 */
/* OpenMP offload in C: the target region makes lists by malloc, adds them up and frees them, as it would
 * with CUDA's device heap. Only main() knows of Warpheap. */
#include "openmp_heap.h"

enum { lists = 131072, length = 64 };

struct node {
  unsigned value;
  struct node* next;
};

static unsigned long long sum_lists(int* refused) {
  unsigned long long sum = 0;
  int failed = 0;
#pragma omp target teams distribute parallel for reduction(+ : sum, failed) map(tofrom : sum, failed)
  for (unsigned i = 0; i < lists; ++i) {
    struct node* first = NULL;
    for (unsigned k = 0; k < length; ++k) {
      struct node* const one = (struct node*)malloc(sizeof *one);
      if (!one) {
        ++failed;
        break;
      }
      one->value = i + k;
      one->next = first;
      first = one;
    }
    while (first) {
      struct node* const one = first;
      sum += one->value;
      first = one->next;
      free(one);
    }
  }
  *refused = failed;
  return sum;
}

int main(void) {
  int refused = 0;
  warpheap_heap* const heap = bound_heap();
  unsigned long long const sum = sum_lists(&refused);
  warpheap_statistics const seen = counts_of(heap);

  unsigned long long expected = 0;
  for (unsigned i = 0; i < lists; ++i)
    for (unsigned k = 0; k < length; ++k) expected += i + k;
  printf("sum %llu of %llu, %d refused\n", sum, expected, refused);
  int const right = sum == expected && refused == 0 && seen.calls >= 1ull * lists * length &&
                    seen.frees == seen.calls && seen.live_blocks == 0;
  puts(right ? "PASSED" : "FAILED");
  return right ? 0 : 1;
}
