/* SPDX-License-Identifier: Apache-2.0 */
/* The host's part of rows_fortran.f90. */
#include "openmp_heap.h"

enum { rows = 100000 };

void combine_rows(int n, int* combined);

int main(void) {
  static int combined[rows];
  warpheap_heap* const heap = bound_heap();
  combine_rows(rows, combined);
  warpheap_statistics const seen = counts_of(heap);

  int wrong = 0;
  for (int row = 1; row <= rows; ++row) {
    int expected = 0;
    for (int k = 1; k <= 16 + row % 100; ++k) expected ^= row + k;
    wrong += combined[row - 1] != expected;
  }
  printf("%d of %d rows are wrong\n", wrong, rows);
  int const right = wrong == 0 && seen.calls >= rows && seen.frees == seen.calls && seen.live_blocks == 0;
  puts(right ? "PASSED" : "FAILED");
  return right ? 0 : 1;
}
