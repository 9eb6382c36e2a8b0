#include "../../../bench/workers.hpp"

#include "work.hpp"

namespace warpheap::tool {
inline namespace WARPHEAP_BACKEND {

std::vector<bench::result> run_workers(std::string const& allocator, bench::request const& asked) {
  return for_allocator(allocator, [&](auto entry) { return bench::workers(entry.contender(), asked); });
}

}  // namespace WARPHEAP_BACKEND
}  // namespace warpheap::tool
