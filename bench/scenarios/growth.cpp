// SPDX-License-Identifier: Apache-2.0
#include "growth.hpp"

#include "bench/registry.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND { namespace {

bench::registration const registered_growth{{
    .name = "growth",
    .text = "a pool that grows: mapped at rest and under a kernel that waits, trimmed, and beside a fixed one",
    .kind = bench::scenario_kind::of_default_allocator,
    .rank = 20,
    .uses = {{"--sizes", "the first"},
             {"--ranges", "the first, of its churns"},
             {"--threads", "1048576, and 262144 for its churn"},
             {"--rounds", "of its churn"},
             {"--kernels", "of a round of its long churn"}},
    .floor = [](bench::request const& asked) { return bench::growth_scenario<>{asked}.rows(); },
}};

}}}  // namespace warpheap::tool::WARPHEAP_BACKEND
