// SPDX-License-Identifier: Apache-2.0
// A libwarpheap_host.so without a heap, which writes down what it is asked. FAKE_HEAP_FAULT is why
// no heap can be made, and FAKE_BIND_FAULT why none can be bound. With FAKE_HEAP_LOADS it loads and
// launches kernels of its own, which call free.
#include <dlfcn.h>

#include <atomic>

#include "archive/warpheap.h"
#include "tests/tool/relink/written_down.hpp"

// NOLINTBEGIN(readability-identifier-naming): the driver's names
extern "C" {
int cuCtxSetLimit(int, size_t);
int cuLibraryLoadData(void**, void const*, int*, void**, unsigned, int*, void**, unsigned);
int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
}
// NOLINTEND(readability-identifier-naming)

struct warpheap_heap {
  int number;
};

namespace {

warpheap_heap heaps[8];
std::atomic<int> heap_count{0};
thread_local char const* last_error = "";

template <class... Arguments>
int call(char const* name, Arguments... arguments) {
  static void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  return reinterpret_cast<int (*)(Arguments...)>(dlsym(driver, name))(arguments...);
}

/// As the CUDA runtime does, which finds the driver's functions in this way.
template <class... Arguments>
int call_by_address(char const* name, Arguments... arguments) {
  void* function = nullptr;
  call("cuGetProcAddress_v2", name, &function, 12000, 0ul, nullptr);
  return reinterpret_cast<int (*)(Arguments...)>(function)(arguments...);
}

/// In that way, and as a library that is linked with the driver's.
void load_and_launch() {
  static char const code[] = ".version 8.0\n.target sm_80\n.extern .func free\n(.param .b64 p);\n";
  void const* const image = code;
  void* library = nullptr;
  void* const none = nullptr;
  call_by_address("cuLibraryLoadData", &library, image, none, none, 0u, none, none, 0u);
  call_by_address("cuLaunchKernel", none, 1u, 1u, 1u, 1u, 1u, 1u, 0u, none, none, none);
  cuLibraryLoadData(&library, image, nullptr, nullptr, 0, nullptr, nullptr, 0);
  cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
  cuCtxSetLimit(0, 1024);
}

int current_context() {
  int* context = nullptr;
  call("cuCtxGetCurrent", &context);
  return *context;
}

warpheap_status status_of(char const* variable) {
  char const* const fault = std::getenv(variable);
  if (fault == nullptr) return WARPHEAP_OK;
  last_error = fault;
  return WARPHEAP_OUT_OF_MEMORY;
}

warpheap_status bind(warpheap_heap* heap, char const* what, void* bound) {
  if (auto const status = status_of("FAKE_BIND_FAULT"); status != WARPHEAP_OK) return status;
  write_down("heap: %d bound to %s %d in context %d", heap->number, what, *static_cast<int*>(bound), current_context());
  return WARPHEAP_OK;
}

}  // namespace

extern "C" {

char const* warpheap_last_error(void) { return last_error; }
int warpheap_oldest_driver(void) { return 13000; }
warpheap_status warpheap_settings_from_environment(warpheap_settings* settings) {
  *settings = {};
  return status_of("FAKE_SETTINGS_FAULT");
}

warpheap_status warpheap_create_for(int interface_number, warpheap_heap** heap, warpheap_settings const* settings) {
  if (interface_number != WARPHEAP_INTERFACE || settings != nullptr) return WARPHEAP_WRONG_VERSION;
  if (auto const status = status_of("FAKE_HEAP_FAULT"); status != WARPHEAP_OK) return status;
  for (char const* const name : {"WARPHEAP_SIZE", "WARPHEAP_GROW", "WARPHEAP_FORGIVING", "WARPHEAP_REPORT"})
    if (char const* const value = std::getenv(name)) write_down("heap: %s is %s", name, value);
  if (std::getenv("FAKE_HEAP_LOADS") != nullptr) load_and_launch();
  usleep(2000);  // so that a thread that did not wait for it is seen
  *heap = &heaps[heap_count++];
  (*heap)->number = heap_count;
  write_down("heap: %d made in context %d", (*heap)->number, current_context());
  return WARPHEAP_OK;
}

warpheap_status warpheap_bind_module(warpheap_heap* heap, void* module) { return bind(heap, "module", module); }
warpheap_status warpheap_bind_library(warpheap_heap* heap, void* library) { return bind(heap, "library", library); }

warpheap_status warpheap_destroy(warpheap_heap* heap) {
  write_down("heap: %d destroyed in context %d", heap->number, current_context());
  return WARPHEAP_OK;
}

}  // extern "C"
