// SPDX-License-Identifier: Apache-2.0
#include "peers.hpp"

#include "bench/registry.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND { namespace {

bench::registration const registered_peers{{
    .name = "peers",
    .text = "blocks of a heap set freed by another GPU: posted, drained, and asked for again; beside a local free",
    .kind = bench::scenario_kind::of_default_allocator,
    .rank = 30,
    .uses = {{"--sizes", "the first"}, {"--threads", "1048576"}},
    .floor = [](bench::request const& asked) { return bench::peers_scenario<>{asked}.rows(); },
}};

}}}  // namespace warpheap::tool::WARPHEAP_BACKEND
