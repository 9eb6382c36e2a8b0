#include "../../../bench/head_replacement.hpp"

#include "work.hpp"

namespace warpheap::tool {
inline namespace WARPHEAP_BACKEND {

std::vector<bench::result> run_head_replacement(std::string const& allocator, bench::request const& asked) {
  if (allocator != halloc_allocator::creation_type::name) return bench::no_head_replacement(allocator, asked);
  return bench::head_replacement(bench::contender<halloc_allocator>{allocator, true}, asked);
}

}  // namespace WARPHEAP_BACKEND
}  // namespace warpheap::tool
