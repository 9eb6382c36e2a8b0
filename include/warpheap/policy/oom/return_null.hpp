// SPDX-License-Identifier: Apache-2.0
// When memory runs out, callers get nullptr, as from C's malloc. Source: Eckert 2014, section 4.3.6
// ("ReturnNull").
#pragma once

#include "../../platform/simt.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace oom {

/// A call that finds no memory returns nullptr.
struct return_null {
  static constexpr char const* name = "return_null";

  WARPHEAP_DEVICE static void* handle(size_t) { return nullptr; }
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::oom
