// SPDX-License-Identifier: Apache-2.0
// A heap that is made too early, by a static object of the program's first file, where device code
// is linked.
#include "early_heap.hpp"

#include "warpheap/heap/override.hpp"

namespace override_test {

std::string const early_answer = [] {
  try {
    warpheap::override_heap const made{1 << 20};
    return std::string{"made"};
  } catch (std::exception const& error) {
    return std::string{error.what()};
  }
}();

}  // namespace override_test
