// SPDX-License-Identifier: Apache-2.0
// A heap of this program that `warpheap top` shows.
#pragma once

#include <memory>
#include <string>
#include <system_error>

#include "warpheap/heap/published_gauge.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND {

/// Shows `heap` as long as the result lives. Nothing is shown of an allocator without gauges, or
/// where no page can be made: the work goes on without.
template <class Allocator>
std::shared_ptr<void> show_heap([[maybe_unused]] basic_heap<Allocator> const& heap,
                                [[maybe_unused]] std::string const& name) {
  if constexpr (requires { heap.shown(name); }) return heap.shown(name);
  else if constexpr (adds_occupancy<typename Allocator::creation_type>) {
    try {
      return std::make_shared<published_gauge<Allocator>>(heap, name);
    } catch (std::system_error const&) {
    }
  }
  return nullptr;
}

}}  // namespace warpheap::tool::WARPHEAP_BACKEND
