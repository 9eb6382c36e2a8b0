// SPDX-License-Identifier: Apache-2.0
#include "comparison.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/standard_output.hpp"
#include "cli/usage_error.hpp"
#include "io/bench_rows.hpp"

namespace warpheap::tool {

void comparison::add(std::vector<bench::result> const& made) {
  for (auto const& each : made) {
    results.push_back(each);
    if (fault.empty() && !each.checked()) fault = fmt::format("{}: {}", each.allocator, each.fault);
  }
}

void refuse_if_all_skipped(comparison const& all, char const* option, std::string const& asked) {
  for (auto const& each : all.results)
    if (each.skipped.empty()) return;
  throw usage_error{fmt::format("{}: {}, and {}", option, all.results.front().skipped, asked)};
}

std::vector<ratio> ratios(std::vector<bench::result> const& results, std::string const& operation) {
  std::vector<ratio> found;
  for (auto const& made : results) {
    auto const& first = *std::find_if(results.begin(), results.end(), [&](auto const& each) {
      return each.operation == made.operation && each.parameters == made.parameters;
    });
    if (made.operation != operation || &first == &made || !made.checked() || !first.checked()) continue;
    if (made.times_us.empty() || first.times_us.empty()) continue;  // skipped
    found.push_back({made, first, bench::median(made.times_us) / bench::median(first.times_us)});
  }
  return found;
}

int report(char const* command, choices const& chosen, comparison const& all, json_output& output,
           std::vector<std::string> const& lines) {
  auto document = new_document(*chosen.on);
  document["backend"] = chosen.on->name();
  document["seed"] = chosen.seed;
  document["pool_bytes"] = chosen.pool_bytes;
  document["verified"] = all.fault.empty();
  document.update(all.about);
  document["results"] = nlohmann::ordered_json::array();
  for (auto const& made : all.results) document["results"].push_back(json_of(made, chosen.on->name()));
  if (!output.owns_standard_output() && !all.takes_standard_output)
    print_output("{}{}", tables_of(all.results), fmt::join(lines, ""));
  output.write(document);
  if (all.fault.empty()) return 0;
  complain(command, all.fault);
  return 1;
}

}  // namespace warpheap::tool
