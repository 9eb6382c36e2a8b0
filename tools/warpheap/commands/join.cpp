// SPDX-License-Identifier: Apache-2.0
// `warpheap join`: the same join with every allocator that was chosen, for every size of the
// tables.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

#include "choices.hpp"
#include "cli/nearest_names.hpp"
#include "cli/numbers.hpp"
#include "cli/printable.hpp"
#include "cli/progress_bar.hpp"
#include "cli/standard_output.hpp"
#include "command.hpp"
#include "comparison.hpp"
#include "io/csv_table.hpp"
#include "io/json_output.hpp"
#include "io/replaced_file.hpp"
#include "io/text_file.hpp"
#include "io/trace_output.hpp"
#include "workloads/join/reference.hpp"
#include "workloads/join/settings.hpp"
#include "workloads/join/tables.hpp"
#include "workloads/join/tuple.hpp"

namespace warpheap::tool {

namespace {

struct join_flags {
  common_flags common;
  std::string build;
  std::string probe;
  std::string tuples;
  std::string probe_tuples;
  std::string match;
  std::string skew;
  std::string page_bytes = "256";
  std::string chains = "warp";
  std::string partition_bits;
  std::string output;
  std::string trace;
  std::string repeat = "3";
};

constexpr u64 join_host_pool = u64{256} << 20;
constexpr u64 most_tuples = u64{1} << 30;
constexpr u64 most_page_bytes = u64{1} << 24;
constexpr u32 most_partition_bits = 16;

/// Two tables, what they are, and what their join must be.
struct input {
  join_tables tables;
  std::string name;
  join_sum expected;
};

/// Where the rows of the result go, if that was asked for. A file has them once all are there.
class row_output {
 public:
  /// `joins` are made; the rows are those of one.
  row_output(join_flags const& flags, size_t joins) : is_wanted_{!flags.output.empty()} {
    if (!is_wanted_) return;
    if (joins != 1) throw usage_error{fmt::format("--output: takes the rows of one join, and {} are asked for", joins)};
    if (flags.output != "-") file_.emplace("--output", flags.output);
  }

  bool is_wanted() const { return is_wanted_; }

  void add(join_rows const& rows) {
    for (size_t i = 0; i < rows.keys.size(); ++i)
      fmt::format_to(std::back_inserter(text_), "{},{},{}\n", rows.keys[i], rows.build_payloads[i],
                     rows.probe_payloads[i]);
  }

  void write() const {
    if (file_) file_->write(text_);
    else if (is_wanted_) write_output(text_);
  }

 private:
  bool is_wanted_;
  std::optional<replaced_file> file_;
  std::string text_ = "key,build_payload,probe_payload\n";
};

/// Refuses tables of these sizes if the machine or the backend lacks the memory for them.
void check_memory(u64 build_tuples, u64 probe_tuples, backend const& on) {
  u64 const needed = 64 * (build_tuples + probe_tuples);
  if (needed > on.memory_bytes())
    throw usage_error{fmt::format("tables of {} and {} tuples need about {} bytes, and there are {}", build_tuples,
                                  probe_tuples, needed, on.memory_bytes())};
}

/// Refuses a join whose result cannot fit: a key that every tuple has makes very many pairs.
void check_result(std::string const& name, u64 tuples, u64 pool_bytes) {
  if (tuples > pool_bytes / join_tuple_bytes)
    throw usage_error{fmt::format("--pool: the result of {} has {} tuples of {} bytes, and the pool has {} bytes", name,
                                  tuples, join_tuple_bytes, pool_bytes)};
}

std::string name_of(join_recipe const& recipe) {
  return fmt::format("tables of {} and {} tuples, match {}, skew {}", recipe.build_tuples, recipe.probe_tuples,
                     recipe.match, recipe.skew);
}

input read_files(join_flags const& flags, backend const& on) {
  if (flags.build.empty()) throw usage_error{"--probe: needs --build, the other table"};
  if (flags.probe.empty()) throw usage_error{"--build: needs --probe, the other table"};
  refuse_typed({{"--tuples", flags.tuples},
                {"--probe-tuples", flags.probe_tuples},
                {"--match", flags.match},
                {"--skew", flags.skew}},
               "is of tables that are made, and files are given");
  if (!flags.common.deterministic)
    refuse_typed({{"--seed", flags.common.seed}},
                 "is of tables that are made and of --deterministic, and files are given");
  input made;
  if (flags.build == standard_input && flags.probe == standard_input)
    throw usage_error{"--probe: standard input is the table of --build already"};
  // Only one of the two can be piped in.
  auto const piped = [](std::string const& other, char const* tables) {
    return other == standard_input ? "" : fmt::format(fmt::runtime(tables), shell_word(other));
  };
  made.tables.build = read_csv_table(flags.build, piped(flags.probe, "join --build - --probe {}"));
  made.tables.probe = read_csv_table(flags.probe, piped(flags.build, "join --build {} --probe -"));
  auto const build = input_name(flags.build), probe = input_name(flags.probe);
  made.name = fmt::format("{} and {}", build, probe);
  for (auto const& [table, path] : {std::pair{&made.tables.build, build}, {&made.tables.probe, probe}})
    if (table->tuples() > most_tuples)
      throw usage_error{fmt::format("{}: {} tuples are more than {}", path, table->tuples(), most_tuples)};
  check_memory(made.tables.build.tuples(), made.tables.probe.tuples(), on);
  return made;
}

std::vector<join_recipe> parse_recipes(join_flags const& flags, choices const& chosen) {
  join_recipe recipe{.seed = chosen.seed};
  recipe.match = parse_real("--match", flags.match.empty() ? "1" : flags.match, 0, 1);
  recipe.skew = parse_real("--skew", flags.skew.empty() ? "0" : flags.skew, 0, 16);
  std::string const usual = chosen.on->name() == "host" ? "16384" : "1048576";
  std::vector<join_recipe> recipes;
  for (auto const& part : split_list("--tuples", flags.tuples.empty() ? usual : flags.tuples)) {
    recipe.build_tuples = recipe.probe_tuples = parse_count("--tuples", part, 0, most_tuples);
    if (!flags.probe_tuples.empty())
      recipe.probe_tuples = parse_count("--probe-tuples", flags.probe_tuples, 0, most_tuples);
    check_memory(recipe.build_tuples, recipe.probe_tuples, *chosen.on);
    check_result(name_of(recipe), partners_of(recipe), chosen.pool_bytes);
    recipes.push_back(recipe);
  }
  return recipes;
}

join_settings parse_settings(join_flags const& flags, choices const& chosen) {
  join_settings settings{.pool_bytes = chosen.pool_bytes};
  settings.page_bytes = parse_bytes("--page-bytes", flags.page_bytes, join_page_header_bytes + join_tuple_bytes,
                                    std::min(most_page_bytes, chosen.pool_bytes));
  settings.repeat = static_cast<u32>(parse_count("--repeat", flags.repeat, 1, 10'000));
  if (!flags.partition_bits.empty())
    settings.partition_bits =
        static_cast<u32>(parse_count("--partition-bits", flags.partition_bits, 0, most_partition_bits));
  return settings;
}

/// join_settings::lanes_a_chain of each join.
std::vector<u32> parse_chains(std::string const& typed) {
  std::vector<u32> lanes;
  for (auto const& part : split_list("--chains", typed)) {
    if (part != "warp" && part != "lane")
      throw usage_error{fmt::format("--chains: there is no '{}'; {}", part, names_instead_of(part, {"warp", "lane"}))};
    u32 const chosen = part == "lane" ? 1 : join_settings{}.lanes_a_chain;
    if (std::find(lanes.begin(), lanes.end(), chosen) == lanes.end()) lanes.push_back(chosen);
  }
  return lanes;
}

/// A line for each allocator: its time for `operation` as a part of the first allocator's.
std::vector<std::string> lines_of(comparison const& all, std::string const& operation, std::string const& subject) {
  std::vector<std::string> lines;
  for (auto const& [made, first, of_first] : ratios(all.results, operation)) {
    std::map<std::string, u64> const parameters{made.parameters.begin(), made.parameters.end()};
    lines.push_back(fmt::format("{} of {} and {} tuples{} with {} takes {:.3f} of one with {}.\n", subject,
                                parameters.at("build_tuples"), parameters.at("probe_tuples"),
                                parameters.at("lanes_a_chain") == 1 ? ", chains of lanes," : "", made.allocator,
                                of_first, first.allocator));
  }
  return lines;
}

void join(input& from, choices const& chosen, join_settings settings, std::vector<u32> const& chains, comparison& all) {
  auto const& [build, probe] = from.tables;
  from.expected = reference_join(build, probe);
  check_result(from.name, from.expected.tuples, chosen.pool_bytes);
  settings.build = &build;
  settings.probe = &probe;
  settings.expected = from.expected;
  all.about["joins"].push_back({{"input", from.name},
                                {"build_tuples", build.tuples()},
                                {"probe_tuples", probe.tuples()},
                                {"tuples", from.expected.tuples},
                                {"checksum", fmt::format("{:016x}", from.expected.checksum)}});
  for (u32 const lanes : chains) {
    settings.lanes_a_chain = lanes;
    for (auto const& allocator : chosen.allocators) {
      auto const made = chosen.on->part<join_job>().run(allocator, settings);
      all.add(made);
      // All allocators have the same rows.
      if (made.front().skipped.empty()) settings.take_rows = {};
    }
  }
}

void declare_join(CLI::App& to, join_flags& flags) {
  to.footer(
      "An equi-join of two tables of keys and payloads, 32 bits each: both are cut into partitions by a hash of the "
      "key, a hash table is built for each partition of the first, and every tuple of the second is looked up. A warp "
      "or lane that finds partners writes the pairs to pages from malloc, and takes another page when one is full.\n"
      "Tables: from --build and --probe, which come together, or made of --seed by the options marked 'Made tables'; "
      "the two kinds exclude each other. A file has a line key,payload for each tuple, both whole numbers below 2^32; "
      "values may be quoted, and the first line may be a header of two names.\n"
      "Operations: join (all of it), probe (the part that allocates), free (of the pages). Checked: the result has as "
      "many tuples as it must have, and the same checksum, and no page is lost. A result whose tuples alone are larger "
      "than the pool is refused with exit status 2. If the pool runs out on the way, the join ends without a result, "
      "its pages are freed, and the exit status is 1.");
  add_common_flags(
      to, flags.common,
      {.host_pool = "256MiB",
       .allocators =
           "as `warpheap info` lists them, 'all' of these, or 'direct', which is none: pages come from an array of "
           "the pool's size, in its order, by one counter; or 'direct_warp', the same by one addition for the lanes "
           "of a warp; or 'rw_256', 'rw_bitmap_256' and 'corw_256', the walks with pages of 256 bytes "
           "(default direct,slab_bitmap)",
       .random = "Seed of made tables, and of --deterministic"});
  add_text(to, "--build", flags.build, "First table, a file or '-' for standard input; needs --probe", "FILE");
  add_text(to, "--probe", flags.probe, "Second table, likewise; needs --build", "FILE");
  add_text(
      to, "--output", flags.output,
      "Write the rows of the result, in no order, as lines key,build_payload,probe_payload behind a header; '-' is "
      "standard output, which then has nothing else",
      "FILE");
  add_text(to, "--tuples", flags.tuples,
           "Made tables: tuples of each, a join for each number (default 1048576 on a GPU, 16384 on the host)",
           "N[,N...]");
  add_text(to, "--probe-tuples", flags.probe_tuples,
           "Made tables: tuples of the second, in every join (default as many as the first has)", "N");
  add_text(to, "--match", flags.match, "Made tables: share of the second's tuples that have a partner (default 1)",
           "SHARE");
  add_text(to, "--skew", flags.skew,
           "Made tables: exponent of Zipf's law by which partners are chosen (default 0: all are as likely)",
           "EXPONENT");
  add_text(to, "--page-bytes", flags.page_bytes, "Bytes of an output page", "SIZE")->capture_default_str();
  add_text(to, "--chains", flags.chains,
           "Whose the pages are: each warp has its own, or each lane; a join for each of them", "warp|lane[,...]")
      ->capture_default_str();
  add_text(to, "--partition-bits", flags.partition_bits,
           "Cut the tables into 2^N partitions (default: some 4096 tuples of the first a partition, and N at most 12)",
           "N");
  add_text(to, "--trace", flags.trace, trace_help, "FILE");
  add_text(to, "--repeat", flags.repeat, "Times that each join is measured, after one that is not", "N")
      ->capture_default_str();
}

/// The trace of one join: `joins` are made.
trace_output trace_of_one(join_flags const& flags, choices const& chosen, size_t joins) {
  if (!flags.trace.empty() && joins != 1)
    throw usage_error{fmt::format("--trace: is of one join, and {} are asked for", joins)};
  return {flags.trace, flags.common.allocators, chosen.on->allocators().front().name};
}

int run_join(join_flags const& flags) {
  refuse_shared_files({{"--json", flags.common.json}, {"--trace", flags.trace}, {"--output", flags.output}},
                      {{"--build", flags.build}, {"--probe", flags.probe}});
  json_output output{flags.common.json};
  std::vector<std::string> others{direct_output, direct_output_by_warp};
  others.insert(others.end(), std::begin(join_walks), std::end(join_walks));
  auto chosen = choose(flags.common, join_host_pool, others);
  if (flags.common.allocators.empty() && flags.trace.empty())
    chosen.allocators.insert(chosen.allocators.begin(), direct_output);
  auto settings = parse_settings(flags, chosen);
  auto const chains = parse_chains(flags.chains);
  bool const from_files = !flags.build.empty() || !flags.probe.empty();
  auto const recipes = from_files ? std::vector<join_recipe>{} : parse_recipes(flags, chosen);
  size_t const joins = chains.size() * (from_files ? 1 : recipes.size());
  row_output rows{flags, joins};
  auto trace = trace_of_one(flags, chosen, joins);
  settings.take_trace = trace.taker();
  if (rows.is_wanted()) settings.take_rows = [&rows](join_rows const& batch) { rows.add(batch); };
  comparison all;
  all.about["joins"] = nlohmann::ordered_json::array();
  all.takes_standard_output = flags.output == "-";
  {
    progress_bar bar;
    settings.report = bar.reporter();
    auto const run = [&](input from) {
      if (flags.partition_bits.empty()) settings.partition_bits = default_partition_bits(from.tables.build.tuples());
      join(from, chosen, settings, chains, all);
    };
    if (from_files) run(read_files(flags, *chosen.on));
    else
      for (auto const& recipe : recipes) run({make_join_tables(recipe), name_of(recipe), {}});
  }
  refuse_if_all_skipped(all, "--page-bytes", fmt::format("a page has {}", settings.page_bytes));
  trace.write("join");
  auto lines = lines_of(all, "join", "A join");
  for (auto& line : lines_of(all, "probe", "The probe")) lines.push_back(std::move(line));
  if (all.fault.empty()) rows.write();
  return report("join", chosen, all, output, lines);
}

}  // namespace

void add_join(CLI::App& program, int& status) {
  add_command(program, "join", "Join two tables whose result goes to pages of the heap, and check it", declare_join,
              run_join, status);
}

}  // namespace warpheap::tool
