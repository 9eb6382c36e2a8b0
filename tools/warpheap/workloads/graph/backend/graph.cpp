// SPDX-License-Identifier: Apache-2.0
// The dynamic graph of `warpheap graph` on one backend.
#include "backend/allocators.hpp"
#include "backend/traced_heap.hpp"
#include "heap_graph.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND { namespace {

std::unique_ptr<dynamic_graph> make_dynamic_graph(std::string const& allocator, u64 pool_bytes, u32 vertices) {
  return known_allocators::measure(
      allocator, [&]<class Allocator>(bench::test_subject<Allocator> const&) -> std::unique_ptr<dynamic_graph> {
        return std::make_unique<graph::heap_graph<Allocator>>(pool_bytes, vertices);
      });
}

std::unique_ptr<dynamic_graph> make_traced_dynamic_graph(u64 pool_bytes, u32 vertices) {
  return std::make_unique<graph::heap_graph<default_allocator, traced_heap>>(pool_bytes, vertices);
}

part_registration const added_graph_job{graph_job{make_dynamic_graph, make_traced_dynamic_graph}};

}}}  // namespace warpheap::tool::WARPHEAP_BACKEND
