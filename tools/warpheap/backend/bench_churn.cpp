#include "../../../bench/churn.hpp"

#include "work.hpp"

namespace warpheap::tool::inline WARPHEAP_BACKEND {

std::vector<bench::result> run_churn(std::string const& allocator, bench::request const& asked) {
  return for_allocator(allocator, [&](auto entry) { return bench::churn(entry.contender(), asked); });
}

}  // namespace warpheap::tool::inline WARPHEAP_BACKEND
