// SPDX-License-Identifier: Apache-2.0
// The dynamic graph of `warpheap graph --gpus` on one backend.
#include "set_graph.hpp"

#include "backend/allocators.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND { namespace {

std::vector<std::string> allocators_of_sets() {
  std::vector<std::string> names;
  for (auto const& known : known_allocators::descriptions()) {
    bool const is_one = known_allocators::visit(
        known.name, [](auto entry) { return set_member<typename decltype(entry)::allocator_type>; });
    if (is_one) names.push_back(known.name);
  }
  return names;
}

std::unique_ptr<dynamic_graph> make_set_graph(std::string const& allocator, u64 pool_bytes, u32 vertices,
                                              std::vector<int> const& devices) {
  return known_allocators::visit(allocator, [&](auto entry) -> std::unique_ptr<dynamic_graph> {
    using allocator_type = typename decltype(entry)::allocator_type;
    if constexpr (!set_member<allocator_type>) throw std::invalid_argument{allocator + " is in no heap set"};
    else return std::make_unique<graph::set_graph<allocator_type>>(pool_bytes, vertices, devices);
  });
}

part_registration const added_set_graph_job{set_graph_job{allocators_of_sets, make_set_graph}};

}}}  // namespace warpheap::tool::WARPHEAP_BACKEND
