// SPDX-License-Identifier: Apache-2.0
// `warpheap replay` on one backend.
#include "backend/allocators.hpp"
#include "replayer.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND { namespace {

bench::result run_replay(std::string const& allocator, replay_settings const& settings) {
  return known_allocators::measure(allocator, [&](auto const& subject) {
    return replay::replayer{subject, settings}.run();
  });
}

bench::result run_replay_baseline(replay_settings const& settings) { return replay::baseline_of(settings); }

part_registration const added_replay_job{replay_job{run_replay, run_replay_baseline}};

}}}  // namespace warpheap::tool::WARPHEAP_BACKEND
