// SPDX-License-Identifier: Apache-2.0
// The dynamic graph of `warpheap graph` on one backend.
#include "backend/traced_heap.hpp"
#include "backend/workloads.hpp"
#include "heap_graph.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND {

std::unique_ptr<dynamic_graph> make_dynamic_graph(std::string const& allocator, u64 pool_bytes, u32 vertices) {
  return for_allocator(allocator, [&](auto entry) -> std::unique_ptr<dynamic_graph> {
    return std::make_unique<graph::heap_graph<typename decltype(entry)::allocator_type>>(pool_bytes, vertices);
  });
}

std::unique_ptr<dynamic_graph> make_traced_dynamic_graph(u64 pool_bytes, u32 vertices) {
  return std::make_unique<graph::heap_graph<default_allocator, traced_heap>>(pool_bytes, vertices);
}

}}  // namespace warpheap::tool::WARPHEAP_BACKEND
