/* SPDX-License-Identifier: Apache-2.0 */
/* Device malloc of Warpheap's in a program of C99 and C++11: its kernels are linked with the
 * archive.
 *
 *   nvcc -std=c++11 -rdc=true -arch=native -c lists.cu
 *   gcc -std=c99 -I PREFIX/include -c main.c
 *   nvcc -arch=native lists.o main.o -L PREFIX/lib -lwarpheap_device -lwarpheap_host -o lists
 *   LD_LIBRARY_PATH=PREFIX/lib WARPHEAP_SIZE=1GiB WARPHEAP_REPORT=1 ./lists
 */
#include <stdio.h>
#include <warpheap.h>

#include "lists.h"

static int failed(char const* what) {
  fprintf(stderr, "%s: %s\n", what, warpheap_last_error());
  return 1;
}

int main(void) {
  enum { threads = 100000 };
  unsigned long long sum = 0;
  warpheap_heap* heap = NULL;
  warpheap_statistics seen;
  int error = 0;

  warpheap_status const created = warpheap_create(&heap, NULL); /* as the environment says */
  if (created == WARPHEAP_NO_DEVICE) {
    printf("no GPU: %s\n", warpheap_last_error());
    return 0;
  }
  if (created != WARPHEAP_OK) return failed("warpheap_create");
  if (warpheap_bind_program(heap) != WARPHEAP_OK) return failed("warpheap_bind_program");

  seen.struct_bytes = sizeof seen;
  error = sum_lists(threads, &sum);
  if (error != 0) {
    fprintf(stderr, "sum_lists: CUDA error %d\n", error);
    return 1;
  }
  if (warpheap_read_statistics(heap, &seen) != WARPHEAP_OK) return failed("warpheap_read_statistics");
  printf("%llu of %llu, %llu blocks left, in a pool of %llu bytes\n", sum, 45ull * threads, seen.live_blocks,
         seen.pool_bytes);
  if (warpheap_destroy(heap) != WARPHEAP_OK) return failed("warpheap_destroy");
  return sum == 45ull * threads && seen.live_blocks == 0 ? 0 : 1;
}
