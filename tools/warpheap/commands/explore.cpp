// SPDX-License-Identifier: Apache-2.0
// `warpheap explore`: short programs of malloc and free by a few lanes on a small pool of the
// chosen allocators, under every schedule up to a number of preemptions, or under drawn ones.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "choices.hpp"
#include "cli/interruption.hpp"
#include "cli/numbers.hpp"
#include "cli/progress_bar.hpp"
#include "cli/standard_output.hpp"
#include "command.hpp"
#include "io/json_output.hpp"
#include "io/text_table.hpp"
#include "workloads/explore/settings.hpp"

namespace warpheap::tool {

namespace {

using json = nlohmann::ordered_json;

struct explore_flags {
  common_flags common;
  std::string lanes = "3";
  std::string slabs = "2";
  std::string calls = "4";
  std::string sizes = "64,8192,16384";
  std::string programs;
  std::string preemptions;
  std::string schedules;
  std::string minutes;
  std::string replay;
  bool weak_memory = false;
};

constexpr u64 slab_bytes = 16384;
constexpr u64 default_schedules = 10'000;

void declare_explore(CLI::App& to, explore_flags& flags) {
  to.footer(
      "Each lane runs a program of its own, drawn by seed: malloc, free, handing a block over, taking and freeing one. "
      "What the calls returned is held against the contract, and at rest the heap's invariants and slots are checked. "
      "A "
      "failure is shown by the fewest deviations from the default schedule, with the line that executes it again.");
  add_output_flags(to, flags.common);
  add_allocator_flag(to, flags.common, common_defaults{}.allocators);
  add_text(to, "--lanes", flags.lanes, "Lanes, at most 16", "N")->capture_default_str();
  add_text(to, "--slabs", flags.slabs, "Slabs of 16 KiB in the pool", "S")->capture_default_str();
  add_text(to, "--calls", flags.calls, "Calls of a lane, at most 8", "N")->capture_default_str();
  add_text(to, "--sizes", flags.sizes, "Sizes that lanes ask for", "SIZE[,SIZE...]")->capture_default_str();
  add_text(to, "--seed", flags.common.seed, "Seed of the first program; the next one has the next seed (default 1)",
           "N");
  add_text(to, "--programs", flags.programs,
           "Programs (default 1 for a search, else as many as the schedules last for)", "N");
  add_text(to, "--preemptions", flags.preemptions, "Search every schedule up to B preemptions, at most 15", "B");
  add_text(to, "--schedules", flags.schedules, "Schedules to draw (default 10000), 100 for each program", "N");
  add_text(to, "--minutes", flags.minutes, "Minutes for each allocator; schedules are drawn until then", "T");
  add_switch(to, "--weak-memory", flags.weak_memory, "Loads may return older values that no memory order forbids");
  add_text(to, "--replay", flags.replay, "One schedule, as a failure's line gives it", "SCHEDULE");
}

exploration_request parse_request(explore_flags const& flags) {
  exploration_request asked;
  asked.lanes = static_cast<u32>(parse_count("--lanes", flags.lanes, 1, 16));
  asked.pool_bytes = slab_bytes * parse_count("--slabs", flags.slabs, 1, 1024);
  asked.calls = static_cast<u32>(parse_count("--calls", flags.calls, 1, 8));
  asked.sizes = parse_sizes(flags.sizes, asked.pool_bytes);
  asked.weak_memory = flags.weak_memory;
  asked.replay = flags.replay;
  if (!flags.common.seed.empty()) asked.seed = parse_count("--seed", flags.common.seed);
  asked.seconds = flags.minutes.empty() ? 1e9 : 60 * parse_real("--minutes", flags.minutes, 1e-4, 1e6);
  bool const limited = !flags.minutes.empty() && flags.schedules.empty();
  asked.schedules = limited ? ~u64{0} : default_schedules;
  if (!flags.schedules.empty()) asked.schedules = parse_count("--schedules", flags.schedules, 1);
  if (!flags.preemptions.empty()) {
    refuse_typed({{"--schedules", flags.schedules}}, "--preemptions searches every schedule");
    if (flags.weak_memory) throw usage_error{"--weak-memory: --preemptions searches schedules without it"};
    asked.preemptions = static_cast<u32>(parse_count("--preemptions", flags.preemptions, 0, 15));
  }
  asked.programs = asked.preemptions ? 1 : ~u64{0};
  if (!flags.programs.empty()) asked.programs = parse_count("--programs", flags.programs, 1);
  return asked;
}

/// The command line that executes a failing schedule again.
std::string replay_line(exploration_row const& row, explore_flags const& flags) {
  return fmt::format(
      "warpheap explore --allocator {} --lanes {} --slabs {} --calls {} --sizes {} --seed {}{}{} --replay {}",
      row.allocator, flags.lanes, flags.slabs, flags.calls, flags.sizes, row.seed,
      flags.weak_memory ? " --weak-memory" : "", flags.preemptions.empty() ? "" : " --preemptions " + flags.preemptions,
      row.replay);
}

json json_of(exploration_row const& row, explore_flags const& flags) {
  json made{{"allocator", row.allocator}, {"programs", row.programs}, {"schedules", row.schedules}};
  made["cut"] = row.cut;
  made["states"] = row.states;
  made["seconds"] = row.seconds;
  made["ended"] = row.ended;
  made["fault"] = row.fault.empty() ? json(nullptr) : json(row.fault);
  if (!row.fault.empty()) made["replay"] = replay_line(row, flags);
  return made;
}

/// How much has been done of what was asked for, from 0 to 1 or more.
double part_done(exploration_row const& row, exploration_request const& asked) {
  if (asked.seconds < 1e9) return row.seconds / asked.seconds;
  if (asked.preemptions) return static_cast<double>(row.programs) / static_cast<double>(asked.programs);
  return static_cast<double>(row.schedules) / static_cast<double>(asked.schedules);
}

int run_explore(explore_flags const& flags) {
  json_output output{flags.common.json};
  auto asked = parse_request(flags);
  auto common = flags.common;
  if (common.backend.empty()) common.backend = "host";
  auto chosen = choose(common, u64{1} << 20);
  auto const skipped =
      leave_out(chosen, [&](std::string const& name) { return chosen.on->part<explore_job>().why_not(name, asked); });
  std::vector<exploration_row> rows;
  deferred_interruption const interruption;
  {
    progress_bar bar;
    asked.proceed = [&](exploration_row const& row) {
      bar.show(fmt::format("{}, {} schedules", row.allocator, row.schedules),
               static_cast<u64>(1000 * std::min(part_done(row, asked), 1.0)), 1000);
      return interruption.signal() == 0;
    };
    for (auto const& allocator : chosen.allocators) {
      rows.push_back(chosen.on->part<explore_job>().run(allocator, asked));
      if (!rows.back().fault.empty() || interruption.signal() != 0) break;
    }
  }
  auto document = new_document(*chosen.on);
  document["backend"] = chosen.on->name();
  document["seed"] = asked.seed;
  document["lanes"] = asked.lanes;
  document["pool_bytes"] = asked.pool_bytes;
  document["preemptions"] = asked.preemptions ? json(*asked.preemptions) : json(nullptr);
  document["weak_memory"] = asked.weak_memory;
  document["skipped"] = skipped;
  document["results"] = json::array();
  text_table table{
      {"allocator", ">programs", ">schedules", ">cut", ">states", ">seconds", "all within the bound", "right"}, 1};
  for (auto const& row : rows) {
    document["results"].push_back(json_of(row, flags));
    auto const all = row.ended ? "yes" : "no";
    table.add({row.allocator, fmt::format("{}", row.programs), fmt::format("{}", row.schedules),
               fmt::format("{}", row.cut), fmt::format("{}", row.states), fmt::format("{:.2f}", row.seconds),
               asked.preemptions ? all : "", row.fault.empty() ? "yes" : "NO"});
    if (!row.fault.empty()) table.note(fmt::format("{}\n{}", row.fault, replay_line(row, flags)));
  }
  for (auto const& why : skipped) table.note("skipped: " + why);
  if (!output.owns_standard_output()) print_output("{}", table.text("explore"));
  output.write(document);
  if (int const signal = interruption.signal()) {
    if (auto const fault = output_fault(); !fault.empty()) complain("explore", fault);
    die_of(signal);
  }
  if (rows.back().fault.empty()) return 0;
  complain("explore", fmt::format("{} fails: {}", rows.back().allocator, replay_line(rows.back(), flags)));
  return 1;
}

}  // namespace

void add_explore(CLI::App& program, int& status) {
  add_command(program, "explore", "Try schedules of a few lanes on a small pool", declare_explore, run_explore, status);
}

}  // namespace warpheap::tool
