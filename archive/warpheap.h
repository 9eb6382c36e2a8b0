/* SPDX-License-Identifier: Apache-2.0 */
/* Warpheap without C++20: malloc, free, new and delete of device code, served by a Warpheap heap,
 * for programs in C99, C++11 and newer, and for languages that call C.
 *
 * Kernels are not edited. Their device code is linked with the archive (libwarpheap_device.a, or
 * one of the files beside it), and host code calls the functions below (libwarpheap_host):
 *
 *   warpheap_heap* heap;
 *   if (warpheap_create(&heap, NULL) != WARPHEAP_OK) puts(warpheap_last_error());
 *   warpheap_bind_program(heap);
 *   ...
 *   warpheap_destroy(heap);
 *
 * Each function works in the CUDA context that is current when it is called; those that take a heap
 * work in the context in which it was made. One thread at a time may call functions of one heap.
 * Kernels that use it may be running while its statistics are read, it reports, or it grows.
 */
#ifndef WARPHEAP_H
#define WARPHEAP_H

#include <stddef.h>
#if defined(__CUDACC__)
#include <malloc.h>
#include <stdlib.h>
#endif

#if defined(__GNUC__)
#define WARPHEAP_API __attribute__((visibility("default")))
#else
#define WARPHEAP_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when a structure or a function below changes. warpheap_create compares it. */
#define WARPHEAP_INTERFACE 1

/* A function's result. Unless it is WARPHEAP_OK, warpheap_last_error() says more. */
typedef enum warpheap_status {
  WARPHEAP_OK = 0,
  WARPHEAP_BAD_ARGUMENT = 1,  /* an invalid value; the message names it */
  WARPHEAP_OUT_OF_MEMORY = 2, /* of the device, or of the host */
  WARPHEAP_NO_DEVICE = 3,     /* no driver, or no usable GPU */
  WARPHEAP_CONTEXT_GONE = 4,  /* the heap's context no longer exists, nor its memory */
  WARPHEAP_NOT_FOUND = 5,     /* the module was not linked with the archive */
  WARPHEAP_WRONG_VERSION = 6, /* archive, header and library do not match */
  WARPHEAP_CUDA_ERROR = 7     /* anything else that CUDA reported */
} warpheap_status;

typedef struct warpheap_heap warpheap_heap;

/* A heap's size and options. Zero is the default of each. */
typedef struct warpheap_settings {
  /* "2GiB": the pool, beside which metadata takes about 1%. "80%" or "free-1GiB": pool and metadata
   * together, as a share of the free device memory. NULL: "50%". */
  char const* size;
  /* NULL or "0": the pool keeps its size. "1": it begins with 1/32 of its size, and grows to its
   * full size. Any other text, like `size`: it begins with `size`, and grows up to this. Kernels
   * wait up to 20 ms for memory, while a thread of the library maps it. */
  char const* grow;
  int report;    /* 1: prints warpheap_report's line when the heap ends; counts calls */
  int forgiving; /* 1: memory is zero before its first use, and no two blocks share 32 bytes */
  int counts;    /* 1: calls are counted, for about an atomic operation each */
} warpheap_settings;

/* Of one heap. Bytes count whole blocks. */
typedef struct warpheap_statistics {
  unsigned long long struct_bytes;          /* set by the caller: sizeof(warpheap_statistics) */
  unsigned long long pool_bytes;            /* for blocks */
  unsigned long long committed_bytes;       /* those that have memory */
  unsigned long long metadata_bytes;        /* outside the pool */
  unsigned long long live_blocks;           /* allocated and not freed */
  unsigned long long live_bytes;            /* of those */
  unsigned long long highest_live_bytes;    /* of all readings; `report` makes one each 20 ms */
  unsigned long long refusals;              /* failed tries since heap was made or reset */
  unsigned long long largest_refused_bytes; /* of those; never more than the pool */
  /* The rest is 0 unless settings.counts or settings.report is 1. */
  unsigned long long calls;         /* malloc, calloc, realloc, aligned_alloc, new */
  unsigned long long frees;         /* free and delete of a pointer */
  unsigned long long refused_calls; /* of `calls`, those that returned NULL */
} warpheap_statistics;

/* The message of the last failure in this thread; "" if there was none. Valid until the next
 * call. */
WARPHEAP_API char const* warpheap_last_error(void);

/* Of the library: 10000 * major + 100 * minor + patch. */
WARPHEAP_API int warpheap_version(void);

/* The oldest driver that it works with, in the form of cuDriverGetVersion: one of the same major
 * version as the toolkit that compiled it. Needs no GPU. */
WARPHEAP_API int warpheap_oldest_driver(void);

/* Settings from WARPHEAP_SIZE, WARPHEAP_GROW, WARPHEAP_REPORT and WARPHEAP_FORGIVING. The texts
 * live as long as the environment. Needs no GPU. An invalid value is an error, whose message names
 * the variable. */
WARPHEAP_API warpheap_status warpheap_settings_from_environment(warpheap_settings* settings);

/* Makes a heap in the current context, or in the device's primary one if there is none. If
 * `settings` is NULL, they come from the environment. Binds nothing. `interface_number`:
 * WARPHEAP_INTERFACE. */
WARPHEAP_API warpheap_status warpheap_create_for(int interface_number, warpheap_heap** heap,
                                                 warpheap_settings const* settings);
static inline warpheap_status warpheap_create(warpheap_heap** heap, warpheap_settings const* settings) {
  return warpheap_create_for(WARPHEAP_INTERFACE, heap, settings);
}

/* Binding: device code allocates from the heap from now on. Before that, its malloc returns NULL,
 * and its free does nothing. */

/* All device code that nvcc linked with libwarpheap_device.a, in the program and its libraries. */
WARPHEAP_API warpheap_status warpheap_bind_program(warpheap_heap* heap);
/* A CUmodule. */
WARPHEAP_API warpheap_status warpheap_bind_module(warpheap_heap* heap, void* module);
/* A CUlibrary. */
WARPHEAP_API warpheap_status warpheap_bind_library(warpheap_heap* heap, void* library);
/* The variable WARPHEAP_DEVICE_HEAP of a module, at this device address, of this size; 0
 * if the size is not known, because device code passed on the address. */
WARPHEAP_API warpheap_status warpheap_bind_variable(warpheap_heap* heap, unsigned long long address, size_t bytes);
#define WARPHEAP_DEVICE_HEAP "warpheap_device_heap"

/* Unbinds all device code from the heap. Unloaded modules are left alone. */
WARPHEAP_API warpheap_status warpheap_unbind(warpheap_heap* heap);

/* The heap's handle for functions of c_interface.hpp; 0 for no heap. */
WARPHEAP_API unsigned long long warpheap_handle(warpheap_heap const* heap);

/* Maps memory for at least `bytes` more bytes, or up to the limit; writes how many to `mapped`,
 * which may be NULL. */
WARPHEAP_API warpheap_status warpheap_grow(warpheap_heap* heap, size_t bytes, size_t* mapped);

WARPHEAP_API warpheap_status warpheap_read_statistics(warpheap_heap* heap, warpheap_statistics* statistics);

/* Frees everything, in order on the CUDA stream; 0 is the default stream. */
WARPHEAP_API warpheap_status warpheap_reset(warpheap_heap* heap, void* stream);

/* Writes one line, without a line feed, truncated to `bytes` - 1 characters: the most bytes that
 * were live, calls, and refusals with their cause. */
WARPHEAP_API warpheap_status warpheap_report(warpheap_heap* heap, char* line, size_t bytes);

/* Waits for the context's kernels, unbinds, and frees all memory. Whatever it returns, the heap no
 * longer exists. NULL does nothing. */
WARPHEAP_API warpheap_status warpheap_destroy(warpheap_heap* heap);

#if defined(__CUDACC__)

/* Device code. malloc, free, new and delete are CUDA's names; the declarations below are
 * only for nvcc's device pass, so host code keeps the C library's. */
#if defined(__CUDA_ARCH__)
#if defined(__cplusplus) && __cplusplus >= 201103L
#define WARPHEAP_NO_THROW noexcept
#else
#define WARPHEAP_NO_THROW throw()
#endif
#pragma nv_diagnostic push
#pragma nv_diag_suppress 20039
__device__ void* calloc(size_t count, size_t size) WARPHEAP_NO_THROW;
__device__ void* realloc(void* memory, size_t bytes) WARPHEAP_NO_THROW;
__device__ void* aligned_alloc(size_t alignment, size_t bytes) WARPHEAP_NO_THROW;
__device__ size_t malloc_usable_size(void* memory) WARPHEAP_NO_THROW;
#pragma nv_diagnostic pop
#undef WARPHEAP_NO_THROW
#endif

/* The same functions under unique names: for code that names its malloc explicitly, and for other
 * languages. (warpheap_malloc is a function of c_interface.hpp that takes a heap.) */
__device__ void* warpheap_device_malloc(size_t bytes);
__device__ void warpheap_device_free(void* memory);
__device__ void* warpheap_device_calloc(size_t count, size_t size);
__device__ void* warpheap_device_realloc(void* memory, size_t bytes);
__device__ void* warpheap_device_aligned_alloc(size_t alignment, size_t bytes);
__device__ size_t warpheap_device_usable_size(void* memory);

#endif /* __CUDACC__ */

#ifdef __cplusplus
}
#endif

#endif
