// SPDX-License-Identifier: Apache-2.0
// Rounds of random calls by many threads on a heap of the chosen allocator. Every block is checked.
#include "backend/allocators.hpp"
#include "backend/shown_heap.hpp"
#include "rounds.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND { namespace {

stress_row run_growing(stress_request asked) {
  using allocator_type = bench::patient_allocator<>;
  u64 const unit = reserve_pool::growing::granularity();
  asked.pool_bytes = align_up(asked.pool_bytes, unit);
  basic_heap<allocator_type> heap{
      growth{.initial = unit, .limit = asked.pool_bytes, .chunk = align_up(asked.pool_bytes / 256, unit)}};
  return stress_run<allocator_type>{heap, allocator_type::creation_type::name, asked}.run();
}

stress_row run_stress(std::string const& allocator, stress_request const& asked) {
  if (asked.grows) return run_growing(asked);
  return known_allocators::measure(allocator, [&]<class Allocator>(bench::test_subject<Allocator> const& subject) {
    basic_heap<Allocator> heap{asked.pool_bytes};
    auto const shown = show_heap(heap, "stress");
    return stress_run<Allocator>{heap, subject.name, asked}.run();
  });
}

part_registration const added_stress_job{stress_job{run_stress}};

}}}  // namespace warpheap::tool::WARPHEAP_BACKEND
