// SPDX-License-Identifier: Apache-2.0
#include "suite.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench_rows_of.hpp"
#include "cli/interruption.hpp"
#include "cli/processes.hpp"
#include "cli/progress_bar.hpp"
#include "cli/standard_output.hpp"
#include "cli/usage_error.hpp"
#include "io/bench_rows.hpp"
#include "io/json_output.hpp"
#include "io/machine.hpp"
#include "io/replaced_file.hpp"
#include "scenarios/scenario.hpp"

namespace warpheap::tool {

suite_estimate::suite_estimate(std::vector<double> seconds) : before_{0} {
  for (double const each : seconds) before_.push_back(before_.back() + each);
}

void suite_estimate::note(size_t entry, u64 done, u64 total, double elapsed) {
  double const part = total ? std::min(1.0, static_cast<double>(done) / static_cast<double>(total)) : 0;
  double const all = before_.back();
  share_ = all > 0 ? (before_[entry] + part * (before_[entry + 1] - before_[entry])) / all : 1;
  elapsed_ = elapsed;
}

double suite_estimate::seconds_left() const {
  double const expected = before_.back() * (1 - share_);
  if (share_ <= 0 || elapsed_ <= 0) return expected;
  double const as_so_far = elapsed_ / share_ * (1 - share_);
  return share_ * as_so_far + (1 - share_) * expected;
}

namespace {

using json = nlohmann::ordered_json;

/// One run of a suite.
class suite_run {
 public:
  suite_run(choices const& chosen, std::vector<suite_entry> const& entries, suite_settings const& settings)
      : chosen_{chosen}, entries_{entries}, settings_{settings} {
    make_folder();
    std::vector<double> seconds;
    for (auto const& entry : entries_) {
      done_.push_back(!settings.fresh && is_complete(entry));
      seconds.push_back(done_.back() ? 0 : entry.seconds);
    }
    estimate_.emplace(seconds);
  }

  int run() {
    int const signal = measure_what_is_left();
    auto const complete = static_cast<size_t>(std::count(done_.begin(), done_.end(), true));
    if (signal) {
      complain("bench",
               fmt::format("interrupted: {} of {} files in {} are complete; the same command goes on from there",
                           complete, entries_.size(), settings_.folder));
      die_of(signal);
    }
    if (fault_.empty()) return 0;
    complain("bench", fault_);
    return 1;
  }

 private:
  using clock = std::chrono::steady_clock;

  void make_folder() const {
    std::error_code error;
    std::filesystem::create_directories(settings_.folder, error);
    if (error) throw usage_error{fmt::format("--output: cannot make {}: {}", settings_.folder, error.message())};
  }

  std::string path_of(suite_entry const& entry) const {
    return std::filesystem::path{settings_.folder} / (entry.name + ".json");
  }

  /// What a file says of how it was measured: files of the same say the same.
  json header_of(suite_entry const& entry) const {
    auto made = new_document(*chosen_.on);
    made["backend"] = chosen_.on->name();
    made["seed"] = chosen_.seed;
    made["suite"] = settings_.name;
    made["allocators"] = entry.allocators;
    made["pool_bytes"] = pool_of(entry);
    return made;
  }

  u64 pool_of(suite_entry const& entry) const {
    if (settings_.pool_is_typed) return chosen_.pool_bytes;
    auto const typed = options_of_line(entry.options)["--pool"];
    return typed.empty() ? default_pool(chosen_, scenario_of(entry).pool) : parse_bytes("--pool", typed);
  }

  bench::scenario scenario_of(suite_entry const& entry) const {
    if (entry.workload)
      return {
          .name = entry.scenario, .text = "", .run = [&](std::string const& allocator, bench::request const& asked) {
            return entry.workload(*chosen_.on, allocator, asked);
          }};
    return bench::scenario_called(entry.scenario, *chosen_.on);
  }

  /// Whether an entry's file has what would be measured, without a fault.
  bool is_complete(suite_entry const& entry) const {
    std::ifstream file{path_of(entry)};
    if (!file) return false;
    auto found = json::parse(file, nullptr, false);
    if (!found.is_object() || !found.contains("results") || !found["results"].is_array()) return false;
    for (auto const& row : found["results"])
      if (!row.is_object() || row.value("checked", json{}) != true) return false;
    auto const expected = header_of(entry);
    for (auto const& [name, value] : expected.items())
      if (name != "machine" && found.value(name, json{}) != value) return false;
    return is_of_this_machine(found.value("machine", json::object()), expected["machine"]);
  }

  /// In any order of the fields.
  static bool is_of_this_machine(nlohmann::json found, nlohmann::json expected) {
    if (!found.is_object()) return false;
    found.erase("time");
    expected.erase("time");
    return found == expected;
  }

  /// Returns the signal that came, or 0.
  int measure_what_is_left() {
    deferred_interruption const interruption;
    progress_bar bar;
    for (size_t i = 0; i < entries_.size() && !interruption.signal(); ++i) {
      if (done_[i]) {
        print_output("{}: complete\n", path_of(entries_[i]));
        continue;
      }
      if (needs_process(entries_[i])) {
        measure_in_process(i);
        continue;
      }
      bench::request asked;
      asked.proceed = [&](std::string const& task, u64 done, u64 total) {
        show(bar, i, task, done, total);
        return interruption.signal() == 0;
      };
      measure(i, asked, bar, interruption);
    }
    return interruption.signal();
  }

  /// Whether the entry is measured by a process of its own. CUDA's heap has one size for a process,
  /// and each entry another pool, so no process measures `toolkit` in two entries.
  bool needs_process(suite_entry const& entry) const {
    auto const has_toolkit = [](suite_entry const& each) {
      return std::find(each.allocators.begin(), each.allocators.end(), "toolkit") != each.allocators.end();
    };
    return has_toolkit(entry) && std::count_if(entries_.begin(), entries_.end(), has_toolkit) > 1;
  }

  /// Runs this program again for one entry alone, and waits for it.
  void measure_in_process(size_t index) {
    auto const& entry = entries_[index];
    std::vector<std::string> arguments{"bench",        "--suite",
                                       settings_.name, entry.name,
                                       "--output",     settings_.folder,
                                       "--backend",    chosen_.on->name(),
                                       "--seed",       fmt::format("{}", chosen_.seed),
                                       "--allocator",  fmt::format("{}", fmt::join(entry.allocators, ","))};
    if (settings_.pool_is_typed) arguments.insert(arguments.end(), {"--pool", fmt::format("{}", chosen_.pool_bytes)});
    if (chosen_.deterministic) arguments.emplace_back("--deterministic");
    if (settings_.fresh) arguments.emplace_back("--fresh");
    int const status = run_this_program(arguments);
    done_[index] = is_complete(entry);
    if (status != 0 && fault_.empty())
      fault_ = fmt::format("{}: the process that measures it ended with status {}", entry.name, status);
  }

  void measure(size_t index, bench::request asked, progress_bar& bar, deferred_interruption const& interruption) {
    auto const& entry = entries_[index];
    replaced_file const file{"--output", path_of(entry)};
    asked.seed = chosen_.seed;
    asked.pool_bytes = pool_of(entry);
    auto const scenario = scenario_of(entry);
    add_values(asked, scenario, options_of_line(entry.options), {});
    auto document = header_of(entry);
    auto const start = clock::now();
    auto const rows = rows_of(scenario, entry.allocators, asked);
    if (interruption.signal()) return;  // some may be missing
    document["results"] = json::array();
    for (auto const& row : rows) document["results"].push_back(tool::json_of(row, chosen_.on->name()));
    file.write(text_of(document, false));
    done_[index] = true;
    bar.clear();
    print_output("{}: {} rows in {:.1f} s\n", path_of(entry), rows.size(), seconds_since(start));
    for (auto const& row : rows)
      if (!row.checked() && fault_.empty()) fault_ = fmt::format("{}: {}: {}", row.scenario, row.subject(), row.fault);
  }

  void show(progress_bar& bar, size_t index, std::string const& task, u64 done, u64 total) {
    estimate_->note(index, done_of_entry(index, task, done, total), steps_of(index), seconds_since(start_));
    auto const permille = static_cast<u64>(1000 * estimate_->share());
    bar.show(fmt::format("{} suite, about {:.0f} s left: {}", settings_.name, estimate_->seconds_left(), task),
             permille, 1000);
  }

  /// An entry's progress in thousandths of its allocators, which report theirs one after the other.
  static constexpr u64 steps_of_allocator = 1000;
  u64 steps_of(size_t index) const { return steps_of_allocator * std::max<u64>(1, entries_[index].allocators.size()); }
  u64 done_of_entry(size_t index, std::string const& task, u64 done, u64 total) const {
    auto const& allocators = entries_[index].allocators;
    u64 before = 0;  // allocators that are done: a task's name ends with its allocator's
    for (size_t i = 0; i < allocators.size(); ++i)
      if (task.ends_with(", " + allocators[i])) before = i;
    return steps_of_allocator * before + (total ? std::min(done, total) * steps_of_allocator / total : 0);
  }

  static double seconds_since(clock::time_point start) {
    return std::chrono::duration<double>{clock::now() - start}.count();
  }

  choices const& chosen_;
  std::vector<suite_entry> const& entries_;
  suite_settings const& settings_;
  std::vector<bool> done_;
  std::optional<suite_estimate> estimate_;
  clock::time_point start_ = clock::now();
  std::string fault_;
};

}  // namespace

int run_suite(choices const& chosen, std::vector<suite_entry> const& entries, suite_settings const& settings) {
  return suite_run{chosen, entries, settings}.run();
}

}  // namespace warpheap::tool
