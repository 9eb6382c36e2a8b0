// Scenarios that launch the kernels of listed_calls.hpp and timed_calls.hpp.
#include "../../../bench/crowd.hpp"
#include "../../../bench/fill_level.hpp"
#include "../../../bench/fragmentation.hpp"
#include "../../../bench/long_churn.hpp"
#include "../../../bench/workers.hpp"

#include "work.hpp"

namespace warpheap::tool {
inline namespace WARPHEAP_BACKEND {

std::vector<bench::result> run_workers(std::string const& allocator, bench::request const& asked) {
  return for_allocator(allocator, [&](auto entry) { return bench::workers(entry.contender(), asked); });
}

std::vector<bench::result> run_fill_level(std::string const& allocator, bench::request const& asked) {
  return for_allocator(allocator, [&](auto entry) { return bench::fill_level(entry.contender(), asked); });
}

std::vector<bench::result> run_fragmentation(std::string const& allocator, bench::request const& asked) {
  return for_allocator(allocator, [&](auto entry) { return bench::fragmentation(entry.contender(), asked); });
}

std::vector<bench::result> run_long_churn(std::string const& allocator, bench::request const& asked) {
  return for_allocator(allocator, [&](auto entry) { return bench::long_churn(entry.contender(), asked); });
}

std::vector<bench::result> run_crowd(std::string const& allocator, bench::request const& asked) {
  return for_allocator(allocator, [&](auto entry) { return bench::crowd(entry.contender(), asked); });
}

}  // namespace WARPHEAP_BACKEND
}  // namespace warpheap::tool
