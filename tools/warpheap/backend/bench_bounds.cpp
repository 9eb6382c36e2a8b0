#include "../../../bench/bounds.hpp"

#include "work.hpp"

namespace warpheap::tool {
inline namespace WARPHEAP_BACKEND {

std::vector<bench::result> run_bounds(bench::request const& asked) {
  bench::contender<default_allocator> const who{default_allocator::creation_type::name, true};
  return bench::bounds(who, asked);
}

}  // namespace WARPHEAP_BACKEND
}  // namespace warpheap::tool
