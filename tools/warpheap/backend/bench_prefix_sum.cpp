#include "../../../bench/prefix_sum.hpp"

#include "work.hpp"

namespace warpheap::tool {
inline namespace WARPHEAP_BACKEND {

std::vector<bench::result> run_prefix_sum(std::string const& allocator, bench::request const& asked) {
  return for_allocator(allocator, [&](auto entry) { return bench::prefix_sum(entry.contender(), asked); });
}

std::vector<bench::result> run_prefix_sum_floor(bench::request const& asked) { return bench::prefix_sum_floor(asked); }

}  // namespace WARPHEAP_BACKEND
}  // namespace warpheap::tool
