#include "../../../bench/utilisation.hpp"

#include "work.hpp"

namespace warpheap::tool {
inline namespace WARPHEAP_BACKEND {

std::vector<bench::result> run_utilisation(std::string const& allocator, bench::request const& asked) {
  return for_allocator(allocator, [&](auto entry) { return bench::utilisation(entry.contender(), asked); });
}

}  // namespace WARPHEAP_BACKEND
}  // namespace warpheap::tool
