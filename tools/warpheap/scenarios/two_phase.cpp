// SPDX-License-Identifier: Apache-2.0
#include "two_phase.hpp"
#include "registry.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND { namespace {

registration const scenarios_of_two_phase[]{
    with_variants(about_two_phase(), [](auto const& subject, auto const& asked) { return two_phase(subject, asked); }),
};

}}}  // namespace warpheap::bench::WARPHEAP_BACKEND
