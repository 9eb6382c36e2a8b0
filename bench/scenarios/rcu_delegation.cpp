// SPDX-License-Identifier: Apache-2.0
#include "rcu_delegation.hpp"

#include "bench/registry.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND { namespace {

bench::registration const registered_rcu_delegation{{
    .name = "rcu_delegation",
    .text = "threads remove elements of a list that others search: every barrier a wait of its own, against barriers "
            "that are delegated",
    .kind = bench::scenario_kind::of_primitives,
    .rank = 20,
    .uses = {{"--workers", "64, 256, ... 16384"},
             {"--thread-blocks", "means over the list; default 256"},
             {"--readers-per-writer"}},
    .ignores = {"--pool"},
    .floor = bench::rcu_delegation<>,
}};

}}}  // namespace warpheap::tool::WARPHEAP_BACKEND
