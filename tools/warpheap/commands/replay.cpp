// SPDX-License-Identifier: Apache-2.0
// `warpheap replay`: the calls of a trace, made again on every allocator that was chosen.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "choices.hpp"
#include "cli/numbers.hpp"
#include "cli/printable.hpp"
#include "cli/progress_bar.hpp"
#include "cli/standard_output.hpp"
#include "command.hpp"
#include "comparison.hpp"
#include "io/replaced_file.hpp"
#include "io/text_table.hpp"
#include "warpheap/adaptor/trace/file.hpp"
#include "workloads/replay/settings.hpp"
#include "workloads/replay/summary.hpp"

namespace warpheap::tool {

namespace {

using json = nlohmann::ordered_json;

struct replay_flags {
  common_flags common;
  std::string trace;
  std::string repeat;
  bool info = false;
};

constexpr u64 replay_host_pool = u64{256} << 20;
constexpr u64 least_pool = u64{1} << 20;

/// The kinds of calls by their numbers.
constexpr char const* kind_names[] = {"", "malloc", "calloc", "aligned_alloc", "realloc", "free", "kernel", "reset"};

json json_of_trace(call_trace const& trace, trace_summary const& summary) {
  json made{{"recorded_on", trace.machine},
            {"pool_bytes", trace.pool_bytes},
            {"kernels", summary.kernels},
            {"rounds", summary.rounds},
            {"calls", summary.calls},
            {"groups", summary.groups},
            {"refused", summary.refused},
            {"asked_bytes", summary.asked_bytes},
            {"most_live_bytes", summary.most_live_bytes},
            {"most_live_blocks", summary.most_live_blocks},
            {"left_bytes", summary.left_bytes},
            {"left_blocks", summary.left_blocks},
            {"lost", trace.lost},
            {"unmatched_frees", trace.unmatched_frees},
            {"unseen_frees", trace.unseen_frees}};
  made["calls_by_kind"] = json::object();
  for (size_t kind = 1; kind < std::size(kind_names); ++kind)
    if (kind != static_cast<u32>(call_kind::kernel)) made["calls_by_kind"][kind_names[kind]] = summary.calls_of[kind];
  made["sizes"] = json::array();
  for (size_t i = 0; i < summary.sizes.size(); ++i)
    if (summary.sizes[i].calls)
      made["sizes"].push_back(
          {{"from_bytes", u64{1} << i}, {"calls", summary.sizes[i].calls}, {"bytes", summary.sizes[i].bytes}});
  return made;
}

/// A bar of a histogram: `part` of `most`.
std::string bar_of(u64 part, u64 most) {
  constexpr u64 width = 40;
  return std::string(std::max<u64>(part ? 1 : 0, width * part / std::max<u64>(most, 1)), '#');
}

void print_sizes(trace_summary const& summary) {
  u64 most = 0;
  for (auto const& octave : summary.sizes) most = std::max(most, octave.calls);
  text_table table{{">bytes from", ">to", ">calls", ">bytes in all", "share of the calls"}, 2};
  for (size_t i = 0; i < summary.sizes.size(); ++i) {
    auto const& octave = summary.sizes[i];
    if (octave.calls)
      table.add({fmt::format("{}", u64{1} << i), fmt::format("{}", (u64{2} << i) - 1), fmt::format("{}", octave.calls),
                 fmt::format("{}", octave.bytes), bar_of(octave.calls, most)});
  }
  print_output("\n{}", table.text("sizes"));
}

/// What is missing in a trace, if anything is.
std::vector<std::string> losses_of(call_trace const& trace) {
  std::vector<std::string> lines;
  if (trace.lost)
    lines.push_back(fmt::format("{} records were lost: the trace is the beginning of a longer one", trace.lost));
  if (trace.unmatched_frees)
    lines.push_back(fmt::format("{} frees are left out: the trace does not have their blocks", trace.unmatched_frees));
  if (trace.unseen_frees)
    lines.push_back(fmt::format("{} blocks were freed without a record, and live on in a replay", trace.unseen_frees));
  return lines;
}

void print_summary(std::string const& name, call_trace const& trace, trace_summary const& summary) {
  print_output("{}: {} calls in {} kernels, recorded on {} with a pool of {}\n", printable(name), summary.calls,
               summary.kernels, trace.machine.empty() ? "an unknown machine" : printable(trace.machine),
               format_bytes(trace.pool_bytes));
  for (size_t kind = 1; kind < std::size(kind_names); ++kind)
    if (summary.calls_of[kind] && kind != static_cast<u32>(call_kind::kernel))
      print_output("  {:<14}{}\n", kind_names[kind], summary.calls_of[kind]);
  print_output("  refused       {}\n  together      {:.1f} lanes a call of a warp\n", summary.refused,
               static_cast<double>(summary.calls) / static_cast<double>(std::max<u64>(summary.groups, 1)));
  print_output("  asked         {} bytes\n  most live     {} bytes in {} blocks\n", summary.asked_bytes,
               summary.most_live_bytes, summary.most_live_blocks);
  print_output("  left          {} bytes in {} blocks\n", summary.left_bytes, summary.left_blocks);
  print_output("  replayed as   {} launches of at most {} thread blocks\n", summary.rounds, summary.thread_blocks);
  for (auto const& line : losses_of(trace)) print_output("  {}\n", line);
  print_sizes(summary);
}

/// `--info`: what is in the trace, and nothing is run.
int show_trace(replay_flags const& flags, call_trace const& trace, trace_summary const& summary) {
  refuse_typed({{"--allocator", flags.common.allocators},
                {"--pool", flags.common.pool},
                {"--repeat", flags.repeat},
                {"--seed", flags.common.seed}},
               "is of a replay, and --info makes none");
  json_output output{flags.common.json};
  if (!output.owns_standard_output()) print_summary(flags.trace, trace, summary);
  auto document = new_document(*choose_backend(flags.common.backend));
  document["trace"] = flags.trace;
  document.update(json_of_trace(trace, summary));
  output.write(document);
  return 0;
}

/// The pool that was typed, or the program's if there is memory for it.
u64 pool_of(replay_flags const& flags, choices const& chosen, call_trace const& trace) {
  if (!flags.common.pool.empty() || trace.pool_bytes == 0) return chosen.pool_bytes;
  return std::clamp(trace.pool_bytes, least_pool, std::max(least_pool, chosen.on->memory_bytes() / 2));
}

comparison replay_all(choices const& chosen, replay_settings settings) {
  comparison all;
  progress_bar bar;
  settings.report = bar.reporter();
  all.add({chosen.on->part<replay_job>().baseline(settings)});
  for (auto const& allocator : chosen.allocators) all.add({chosen.on->part<replay_job>().run(allocator, settings)});
  return all;
}

/// The allocators from the fastest on, among those that refused nothing; then the others.
std::vector<std::string> ranking_of(comparison const& all) {
  std::vector<bench::result> served;
  std::vector<std::string> lines;
  for (auto const& made : all.results)
    if (made.allocator != "null" && made.checked() && made.failures == 0) served.push_back(made);
  std::stable_sort(served.begin(), served.end(), [](auto const& left, auto const& right) {
    return bench::median(left.times_us) < bench::median(right.times_us);
  });
  if (served.size() > 1)
    lines.push_back(fmt::format("{} served all calls in the least time.\n", served.front().allocator));
  for (auto const& made : all.results)
    if (made.failures) lines.push_back(fmt::format("{} refused {} calls.\n", made.allocator, made.failures));
  return lines;
}

void declare_replay(CLI::App& to, replay_flags& flags) {
  to.footer(
      "A trace is what a program asked of a heap that records it (docs/guide/traces.md). The same lanes make the same "
      "calls together, each warp in its order; where a warp frees a block that another one made in the same kernel, "
      "the kernel is cut before that. Allocator 'null' is the baseline: the same kernels, whose calls do nothing. A "
      "time is that of all kernels. Failures are calls that returned nullptr here and not in the program; what "
      "depends on their blocks is not called (calls_not_made). Calls that the program was refused are made too, and "
      "freed at once. Checked, in a pass that is not timed: no overlap, alignment, contents, zeroed memory, no lost "
      "block.");
  to.add_option("trace", flags.trace, "The trace")->type_name("TRACE")->required();
  add_common_flags(to, flags.common,
                   {.host_pool = "the program's pool, or half of the memory if that is less", .gpu_pool = "the same"});
  add_text(to, "--repeat", flags.repeat, "Times that the trace is replayed", "N")->default_str("7");
  add_switch(to, "--info", flags.info, "Only print what is in the trace: calls, sizes, live bytes, kernels, losses");
}

int run_replay_command(replay_flags const& flags) {
  refuse_shared_files({{"--json", flags.common.json}}, {{"TRACE", flags.trace}});
  auto const trace = load_trace(flags.trace);
  auto const plan = plan_of(trace);
  auto const summary = summary_of(trace, plan);
  if (flags.info) return show_trace(flags, trace, summary);
  if (plan.calls.empty()) throw usage_error{flags.trace + ": has no calls"};
  json_output output{flags.common.json};
  auto chosen = choose(flags.common, replay_host_pool);
  chosen.pool_bytes = pool_of(flags, chosen, trace);
  replay_settings settings{.plan = &plan, .pool_bytes = chosen.pool_bytes};
  if (!flags.repeat.empty()) settings.repeat = static_cast<u32>(parse_count("--repeat", flags.repeat, 1, 10'000));
  auto all = replay_all(chosen, settings);
  all.about["trace"] = flags.trace;
  all.about["traced"] = json_of_trace(trace, summary);
  return report("replay", chosen, all, output, ranking_of(all));
}

}  // namespace

void add_replay(CLI::App& program, int& status) {
  add_command(program, "replay", "Make the calls of a recorded program again, on any allocator", declare_replay,
              run_replay_command, status);
}

}  // namespace warpheap::tool
