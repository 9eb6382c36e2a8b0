// SPDX-License-Identifier: Apache-2.0
// `warpheap pic`: the same plasma with every allocator that was chosen. All must end in the same
// state, particle by particle.
#include <fmt/format.h>

#include "choices.hpp"
#include "cli/numbers.hpp"
#include "cli/progress_bar.hpp"
#include "cli/usage_error.hpp"
#include "command.hpp"
#include "comparison.hpp"
#include "io/json_output.hpp"
#include "io/replaced_file.hpp"
#include "io/trace_output.hpp"
#include "workloads/pic/settings.hpp"

namespace warpheap::tool {

namespace {

struct pic_flags {
  common_flags common;
  std::string cells;
  std::string particles_per_cell;
  std::string species;
  std::string steps;
  std::string frame_bytes = "8192";
  std::string repeat;
  std::string trace;
  bool find_capacity = false;
};

constexpr u64 pic_host_pool = u64{64} << 20;
constexpr u64 most_cells_of_a_side = 4096, most_species = 64;
/// The least frame: its header and a warp's particles.
constexpr u64 least_frame_bytes = 16 + 32 * 20;
constexpr u64 most_frame_bytes = u64{1} << 24;

u32 parse_side(std::string const& text, u64 least) {
  u64 const side = parse_count("--cells", text, least, most_cells_of_a_side);
  if (side & (side - 1)) throw usage_error{fmt::format("--cells: '{}' is no power of two", text)};
  return static_cast<u32>(side);
}

/// `WIDTHxHEIGHT`.
void parse_cells(std::string const& text, pic_settings& settings) {
  auto const by = text.find('x');
  if (by == std::string::npos) throw usage_error{fmt::format("--cells: '{}' is not like 64x32", text)};
  settings.cells_x = parse_side(text.substr(0, by), 8);
  settings.cells_y = parse_side(text.substr(by + 1), 4);
}

pic_settings parse_settings(pic_flags const& flags, choices const& chosen) {
  if (flags.find_capacity)
    refuse_typed({{"--cells", flags.cells},
                  {"--particles-per-cell", flags.particles_per_cell},
                  {"--steps", flags.steps},
                  {"--repeat", flags.repeat},
                  {"--trace", flags.trace}},
                 "is of a simulation, and --find-capacity makes none");
  bool const on_host = chosen.on->name() == "host";
  auto const typed_or = [](std::string const& typed, char const* otherwise) {
    return typed.empty() ? std::string{otherwise} : typed;
  };
  pic_settings settings{.pool_bytes = chosen.pool_bytes, .seed = chosen.seed};
  parse_cells(typed_or(flags.cells, on_host ? "32x32" : "512x512"), settings);
  settings.particles_per_cell = static_cast<u32>(
      parse_count("--particles-per-cell", typed_or(flags.particles_per_cell, on_host ? "8" : "25"), 1, 1'000'000));
  settings.species = static_cast<u32>(
      parse_count("--species", typed_or(flags.species, flags.find_capacity ? "16" : "2"), 1, most_species));
  settings.steps =
      static_cast<u32>(parse_count("--steps", typed_or(flags.steps, on_host ? "20" : "100"), 1, 1'000'000));
  settings.frame_bytes = parse_bytes("--frame-bytes", flags.frame_bytes, least_frame_bytes, most_frame_bytes);
  settings.repeat = static_cast<u32>(parse_count("--repeat", typed_or(flags.repeat, "1"), 1, 10'000));
  u64 const particles = u64{settings.cells_x} * settings.cells_y * settings.particles_per_cell * settings.species;
  if (!flags.find_capacity && particles > 0xffff'fffeu)
    throw usage_error{
        fmt::format("--particles-per-cell: {} particles in all, and there may be {}", particles, 0xffff'fffeu)};
  return settings;
}

comparison simulate(choices const& chosen, pic_settings const& settings) {
  comparison all;
  std::string first_state;
  for (auto const& allocator : chosen.allocators) {
    auto const made = chosen.on->part<pic_job>().run(allocator, settings);
    all.add(made.results);
    if (!made.results.front().skipped.empty()) continue;
    auto const state = fmt::format("{:016x}", made.state);
    if (first_state.empty()) first_state = state;
    if (all.fault.empty() && state != first_state)
      all.fault = fmt::format("{}: the particles end in another state than with those before it", allocator);
  }
  all.about["state"] = first_state;
  return all;
}

comparison find_capacity(choices const& chosen, pic_settings const& settings) {
  comparison all;
  for (auto const& allocator : chosen.allocators) all.add(chosen.on->part<pic_job>().capacities(allocator, settings));
  return all;
}

void declare_pic(CLI::App& to, pic_flags& flags) {
  to.footer(
      "Streams of electrons through each other on a periodic plane. Particles live in frames, each a block of the "
      "heap, in a list for each species and super cell of 8x4 cells; every step particles move to other super cells, "
      "and frames come and go. Operations: step (all of a step), move (the kernels that allocate; its operations are "
      "mallocs and frees). Checked: every particle is there at the end, energy and momentum are what they were, no "
      "frame is lost, and all allocators end in the same state. ring_buffer has a ring for each species, with an equal "
      "part of the pool.");
  add_common_flags(to, flags.common, {.host_pool = "64MiB"});
  add_text(to, "--cells", flags.cells,
           "Cells of the plane, powers of two (default 512x512 on a GPU, 32x32 on the host)", "WxH");
  add_text(to, "--particles-per-cell", flags.particles_per_cell,
           "Particles of each species in a cell at the start (default 25 on a GPU, 8 on the host)", "N");
  add_text(to, "--species", flags.species, "Species (default 2); with --find-capacity the most (default 16)", "N");
  add_text(to, "--steps", flags.steps, "Steps of a run (default 100 on a GPU, 20 on the host)", "N");
  add_text(to, "--frame-bytes", flags.frame_bytes, "Bytes of a frame", "SIZE")->capture_default_str();
  add_text(to, "--repeat", flags.repeat, "Runs, each from the start", "N")->default_str("1");
  add_text(to, "--trace", flags.trace, trace_help, "FILE");
  add_switch(to, "--find-capacity", flags.find_capacity,
             "No simulation: how many particles one species can have, for 1, 2, ... species");
}

int run_pic(pic_flags const& flags) {
  refuse_shared_files({{"--json", flags.common.json}, {"--trace", flags.trace}}, {});
  json_output output{flags.common.json};
  auto const chosen = choose_with_variants(flags.common, pic_host_pool);
  auto settings = parse_settings(flags, chosen);
  trace_output trace{flags.trace, flags.common.allocators, chosen.on->allocators().front().name};
  settings.take_trace = trace.taker();
  comparison all;
  {
    progress_bar bar;
    settings.report = bar.reporter();
    all = flags.find_capacity ? find_capacity(chosen, settings) : simulate(chosen, settings);
  }
  refuse_if_all_skipped(all, "--frame-bytes", fmt::format("a frame has {}", settings.frame_bytes));
  trace.write("pic");
  std::vector<std::string> lines;
  for (auto const& [made, first, of_first] : ratios(all.results, "step"))
    lines.push_back(
        fmt::format("A step with {} takes {:.3f} of one with {}.\n", made.allocator, of_first, first.allocator));
  return report("pic", chosen, all, output, lines);
}

}  // namespace

void add_pic(CLI::App& program, int& status) {
  add_command(program, "pic", "Simulate a plasma whose particles live in frames of the heap, and check it", declare_pic,
              run_pic, status);
}

}  // namespace warpheap::tool
