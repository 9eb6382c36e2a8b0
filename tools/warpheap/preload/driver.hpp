// SPDX-License-Identifier: Apache-2.0
// The CUDA driver as the preloaded library sees it: results are numbers, handles are pointers. The
// library is built without CUDA's headers, and finds the driver that the program has loaded.
#pragma once

#include <string>

namespace warpheap::preload {

inline constexpr int success = 0, not_found = 500;
inline constexpr int stack_limit = 0;  ///< CU_LIMIT_STACK_SIZE

/// dlsym itself; this library has a function of that name.
void* true_dlsym(void* handle, char const* name);

/// A function of the driver by its name in libcuda.so.1; nullptr if the driver has none, or there
/// is no driver. Calls of it go to no hook.
void* driver_function(char const* name);

/// Calls a function of the driver. Returns its result, or -1 if there is none of the name.
template <class... Arguments>
int call_driver(char const* name, Arguments... arguments) {
  auto* const function = reinterpret_cast<int (*)(Arguments...)>(driver_function(name));
  return function == nullptr ? -1 : function(arguments...);
}

/// While one lives, what its thread asks of the driver is this library's own business: hooks pass
/// it on as it is.
class own_calls {
 public:
  own_calls();
  own_calls(own_calls const&) = delete;
  own_calls& operator=(own_calls const&) = delete;
  ~own_calls();

  static bool are_made();
};

/// The context that is current in this thread; nullptr if there is none.
void* current_context();

/// A number that no other context of the process has had; 0 if it is gone.
unsigned long long number_of(void* context);

/// The compute capability, such as 90, of the GPU that is current, on which modules are loaded.
/// Throws relink::unusable_code if none is.
unsigned architecture_of_current();

/// That of all GPUs, for which libraries are loaded. Throws relink::unusable_code if they differ.
unsigned architecture_of_all();

/// Whether launches into a stream are recorded and do not run; also if the driver does not say,
/// because it would spoil a recording.
bool is_captured(void* stream);

/// While one lives, what its thread allocates does not spoil what others record.
class own_captures {
 public:
  own_captures();
  own_captures(own_captures const&) = delete;
  own_captures& operator=(own_captures const&) = delete;
  ~own_captures();

 private:
  int mode_ = 2;  ///< CU_STREAM_CAPTURE_MODE_RELAXED, then what it was
};

/// The folder with the archive's libraries. Throws std::runtime_error if the environment does not
/// say it.
std::string archive_folder();

/// Writes "warpheap run: TEXT" to standard error.
void say(std::string const& text);

/// What is said only with --verbose.
void say_more(std::string const& text);

}  // namespace warpheap::preload
