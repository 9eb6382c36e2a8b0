// SPDX-License-Identifier: Apache-2.0
#include "instruction_latency.hpp"

#include "bench/registry.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND { namespace {

bench::registration const registered_instruction_latency{{
    .name = "instruction_latency",
    .text = "cycles of one lane for a count of bits, a search for the n-th of them, and a load of a bitmap's word",
    .kind = bench::scenario_kind::of_primitives,
    .rank = 60,
    .ignores = {"--pool"},
    .floor = bench::instruction_latency,
}};

}}}  // namespace warpheap::tool::WARPHEAP_BACKEND
