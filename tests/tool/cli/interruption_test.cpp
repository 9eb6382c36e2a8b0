// SPDX-License-Identifier: Apache-2.0
// Ctrl-C and the like: finished rows are shown, old files stay, and the parent sees the signal.
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>

#include "backend/backend.hpp"
#include "scenarios/fragmentation.hpp"
#include "scenarios/scenario.hpp"
#include "tests/tool/program_fixture.hpp"
#include "tests/tool/scenarios/small_request_fixture.hpp"

namespace warpheap::tool { namespace {

using nlohmann::json;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

/// The program on a terminal, as far as standard error goes.
class running {
 public:
  running(std::string const& program, std::string const& arguments, std::filesystem::path const& out) {
    std::vector<std::string> words{program};
    std::istringstream typed{arguments};
    for (std::string word; typed >> word;) words.push_back(word);
    std::vector<char*> pointers;
    pointers.reserve(words.size() + 1);
    for (auto& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    int slave = -1;
    EXPECT_EQ(openpty(&terminal_, &slave, nullptr, nullptr, nullptr), 0);
    int const file = open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    child_ = fork();
    if (child_ == 0) {
      dup2(file, STDOUT_FILENO);
      dup2(slave, STDERR_FILENO);
      for (int const signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
      execv(pointers[0], pointers.data());
      _exit(127);
    }
    close(slave);
    close(file);
  }
  running(running const&) = delete;
  running& operator=(running const&) = delete;
  ~running() {
    if (child_ > 0) kill(child_, SIGKILL), waitpid(child_, nullptr, 0);
    close(terminal_);
  }

  /// Whether `text` appeared on the terminal before the program ended or a minute was over.
  bool shows(std::string const& text) {
    while (seen_.find(text) == std::string::npos)
      if (!read_some()) return false;
    return true;
  }

  void send(int signal) const { kill(child_, signal); }

  /// Waits for the end; the signal that ended it, 0 if none did.
  int ending_signal() {
    while (read_some()) {
    }
    int status = 0;
    waitpid(child_, &status, 0);
    child_ = 0;
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }

  std::string const& seen() const { return seen_; }

 private:
  bool read_some() {
    pollfd wanted{terminal_, POLLIN, 0};
    if (poll(&wanted, 1, 60'000) <= 0) return false;
    char text[1024];
    // an error: the other end is closed
    auto const size = read(terminal_, text, sizeof text);
    if (size > 0) seen_.append(text, static_cast<size_t>(size));
    return size > 0;
  }

  pid_t child_ = 0;
  int terminal_ = -1;
  std::string seen_;
};

std::string const wiped = "\r\x1b[K";

class Interruption : public program_test {
 protected:
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (auto const& each : std::filesystem::directory_iterator{folder}) names.push_back(each.path().filename());
    return names;
  }

  running start(std::string const& arguments) const { return {program, arguments, folder / "out"}; }

  /// A short scenario, and one whose rounds take a moment each.
  std::string const long_bench =
      "bench burst fill --backend host --pool 8MiB --threads 32 --sizes 256 --repeat 1000 --json ";
};

TEST_F(Interruption, OfBenchShowsTheRowsThatWereFinishedAndLeavesTheFile) {
  for (int const signal : {SIGINT, SIGTERM}) {
    auto const file = write("x.json", "old");
    auto bench = start(long_bench + file);
    ASSERT_TRUE(bench.shows("fill, slab_bitmap")) << bench.seen();
    bench.send(signal);
    EXPECT_EQ(bench.ending_signal(), signal);
    auto const out = contents(folder / "out");
    EXPECT_THAT(out, HasSubstr("burst"));
    EXPECT_THAT(out, HasSubstr("malloc"));
    EXPECT_THAT(out, Not(HasSubstr("fill")));
    EXPECT_THAT(bench.seen(), HasSubstr("ending after this measurement"));
    // Baselines of malloc and free; malloc, free and first_malloc.
    EXPECT_THAT(bench.seen(), EndsWith("interrupted with 5 rows finished; " + file + " is as it was\r\n"));
    auto const last_bar = bench.seen().rfind("%  fill");
    EXPECT_THAT(bench.seen().substr(last_bar), HasSubstr(wiped));
    EXPECT_EQ(contents(file), "old");
    EXPECT_THAT(files(), UnorderedElementsAre("x.json", "out"));
  }
}

TEST_F(Interruption, OfBenchWritesADocumentOfTheFinishedRowsToStandardOutput) {
  auto bench = start(long_bench + "-");
  ASSERT_TRUE(bench.shows("fill, slab_bitmap")) << bench.seen();
  bench.send(SIGINT);
  EXPECT_EQ(bench.ending_signal(), SIGINT);
  auto const document = json::parse(contents(folder / "out"));
  EXPECT_EQ(document["interrupted"], true);
  EXPECT_EQ(document["results"].size(), 5u);
}

TEST_F(Interruption, ThatComesASecondTimeIsNotPutOff) {
  // A busy machine may not have begun when the first signal comes, which then ends the program
  // without a word: it is given more time.
  for (useconds_t const microseconds : {500'000, 2'000'000, 8'000'000}) {
    // One row, whose first round fills a pool with 16 M blocks: nothing is looked at before that.
    auto bench = start("bench utilisation --backend host --pool 256MiB --sizes 16 --repeat 100");
    usleep(microseconds);
    bench.send(SIGINT);
    if (!bench.shows("ending after this measurement; the same again ends at once") && bench.seen().empty()) continue;
    bench.send(SIGINT);
    EXPECT_EQ(bench.ending_signal(), SIGINT);
    EXPECT_THAT(contents(folder / "out"), IsEmpty());
    EXPECT_THAT(bench.seen(), HasSubstr("ending after this measurement; the same again ends at once"));
    EXPECT_THAT(bench.seen(), Not(HasSubstr("finished")));
    return;
  }
  FAIL() << "not begun after eight seconds";
}

TEST_F(Interruption, OfOtherCommandsEndsThemAtOnceAndWipesTheBar) {
  auto const file = write("x.json", "old");
  auto graph = start("graph --backend host --scale 14 --batches 1000000 --json " + file);
  ASSERT_TRUE(graph.shows("%  ")) << graph.seen();
  graph.send(SIGTERM);
  EXPECT_EQ(graph.ending_signal(), SIGTERM);
  EXPECT_THAT(graph.seen(), EndsWith(wiped));
  EXPECT_EQ(contents(file), "old");
  EXPECT_THAT(files(), UnorderedElementsAre("x.json", "out"));
}

TEST_F(Interruption, ThatTheParentIgnoresIsIgnored) {
  auto const made = run("--version; trap '' INT; '" + program +
                        "' bench latency --backend host --pool 8MiB --repeat 2000 & sleep 0.5; kill -INT $!; wait $!");
  EXPECT_EQ(made.status, 0);
}

TEST(Scenarios, EndEarlyWithTheRowsThatAreFinished) {
  auto const on = make_host_backend();
  bench::request asked;
  asked.repeat = 1;
  asked[options::threads] = asked[options::rounds] = 8;
  asked[options::sizes] = {512, 2048};
  asked[options::ranges] = {{512, 1024}, {1024, 2048}};
  asked[options::workers] = {32, 64};
  asked[options::levels] = {0.5};
  asked[options::left_shares] = {0.5, 0.25, 0.1};
  asked[options::kernels] = 1;  // of long_churn ten, one for each row
  for (auto const& each : bench::scenarios_of(*on)) {
    auto const& scenario = each.name;
    asked.pool_bytes = u64{scenario == "efficiency" ? 1u : 4u} << 20;
    u64 calls = 0, most_calls = ~u64{0};
    asked.proceed = [&](std::string const&, u64, u64) { return calls++ < most_calls; };
    auto const measure = [&] {
      calls = 0;
      return each.measures_allocators() ? each.run("halloc", asked) : each.baseline(asked);
    };
    auto const all = measure();
    ASSERT_GT(calls, 1u) << scenario << ": nothing is asked between its measurements";
    for (most_calls = calls; most_calls-- > 0;) {
      auto const rows = measure();
      EXPECT_EQ(calls, most_calls + 1) << scenario << ": went on after it was told to end";
      EXPECT_LT(rows.size(), all.size()) << scenario;
      for (auto const& row : rows) {
        EXPECT_THAT(row.fault, IsEmpty()) << scenario;
        EXPECT_TRUE(!row.skipped.empty() || row.times_us.size() == 1) << scenario << " " << row.operation;
      }
    }
  }
}

}}  // namespace warpheap::tool
