// SPDX-License-Identifier: Apache-2.0
// Scenarios that launch the kernels of churn.hpp.
#include "churn.hpp"
#include "bounds.hpp"
#include "placement.hpp"
#include "policy_overhead.hpp"
#include "registry.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND { namespace {

registration const scenarios_of_churn[]{
    with_allocators(about_churn(), [](auto const& subject, auto const& asked) { return churn(subject, asked); }),
    with_allocators(about_policy_overhead(),
                    [](auto const& subject, auto const& asked) { return policy_overhead(subject, asked); }),
    with_allocators(about_placement(),
                    [](auto const& subject, auto const& asked) { return placement(subject, asked); }),
    registration{about_bounds()},
};

}}}  // namespace warpheap::bench::WARPHEAP_BACKEND
