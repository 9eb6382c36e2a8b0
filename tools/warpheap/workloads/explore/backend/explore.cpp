// SPDX-License-Identifier: Apache-2.0
// Programs of malloc and free by a few lanes, drawn by seed, under schedules that are searched or
// drawn, and held against the contract. The host backend alone chooses schedules.
#include "backend/allocators.hpp"
#include "workloads/explore/settings.hpp"

#if !defined(__CUDACC__)
#include "warpheap/explore/heap_program.hpp"
#endif

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND { namespace {

#if defined(__CUDACC__)

exploration_row run_exploration(std::string const&, exploration_request const&) {
  throw usage_error{"a GPU schedules its lanes as it likes; use --backend host"};
}

std::string why_not(std::string const&, exploration_request const&) { return {}; }

#else

/// Slabs of one class and runs of slabs, where the policy has slabs; elsewhere nothing is said
/// about what stays free.
struct slabs_if_any {
  template <class Creation>
  explore::regions operator()(Creation const& heap) const {
    if constexpr (requires { heap.geometry().capacity(0); }) {
      static constexpr u32 slab_log2 = 14;
      if (heap.geometry().slab_log2() != slab_log2) return {};
      return {.first = reinterpret_cast<u64>(heap.table().pool()),
              .bytes = u64{1} << slab_log2,
              .count = heap.geometry().slabs(),
              .class_of = [](u64 bytes) { return bytes >> slab_log2 > 1 ? i64{-1} : i64{size_class_of(bytes)}; },
              .capacity = [](i64 size_class) { return u64{block_count(static_cast<u32>(size_class), slab_log2)}; }};
    }
    return {};
  }
};

/// Drawn schedules of one program before the next program's turn.
constexpr u64 schedules_a_program = 100;

/// The settings of one program's exploration, by its seed.
explore::exploration settings_of(exploration_request const& asked, u64 seed) {
  constexpr host::mask_policy drawn[] = {host::mask_policy::maximal, host::mask_policy::random,
                                         host::mask_policy::singleton};
  explore::exploration how{.preemptions = asked.preemptions, .seed = seed, .weak_memory = asked.weak_memory};
  how.masks = asked.preemptions ? drawn[seed % 2 * 2] : drawn[seed % 3];
  return how;
}

/// Makes the body of the program that a seed stands for.
using body_maker = std::function<std::string()> (*)(exploration_request const& asked, u64 seed);

template <class Creation>
std::function<std::string()> body_of(exploration_request const& asked, u64 seed) {
  // By seed the lanes are of thread blocks of their own, or of one warp.
  auto const shape = seed % 4 == 3 ? launch_shape{1, asked.lanes} : launch_shape{asked.lanes, 1};
  return explore::heap_exploration<Creation, slabs_if_any>{
      asked.pool_bytes, explore::heap_program::drawn(shape, asked.sizes, asked.calls, seed), {}};
}

/// The one schedule that `asked.replay` tells: SEED@DEVIATIONS, the seed that of the schedule.
exploration_row replay_once(std::string const& name, exploration_request const& asked, body_maker make_body) {
  auto const at = asked.replay.find('@');
  auto const deviations =
      at == std::string::npos ? std::nullopt : explore::deviations_in(std::string_view{asked.replay}.substr(at + 1));
  u64 schedule_seed = 0;
  auto const [end, error] =
      std::from_chars(asked.replay.data(), asked.replay.data() + std::min(at, asked.replay.size()), schedule_seed);
  if (!deviations || error != std::errc{} || *end != '@')
    throw usage_error{"--replay: '" + asked.replay + "' is not of the form SEED@DECISION:LANE,... as a row gives it"};
  exploration_row row{.allocator = name, .programs = 1, .schedules = 1, .seed = asked.seed, .replay = asked.replay};
  row.fault = explore::replay(
      settings_of(asked, asked.seed),
      {.what = {}, .seed = schedule_seed, .counts_yield_points = !asked.preemptions, .deviations = *deviations},
      make_body(asked, asked.seed));
  return row;
}

exploration_row explore_programs(std::string const& name, exploration_request const& asked, body_maker make_body) {
  if (!asked.replay.empty()) return replay_once(name, asked, make_body);
  exploration_row row{.allocator = name, .ended = asked.preemptions.has_value()};
  bool goes_on = true;
  for (u64 seed = asked.seed; goes_on && row.programs < asked.programs; ++seed, ++row.programs) {
    auto how = settings_of(asked, seed);
    auto const before = row;
    if (!asked.preemptions) how.schedules = std::min(schedules_a_program, asked.schedules - row.schedules);
    how.seconds = asked.seconds - row.seconds;
    auto const add = [&](explore::exploration_result const& part) {
      row.schedules = before.schedules + part.schedules;
      row.cut = before.cut + part.cut;
      row.states = before.states + part.states;
      row.seconds = before.seconds + part.seconds;
    };
    how.proceed = [&](explore::exploration_result const& part) {
      add(part);
      return goes_on = asked.proceed(row);
    };
    auto const done = explore::explore(how, make_body(asked, seed));
    add(done);
    row.ended = row.ended && done.ended;
    // A program may be too short for a report of its own.
    goes_on = goes_on && asked.proceed(row) && row.seconds < asked.seconds &&
              (asked.preemptions || row.schedules < asked.schedules);
    if (!done.fault) continue;
    row.fault = done.fault->what;
    row.seed = seed;
    row.replay = std::to_string(done.fault->seed) + "@" + explore::text_of(done.fault->deviations);
    row.ended = goes_on = false;
  }
  return row;
}

exploration_row run_exploration(std::string const& allocator, exploration_request const& asked) {
  return known_allocators::visit(allocator, [&](auto entry) -> exploration_row {
    using creation_type = typename decltype(entry)::allocator_type::creation_type;
    if constexpr (requires(creation_type heap) { heap.snapshot(); })
      return explore_programs(entry.name, asked, body_of<creation_type>);
    return {};  // why_not() has said so
  });
}

std::string why_not(std::string const& allocator, exploration_request const& asked) {
  return known_allocators::visit(allocator, [&](auto entry) -> std::string {
    using creation_type = typename decltype(entry)::allocator_type::creation_type;
    if constexpr (!requires(creation_type heap) { heap.snapshot(); }) return "nothing can be looked at in " + allocator;
    try {
      creation_type::required_bytes(asked.pool_bytes);
    } catch (std::invalid_argument const& error) {
      return allocator + " refuses the pool: " + error.what();
    }
    return {};
  });
}

#endif

part_registration const added_explore_job{explore_job{run_exploration, why_not}};

}}}  // namespace warpheap::tool::WARPHEAP_BACKEND
