// SPDX-License-Identifier: Apache-2.0
// Scenarios that launch the kernels of listed_calls.hpp and timed_calls.hpp.
#include "crowd.hpp"
#include "efficiency.hpp"
#include "fill_level.hpp"
#include "fragmentation.hpp"
#include "long_churn.hpp"
#include "map.hpp"
#include "registry.hpp"
#include "workers.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND { namespace {

registration const scenarios_of_listed_calls[]{
    with_variants(about_workers(), [](auto const& subject, auto const& asked) { return workers(subject, asked); }),
    with_allocators(about_fill_level(),
                    [](auto const& subject, auto const& asked) { return fill_level(subject, asked); }),
    with_variants(about_fragmentation(),
                  [](auto const& subject, auto const& asked) { return fragmentation(subject, asked); }),
    with_allocators(about_efficiency(),
                    [](auto const& subject, auto const& asked) { return efficiency(subject, asked); }),
    with_allocators(about_long_churn(),
                    [](auto const& subject, auto const& asked) { return long_churn(subject, asked); }),
    with_allocators(about_map(), [](auto const& subject, auto const& asked) { return heap_map(subject, asked); }),
    with_allocators(about_crowd(), [](auto const& subject, auto const& asked) { return crowd(subject, asked); }),
};

}}}  // namespace warpheap::bench::WARPHEAP_BACKEND
