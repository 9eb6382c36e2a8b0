// SPDX-License-Identifier: Apache-2.0
// Scenarios that launch the kernels of one_call.hpp and ledger.hpp. A kernel is compiled for every
// allocator in each source that launches it, and that makes up most of the program: so scenarios
// with the same kernels share a source.
#include "arena.hpp"
#include "burst.hpp"
#include "exhaust.hpp"
#include "fill.hpp"
#include "head_replacement.hpp"
#include "init.hpp"
#include "latency.hpp"
#include "mixed.hpp"
#include "prefix_sum.hpp"
#include "registry.hpp"
#include "scaling.hpp"
#include "utilisation.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND { namespace {

registration const scenarios_of_one_call[]{
    with_variants(about_burst(), [](auto const& subject, auto const& asked) { return burst(subject, asked); }),
    with_allocators(about_mixed(), [](auto const& subject, auto const& asked) { return mixed(subject, asked); }),
    with_allocators(about_fill(), [](auto const& subject, auto const& asked) { return fill(subject, asked); }),
    with_variants(about_exhaust(), [](auto const& subject, auto const& asked) { return exhaust(subject, asked); }),
    with_allocators(about_utilisation(),
                    [](auto const& subject, auto const& asked) { return utilisation(subject, asked); }),
    with_allocators(about_latency(), [](auto const& subject, auto const& asked) { return latency(subject, asked); }),
    with_allocators(about_init(), [](auto const& subject, auto const& asked) { return init(subject, asked); }),
    with_variants(about_scaling(), [](auto const& subject, auto const& asked) { return scaling(subject, asked); }),
    registration{about_arena()},
    registration{about_head_replacement()},
    with_allocators(about_prefix_sum(),
                    [](auto const& subject, auto const& asked) { return prefix_sum(subject, asked); }),
};

}}}  // namespace warpheap::bench::WARPHEAP_BACKEND
