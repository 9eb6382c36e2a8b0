// SPDX-License-Identifier: Apache-2.0
#include "semaphore.hpp"

#include "bench/registry.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND { namespace {

bench::registration const registered_semaphore{{
    .name = "semaphore",
    .text = "a unit for every thread, made by the batch: counting against bulk semaphore",
    .kind = bench::scenario_kind::of_primitives,
    .rank = 10,
    .uses = {{"--workers", "32, 64, ... 1048576"},
             {"--thread-blocks", "means over the list; default 256"},
             {"--batch"},
             {"--batch-ns"}},
    .ignores = {"--pool"},
    .floor = bench::semaphore,
}};

}}}  // namespace warpheap::tool::WARPHEAP_BACKEND
