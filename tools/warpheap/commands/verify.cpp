// SPDX-License-Identifier: Apache-2.0
// `warpheap verify`: every allocator that was chosen is filled to the last block, checked and
// emptied, at every size.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "choices.hpp"
#include "cli/numbers.hpp"
#include "cli/progress_bar.hpp"
#include "cli/standard_output.hpp"
#include "command.hpp"
#include "io/json_output.hpp"
#include "io/text_table.hpp"
#include "workloads/verify/verification.hpp"

namespace warpheap::tool {

namespace {

using json = nlohmann::ordered_json;

struct verify_flags {
  common_flags common;
  std::string sizes;
  std::string ranges;
  std::string threads;
  std::string repeat = "2";
};

constexpr u64 verify_host_pool = u64{8} << 20;

verify_settings parse_settings(verify_flags const& flags, choices const& chosen, progress_bar& bar) {
  verify_settings asked;
  asked.pool_bytes = chosen.pool_bytes;
  asked.seed = chosen.seed;
  for (u64 const bytes : parse_sizes(flags.sizes, chosen.pool_bytes)) asked.ranges.push_back({bytes, bytes});
  for (auto const& range : parse_ranges(flags.ranges, chosen.pool_bytes)) asked.ranges.push_back(range);
  if (asked.ranges.empty()) asked.ranges = {{16, 16}, {64, 64}, {1000, 1000}, {4096, 4096}, {16, 1024}};
  if (!flags.threads.empty()) asked.threads = parse_count("--threads", flags.threads, 1, most_threads);
  asked.repeat = static_cast<u32>(parse_count("--repeat", flags.repeat, 1, 10'000));
  asked.proceed = [&bar](std::string const& task, u64 done, u64 total) {
    bar.show(task, done, total);
    return true;
  };
  return asked;
}

json json_of(verification const& made) {
  json row{{"allocator", made.allocator}, {"least_bytes", made.least_bytes}, {"most_bytes", made.most_bytes}};
  row["blocks"] = made.blocks;
  row["bytes"] = made.bytes;
  row["failures"] = made.failures;
  row["damaged"] = made.damaged;
  row["misaligned"] = made.misaligned;
  row["slots_before"] = made.counts_slots ? json(made.slots_before) : json(nullptr);
  row["slots_after"] = made.counts_slots ? json(made.slots_after) : json(nullptr);
  row["seconds"] = made.seconds;
  row["verified"] = made.skipped.empty() ? json(made.verified()) : json(nullptr);
  if (!made.skipped.empty()) row["skipped"] = made.skipped;
  if (!made.verified()) row["fault"] = made.fault;
  return row;
}

void add_row(text_table& table, verification const& made) {
  auto const size = made.least_bytes == made.most_bytes ? fmt::format("{}", made.least_bytes)
                                                        : fmt::format("{}-{}", made.least_bytes, made.most_bytes);
  if (!made.skipped.empty()) {
    table.note("skipped: " + made.skipped);
    return table.add({made.allocator, size, "", "", "", "", "", "", "skipped"});
  }
  if (!made.verified()) table.note(fmt::format("NO: {}, {} bytes: {}", made.allocator, size, made.fault));
  table.add({made.allocator, size, fmt::format("{}", made.blocks), fmt::format("{}", made.damaged),
             fmt::format("{}", made.misaligned), made.counts_slots ? fmt::format("{}", made.slots_before) : "",
             made.counts_slots ? fmt::format("{}", made.slots_after) : "", fmt::format("{:.4f}", made.seconds),
             made.verified() ? "yes" : "NO"});
}

void declare_verify(CLI::App& to, verify_flags& flags) {
  to.footer(
      "The heap is filled until every thread got nullptr, every block is stamped by worker and counter and looked at, "
      "all are freed by other workers, and the slots must be what they were at the start.");
  add_common_flags(to, flags.common, {.host_pool = "8MiB"});
  add_text(
      to, "--sizes", flags.sizes,
      "Sizes of blocks (default 16,64,1000,4096 where no --ranges are given); LEAST-MOST:STEP stands for all sizes "
      "of these steps, as in 8-3072:8",
      "SIZE[,SIZE...]");
  add_text(to, "--ranges", flags.ranges, "Ranges of random sizes (default 16-1024 where no --sizes are given)",
           "SIZE-SIZE[,SIZE-SIZE...]");
  add_text(to, "--threads", flags.threads, "Threads that fill (default 65536 on a GPU, 1024 on the host)", "N");
  add_text(to, "--repeat", flags.repeat, "Times that each size is filled and emptied", "N")->capture_default_str();
}

int run_verify(verify_flags const& flags) {
  json_output output{flags.common.json};
  auto const chosen = choose_with_variants(flags.common, verify_host_pool);
  std::vector<verification> all;
  {
    progress_bar bar;
    auto const asked = parse_settings(flags, chosen, bar);
    for (auto const& allocator : chosen.allocators)
      for (auto const& made : chosen.on->part<verify_job>().run(allocator, asked)) all.push_back(made);
  }

  if (std::all_of(all.begin(), all.end(), [](auto const& each) { return !each.skipped.empty(); }))
    throw usage_error{fmt::format("nothing to do: {}", all.front().skipped)};
  auto const failed = std::find_if(all.begin(), all.end(), [](auto const& each) { return !each.verified(); });
  auto document = new_document(*chosen.on);
  document["backend"] = chosen.on->name();
  document["seed"] = chosen.seed;
  document["pool_bytes"] = chosen.pool_bytes;
  document["verified"] = failed == all.end();
  document["results"] = json::array();
  text_table table{{"allocator", ">bytes", ">blocks", ">damaged", ">misaligned", ">slots before", ">slots after",
                    ">seconds", "verified"},
                   2};
  for (auto const& made : all) {
    document["results"].push_back(json_of(made));
    add_row(table, made);
  }
  if (!output.owns_standard_output()) print_output("{}", table.text("verify"));
  output.write(document);
  if (failed == all.end()) return 0;
  complain("verify", fmt::format("{}: {}", failed->allocator, failed->fault));
  return 1;
}

}  // namespace

void add_verify(CLI::App& program, int& status) {
  add_command(program, "verify", "Fill the heap, check every block, free all", declare_verify, run_verify, status);
}

}  // namespace warpheap::tool
