// SPDX-License-Identifier: Apache-2.0
#include "atomic.hpp"

#include "bench/registry.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND { namespace {

bench::registration const registered_atomic{{
    .name = "atomic",
    .text = "one addition to a word that all threads share, by each lane and by each warp, and to a word of its own",
    .kind = bench::scenario_kind::of_primitives,
    .rank = 40,
    .uses = {{"--workers", "32, 128, ... 131072"}, {"--thread-blocks", "means over the list; default 256"}},
    .ignores = {"--pool"},
    .floor = bench::atomics<>,
}};

}}}  // namespace warpheap::tool::WARPHEAP_BACKEND
