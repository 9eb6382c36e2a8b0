/* SPDX-License-Identifier: Apache-2.0 */
/* A heap for programs with OpenMP offload: made and bound before the program's target regions. A
 * region says where the variable is by which device code finds its heap. */
#include <stdio.h>
#include <stdlib.h>

#include "warpheap.h"

#pragma omp begin declare target device_type(nohost)
extern char warpheap_device_heap[];
#pragma omp end declare target

static void check(warpheap_status status, char const* what) {
  if (status == WARPHEAP_OK) return;
  fprintf(stderr, "%s: %s\n", what, warpheap_last_error());
  exit(1);
}

static unsigned long long address_of_variable(void) {
  unsigned long long address = 0;
#pragma omp target map(from : address)
#if defined(__NVPTX__)
  address = (unsigned long long)warpheap_device_heap;
#else
  address = 0;
#endif
  return address;
}

static warpheap_heap* bound_heap(void) {
  warpheap_settings const settings = {.size = "1GiB", .counts = 1};
  warpheap_heap* heap = NULL;
  check(warpheap_create(&heap, &settings), "warpheap_create");
  check(warpheap_bind_variable(heap, address_of_variable(), 0), "warpheap_bind_variable");
  return heap;
}

/* What the heap has counted, once it is destroyed. */
static warpheap_statistics counts_of(warpheap_heap* heap) {
  warpheap_statistics seen = {.struct_bytes = sizeof seen};
  check(warpheap_read_statistics(heap, &seen), "warpheap_read_statistics");
  check(warpheap_destroy(heap), "warpheap_destroy");
  printf("the heap counted %llu calls, %llu frees, %llu live\n", seen.calls, seen.frees, seen.live_blocks);
  return seen;
}
