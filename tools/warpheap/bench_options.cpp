#include "bench_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "choices.hpp"

namespace warpheap::tool {

namespace {

template <std::string bench_flags::*Member>
std::string& own(bench_flags& flags) {
  return flags.*Member;
}
template <std::string common_flags::*Member>
std::string& common(bench_flags& flags) {
  return flags.common.*Member;
}

std::vector<bench_option> make_options() {
  bench::request const defaults;
  return {
      {.name = "--allocator",
       .type = "NAME[,NAME...]",
       .typed = common<&common_flags::allocators>,
       .text = "",
       .groups = {{{"bounds", "semaphore", "rcu_delegation", "collective_mutex", "atomic", "random_walk"}}},
       .is_of_others = true},
      {.name = "--pool",
       .type = "SIZE",
       .typed = common<&common_flags::pool>,
       .text = "",
       .groups = {{{"semaphore", "rcu_delegation", "collective_mutex", "atomic"}}},
       .is_of_others = true},
      {.name = "--sizes",
       .type = "SIZE[,SIZE...]",
       .typed = own<&bench_flags::sizes>,
       .text = "Sizes that are asked for; LEAST-MOST:STEP stands for all sizes of these steps, as in 8-3072:8",
       .groups = {{{"burst", "fill", "exhaust", "utilisation", "latency", "workers", "policy_overhead", "two_phase",
                    "scaling", "head_replacement", "placement"}},
                  {{"crowd"}, "default 256KiB,1MiB,16MiB,64MiB,1GiB"},
                  {{"fragmentation"}, "default 64KiB,1MiB"},
                  {{"bounds"}, "the first"}}},
      {.name = "--ranges",
       .type = "SIZE-SIZE[,SIZE-SIZE...]",
       .typed = own<&bench_flags::ranges>,
       .text = "Ranges from which each call draws its size",
       .groups = {{{"mixed", "utilisation", "policy_overhead", "two_phase", "prefix_sum"}},
                  {{"churn", "long_churn", "fill_level", "fragmentation", "bounds"}, "the first"},
                  {{"placement"}, "the first, of its churn"}}},
      {.name = "--threads",
       .type = "N",
       .typed = own<&bench_flags::threads>,
       .text = "Threads, with their default on a GPU; on the host there are fewer",
       .groups = {{{"burst", "mixed", "exhaust", "policy_overhead"}, "1048576"},
                  {{"churn", "two_phase"}, "262144"},
                  {{"bounds"}, "1048576, and 262144 for its churn"},
                  {{"fill"}, "65536"},
                  {{"placement"}, "100000, and 262144 for its churn"},
                  {{"fill_level", "long_churn"}, "1048576 slots"},
                  {{"head_replacement"}, "four slabs' blocks for each of halloc's rows"}}},
      {.name = "--workers",
       .type = "N[,N...]",
       .typed = own<&bench_flags::workers>,
       .text = "Numbers of threads, with their defaults on a GPU; on the host there are fewer",
       .groups = {{{"workers"}, "2, 4, 8, ... 16384"},
                  {{"semaphore"}, "32, 64, ... 1048576"},
                  {{"rcu_delegation"}, "64, 256, ... 16384"},
                  {{"collective_mutex"}, "32, 128, ... 32768"},
                  {{"atomic"}, "32, 128, ... 131072"},
                  {{"scaling"}, "32, 64, ... 2097152"},
                  {{"prefix_sum"}, "1024, 32768, 1048576"},
                  {{"crowd"}, "1, 16, 256, 1024, 4096, 16384"},
                  {{"random_walk"}, "1024, 4096, ... 262144"}}},
      {.name = "--thread-blocks",
       .type = "N[,N...]",
       .typed = own<&bench_flags::thread_blocks>,
       .text = "Threads of a thread block",
       .groups = {{{"exhaust"}, "a row for each; default one row, the mean over 1, 2, 4, ... 1024"},
                  {{"semaphore", "rcu_delegation", "collective_mutex", "atomic"}, "means over the list; default 256"}}},
      {.name = "--batch",
       .type = "N",
       .typed = own<&bench_flags::batch>,
       .text = "Units of a batch",
       .groups = {{{"semaphore"}}},
       .initial = fmt::format("{}", defaults.batch)},
      {.name = "--batch-ns",
       .type = "N",
       .typed = own<&bench_flags::batch_ns>,
       .text = "Nanoseconds that a batch takes its maker, beside one atomic",
       .groups = {{{"semaphore"}}},
       .initial = fmt::format("{}", defaults.batch_ns)},
      {.name = "--readers-per-writer",
       .type = "N[,N...]",
       .typed = own<&bench_flags::readers_per_writer>,
       .text = "One in N threads removes an element (default 1,4,16,64,256,1024)",
       .groups = {{{"rcu_delegation"}}}},
      {.name = "--divergence",
       .type = "thread|warp|block[,...]",
       .typed = own<&bench_flags::divergence>,
       .text = "The threads that draw what to do, and do it, together (default warp)",
       .groups = {{{"two_phase"}}}},
      {.name = "--allocate-shares",
       .type = "EVEN,ODD",
       .typed = own<&bench_flags::allocate_shares>,
       .text = "How likely a thread without a block allocates in an even step, and in an odd one",
       .groups = {{{"two_phase"}}},
       .initial = fmt::format("{}", fmt::join(defaults.allocate_shares, ","))},
      {.name = "--free-shares",
       .type = "EVEN,ODD",
       .typed = own<&bench_flags::free_shares>,
       .text = "How likely a thread with a block frees it in an even step, and in an odd one",
       .groups = {{{"two_phase"}}},
       .initial = fmt::format("{}", fmt::join(defaults.free_shares, ","))},
      {.name = "--levels",
       .type = "SHARE[,SHARE...]",
       .typed = own<&bench_flags::levels>,
       .text = "Shares of the pool that are asked for",
       .groups = {{{"fill_level"}, "default 0.3,0.5,0.7,0.8,0.9,0.95,0.99,1,2"},
                  {{"long_churn"}, "the first; default 0.5"},
                  {{"fragmentation"}, "the first; default 0.9"}}},
      {.name = "--left-shares",
       .type = "SHARE[,SHARE...]",
       .typed = own<&bench_flags::left_shares>,
       .text = "Shares of the blocks that are not freed (default 0.5,0.25,0.1,0.05,0.02,0.01,0.001)",
       .groups = {{{"fragmentation"}}}},
      {.name = "--page-shares",
       .type = "SHARE[,SHARE...]",
       .typed = own<&bench_flags::page_shares>,
       .text = "Shares of the pages that are free (default 0.5,0.1,0.01,0.007,0.005)",
       .groups = {{{"random_walk"}}}},
      {.name = "--kernels",
       .type = "N",
       .typed = own<&bench_flags::kernels>,
       .text = "Length of a run",
       .groups = {{{"fill_level"}, "kernels of each row; default 256 on a GPU, 16 on the host"},
                  {{"long_churn"}, "steps of two kernels, at least 10, in place of --seconds"}}},
      {.name = "--seconds",
       .type = "SECONDS",
       .typed = own<&bench_flags::seconds>,
       .text = "Time on the device (default 10 on a GPU, 0.5 on the host)",
       .groups = {{{"long_churn"}}}},
      {.name = "--rounds",
       .type = "N",
       .typed = own<&bench_flags::rounds>,
       .text = "Rounds",
       .groups = {{{"churn", "policy_overhead", "bounds"}},
                  {{"placement"}, "of its churn"},
                  {{"crowd"}, "of its churn, two kernels each"},
                  {{"two_phase"}, "two steps each"}},
       .initial = fmt::format("{}", defaults.rounds)},
      {.name = "--repeat",
       .type = "N",
       .typed = own<&bench_flags::repeat>,
       .text = "Times that each operation is measured",
       .groups = {{{"fill_level", "long_churn"}}},
       .is_of_others = true,
       .initial = fmt::format("{}", defaults.repeat)}};
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
  static auto const options = make_options();
  return options;
}

void refuse_unused(bench_flags const& flags, std::vector<std::string> const& scenarios) {
  auto typed = flags;
  for (auto const& option : bench_options())
    if (std::none_of(scenarios.begin(), scenarios.end(), [&](auto const& name) { return option.is_used_by(name); }))
      refuse_typed({{option.name, option.typed(typed)}}, reason(option, scenarios));
}

}  // namespace warpheap::tool
