// `warpheap join` on one backend: the join with one allocator, or with direct output.
#include "join/job.hpp"
#include "work.hpp"

namespace warpheap::tool {
inline namespace WARPHEAP_BACKEND {

namespace {

template <class Allocator>
std::vector<bench::result> join_with(bench::contender<Allocator> const& who, join_settings const& settings) {
  if (auto const why = bench::refusal_of(who, settings.page_bytes); !why.empty())
    throw usage_error{"--page-bytes: " + why + ", and a page has " + std::to_string(settings.page_bytes)};
  return join::job<join::heap_pages<Allocator>>{who.name, settings}.run();
}

}  // namespace

std::vector<bench::result> run_join(std::string const& allocator, join_settings const& settings) {
  if (allocator == direct_output) return join::job<join::direct_pages>{allocator, settings}.run();
  return for_allocator(allocator, [&](auto entry) { return join_with(entry.contender(), settings); });
}

}  // namespace WARPHEAP_BACKEND
}  // namespace warpheap::tool
