// SPDX-License-Identifier: Apache-2.0
#include "two_phase.hpp"

#include "bench/registry.hpp"
#include "tools/warpheap/backend/allocators.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND { namespace {

bench::registration const registered_two_phase{{
    .name = "two_phase",
    .text = "threads that rather allocate in even steps and rather free in odd ones, a kernel a step or one for all",
    .rank = 140,
    .uses = {{"--sizes"},
             {"--ranges"},
             {"--workers", "262144"},
             {"--divergence"},
             {"--allocate-shares"},
             {"--free-shares"},
             {"--rounds", "two steps each"}},
    .measures_variants = true,
    .run = with_variants([](auto const& subject, auto const& asked) { return bench::two_phase(subject, asked); }),
}};

}}}  // namespace warpheap::tool::WARPHEAP_BACKEND
