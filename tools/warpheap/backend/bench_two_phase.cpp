#include "../../../bench/two_phase.hpp"

#include "work.hpp"

namespace warpheap::tool {
inline namespace WARPHEAP_BACKEND {

std::vector<bench::result> run_two_phase(std::string const& allocator, bench::request const& asked) {
  return for_allocator(allocator, [&](auto entry) { return bench::two_phase(entry.contender(), asked); });
}

}  // namespace WARPHEAP_BACKEND
}  // namespace warpheap::tool
