// SPDX-License-Identifier: Apache-2.0
// `warpheap top`: the heaps that running programs publish.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <set>

#include "choices.hpp"
#include "cli/numbers.hpp"
#include "cli/standard_output.hpp"
#include "cli/terminal_screen.hpp"
#include "command.hpp"
#include "commands/heap_list.hpp"
#include "io/json_output.hpp"

namespace warpheap::tool {

namespace {

struct top_flags {
  std::string json;
  std::string interval;
  bool once = false;
};

void declare_top(CLI::App& to, top_flags& flags) {
  to.footer(
      "A program publishes a heap while it has a `published_gauge` of it; `warpheap stress` does, of allocators that "
      "have gauges. Shown are programs of this user. On a terminal the list is read again and again, until q or Ctrl-C "
      "ends it; elsewhere, and with --json, it is read once.");
  add_json_flag(to, flags.json);
  add_switch(to, "--once", flags.once, "Print the list and end");
  add_text(to, "--interval", flags.interval, "Seconds between two readings of the list", "T")->default_str("1");
}

nlohmann::ordered_json json_of(published_heap const& heap) {
  auto const& now = heap.figures;
  return {{"process", heap.process},
          {"program", heap.program},
          {"heap", heap.name},
          {"allocator", heap.allocator},
          {"device", heap.device},
          {"pool_bytes", now.pool_bytes},
          {"committed_bytes", now.committed_bytes},
          {"live_bytes", now.live_bytes},
          {"live_share", live_share(now)},
          {"live_blocks", now.live_blocks},
          {"highest_live_bytes", now.highest_live_bytes},
          {"failures", now.failures},
          {"largest_failed_bytes", now.largest_failed_bytes},
          {"age_seconds", heap.age_seconds}};
}

int show_once(std::string const& json) {
  json_output const output{json};
  auto const seen = read_published_heaps();
  // No kernel runs here, so no GPU is looked for.
  auto document = new_document(*choose_backend("host"));
  document["of_other_versions"] = seen.of_other_versions;
  document["results"] = nlohmann::ordered_json::array();
  for (auto const& heap : seen.heaps) document["results"].push_back(json_of(heap));
  size_t const columns = terminal_columns();
  if (!output.owns_standard_output()) print_output("{}", heap_list(seen, columns ? columns : ~size_t{0}));
  output.write(document);
  return 0;
}

void show_until_ended(std::chrono::milliseconds interval) {
  terminal_screen screen;
  do {
    auto const seen = read_published_heaps();
    auto const now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    screen.show(fmt::format("warpheap top, {:%H:%M:%S}; q ends\n\n{}", fmt::localtime(now),
                            heap_list(seen, terminal_columns())));
  } while (!screen.is_ended_within(interval));
}

int run_top(top_flags const& flags) {
  if (flags.once || !flags.json.empty())
    refuse_typed({{"--interval", flags.interval}},
                 "is of a list that is read again, and --once and --json read it once");
  double const seconds = flags.interval.empty() ? 1 : parse_real("--interval", flags.interval, 0.1, 3600);
  if (flags.once || !flags.json.empty() || terminal_columns() == 0) return show_once(flags.json);
  show_until_ended(std::chrono::milliseconds{static_cast<i64>(1000 * seconds)});
  return 0;
}

}  // namespace

void add_top(CLI::App& program, int& status) {
  add_command(program, "top", "Heaps of running programs, and how full they are", declare_top, run_top, status);
}

}  // namespace warpheap::tool
