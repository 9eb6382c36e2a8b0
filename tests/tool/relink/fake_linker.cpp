// SPDX-License-Identifier: Apache-2.0
// A libnvJitLink.so that links nothing: what it makes is in the file that FAKE_LINKED names. If
// FAKE_LINK_FAULT is set, linking fails, and that is its log.
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/tool/relink/written_down.hpp"

// NOLINTBEGIN(readability-identifier-naming): nvJitLink's names

namespace {

std::string linked() {
  char const* const path = std::getenv("FAKE_LINKED");
  std::ifstream file{path == nullptr ? "" : path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

char const* fault() { return std::getenv("FAKE_LINK_FAULT"); }

char handle;

}  // namespace

extern "C" {

int nvJitLinkCreate(void** made, unsigned count, char const** options) {
  for (unsigned i = 0; i < count; ++i) write_down("linker: %s", options[i]);
  *made = &handle;
  return 0;
}
int nvJitLinkDestroy(void** destroyed) {
  *destroyed = nullptr;
  return 0;
}
int nvJitLinkAddData(void*, int kind, void const* bytes, size_t size, char const* name) {
  // Of a cubin also the type, which says whether it can be linked: 1 is ET_REL.
  unsigned short type = 0;
  if (kind == 1 && size >= 18) std::memcpy(&type, static_cast<char const*>(bytes) + 16, sizeof type);
  write_down("linker: kind %d, type %d, %zu bytes, %s", kind, type, size, name);
  return 0;
}
int nvJitLinkComplete(void*) { return fault() == nullptr ? 0 : 6; }
int nvJitLinkGetLinkedCubinSize(void*, size_t* bytes) {
  *bytes = linked().size();
  return 0;
}
int nvJitLinkGetLinkedCubin(void*, void* to) {
  auto const made = linked();
  std::memcpy(to, made.data(), made.size());
  return 0;
}
int nvJitLinkGetErrorLogSize(void*, size_t* bytes) {
  *bytes = fault() == nullptr ? 0 : std::strlen(fault()) + 1;
  return 0;
}
int nvJitLinkGetErrorLog(void*, char* to) {
  std::strcpy(to, fault());
  return 0;
}

}  // extern "C"

// NOLINTEND(readability-identifier-naming)
