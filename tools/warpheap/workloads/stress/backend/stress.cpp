// Rounds of random calls by many threads on a heap of the chosen allocator. Every block is checked.
#include "backend/shown_heap.hpp"
#include "backend/workloads.hpp"
#include "rounds.hpp"

namespace warpheap::tool {
inline namespace WARPHEAP_BACKEND {

stress_row run_stress(std::string const& allocator, stress_request const& asked) {
  return for_allocator(allocator, [&](auto entry) {
    using allocator_type = typename decltype(entry)::allocator_type;
    basic_heap<allocator_type> heap{asked.pool_bytes};
    auto const shown = show_heap(heap, "stress");
    return stress_run<allocator_type>{heap, entry.name, asked}.run();
  });
}

}  // namespace WARPHEAP_BACKEND
}  // namespace warpheap::tool
