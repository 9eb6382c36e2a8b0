// SPDX-License-Identifier: Apache-2.0
// Scenarios that launch the kernels of churn.hpp.
#include "churn.hpp"
#include "bounds.hpp"
#include "placement.hpp"
#include "policy_overhead.hpp"

#include "bench/registry.hpp"
#include "tools/warpheap/backend/allocators.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND { namespace {

std::vector<bench::result> run_bounds(bench::request const& asked) {
  return bench::bounds(bench::test_subject<default_allocator>{.name = default_allocator::creation_type::name}, asked);
}

bench::registration const registered_churn{{
    .name = "churn",
    .text = "rounds of malloc and free, up to four blocks a thread; sizes from the first of --ranges",
    .rank = 30,
    .uses = {{"--ranges", "the first"}, {"--threads", "262144"}, {"--rounds"}},
    .run = with_allocator([](auto const& subject, auto const& asked) { return bench::churn(subject, asked); }),
}};

bench::registration const registered_policy_overhead{{
    .name = "policy_overhead",
    .text = "the composed allocator against its creation policy called directly",
    .rank = 130,
    .uses = {{"--sizes"}, {"--ranges"}, {"--threads", "1048576"}, {"--rounds"}},
    .run =
        with_allocator([](auto const& subject, auto const& asked) { return bench::policy_overhead(subject, asked); }),
}};

bench::registration const registered_placement{{
    .name = "placement",
    .text = "how far blocks lie apart, and what that costs who writes and reads them, beside a packed array",
    .rank = 190,
    .uses = {{"--sizes"},
             {"--ranges", "the first, of its churn"},
             {"--threads", "100000, and 262144 for its churn"},
             {"--rounds", "of its churn"}},
    .run = with_allocator([](auto const& subject, auto const& asked) { return bench::placement(subject, asked); }),
    .floor = bench::placement_floor,
}};

bench::registration const registered_bounds{{
    .name = "bounds",
    .text = "burst and churn in kernels with five launch bounds, with their registers",
    .kind = bench::scenario_kind::of_default_allocator,
    .rank = 10,
    .uses = {{"--sizes", "the first"},
             {"--ranges", "the first"},
             {"--threads", "1048576, and 262144 for its churn"},
             {"--rounds"}},
    .floor = run_bounds,
}};

}}}  // namespace warpheap::tool::WARPHEAP_BACKEND
