/* SPDX-License-Identifier: Apache-2.0 */
/* What the functions of warpheap.h answer where there is no GPU, and to arguments that are not
 * possible. Exits with the number of wrong answers. */
#include <stdio.h>
#include <string.h>
#include <warpheap.h>

static int wrong = 0;

static void expect(char const* call, warpheap_status is, warpheap_status should_be, char const* part) {
  if (is == should_be && (is == WARPHEAP_OK || strstr(warpheap_last_error(), part))) return;
  printf("%s: %d and not %d, '%s' and not '%s'\n", call, (int)is, (int)should_be, warpheap_last_error(), part);
  ++wrong;
}
#define EXPECT(call, should_be, part) expect(#call, call, should_be, part)

int main(void) {
  warpheap_heap* heap = NULL;
  warpheap_settings settings;
  warpheap_statistics seen;
  char line[8];
  size_t mapped = 0;
  memset(&settings, 0, sizeof settings);
  memset(&seen, 0, sizeof seen);

  EXPECT(warpheap_settings_from_environment(NULL), WARPHEAP_BAD_ARGUMENT, "settings is NULL");
  EXPECT(warpheap_settings_from_environment(&settings), WARPHEAP_OK, "");
  EXPECT(warpheap_create(NULL, &settings), WARPHEAP_BAD_ARGUMENT, "heap is NULL");
  EXPECT(warpheap_create_for(WARPHEAP_INTERFACE + 1, &heap, &settings), WARPHEAP_WRONG_VERSION,
         "interface 2 of warpheap.h");
  settings.size = "many";
  EXPECT(warpheap_create(&heap, &settings), WARPHEAP_BAD_ARGUMENT, "settings.size: 'many' is not a size");
  settings.size = "1MiB";
  EXPECT(warpheap_create(&heap, &settings), WARPHEAP_NO_DEVICE, "CUDA");
  if (heap) ++wrong;

  EXPECT(warpheap_bind_program(NULL), WARPHEAP_BAD_ARGUMENT, "the heap is NULL");
  EXPECT(warpheap_bind_module(NULL, NULL), WARPHEAP_BAD_ARGUMENT, "the heap is NULL");
  EXPECT(warpheap_bind_library(NULL, NULL), WARPHEAP_BAD_ARGUMENT, "the heap is NULL");
  EXPECT(warpheap_bind_variable(NULL, 0, 0), WARPHEAP_BAD_ARGUMENT, "the heap is NULL");
  EXPECT(warpheap_unbind(NULL), WARPHEAP_BAD_ARGUMENT, "the heap is NULL");
  EXPECT(warpheap_grow(NULL, 1, &mapped), WARPHEAP_BAD_ARGUMENT, "the heap is NULL");
  EXPECT(warpheap_read_statistics(NULL, &seen), WARPHEAP_BAD_ARGUMENT, "the heap is NULL");
  EXPECT(warpheap_reset(NULL, NULL), WARPHEAP_BAD_ARGUMENT, "the heap is NULL");
  EXPECT(warpheap_report(NULL, line, sizeof line), WARPHEAP_BAD_ARGUMENT, "the heap is NULL");
  EXPECT(warpheap_destroy(NULL), WARPHEAP_OK, "");
  if (warpheap_handle(NULL) != 0) ++wrong;
  if (warpheap_version() <= 0) ++wrong;
  return wrong;
}
