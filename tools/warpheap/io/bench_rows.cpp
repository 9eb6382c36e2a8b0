// SPDX-License-Identifier: Apache-2.0
#include "bench_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/numbers.hpp"
#include "text_table.hpp"

namespace warpheap::tool {

double operations_per_second(bench::result const& made) {
  double const seconds = bench::median(made.times_us) * 1e-6;
  return seconds > 0 ? made.operations / seconds : 0;
}

double bytes_per_second(bench::result const& made) {
  double const seconds = bench::median(made.times_us) * 1e-6;
  return seconds > 0 ? made.bytes / seconds : 0;
}

nlohmann::ordered_json json_of(bench::result const& made, std::string const& backend) {
  using json = nlohmann::ordered_json;
  json row{{"scenario", made.scenario}, {"allocator", made.allocator}, {"backend", backend}};
  if (!made.primitive.empty()) {
    row["allocator"] = nullptr;
    row["primitive"] = made.primitive;
  }
  row["operation"] = made.operation;
  row["parameters"] = json::object();
  for (auto const& [name, value] : made.parameters) row["parameters"][name] = value;
  if (!made.skipped.empty()) {
    row["times_us"] = json::array();
    row["median_us"] = row["operations_per_second"] = nullptr;
    row["failures"] = 0;
    row["checked"] = true;
    row["skipped"] = made.skipped;
    return row;
  }
  row["times_us"] = made.checked() ? made.times_us : std::vector<double>{};
  row["median_us"] = made.checked() ? json(bench::median(made.times_us)) : json(nullptr);
  row["operations_per_second"] = made.checked() ? json(operations_per_second(made)) : json(nullptr);
  if (made.checked() && made.bytes > 0) row["bytes_per_second"] = bytes_per_second(made);
  if (made.checked())
    for (auto const& [name, value] : made.figures) row[name] = value;
  if (made.checked())
    for (auto const& [name, values] : made.lists) row[name] = values;
  row["failures"] = made.failures;
  row["checked"] = made.checked();
  if (!made.checked()) row["fault"] = made.fault;
  return row;
}

namespace {

using named_values = std::vector<std::string>;

/// Adds the names that are missing.
template <class Pairs>
void add_names(named_values& names, Pairs const& pairs) {
  for (auto const& [name, value] : pairs)
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

/// A cell for each name: its value in `pairs`, empty where it has none.
template <class Pairs, class Format>
void add_cells(std::vector<std::string>& cells, named_values const& names, Pairs const& pairs, Format format) {
  for (auto const& name : names) {
    auto const at = std::find_if(pairs.begin(), pairs.end(), [&](auto const& each) { return each.first == name; });
    cells.push_back(at == pairs.end() ? "" : format(name, at->second));
  }
}

/// "9.8-10.4": the quartiles of the times; empty of a single one.
std::string quartiles_text(std::vector<double> const& times_us) {
  if (times_us.size() < 2) return {};
  return fmt::format("{:.1f}-{:.1f}", bench::quantile(times_us, 0.25), bench::quantile(times_us, 0.75));
}

std::string parameter_text(std::string const& name, u64 value) {
  return name == "pool_bytes" ? format_bytes(value) : fmt::format("{}", value);
}

std::string table_of(std::string const& scenario, std::vector<bench::result> const& results) {
  named_values parameters, figures;
  bool tells_bytes = false, tells_spread = false;
  for (auto const& made : results) {
    if (made.scenario != scenario) continue;
    add_names(parameters, made.parameters);
    tells_bytes |= made.bytes > 0;
    tells_spread |= made.times_us.size() > 1;
    if (made.checked() && made.skipped.empty()) add_names(figures, made.figures);
  }
  std::vector<std::string> titles{"measured", "operation"};
  for (auto const& name : parameters) titles.push_back(">" + name);
  titles.emplace_back(">median us");
  if (tells_spread) titles.emplace_back(">quartiles");
  titles.emplace_back(">operations/s");
  if (tells_bytes) titles.emplace_back(">GiB/s");
  titles.emplace_back(">failures");
  for (auto const& name : figures) titles.push_back(">" + name);

  text_table table{titles, 2 + parameters.size()};
  for (auto const& made : results) {
    if (made.scenario != scenario) continue;
    std::vector<std::string> cells{made.subject(), made.operation};
    add_cells(cells, parameters, made.parameters, parameter_text);
    if (!made.skipped.empty()) {
      cells.emplace_back("skipped");
      table.note("skipped: " + made.skipped);
    } else if (!made.checked()) {
      cells.emplace_back("FAILED");
      table.note(fmt::format("FAILED: {}, {}: {}", made.subject(), made.operation, made.fault));
    } else {
      cells.push_back(fmt::format("{:.1f}", bench::median(made.times_us)));
      if (tells_spread) cells.push_back(quartiles_text(made.times_us));
      cells.push_back(format_rate(operations_per_second(made)));
      if (tells_bytes)
        cells.push_back(made.bytes > 0 ? fmt::format("{:.4g}", bytes_per_second(made) / (u64{1} << 30)) : "");
      cells.push_back(fmt::format("{}", made.failures));
      add_cells(cells, figures, made.figures, [](auto const&, double value) { return fmt::format("{:.4g}", value); });
    }
    table.add(std::move(cells));
  }
  return table.text(scenario);
}

}  // namespace

std::string tables_of(std::vector<bench::result> const& results) {
  std::vector<std::string> scenarios;
  std::string made;
  for (auto const& each : results) {
    if (std::find(scenarios.begin(), scenarios.end(), each.scenario) != scenarios.end()) continue;
    scenarios.push_back(each.scenario);
    made += (made.empty() ? "" : "\n") + table_of(each.scenario, results);
  }
  return made;
}

}  // namespace warpheap::tool
