// Scenarios that launch the kernels of one_call.hpp and ledger.hpp. A kernel is compiled for every
// allocator in each source that launches it, and that makes up most of the program: so scenarios
// with the same kernels share a source.
#include "../../../bench/burst.hpp"
#include "../../../bench/exhaust.hpp"
#include "../../../bench/fill.hpp"
#include "../../../bench/head_replacement.hpp"
#include "../../../bench/init.hpp"
#include "../../../bench/mixed.hpp"
#include "../../../bench/prefix_sum.hpp"
#include "../../../bench/scaling.hpp"
#include "../../../bench/utilisation.hpp"

#include "work.hpp"

namespace warpheap::tool {
inline namespace WARPHEAP_BACKEND {

std::vector<bench::result> run_burst(std::string const& allocator, bench::request const& asked) {
  return for_allocator(allocator, [&](auto entry) { return bench::burst(entry.contender(), asked); });
}

std::vector<bench::result> run_burst_floor(bench::request const& asked) { return bench::burst_floor(asked); }

std::vector<bench::result> run_mixed(std::string const& allocator, bench::request const& asked) {
  return for_allocator(allocator, [&](auto entry) { return bench::mixed(entry.contender(), asked); });
}

std::vector<bench::result> run_mixed_floor(bench::request const& asked) { return {bench::mixed_floor(asked)}; }

std::vector<bench::result> run_scaling(std::string const& allocator, bench::request const& asked) {
  return for_allocator(allocator, [&](auto entry) { return bench::scaling(entry.contender(), asked); });
}

std::vector<bench::result> run_exhaust(std::string const& allocator, bench::request const& asked) {
  return for_allocator(allocator, [&](auto entry) { return bench::exhaust(entry.contender(), asked); });
}

std::vector<bench::result> run_init(std::string const& allocator, bench::request const& asked) {
  return for_allocator(allocator, [&](auto entry) { return bench::init(entry.contender(), asked); });
}

std::vector<bench::result> run_prefix_sum(std::string const& allocator, bench::request const& asked) {
  return for_allocator(allocator, [&](auto entry) { return bench::prefix_sum(entry.contender(), asked); });
}

std::vector<bench::result> run_prefix_sum_floor(bench::request const& asked) { return bench::prefix_sum_floor(asked); }

std::vector<bench::result> run_head_replacement(std::string const& allocator, bench::request const& asked) {
  if (allocator != halloc_allocator::creation_type::name) return bench::no_head_replacement(allocator, asked);
  return bench::head_replacement(bench::contender<halloc_allocator>{allocator, true}, asked);
}

std::vector<bench::result> run_fill(std::string const& allocator, bench::request const& asked) {
  return for_allocator(allocator, [&](auto entry) { return bench::fill(entry.contender(), asked); });
}

std::vector<bench::result> run_utilisation(std::string const& allocator, bench::request const& asked) {
  return for_allocator(allocator, [&](auto entry) { return bench::utilisation(entry.contender(), asked); });
}

}  // namespace WARPHEAP_BACKEND
}  // namespace warpheap::tool
