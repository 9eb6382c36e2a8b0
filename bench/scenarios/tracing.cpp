// SPDX-License-Identifier: Apache-2.0
#include "tracing.hpp"

#include "bench/registry.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND { namespace {

bench::registration const registered_tracing{{
    .name = "tracing",
    .text = "a heap that records its calls, against one that does not",
    .kind = bench::scenario_kind::of_default_allocator,
    .uses = {{"--sizes", "the first"}, {"--threads", "1048576"}, {"--rounds", "of 64 steps of other work"}},
    .floor = [](bench::request const& asked) { return bench::tracing(asked); },
}};

}}}  // namespace warpheap::tool::WARPHEAP_BACKEND
