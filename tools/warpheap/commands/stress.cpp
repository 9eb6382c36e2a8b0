// SPDX-License-Identifier: Apache-2.0
// `warpheap stress`: random calls by many threads on one heap, for as long as asked, with every
// block checked.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "choices.hpp"
#include "cli/interruption.hpp"
#include "cli/numbers.hpp"
#include "cli/progress_bar.hpp"
#include "cli/standard_output.hpp"
#include "cli/usage_error.hpp"
#include "command.hpp"
#include "io/json_output.hpp"
#include "io/text_table.hpp"
#include "workloads/stress/settings.hpp"

namespace warpheap::tool {

namespace {

using json = nlohmann::ordered_json;

struct stress_flags {
  common_flags common;
  std::string threads;
  std::string streams = "4";
  std::string rounds;
  std::string minutes;
  bool misuse = false;
  bool grow = false;
};

/// A small pool is filled often, and its invariants are checked soon.
constexpr u64 stress_host_pool = u64{8} << 20, stress_gpu_pool = u64{256} << 20;
constexpr double default_minutes = 0.05;

void declare_stress(CLI::App& to, stress_flags& flags) {
  to.footer(
      "In each round kernels on several streams turn over a part of an array of slots: malloc, calloc, aligned_alloc, "
      "malloc_warp, realloc, and free by other threads, thread blocks, kernels and streams; some blocks are handed "
      "over "
      "through relaxed words. Sizes are one, 16 B to 4 KiB, or up to some MiB. Every block is full of a pattern of its "
      "own, which is verified before it is freed or resized and after each round. Then the heap's counts and "
      "invariants "
      "are checked; in some rounds it is filled to the last block, or emptied. A seed draws the rounds. On a GPU the "
      "hardware orders their calls, and so another run with the same seed may differ. `warpheap top` shows the heap "
      "meanwhile, if the allocator has gauges.");
  add_common_flags(to, flags.common,
                   {.host_pool = "8MiB", .gpu_pool = "256MiB on a GPU", .random = "Seed of the rounds"});
  add_text(to, "--threads", flags.threads, "Threads of a round (default 65536 on a GPU, 256 on the host)", "N");
  add_text(to, "--streams", flags.streams, "Streams that a round's kernels run on, at most 16", "N")
      ->capture_default_str();
  add_text(to, "--rounds", flags.rounds, "Rounds for each allocator", "N");
  add_text(to, "--minutes", flags.minutes, "Minutes for each allocator (default 0.05 where no --rounds are given)",
           "T");
  add_switch(to, "--misuse", flags.misuse,
             "Also free blocks twice, and what is no block: where the allocator promises to detect that");
  add_switch(to, "--grow", flags.grow,
             "Start with 2 MiB, map memory up to the pool's size while kernels wait for it, and give it back between "
             "rounds: with slab_bitmap");
}

void refuse_growth(choices const& chosen) {
  for (auto const& each : chosen.allocators)
    if (each != "slab_bitmap")
      throw usage_error{fmt::format("--grow: the pool of '{}' cannot grow; that of slab_bitmap can", each)};
  if (chosen.deterministic)
    throw usage_error{"--grow: another thread maps the memory, and no seed says when: not with --deterministic"};
}

stress_request parse_request(stress_flags const& flags, choices const& chosen) {
  stress_request asked{
      .pool_bytes = chosen.pool_bytes, .seed = chosen.seed, .misuse = flags.misuse, .grows = flags.grow};
  if (flags.grow) refuse_growth(chosen);
  if (!flags.threads.empty()) asked.threads = parse_count("--threads", flags.threads, 32, u64{1} << 22);
  asked.streams = static_cast<u32>(parse_count("--streams", flags.streams, 1, 16));
  if (!flags.rounds.empty()) asked.rounds = parse_count("--rounds", flags.rounds, 1);
  if (!flags.minutes.empty()) asked.seconds = 60 * parse_real("--minutes", flags.minutes, 1e-4, 1e6);
  else if (flags.rounds.empty()) asked.seconds = 60 * default_minutes;
  return asked;
}

json json_of(stress_growth const& seen) {
  return {{"initial_bytes", seen.initial_bytes}, {"limit_bytes", seen.limit_bytes}, {"most_bytes", seen.most_bytes},
          {"least_bytes", seen.least_bytes},     {"growths", seen.growths},         {"trims", seen.trims}};
}

json json_of(stress_row const& row) {
  json made{{"allocator", row.allocator}, {"rounds", row.rounds}, {"fills", row.fills}};
  for (auto const& [name, number] : stress_counts::calls) made["calls"][name] = row.counts.*number;
  made["refused"] = row.counts.refused;
  made["verified_bytes"] = row.counts.verified_bytes;
  for (auto const& [name, number] : stress_faults::kinds) made["faults"][name] = row.faults.*number;
  if (row.growth) made["growth"] = json_of(*row.growth);
  made["left_out"] = row.left_out;
  made["seconds"] = row.seconds;
  made["verified"] = row.fault.empty();
  if (!row.fault.empty()) made["fault"] = row.fault;
  return made;
}

u64 calls_of(stress_row const& row) {
  u64 sum = 0;
  for (auto const& [name, number] : stress_counts::calls) sum += row.counts.*number;
  return sum;
}

int run_stress(stress_flags const& flags) {
  json_output output{flags.common.json};
  auto chosen = choose(flags.common, stress_host_pool);
  if (flags.common.pool.empty()) chosen.pool_bytes = std::min(chosen.pool_bytes, stress_gpu_pool);
  auto asked = parse_request(flags, chosen);
  std::vector<stress_row> rows;
  deferred_interruption const interruption;
  {
    progress_bar bar;
    asked.proceed = [&](stress_row const& row) {
      double const part =
          std::max(row.seconds / asked.seconds, static_cast<double>(row.rounds) / static_cast<double>(asked.rounds));
      bar.show(fmt::format("{}, round {}, {} calls", row.allocator, row.rounds, calls_of(row)),
               static_cast<u64>(1000 * std::min(part, 1.0)), 1000);
      return interruption.signal() == 0;
    };
    for (auto const& allocator : chosen.allocators) {
      rows.push_back(chosen.on->part<stress_job>().run(allocator, asked));
      // After an error a GPU may run no more kernels.
      if (interruption.signal() != 0 || rows.back().faults.ended_by_error != 0) break;
    }
  }
  auto const failed = std::find_if(rows.begin(), rows.end(), [](auto const& row) { return !row.fault.empty(); });
  auto document = new_document(*chosen.on);
  document["backend"] = chosen.on->name();
  document["seed"] = chosen.seed;
  document["pool_bytes"] = chosen.pool_bytes;
  document["streams"] = asked.streams;
  document["misuse"] = asked.misuse;
  document["grow"] = asked.grows;
  if (interruption.signal() != 0) document["interrupted"] = true;
  document["verified"] = failed == rows.end();
  document["results"] = json::array();
  text_table table{
      {"allocator", ">rounds", ">fills", ">calls", ">refused", ">verified bytes", ">faults", ">seconds", "verified"},
      1};
  for (auto const& row : rows) {
    document["results"].push_back(json_of(row));
    table.add({row.allocator, fmt::format("{}", row.rounds), fmt::format("{}", row.fills),
               fmt::format("{}", calls_of(row)), fmt::format("{}", row.counts.refused),
               fmt::format("{}", row.counts.verified_bytes), fmt::format("{}", row.faults.total()),
               fmt::format("{:.2f}", row.seconds), row.fault.empty() ? "yes" : "NO"});
    if (auto const& seen = row.growth)
      table.note(fmt::format("{} grew {} times, from {} bytes to {} at most, and was trimmed {} times, to {} at least",
                             row.allocator, seen->growths, seen->initial_bytes, seen->most_bytes, seen->trims,
                             seen->least_bytes));
    if (!row.left_out.empty()) table.note(fmt::format("{} without {}", row.allocator, fmt::join(row.left_out, ", ")));
    if (!row.fault.empty()) table.note(fmt::format("NO: {}: {}", row.allocator, row.fault));
  }
  if (!output.owns_standard_output()) print_output("{}", table.text("stress"));
  output.write(document);
  if (failed != rows.end()) complain("stress", fmt::format("{}: {}", failed->allocator, failed->fault));
  if (int const signal = interruption.signal()) {
    if (auto const fault = output_fault(); !fault.empty()) complain("stress", fault);
    die_of(signal);
  }
  return failed == rows.end() ? 0 : 1;
}

}  // namespace

void add_stress(CLI::App& program, int& status) {
  add_command(program, "stress", "Make random calls on one heap for long, and check every block", declare_stress,
              run_stress, status);
}

}  // namespace warpheap::tool
