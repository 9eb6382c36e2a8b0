#include "../../../bench/exhaust.hpp"

#include "work.hpp"

namespace warpheap::tool {
inline namespace WARPHEAP_BACKEND {

std::vector<bench::result> run_exhaust(std::string const& allocator, bench::request const& asked) {
  return for_allocator(allocator, [&](auto entry) { return bench::exhaust(entry.contender(), asked); });
}

}  // namespace WARPHEAP_BACKEND
}  // namespace warpheap::tool
