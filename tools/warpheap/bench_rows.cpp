#include "bench_rows.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "numbers.hpp"

namespace warpheap::tool {

double operations_per_second(bench::result const& made) {
  double const seconds = bench::median(made.times_us) * 1e-6;
  return seconds > 0 ? made.operations / seconds : 0;
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
  if (made.checked())
    for (auto const& [name, value] : made.figures) row[name] = value;
  row["failures"] = made.failures;
  row["checked"] = made.checked();
  if (!made.checked()) row["fault"] = made.fault;
  return row;
}

text_table result_table() {
  return text_table{
      {"scenario", "measured", "operation", "parameters", ">median us", ">operations/s", ">failures", "figures"}};
}

void add_row(text_table& table, bench::result const& made) {
  std::string parameters, figures;
  for (auto const& [name, value] : made.parameters)
    if (name != "pool_bytes") parameters += fmt::format("{}{}={}", parameters.empty() ? "" : " ", name, value);
  for (auto const& [name, value] : made.figures)
    figures += fmt::format("{}{}={:.4g}", figures.empty() ? "" : " ", name, value);
  if (!made.skipped.empty())
    return table.add(
        {made.scenario, made.subject(), made.operation, parameters, "-", "-", "-", "skipped: " + made.skipped});
  if (!made.checked())
    return table.add(
        {made.scenario, made.subject(), made.operation, parameters, "-", "-", "-", "FAILED: " + made.fault});
  table.add({made.scenario, made.subject(), made.operation, parameters,
             fmt::format("{:.1f}", bench::median(made.times_us)), format_rate(operations_per_second(made)),
             fmt::format("{}", made.failures), figures});
}

}  // namespace warpheap::tool
