/* SPDX-License-Identifier: Apache-2.0 */
/* How warpheap_bind_program finds device code that nvcc has linked: the CUDA runtime tells a
 * variable's address only to the program or library that it belongs to. So the host code beside
 * each copy of the archive enters itself into a list of the process, from its loading to its
 * unloading. */
#ifndef WARPHEAP_UNITS_H
#define WARPHEAP_UNITS_H

#include "warpheap.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct warpheap_unit {
  /* The address and size of warpheap_device_heap in the current context. Returns a cudaError_t. */
  int (*find)(void** address, size_t* bytes);
  struct warpheap_unit* next;
} warpheap_unit;

WARPHEAP_API void warpheap_enter_unit(warpheap_unit* unit);
WARPHEAP_API void warpheap_leave_unit(warpheap_unit* unit);

#ifdef __cplusplus
}
#endif

#endif
