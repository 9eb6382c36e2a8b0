// SPDX-License-Identifier: Apache-2.0
#include "random_walk.hpp"

#include "bench/registry.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND { namespace {

bench::registration const registered_random_walk{{
    .name = "random_walk",
    .text = "steps and time of a page by RW, RW-BM, CoRW and a queue as free pages become few, beside theory",
    .kind = bench::scenario_kind::of_primitives,
    .rank = 50,
    .uses = {{"--workers", "1024, 4096, ... 262144"}, {"--page-shares"}},
    .floor = bench::random_walk,
}};

}}}  // namespace warpheap::tool::WARPHEAP_BACKEND
