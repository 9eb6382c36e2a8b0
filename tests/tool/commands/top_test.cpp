// SPDX-License-Identifier: Apache-2.0
// `warpheap top`, as a process: what other programs publish, at once and on a terminal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "support/child_process.hpp"
#include "support/runtime_folder.hpp"
#include "tool/program_fixture.hpp"
#include "warpheap/heap/gauge_page.hpp"

namespace warpheap::tool { namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

/// A program that publishes one heap until it is killed.
struct publisher : test::child_process {
  explicit publisher(std::string const& heap)
      : child_process{[&] {
          shared_page const memory{gauge_page::prefix, sizeof(gauge_page)};
          auto& page = *static_cast<gauge_page*>(memory.data());
          page.process = static_cast<u64>(getpid());
          std::strcpy(page.program, "publisher");
          heap.copy(page.heap, gauge_page::text_bytes - 1);
          std::strcpy(page.allocator, "slab_bitmap");
          std::strcpy(page.device, "host");
          page.publish({.pool_bytes = 4096,
                        .committed_bytes = 2048,
                        .live_bytes = 512,
                        .live_blocks = 3,
                        .highest_live_bytes = 1024,
                        .failures = 5,
                        .largest_failed_bytes = 8192});
          page.show();
          wait_for_kill();
        }} {
    wait_until([&] { return is_published(); });
  }

  ~publisher() {
    kill();
    read_published_heaps();  // removes the page
  }

  bool is_published() const {
    auto const all = read_published_heaps().heaps;
    return std::any_of(all.begin(), all.end(), [&](auto const& each) { return each.process == process(); });
  }
  u64 process() const { return static_cast<u64>(id()); }
};

class ProgramTop : public program_test {
 protected:
  test::runtime_folder runtime;

  /// The rows of one process.
  static std::vector<json> rows_of(json const& document, u64 process) {
    std::vector<json> rows;
    for (auto const& row : document["results"])
      if (row["process"] == process) rows.push_back(row);
    return rows;
  }
  json document() const {
    auto const made = run("top --json -");
    EXPECT_EQ(made.status, 0) << made.err;
    return json::parse(made.out);
  }
};

TEST_F(ProgramTop, ListsEachProgramsHeaps) {
  publisher const first{"particles"}, second{"graph"};
  auto const seen = document();
  EXPECT_EQ(seen["schema"], 1);
  ASSERT_EQ(rows_of(seen, first.process()).size(), 1u);
  ASSERT_EQ(rows_of(seen, second.process()).size(), 1u);
  EXPECT_EQ(rows_of(seen, second.process())[0]["heap"], "graph");
  auto row = rows_of(seen, first.process())[0];
  EXPECT_GT(row["age_seconds"], 0);
  row.erase("age_seconds");
  EXPECT_EQ(row, json({{"process", first.process()},
                       {"program", "publisher"},
                       {"heap", "particles"},
                       {"allocator", "slab_bitmap"},
                       {"device", "host"},
                       {"pool_bytes", 4096},
                       {"committed_bytes", 2048},
                       {"live_bytes", 512},
                       {"live_share", 0.25},
                       {"live_blocks", 3},
                       {"highest_live_bytes", 1024},
                       {"failures", 5},
                       {"largest_failed_bytes", 8192}}));
}

TEST_F(ProgramTop, PrintsOneListWhereThereIsNoTerminal) {
  publisher const one{"particles"};
  for (auto const* const command : {"top", "top --once", "top --interval 3600"}) {
    auto const made = run(command);
    EXPECT_EQ(made.status, 0);
    EXPECT_THAT(made.err, testing::IsEmpty());
    EXPECT_THAT(made.out, HasSubstr(std::to_string(one.id()) + "  publisher  particles  slab_bitmap  host"));
    EXPECT_THAT(made.out, Not(HasSubstr("\x1b"))) << "no commands for a terminal";
  }
}

TEST_F(ProgramTop, WritesAFileBesideTheList) {
  publisher const one{"particles"};
  auto const file = (folder / "t.json").string();
  EXPECT_THAT(run("top --json " + file).out, HasSubstr("particles"));
  EXPECT_EQ(rows_of(json::parse(contents(file)), one.process()).size(), 1u);
}

TEST_F(ProgramTop, ShowsNoProgramThatWasKilled) {
  publisher one{"particles"};
  EXPECT_EQ(rows_of(document(), one.process()).size(), 1u);
  one.kill();
  EXPECT_EQ(rows_of(document(), one.process()).size(), 0u);
  EXPECT_EQ(rows_of(document(), one.process()).size(), 0u) << "and it is removed";
  EXPECT_TRUE(std::filesystem::is_empty(runtime.pages()));
}

TEST_F(ProgramTop, IsNeitherHeldNorEndedByStrangeFiles) {
  publisher const one{"particles"};
  ASSERT_EQ(mkfifo(runtime.page("gauge.fifo").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/zero", runtime.page("gauge.link"));
  write("page", std::string(100, 'x'));
  std::filesystem::copy(folder / "page", runtime.page("gauge.cut"));
  auto const made = run_shell("timeout 20 '" + program + "' top --once");
  EXPECT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("particles"));
  EXPECT_THAT(made.out, HasSubstr("1 heap\n"));
}

TEST_F(ProgramTop, ShowsTheHeapOfStress) {
  auto const log = (folder / "log").string();
  auto const started =
      run_shell("'" + program + "' stress --backend host --threads 64 --minutes 1 >'" + log + "' 2>&1 & echo $!");
  u64 const process = std::stoull(started.out);
  auto const row = test::child_process::wait_until([&]() -> std::optional<json> {
    auto const rows = rows_of(document(), process);
    if (rows.empty() || rows[0]["live_blocks"] == 0) return std::nullopt;
    return rows[0];
  });
  ::kill(static_cast<pid_t>(process), SIGTERM);
  ASSERT_TRUE(row) << contents(log);
  EXPECT_EQ((*row)["heap"], "stress");
  EXPECT_EQ((*row)["program"], "warpheap");
  EXPECT_EQ((*row)["pool_bytes"], 8 << 20);
  EXPECT_GT((*row)["live_bytes"], (*row)["live_blocks"]);
  EXPECT_TRUE(test::child_process::wait_until([&] { return rows_of(document(), process).empty(); }));
}

TEST_F(ProgramTop, RefusesWhatItCannotDo) {
  expect_refusal("top --interval 0", "--interval: 0 is not between 0.1 and 3600");
  expect_refusal("top --interval soon", "'soon' is not a number");
  expect_refusal("top --once --interval 2", "--interval: is of a list that is read again");
  expect_refusal("top --json - --interval 2", "--interval: is of a list that is read again");
  expect_refusal("top --once 5", "top");
  expect_refusal("top --json /no/such/folder/x.json", "/no/such/folder/x.json");
  expect_refusal("top --backend host", "--backend");
}

/// The program on a terminal of its own.
class terminal_run {
 public:
  terminal_run(std::string const& program, std::vector<std::string> arguments) {
    winsize size{};
    size.ws_col = 200;
    size.ws_row = 20;
    process_ = forkpty(&terminal_, nullptr, nullptr, &size);
    if (process_ != 0) return;
    std::vector<char*> words{const_cast<char*>(program.c_str())};
    for (auto& each : arguments) words.push_back(each.data());
    words.push_back(nullptr);
    execv(program.c_str(), words.data());
    _exit(127);
  }
  ~terminal_run() {
    if (!ended_) end();
    close(terminal_);
  }

  /// Reads until `text` was shown `times` times since the start. False after half a minute
  /// without output.
  bool shows(std::string const& text, size_t times = 1) {
    while (count(text) < times)
      if (!read_more()) return false;
    return true;
  }
  void type(char key) const { ASSERT_EQ(write(terminal_, &key, 1), 1); }
  /// The status of the program's end, as waitpid() tells it.
  int wait() {
    while (read_more()) continue;
    waitpid(process_, &status_, 0);
    ended_ = true;
    return status_;
  }
  bool echoes() const {
    termios now{};
    return tcgetattr(terminal_, &now) == 0 && (now.c_lflag & ECHO) && (now.c_lflag & ICANON);
  }
  std::string const& shown() const { return shown_; }

 private:
  size_t count(std::string const& text) const {
    size_t found = 0;
    for (size_t at = 0; (at = shown_.find(text, at)) != std::string::npos; ++at) ++found;
    return found;
  }
  bool read_more() {
    pollfd ready{terminal_, POLLIN, 0};
    if (poll(&ready, 1, 30'000) != 1) return false;
    char buffer[4096];
    auto const got = read(terminal_, buffer, sizeof buffer);
    if (got > 0) shown_.append(buffer, static_cast<size_t>(got));
    return got > 0;
  }
  void end() {
    kill(process_, SIGKILL);
    wait();
  }

  int terminal_ = -1, status_ = 0;
  pid_t process_ = -1;
  bool ended_ = false;
  std::string shown_;
};

TEST_F(ProgramTop, RefreshesOnATerminalUntilQ) {
  publisher const one{"particles"};
  terminal_run top{program, {"top", "--interval", "0.1"}};
  EXPECT_TRUE(top.shows("particles", 3)) << top.shown();
  EXPECT_THAT(top.shown(), HasSubstr("q ends"));
  EXPECT_FALSE(top.echoes());
  top.type('x');
  EXPECT_TRUE(top.shows("particles", 6)) << "another key ends nothing";
  top.type('q');
  int const status = top.wait();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(top.echoes());
  EXPECT_TRUE(top.shown().ends_with("\x1b[?25h")) << "the cursor is back";
}

TEST_F(ProgramTop, LeavesTheTerminalAsItWasWhenItIsInterrupted) {
  terminal_run top{program, {"top", "--interval", "3600"}};
  ASSERT_TRUE(top.shows("q ends")) << top.shown();
  EXPECT_FALSE(top.echoes());
  top.type('\x03');
  int const status = top.wait();
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) << status;
  EXPECT_TRUE(top.echoes());
  EXPECT_TRUE(top.shown().ends_with("\x1b[?25h")) << "the cursor is back";
}

TEST_F(ProgramTop, PrintsOnceOnATerminalWhenAskedTo) {
  publisher const one{"particles"};
  terminal_run top{program, {"top", "--once"}};
  int const status = top.wait();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_THAT(top.shown(), HasSubstr("particles"));
  EXPECT_THAT(top.shown(), Not(HasSubstr("\x1b")));
}

}}  // namespace warpheap::tool
