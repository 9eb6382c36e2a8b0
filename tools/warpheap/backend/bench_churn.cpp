// Scenarios that launch the kernels of churn.hpp.
#include "../../../bench/bounds.hpp"
#include "../../../bench/churn.hpp"
#include "../../../bench/placement.hpp"
#include "../../../bench/policy_overhead.hpp"

#include "work.hpp"

namespace warpheap::tool {
inline namespace WARPHEAP_BACKEND {

std::vector<bench::result> run_churn(std::string const& allocator, bench::request const& asked) {
  return for_allocator(allocator, [&](auto entry) { return bench::churn(entry.contender(), asked); });
}

std::vector<bench::result> run_policy_overhead(std::string const& allocator, bench::request const& asked) {
  return for_allocator(allocator, [&](auto entry) { return bench::policy_overhead(entry.contender(), asked); });
}

std::vector<bench::result> run_bounds(bench::request const& asked) {
  bench::contender<default_allocator> const subject{default_allocator::creation_type::name, true};
  return bench::bounds(subject, asked);
}

std::vector<bench::result> run_placement(std::string const& allocator, bench::request const& asked) {
  return for_allocator(allocator, [&](auto entry) { return bench::placement(entry.contender(), asked); });
}

std::vector<bench::result> run_placement_floor(bench::request const& asked) { return bench::placement_floor(asked); }

}  // namespace WARPHEAP_BACKEND
}  // namespace warpheap::tool
