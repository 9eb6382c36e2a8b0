// SPDX-License-Identifier: Apache-2.0
#include "driver.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <stdexcept>

#include "relink/device_code.hpp"

namespace warpheap::preload {

namespace {

constexpr int capability_major = 75, capability_minor = 76;  // of CUdevice_attribute

thread_local int own_depth = 0;

unsigned architecture_of(int device) {
  int major = 0, minor = 0;
  if (call_driver("cuDeviceGetAttribute", &major, capability_major, device) != success ||
      call_driver("cuDeviceGetAttribute", &minor, capability_minor, device) != success)
    throw relink::unusable_code{"the driver does not say what GPU it is for"};
  return static_cast<unsigned>(10 * major + minor);
}

}  // namespace

void* driver_function(char const* name) {
  // No lock is held while the loader has its own.
  static std::atomic<void*> driver{nullptr};
  if (driver.load(std::memory_order_relaxed) == nullptr)
    driver.store(dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), std::memory_order_relaxed);
  void* const opened = driver.load(std::memory_order_relaxed);
  return opened == nullptr ? nullptr : true_dlsym(opened, name);
}

own_calls::own_calls() { ++own_depth; }
own_calls::~own_calls() { --own_depth; }
bool own_calls::are_made() { return own_depth != 0; }

void* current_context() {
  // At each launch, so it is found once.
  static std::atomic<int (*)(void**)> found{nullptr};
  auto* get = found.load(std::memory_order_relaxed);
  if (get == nullptr) {
    get = reinterpret_cast<int (*)(void**)>(driver_function("cuCtxGetCurrent"));
    found.store(get, std::memory_order_relaxed);
  }
  void* context = nullptr;
  return get != nullptr && get(&context) == success ? context : nullptr;
}

unsigned long long number_of(void* context) {
  unsigned long long number = 0;
  return call_driver("cuCtxGetId", context, &number) == success ? number : 0;
}

unsigned architecture_of_current() {
  int device = 0;
  if (call_driver("cuCtxGetDevice", &device) != success) throw relink::unusable_code{"no context is current"};
  return architecture_of(device);
}

unsigned architecture_of_all() {
  int count = 0;
  call_driver("cuDeviceGetCount", &count);
  if (count == 0) throw relink::unusable_code{"there is no GPU"};
  unsigned const first = architecture_of(0);
  for (int device = 1; device < count; ++device)
    if (architecture_of(device) != first) throw relink::unusable_code{"the GPUs are of different compute capabilities"};
  return first;
}

bool is_captured(void* stream) {
  int status = 0;
  return call_driver("cuStreamIsCapturing", stream, &status) != success || status != 0;
}

own_captures::own_captures() { call_driver("cuThreadExchangeStreamCaptureMode", &mode_); }
own_captures::~own_captures() { call_driver("cuThreadExchangeStreamCaptureMode", &mode_); }

std::string archive_folder() {
  char const* const folder = std::getenv("WARPHEAP_ARCHIVE");
  if (folder == nullptr) throw std::runtime_error{"WARPHEAP_ARCHIVE does not name the archive's folder"};
  return folder;
}

void say(std::string const& text) {
  auto const line = "warpheap run: " + text + "\n";
  // One call, so that lines of several processes do not mix. It may fail, as standard error may.
  (void)!write(STDERR_FILENO, line.data(), line.size());
}

void say_more(std::string const& text) {
  static bool const wanted = std::getenv("WARPHEAP_RUN_VERBOSE") != nullptr;
  if (wanted) say(text);
}

}  // namespace warpheap::preload
