// SPDX-License-Identifier: Apache-2.0
#include "collective_mutex.hpp"

#include "bench/registry.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND { namespace {

bench::registration const registered_collective_mutex{{
    .name = "collective_mutex",
    .text = "a little work of every thread under one mutex: lane by lane under a spin mutex, against groups of lanes",
    .kind = bench::scenario_kind::of_primitives,
    .rank = 30,
    .uses = {{"--workers", "32, 128, ... 32768"}, {"--thread-blocks", "means over the list; default 256"}},
    .ignores = {"--pool"},
    .floor = bench::mutexes<>,
}};

}}}  // namespace warpheap::tool::WARPHEAP_BACKEND
