// SPDX-License-Identifier: Apache-2.0
#include "bench_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "cli/choices.hpp"

namespace warpheap::tool {

namespace {

constexpr char const* allocator_option = "--allocator";

template <std::string bench_flags::*Member>
std::string& own(bench_flags& flags) {
  return flags.*Member;
}
template <std::string common_flags::*Member>
std::string& common(bench_flags& flags) {
  return flags.common.*Member;
}

/// The options without their scenarios.
std::vector<bench_option> known_options() {
  bench::request const defaults;
  return {{.name = allocator_option,
           .type = "NAME[,NAME...]",
           .typed = common<&common_flags::allocators>,
           .text = "",
           .is_of_others = true},
          {.name = "--pool", .type = "SIZE", .typed = common<&common_flags::pool>, .text = "", .is_of_others = true},
          {.name = "--sizes",
           .type = "SIZE[,SIZE...]",
           .typed = own<&bench_flags::sizes>,
           .text = "Sizes that are asked for; LEAST-MOST:STEP stands for all sizes of these steps, as in 8-3072:8"},
          {.name = "--ranges",
           .type = "SIZE-SIZE[,SIZE-SIZE...]",
           .typed = own<&bench_flags::ranges>,
           .text = "Ranges from which each call draws its size"},
          {.name = "--threads",
           .type = "N",
           .typed = own<&bench_flags::threads>,
           .text = "Threads, with their default on a GPU; on the host there are fewer"},
          {.name = "--workers",
           .type = "N[,N...]",
           .typed = own<&bench_flags::workers>,
           .text = "Numbers of threads, with their defaults on a GPU; on the host there are fewer"},
          {.name = "--thread-blocks",
           .type = "N[,N...]",
           .typed = own<&bench_flags::thread_blocks>,
           .text = "Threads of a thread block"},
          {.name = "--batch",
           .type = "N",
           .typed = own<&bench_flags::batch>,
           .text = "Units of a batch",
           .initial = fmt::format("{}", defaults.batch)},
          {.name = "--batch-ns",
           .type = "N",
           .typed = own<&bench_flags::batch_ns>,
           .text = "Nanoseconds that a batch takes its maker, beside one atomic",
           .initial = fmt::format("{}", defaults.batch_ns)},
          {.name = "--readers-per-writer",
           .type = "N[,N...]",
           .typed = own<&bench_flags::readers_per_writer>,
           .text = "One in N threads removes an element (default 1,4,16,64,256,1024)"},
          {.name = "--divergence",
           .type = "thread|warp|block[,...]",
           .typed = own<&bench_flags::divergence>,
           .text = "The threads that draw what to do, and do it, together (default warp)"},
          {.name = "--allocate-shares",
           .type = "EVEN,ODD",
           .typed = own<&bench_flags::allocate_shares>,
           .text = "How likely a thread without a block allocates in an even step, and in an odd one",
           .initial = fmt::format("{}", fmt::join(defaults.allocate_shares, ","))},
          {.name = "--free-shares",
           .type = "EVEN,ODD",
           .typed = own<&bench_flags::free_shares>,
           .text = "How likely a thread with a block frees it in an even step, and in an odd one",
           .initial = fmt::format("{}", fmt::join(defaults.free_shares, ","))},
          {.name = "--levels",
           .type = "SHARE[,SHARE...]",
           .typed = own<&bench_flags::levels>,
           .text = "Shares of the pool that are asked for"},
          {.name = "--left-shares",
           .type = "SHARE[,SHARE...]",
           .typed = own<&bench_flags::left_shares>,
           .text = "Shares of the blocks that are not freed (default 0.5,0.25,0.1,0.05,0.02,0.01,0.001)"},
          {.name = "--page-shares",
           .type = "SHARE[,SHARE...]",
           .typed = own<&bench_flags::page_shares>,
           .text = "Shares of the pages that are free (default 0.5,0.1,0.01,0.007,0.005)"},
          {.name = "--kernels", .type = "N", .typed = own<&bench_flags::kernels>, .text = "Length of a run"},
          {.name = "--seconds",
           .type = "SECONDS",
           .typed = own<&bench_flags::seconds>,
           .text = "Time on the device (default 10 on a GPU, 0.5 on the host)"},
          {.name = "--scale", .type = "N", .typed = own<&bench_flags::scale>, .text = "2^N vertices"},
          {.name = "--gpus",
           .type = "N|I,J[,...]",
           .typed = own<&bench_flags::gpus>,
           .text = "The first N GPUs, or those of a list, which may name one twice (default all, or the one twice)"},
          {.name = "--rounds",
           .type = "N",
           .typed = own<&bench_flags::rounds>,
           .text = "Rounds",
           .initial = fmt::format("{}", defaults.rounds)},
          {.name = "--repeat",
           .type = "N",
           .typed = own<&bench_flags::repeat>,
           .text = "Times that each operation is measured",
           .initial = fmt::format("{}", defaults.repeat),
           .is_of_others = true}};
}

/// "a", "a and b", "a, b and c".
std::string listed(std::vector<std::string> const& names, char const* last = " and ") {
  if (names.size() < 2) return fmt::format("{}", fmt::join(names, ""));
  return fmt::format("{}{}{}", fmt::join(names.begin(), names.end() - 1, ", "), last, names.back());
}

std::vector<std::string> names_in(std::vector<scenario_group> const& groups) {
  std::vector<std::string> names;
  for (auto const& group : groups) names.insert(names.end(), group.scenarios.begin(), group.scenarios.end());
  return names;
}

bool has(std::vector<std::string> const& names, std::string const& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The scenarios that use an option: the largest group first, and groups of one size by detail. The
/// exceptions of an option of all others are one group, by name.
std::vector<scenario_group> groups_of(bench_option const& option, std::vector<bench::scenario> const& scenarios) {
  std::map<std::string, std::vector<std::string>> by_detail;
  std::set<std::string> exceptions;
  for (auto const& each : scenarios) {
    for (auto const& used : each.uses)
      if (used.name == option.name) by_detail[used.detail].push_back(each.name);
    bool const ignores = has(each.ignores, option.name);
    if (ignores || (option.name == allocator_option && !each.measures_allocators())) exceptions.insert(each.name);
  }
  if (option.is_of_others) return {{{exceptions.begin(), exceptions.end()}}};
  std::vector<scenario_group> groups;
  groups.reserve(by_detail.size());
  for (auto const& [detail, names] : by_detail) groups.push_back({names, detail});
  std::stable_sort(groups.begin(), groups.end(),
                   [](auto const& left, auto const& right) { return left.scenarios.size() > right.scenarios.size(); });
  return groups;
}

/// Why none of `scenarios` takes the option.
std::string reason(bench_option const& option, std::vector<std::string> const& scenarios) {
  std::vector<std::string> once;
  for (auto const& name : scenarios)
    if (!has(once, name)) once.push_back(name);
  auto const known = listed(names_in(option.groups));
  auto const users = option.is_of_others ? fmt::format("all scenarios but {} do", known) : fmt::format("{} do", known);
  bool const one = !option.is_of_others && names_in(option.groups).size() == 1;
  return fmt::format("{} {} not use it; {}{}", listed(once), once.size() == 1 ? "does" : "do", users, one ? "es" : "");
}

}  // namespace

bool bench_option::is_used_by(std::string const& scenario) const {
  return has(names_in(groups), scenario) != is_of_others;
}

std::string bench_option::help() const {
  if (is_of_others) return fmt::format("{}; of all scenarios but {}", text, listed(names_in(groups)));
  std::vector<std::string> parts;
  for (auto const& group : groups)
    parts.push_back(group.detail.empty() ? listed(group.scenarios)
                                         : fmt::format("{} ({})", listed(group.scenarios), group.detail));
  return fmt::format("{}: of {}", text, fmt::join(parts, "; "));
}

std::vector<bench_option> const& bench_options() {
  static auto const options = [] {
    auto made = known_options();
    for (auto& option : made) option.groups = groups_of(option, make_host_backend()->scenarios());
    return made;
  }();
  return options;
}

std::string scenarios_help(std::vector<bench::scenario> const& scenarios) {
  using enum bench::scenario_kind;
  std::map<bench::scenario_kind, std::vector<std::string>> kinds;
  for (auto const& each : scenarios) kinds[each.kind].push_back(fmt::format("{} ({})", each.name, each.text));
  auto const line = [&](bench::scenario_kind kind) { return fmt::format("{}.", fmt::join(kinds[kind], ", ")); };
  return fmt::format("Scenarios: {}\nOf the default allocator alone: {}\nOf primitives, and of no allocator: {}",
                     line(of_allocators), line(of_default_allocator), line(of_primitives));
}

std::string pools_help(std::string const& usual, std::vector<bench::scenario> const& scenarios,
                       u64 bench::default_pools::*pool) {
  std::map<u64, std::vector<std::string>, std::greater<>> others;
  for (auto const& each : scenarios)
    if (each.pool.*pool) others[each.pool.*pool].push_back(each.name);
  std::vector<std::string> parts{usual};
  for (auto const& [bytes, names] : others) parts.push_back(fmt::format("{}MiB for {}", bytes >> 20, listed(names)));
  return listed(parts, ", and ");
}

void refuse_unused(bench_flags const& flags, std::vector<std::string> const& scenarios) {
  auto typed = flags;
  for (auto const& option : bench_options())
    if (std::none_of(scenarios.begin(), scenarios.end(), [&](auto const& name) { return option.is_used_by(name); }))
      refuse_typed({{option.name, option.typed(typed)}}, reason(option, scenarios));
}

}  // namespace warpheap::tool
