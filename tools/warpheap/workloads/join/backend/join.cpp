// SPDX-License-Identifier: Apache-2.0
// `warpheap join` on one backend: the join with one allocator, or with direct output.
#include <algorithm>
#include <iterator>

#include "backend/allocators.hpp"
#include "backend/traced_heap.hpp"
#include "job.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND { namespace {

template <creation::walk_kind Kind>
inline constexpr creation::random_walk_config pages_of_256{.kind = Kind, .page_bytes = 256};
template <creation::walk_kind Kind>
using small_pages = plain_allocator<creation::random_walk<pages_of_256<Kind>>>;

/// Walks that only a join uses: join_walks names them in this order.
using walk_list =
    entry_list<named_entry<small_pages<creation::walk_kind::plain>, "rw_256", "RW with pages of 256 bytes">,
               named_entry<small_pages<creation::walk_kind::bitmap>, "rw_bitmap_256", "RW-BM with the same pages">,
               named_entry<small_pages<creation::walk_kind::collaborative>, "corw_256", "CoRW with the same pages">>;

template <class Allocator>
std::vector<bench::result> join_with(bench::test_subject<Allocator> const& subject, join_settings const& settings) {
  bench::result row{.scenario = "join", .allocator = subject.name, .operation = "join"};
  row.parameters = {{"page_bytes", settings.page_bytes}, {"pool_bytes", settings.pool_bytes}};
  std::vector<bench::result> skipped;
  if (bench::skip(skipped, row, bench::unsupported_reason(subject, settings.page_bytes))) return skipped;
  return join::job<join::heap_pages<Allocator>>{subject.name, settings}.run();
}

std::vector<bench::result> run_join(std::string const& allocator, join_settings const& settings) {
  using join::page_counting;
  if (settings.take_trace)
    return join::job<join::heap_pages<default_allocator, traced_heap>>{allocator, settings}.run();
  if (allocator == direct_output)
    return join::job<join::direct_pages<page_counting::by_lane>>{allocator, settings}.run();
  if (allocator == direct_output_by_warp)
    return join::job<join::direct_pages<page_counting::by_warp>>{allocator, settings}.run();
  auto const run = [&](auto const& subject) { return join_with(subject, settings); };
  bool const is_walk = std::find(std::begin(join_walks), std::end(join_walks), allocator) != std::end(join_walks);
  return is_walk ? walk_list::measure(allocator, run) : known_allocators::measure(allocator, run);
}

part_registration const added_join_job{join_job{run_join}};

}}}  // namespace warpheap::tool::WARPHEAP_BACKEND
