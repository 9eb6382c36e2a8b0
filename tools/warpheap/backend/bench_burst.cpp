#include "../../../bench/burst.hpp"

#include "work.hpp"

namespace warpheap::tool {
inline namespace WARPHEAP_BACKEND {

std::vector<bench::result> run_burst(std::string const& allocator, bench::request const& asked) {
  return for_allocator(allocator, [&](auto entry) { return bench::burst(entry.contender(), asked); });
}

std::vector<bench::result> run_burst_floor(bench::request const& asked) { return bench::burst_floor(asked); }

}  // namespace WARPHEAP_BACKEND
}  // namespace warpheap::tool
