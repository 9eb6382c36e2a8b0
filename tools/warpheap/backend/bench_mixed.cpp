#include "../../../bench/mixed.hpp"

#include "work.hpp"

namespace warpheap::tool {
inline namespace WARPHEAP_BACKEND {

std::vector<bench::result> run_mixed(std::string const& allocator, bench::request const& asked) {
  return for_allocator(allocator, [&](auto entry) { return bench::mixed(entry.contender(), asked); });
}

std::vector<bench::result> run_mixed_floor(bench::request const& asked) { return {bench::mixed_floor(asked)}; }

}  // namespace WARPHEAP_BACKEND
}  // namespace warpheap::tool
