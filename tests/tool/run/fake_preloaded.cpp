// SPDX-License-Identifier: Apache-2.0
// A library that another tool preloads: functions of its own before those of the C library and of
// the driver, which it finds as all such libraries do.
#include <dlfcn.h>
#include <unistd.h>

#include "tests/tool/relink/written_down.hpp"

// NOLINTBEGIN(readability-identifier-naming): the driver's names

extern "C" pid_t getppid(void) {
  auto* const next = reinterpret_cast<pid_t (*)()>(dlsym(RTLD_NEXT, "getppid"));
  bool const is_own = next == &getppid;
  write_down("preloaded: the next getppid is %s", is_own ? "its own" : "another");
  return is_own ? -1 : next();
}

extern "C" int cuGraphLaunch(void* graph, void* stream) {
  // A hook may be between this function and itself.
  static int calls = 0;
  bool const is_own = ++calls > 1;
  write_down("preloaded: the next cuGraphLaunch is %s", is_own ? "its own" : "perhaps another");
  auto* const next = reinterpret_cast<int (*)(void*, void*)>(dlsym(RTLD_NEXT, "cuGraphLaunch"));
  return is_own ? -1 : next(graph, stream);
}

extern "C" int preloaded_launch(void* graph, void* stream) { return cuGraphLaunch(graph, stream); }

// NOLINTEND(readability-identifier-naming)
