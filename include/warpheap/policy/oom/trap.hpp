// SPDX-License-Identifier: Apache-2.0
// Running out of memory ends the kernel, with a line that says so: for programs that cannot
// continue without memory, and do not want to check for nullptr. The host then gets the backend's
// error from its next synchronize(); on a GPU the context is lost.
#pragma once

#include "../../platform/simt.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace oom {

/// A call that finds no memory ends the kernel.
struct trap {
  static constexpr char const* name = "trap";

  WARPHEAP_DEVICE static void* handle(size_t) {
    simt::trap("out of memory: no block for this request");
    return nullptr;
  }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::oom
