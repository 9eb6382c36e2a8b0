// SPDX-License-Identifier: Apache-2.0
// What the program says of its options: help, typing errors, a shell's completion, and the manual
// page.
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "tests/tool/program_fixture.hpp"

namespace warpheap::tool { namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using ProgramParser = program_test;

char const* const every_command[] = {"info",    "test", "graph", "bench", "verify", "stress",
                                     "explore", "pic",  "join",  "top",   "report", "replay"};

TEST_F(ProgramParser, SaysWhatWasWrongInASentence) {
  expect_refusal(
      "",
      "warpheap: a command is missing; there are: info, test, graph, bench, verify, stress, explore, pic, join, "
      "top, report, replay; ");
  expect_refusal("-x", "warpheap: there is no option '-x' before the command; 'warpheap --help' lists");
  expect_refusal(
      "fly",
      "warpheap: there is no command 'fly'; there are: info, test, graph, bench, verify, stress, explore, pic, "
      "join, top, report, replay\n");
  expect_refusal("--json x graph", "warpheap: there is no option '--json' before the command");
  expect_refusal("graph --wings 2", "warpheap graph: there is no option '--wings'; 'warpheap graph --help' lists");
  expect_refusal("graph --wings=2", "warpheap graph: there is no option '--wings'; ");
  expect_refusal("graph x", "warpheap graph: nothing was expected where 'x' stands; 'warpheap graph --help' says");
  expect_refusal("graph bench", "warpheap graph: nothing was expected where 'bench' stands");
  expect_refusal("graph --scale", "warpheap graph: the option --scale needs a value, and none follows it\n");
  expect_refusal("graph --scale 3 --scale 4",
                 "warpheap graph: the option --scale takes one value, and it is given more than once\n");
  expect_refusal("graph --replace=no", "warpheap graph: the option --replace takes no value\n");
  expect_refusal("graph --input ''", "warpheap graph: --input: the value is empty\n");
  expect_refusal("bench nothing", "warpheap bench: no scenario is called 'nothing'; there are: burst");
  expect_refusal("join --backend metal",
                 "warpheap join: --backend: no backend is called 'metal'; there are: cuda, host\n");
  expect_refusal("join --allocator direct,nobody",
                 "warpheap join: --allocator: no allocator is called 'nobody'; there are: slab_bitmap, ");
  expect_refusal("join --allocator nobody", ", direct, direct_warp, rw_256, rw_bitmap_256, corw_256\n");
  expect_refusal("graph --allocator direct",
                 "warpheap graph: --allocator: no allocator is called 'direct'; there are: slab_bitmap, ");
  expect_refusal("completion csh", "warpheap completion: there is no completion for a shell called 'csh'");
}

TEST_F(ProgramParser, SaysValueAndLimitOfANumberOutOfRange) {
  struct fault {
    char const* arguments;
    char const* said;
  };
  for (auto const& [arguments, said] : std::vector<fault>{
           {"graph --scale 27", "warpheap graph: --scale: 27 is not between 1 and 26"},
           {"graph --scale 99999999999999999999", "--scale: 99999999999999999999 is not between 1 and 26"},
           {"graph --seed 18446744073709551616",
            "--seed: 18446744073709551616 is not between 0 and 18446744073709551615"},
           {"graph --edge-factor 0", "--edge-factor: 0 is not between 1 and 1024"},
           {"graph --backend host --pool 99999999999999999999",
            "'99999999999999999999' is more than 18446744073709551615 bytes"},
           {"bench burst --threads 0", "warpheap bench: --threads: 0 is not between 1 and 67108864"},
           {"bench burst --pool 1MiB --sizes 99999999999999999999K",
            "'99999999999999999999K' is more than 1048576 bytes"},
           {"bench burst --pool 1MiB --sizes 2MiB", "--sizes: '2MiB' is more than 1 MiB"},
           {"bench semaphore --batch-ns 1000001", "--batch-ns: 1000001 is not between 0 and 1000000"},
           {"verify --repeat 10001", "warpheap verify: --repeat: 10001 is not between 1 and 10000"},
           {"pic --species 65", "warpheap pic: --species: 65 is not between 1 and 64"},
           {"pic --cells 8192x8", "--cells: 8192 is not between 8 and 4096"},
           {"join --match 1e999", "warpheap join: --match: 1e999 is not between 0 and 1"},
           {"join --partition-bits 17", "--partition-bits: 17 is not between 0 and 16"}})
    expect_refusal(arguments, said);
}

TEST_F(ProgramParser, HelpFitsATerminalAndNamesTheCommand) {
  for (std::string const command :
       {"", "info", "test", "graph", "bench", "verify", "stress", "explore", "pic", "join"}) {
    auto const made = run(command + " --help");
    EXPECT_EQ(made.status, 0) << command;
    EXPECT_THAT(made.out, HasSubstr("Usage: warpheap" + (command.empty() ? "" : " " + command)));
    std::istringstream lines{made.out};
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120u) << line;
    EXPECT_THAT(made.out, Not(HasSubstr("completion"))) << "that is for an installation";
  }
}

// Help contradicted what join did: about the default, files beside made tables, and a pool that
// runs out.
TEST_F(ProgramParser, HelpOfJoinDoesNotContradictItself) {
  auto const text = std::regex_replace(run("join --help").out, std::regex{"\\s+"}, " ");
  EXPECT_THAT(text, HasSubstr("(default direct,slab_bitmap)"));
  EXPECT_THAT(text, Not(HasSubstr("(default slab_bitmap)")));
  EXPECT_THAT(text, HasSubstr("--build FILE First table, a file or '-' for standard input; needs --probe"));
  EXPECT_THAT(text, HasSubstr("--probe FILE Second table, likewise; needs --build"));
  EXPECT_THAT(text, Not(HasSubstr("Seed of everything random")));
  EXPECT_THAT(text, Not(HasSubstr("nothing is lost")));
  EXPECT_THAT(text, HasSubstr("the join ends without a result"));
  auto const made = json::parse(run("join --backend host --tuples 10 --pool 1MiB --json -").out);
  std::set<std::string> measured;
  for (auto const& row : made["results"]) measured.insert(row["allocator"]);
  EXPECT_EQ(measured, (std::set<std::string>{"direct", "slab_bitmap"})) << "the default that help tells";
}

/// Options at the beginnings of lines of help, with their dashes.
std::set<std::string> options_in(std::string const& help) {
  std::set<std::string> found;
  std::regex const option{"\n  (?:-h,)?(--[a-z-]+)"};
  for (auto at = std::sregex_iterator{help.begin(), help.end(), option}; at != std::sregex_iterator{}; ++at)
    found.insert((*at)[1]);
  return found;
}

TEST_F(ProgramParser, CompletionAndManualKnowEveryOption) {
  auto const bash = run("completion bash").out, zsh = run("completion zsh").out, fish = run("completion fish").out;
  auto const manual = std::regex_replace(run("man").out, std::regex{"\\\\-"}, "-");
  for (std::string const command : every_command) {
    auto const options = options_in(run(command + " --help").out);
    EXPECT_GE(options.size(), 3u) << command;
    for (auto const& option : options) {
      EXPECT_THAT(bash, HasSubstr(option)) << command;
      EXPECT_THAT(zsh, HasSubstr("'" + option)) << command;
      EXPECT_THAT(fish, HasSubstr("__fish_seen_subcommand_from " + command + "' ")) << command;
      EXPECT_THAT(fish, HasSubstr(" -l " + option.substr(2) + " ")) << command;
      EXPECT_THAT(manual, HasSubstr("\\fB" + option + "\\fR")) << command;
    }
    EXPECT_THAT(manual, HasSubstr(".SS " + command + "\n"));
  }
}

TEST_F(ProgramParser, BashCompletes) {
  auto const script = write("completion.bash", run("completion bash").out);
  auto const completed = [&](std::string const& words) {
    auto const made = run_shell("bash -c 'source " + script + "; COMP_WORDS=(warpheap " + words +
                                "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _warpheap; echo ${COMPREPLY[*]}'");
    EXPECT_EQ(made.err, "") << words;
    return made.out;
  };
  EXPECT_EQ(completed("gr"), "graph\n");
  EXPECT_EQ(completed("--v"), "--version\n");
  EXPECT_EQ(completed("graph --drop"), "--drop-self-loops\n");
  EXPECT_EQ(completed("graph --backend \"\""), "cuda host\n");
  EXPECT_EQ(completed("graph --backend = h"), "host\n") << "as bash cuts --backend=h";
  EXPECT_EQ(completed("graph --backend ="), "cuda host\n");
  EXPECT_EQ(completed("graph --allocator slab_bitmap,sc"), "slab_bitmap,scatter slab_bitmap,scatter_coalesced\n");
  EXPECT_EQ(completed("join --allocator dir"), "direct direct_warp\n");
  EXPECT_EQ(completed("graph --allocator dir"), "\n");
  EXPECT_EQ(completed("bench burst rand"), "random_walk\n");
  EXPECT_EQ(completed("bench --divergence warp,b"), "warp,block\n");
  EXPECT_EQ(completed("graph --scale 1"), "\n") << "a number";
  EXPECT_EQ(completed("graph --input " + script.substr(0, script.size() - 3)), script + "\n");
  EXPECT_EQ(completed("report x.json " + script.substr(0, script.size() - 3)), script + "\n");
  EXPECT_EQ(completed("report --im"), "--images\n");
}

TEST_F(ProgramParser, OtherShellsTakeTheirScripts) {
  for (std::string const shell : {"zsh", "fish"}) {
    if (run_shell("command -v " + shell).status != 0) continue;
    auto const script = write(shell, run("completion " + shell).out);
    auto const made = run_shell(shell + " -n '" + script + "'");
    EXPECT_EQ(made.status, 0) << made.err;
  }
}

TEST_F(ProgramParser, TheManualPageIsOne) {
  if (run_shell("command -v groff").status != 0) GTEST_SKIP() << "no groff";
  auto const page = write("warpheap.1", run("man").out);
  auto const made = run_shell("groff -man -Tutf8 -P-cbou -ww '" + page + "'");
  EXPECT_EQ(made.status, 0);
  EXPECT_EQ(made.err, "");
  for (auto const* const section : {"NAME", "SYNOPSIS", "COMMANDS", "EXIT STATUS"})
    EXPECT_THAT(made.out, HasSubstr(section));
}

}}  // namespace warpheap::tool
