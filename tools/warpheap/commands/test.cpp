// SPDX-License-Identifier: Apache-2.0
// `warpheap test`: builds a program of the user's for the host backend, alone and under sanitizers,
// and runs it under one schedule after the other until a run fails or the time is over. A run fails
// if it ends with another status than 0, by a signal, or not at all.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "cli/child_run.hpp"
#include "cli/interruption.hpp"
#include "cli/numbers.hpp"
#include "cli/progress_bar.hpp"
#include "cli/standard_output.hpp"
#include "cli/usage_error.hpp"
#include "command.hpp"
#include "io/origin.hpp"
#include "io/text_table.hpp"
#include "program_search.hpp"

namespace warpheap::tool {

namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

struct test_flags {
  std::string source;
  std::vector<std::string> compiler_flags;
  std::string minutes = "1";
  std::string seed = "1";
  std::string jobs;
  std::string timeout = "60";
  std::string replay;
};

/// How the program is built.
struct build {
  char const* name;
  std::vector<std::string> flags;  ///< of the compiler
  bool links_with_them = true;
};
build const builds[] = {
    {"plain", {"-include", "warpheap/explore/program_search.hpp"}},
    {"address", {"-fsanitize=address"}},
    {"thread", {"-fsanitize=thread"}},
    {"races", {"-fsanitize=thread", "--param", "tsan-distinguish-volatile=1", "-DWARPHEAP_HOST_RACES"}, false}};

/// One way to run the program.
struct way {
  char const* name;
  build const& from;
  char const* settings;  ///< of WARPHEAP_EXECUTION beside the seed; nullptr: it stays empty
  char const* finds;
};
way const ways[] = {
    {"schedules", builds[0], "", "wrong results, hangs, misuse of collectives"},
    {"priorities", builds[0], ",policy=priorities", "orders of few interruptions, at the wrong places"},
    {"weak_memory", builds[0], ",weak_memory", "missing acquires and releases"},
    {"races", builds[3], ",weak_memory", "races of plain accesses, and the order that is missing"},
    {"address", builds[1], "", "overruns, uses after free"},
    {"thread", builds[2], "", "races of plain accesses, those to globals too"},
    {"parallel", builds[0], nullptr, "what only many cores show"},
    {"exploration", builds[0], nullptr, "orders of at most 64 lanes"},
};
/// It has no seed, and is started once.
constexpr size_t seeded_ways = std::size(ways) - 1;
way const& exploration = ways[seeded_ways];

void declare_test(CLI::App& to, test_flags& flags) {
  std::string footer =
      "FILE is a program that launches kernels and returns 0 if all is well. It is compiled for the host backend by "
      "CXX "
      "(g++), with the flags behind --, and run under one seed after the other:";
  for (auto const& each : ways) footer += fmt::format("\n  {:<12} {}", each.name, each.finds);
  to.footer(footer + "\nThe first run that fails is shown, with the line that repeats it: exit status 1.");
  to.add_option("FILE", flags.source, "A C++ source")->type_name("FILE");
  to.add_option("FLAG", flags.compiler_flags, "Behind --: flags of the compiler")
      ->type_name("FLAG")
      ->expected(1, 10'000);
  add_text(to, "--minutes", flags.minutes, "Minutes of runs", "T")->capture_default_str();
  add_text(to, "--seed", flags.seed, "Seed of the first schedule; the next one has the next seed", "N")
      ->capture_default_str();
  add_text(to, "--jobs", flags.jobs, "Runs at a time (default: one a core)", "N");
  add_text(to, "--timeout", flags.timeout, "Seconds after which a run counts as hung", "S")->capture_default_str();
  add_text(to, "--replay", flags.replay, "One run, as a failure's line gives it", "WAY:SEED|exploration:SCHEDULE");
}

struct one_run {
  way const* by;
  std::string which;  ///< its seed, or the deviations of its schedule

  std::vector<std::string> environment() const {
    auto const settings = by->settings == nullptr ? "" : fmt::format("seed={}{}", which, by->settings);
    return {"WARPHEAP_SEARCH=", "WARPHEAP_EXECUTION=" + settings,
            "WARPHEAP_SCHEDULE=" + (by == &exploration ? which : "")};
  }
};

class folder_of_programs {
 public:
  folder_of_programs() : path_{(std::filesystem::temp_directory_path() / "warpheap_test_XXXXXX").string()} {
    if (mkdtemp(path_.data()) == nullptr) throw usage_error{fmt::format("no folder {} can be made", path_)};
  }
  folder_of_programs(folder_of_programs const&) = delete;
  folder_of_programs& operator=(folder_of_programs const&) = delete;
  ~folder_of_programs() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string const& path() const { return path_; }
  std::string program_of(build const& how) const { return path_ + "/" + how.name; }

 private:
  std::string path_;
};

/// Builds the program in all its ways, and runs it.
class test_session {
 public:
  explicit test_session(test_flags const& flags)
      : flags_{flags},
        jobs_{flags.jobs.empty() ? std::max(1u, std::thread::hardware_concurrency())
                                 : parse_count("--jobs", flags.jobs, 1, 1024)},
        first_seed_{parse_count("--seed", flags.seed, 0, ~u64{0} >> 1)},
        limit_{1000 * parse_count("--timeout", flags.timeout, 1, 86400)},
        time_{static_cast<u64>(60'000 * parse_real("--minutes", flags.minutes, 1e-3, 1e6))} {
    if (flags.source.empty()) throw usage_error{"no program: name a C++ source that launches kernels"};
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(flags.source, ignored))
      throw usage_error{fmt::format("no file {}", flags.source)};
    if (!flags.replay.empty()) replayed_ = parse_replay();
  }

  int run() {
    deferred_interruption const interruption;
    build_all(interruption);
    if (replayed_) return tell(*replayed_, run_once(*replayed_));
    auto const fault = run_all(interruption);
    if (int const signal = interruption.signal()) die_of(signal);
    text_table table{{"way", ">runs", "finds"}, 1};
    for (auto const& each : ways) table.add({each.name, fmt::format("{}", runs_of(each)), finds(each)});
    print_output("{}", table.text("test"));
    return fault ? tell(fault->first, fault->second) : 0;
  }

 private:
  using ended_run = std::pair<one_run, child_outcome>;

  one_run parse_replay() const {
    auto const colon = flags_.replay.find(':');
    auto const name = flags_.replay.substr(0, colon);
    auto const* const by = std::ranges::find(ways, name, &way::name);
    if (by == std::end(ways) || colon == std::string::npos) refuse_replay();
    auto const which = flags_.replay.substr(colon + 1);
    if (by != &exploration) return {by, fmt::format("{}", parse_count("--replay", which))};
    if (!explore::deviations_in(which)) refuse_replay();
    return {by, which};
  }

  [[noreturn]] void refuse_replay() const {
    throw usage_error{
        fmt::format("--replay {}: a run is written like weak_memory:17 or exploration:12:1,40:2", flags_.replay)};
  }

  /// Calls `work(i)` for each i below `count`, several at a time, until one throws.
  template <class Work>
  void at_once(u64 count, deferred_interruption const& interruption, Work work) {
    std::atomic<u64> next{0}, ended{0};
    std::exception_ptr error;
    std::mutex mutex;
    std::vector<std::jthread> threads;
    u64 const started = std::min(count, jobs_);
    for (u64 i = 0; i < started; ++i)
      threads.emplace_back([&] {
        try {
          while (is_wanted_)
            if (u64 const mine = next++; mine < count) work(mine);
            else break;
        } catch (...) {
          std::lock_guard const lock{mutex};
          if (!error) error = std::current_exception();
          is_wanted_ = false;
        }
        ++ended;
      });
    while (ended < started) {
      if (interruption.signal() != 0) is_wanted_ = false;
      show_progress();
      std::this_thread::sleep_for(10ms);
    }
    threads.clear();
    bar_.clear();
    if (error) std::rethrow_exception(error);
  }

  void build_all(deferred_interruption const& interruption) {
    auto const include = find_folder("include", "include", "warpheap/warpheap.hpp", "the folder of Warpheap's headers");
    at_once(replayed_ ? 1 : std::size(builds), interruption, [&](u64 i) {
      auto const& how = replayed_ ? replayed_->by->from : builds[i];
      auto const program = folder_.program_of(how);
      std::vector<std::string> const libraries{"-lboost_context", "-pthread"};
      std::vector<std::string> line{"-std=c++20", "-O1", "-g", "-I", include, flags_.source};
      line.insert(line.end(), how.flags.begin(), how.flags.end());
      line.insert(line.end(), flags_.compiler_flags.begin(), flags_.compiler_flags.end());
      if (how.links_with_them) {
        line.insert(line.end(), libraries.begin(), libraries.end());
        compile(line, program);
      } else {
        line.emplace_back("-c");
        compile(line, program + ".o");
        std::vector<std::string> linked{program + ".o"};
        linked.insert(linked.end(), flags_.compiler_flags.begin(), flags_.compiler_flags.end());
        linked.insert(linked.end(), libraries.begin(), libraries.end());
        compile(linked, program);
      }
    });
    if (int const signal = interruption.signal()) die_of(signal);
  }

  void compile(std::vector<std::string> line, std::string const& made) {
    char const* const cxx = std::getenv("CXX");
    line.insert(line.begin(), cxx != nullptr && *cxx != 0 ? cxx : "g++");
    line.insert(line.end(), {"-o", made});
    auto const came = run_child(line, {}, 1h, is_wanted_);
    if (came.succeeded || !is_wanted_.exchange(false)) return;
    print_output("{}", came.output);
    throw usage_error{fmt::format("{} does not compile: {} {}", flags_.source, line[0], came.ending)};
  }

  child_outcome run_once(one_run const& what) {
    return run_child({folder_.program_of(what.by->from)}, what.environment(), limit_, is_wanted_);
  }

  /// The search, for its share of all jobs' time, which is all time of one job at most. A hang is
  /// one of half as long.
  std::optional<ended_run> search() {
    auto made = search_.run(folder_.program_of(exploration.from), search_time_, is_wanted_);
    return ended_run{one_run{&exploration, search_.schedule()}, std::move(made)};
  }

  /// The run of a seed; nothing if it was stopped, because it was no longer wanted.
  std::optional<ended_run> run_seed(u64 i) {
    one_run const what{&ways[i % seeded_ways], fmt::format("{}", first_seed_ + i / seeded_ways)};
    auto made = run_once(what);
    if (made.was_stopped && !is_wanted_) return std::nullopt;
    ++runs_[i % seeded_ways];
    return ended_run{what, std::move(made)};
  }

  std::optional<ended_run> run_all(deferred_interruption const& interruption) {
    std::optional<ended_run> first;
    std::mutex mutex;
    begin_ = clock::now();
    at_once(~u64{0}, interruption, [&](u64 i) {
      if (clock::now() - *begin_ >= time_) {
        is_wanted_ = false;
        return;
      }
      auto made = i == 0 ? search() : run_seed(i - 1);
      if (!made || made->second.succeeded) return;
      is_wanted_ = false;
      std::lock_guard const lock{mutex};
      if (!first) first = std::move(made);
    });
    return first;
  }

  u64 runs_of(way const& asked) const {
    return &asked == &exploration ? search_.executions() : runs_[&asked - ways].load();
  }

  std::string finds(way const& asked) const {
    return &asked == &exploration ? fmt::format("{}: {}", asked.finds, search_.coverage()) : asked.finds;
  }

  void show_progress() {
    if (!begin_) return bar_.show(fmt::format("compiling {}", flags_.source), 0, 1);
    u64 all = 0;
    for (auto const& each : ways) all += runs_of(each);
    auto const spent = std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - *begin_);
    bar_.show(fmt::format("{} runs", all), static_cast<u64>(std::min(spent, time_).count()),
              static_cast<u64>(time_.count()));
  }

  /// Prints what came of a run; returns the exit status.
  int tell(one_run const& what, child_outcome const& made) const {
    print_output("{}", made.output);
    if (!made.output.empty() && made.output.back() != '\n') print_output("\n");
    if (made.succeeded) return 0;
    auto again = fmt::format("warpheap test {} --replay {}:{}", flags_.source, what.by->name, what.which);
    char const* before = " -- ";
    for (auto const& each : flags_.compiler_flags) again += std::exchange(before, " ") + each;
    complain("test", fmt::format("{} {}: {}", flags_.source, finding_of(made), again));
    if (&what.by->from == &builds[0] && finding_of(made) == made.ending)
      complain("test", fmt::format("If lanes race or poll plain memory, --replay races:{} names the lines",
                                   what.by == &exploration ? "1" : what.which));
    return 1;
  }

  /// The message of an uncaught exception, if there is one: it says more than the signal.
  static std::string finding_of(child_outcome const& made) {
    constexpr std::string_view before = "what():  ";
    auto const said = made.output.find(before);
    if (said == std::string::npos) return made.ending;
    auto const first = said + before.size();
    return fmt::format("fails: {}", made.output.substr(first, made.output.find('\n', first) - first));
  }

  test_flags const& flags_;
  u64 jobs_;
  u64 first_seed_;
  std::chrono::milliseconds limit_;
  std::chrono::milliseconds time_;
  std::chrono::milliseconds search_time_ =
      std::min(time_, time_* static_cast<int>(jobs_) / static_cast<int>(std::size(ways)));
  std::optional<one_run> replayed_;
  folder_of_programs folder_;
  program_search search_{folder_.path() + "/search", std::min(limit_, search_time_ / 2)};
  progress_bar bar_;
  std::atomic<bool> is_wanted_ = true;
  std::atomic<u64> runs_[seeded_ways]{};
  std::optional<clock::time_point> begin_;
};

int run_test(test_flags const& flags) { return test_session{flags}.run(); }

}  // namespace

void add_test(CLI::App& program, int& status) {
  add_command(program, "test", "Test a program's kernels under many schedules and sanitizers", declare_test, run_test,
              status);
}

}  // namespace warpheap::tool
