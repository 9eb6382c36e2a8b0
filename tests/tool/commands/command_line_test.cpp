// SPDX-License-Identifier: Apache-2.0
// What the program says of its options: help, typing errors, a shell's completion, and the manual
// page.
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "commands/bench_options.hpp"
#include "scenarios/scenario.hpp"
#include "tests/tool/program_fixture.hpp"

namespace warpheap::tool { namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using ProgramParser = program_test;

char const* const every_command[] = {"info",    "test", "run",  "graph", "bench",  "verify", "stress",
                                     "explore", "pic",  "join", "top",   "report", "replay"};
/// Those with --allocator.
char const* const allocating_commands[] = {"graph", "bench", "verify", "stress", "explore", "pic", "join", "replay"};

/// Options at the beginnings of lines of help, with their dashes.
std::set<std::string> options_in(std::string const& help) {
  std::set<std::string> found;
  std::regex const option{"\n  (?:-h,)?(--[a-z-]+)"};
  for (auto at = std::sregex_iterator{help.begin(), help.end(), option}; at != std::sregex_iterator{}; ++at)
    found.insert((*at)[1]);
  return found;
}

TEST_F(ProgramParser, SaysWhatWasWrongInASentence) {
  expect_refusal(
      "",
      "warpheap: a command is missing; there are: info, test, run, graph, bench, verify, stress, explore, pic, "
      "join, top, report, replay, help; ");
  expect_refusal("-x", "warpheap: there is no option '-x' before the command; 'warpheap --help' lists");
  expect_refusal(
      "fly",
      "warpheap: there is no command 'fly'; there are: info, test, run, graph, bench, verify, stress, explore, "
      "pic, join, top, report, replay, help\n");
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

TEST_F(ProgramParser, OffersTheNearestNames) {
  expect_refusal("grpah", "warpheap: there is no command 'grpah'; did you mean graph?\n");
  expect_refusal("help grpah", "warpheap help: there is no command 'grpah'; did you mean graph?\n");
  expect_refusal("--verison", "warpheap: there is no option '--verison' before the command; did you mean --version?\n");
  expect_refusal("-v", "warpheap: there is no option '-v' before the command; did you mean -V?\n");
  expect_refusal("run --sise 2GiB ./app --size", "warpheap run: there is no option '--sise'; did you mean --size?\n");
  expect_refusal("graph --scal=2", "warpheap graph: there is no option '--scal'; did you mean --scale?\n");
  expect_refusal("bench brust", "warpheap bench: no scenario is called 'brust'; did you mean burst?\n");
  expect_refusal("bench brust --help", "warpheap bench: no scenario is called 'brust'; did you mean burst?\n");
  expect_refusal("bench --suite quik", "warpheap bench: --suite: no suite is called 'quik'; did you mean quick?\n");
  expect_refusal("bench two_phase --divergence wrap", "--divergence: there is no 'wrap'; did you mean warp?\n");
  expect_refusal("join --chains lanes", "warpheap join: --chains: there is no 'lanes'; did you mean lane?\n");
  expect_refusal("graph --input x --format dimasc", "--format: no format is called 'dimasc'; did you mean dimacs?\n");
  expect_refusal("completion fihs", "there is no completion for a shell called 'fihs'; did you mean fish?\n");
  expect_refusal("info --backend hots", "warpheap info: --backend: no backend is called 'hots'; did you mean host?\n");
  for (std::string const command : allocating_commands) {
    if (command == "replay") continue;  // reads its trace first
    expect_refusal(
        command + " --backend host --allocator slab_bitmpa",
        "warpheap " + command + ": --allocator: no allocator is called 'slab_bitmpa'; did you mean slab_bitmap?\n");
  }
  for (std::string const command : every_command)
    expect_refusal(command + " --hepl",
                   "warpheap " + command + ": there is no option '--hepl'; did you mean --help?\n");
}

TEST_F(ProgramParser, HelpIsACommandToo) {
  EXPECT_EQ(run("help").out, run("--help").out);
  for (std::string const command : every_command) {
    auto const made = run("help " + command);
    EXPECT_EQ(made.status, 0) << command;
    EXPECT_EQ(made.out, run(command + " --help").out) << command;
  }
  EXPECT_EQ(run("help bench burst").out, run("bench burst --help").out);
}

TEST_F(ProgramParser, VersionSaysCommitAndBackends) {
  for (char const* const option : {"-V", "--version"}) {
    auto const made = run(option);
    EXPECT_EQ(made.status, 0) << option;
    EXPECT_THAT(made.out, testing::MatchesRegex("warpheap [0-9][^ ]* \\(commit [^ ]+; backends: host(, cuda)?\\)\n"));
  }
}

/// Help on one line, whose words are all separated by one blank.
std::string unwrapped(std::string const& help) { return std::regex_replace(help, std::regex{"\\s+"}, " "); }

TEST_F(ProgramParser, HelpSaysHowNumbersAreWritten) {
  std::string const said = "G and GiB are 2^30, GB is 10^9";
  for (std::string const command :
       {"run", "graph", "bench", "bench burst", "verify", "stress", "explore", "pic", "join", "replay"})
    EXPECT_THAT(unwrapped(run(command + " --help").out), HasSubstr(said)) << command;
  EXPECT_THAT(unwrapped(run("man").out), HasSubstr(said));
}

/// Options of help that take counts or sizes, with what is written in place of the value.
std::map<std::string, std::string> number_options_in(std::string const& help) {
  std::map<std::string, std::string> found;
  std::regex const option{"\n  (--[a-z-]+) (N|SIZE)[=\\[ \n]"};
  for (auto at = std::sregex_iterator{help.begin(), help.end(), option}; at != std::sregex_iterator{}; ++at)
    found[(*at)[1]] = (*at)[2];
  return found;
}

TEST_F(ProgramParser, EveryNumberIsReadInTheSameWay) {
  std::vector<std::string> commands{"test", "graph", "verify", "stress", "explore", "pic", "join"};
  for (auto const& scenario : bench::scenarios_of(*make_host_backend())) commands.push_back("bench " + scenario.name);
  std::set<std::string> tried_of_bench;
  u32 tried = 0;
  for (auto const& command : commands)
    for (auto const& [option, type] : number_options_in(run(command + " --help").out)) {
      if (command.starts_with("bench") && !tried_of_bench.insert(option).second) continue;
      auto const typed = command + (command == "test" ? " " : " --backend host ") + option;
      if (type == "N")
        expect_refusal(typed + " 1M", option + ": '1M' is not a whole number; these are like 1000000, 1_000_000, 1e6");
      else
        expect_refusal(typed + " 1.5XB", option + ": '1.5XB' is not a size; sizes are like 1000, 64K, 512MiB, 1.5GiB");
      ++tried;
    }
  EXPECT_GE(tried, 45u);
}

TEST_F(ProgramParser, HelpOfAScenarioHasItsOptionsAlone) {
  for (auto const& scenario : bench::scenarios_of(*make_host_backend())) {
    auto const made = run("bench " + scenario.name + " --help");
    EXPECT_EQ(made.status, 0) << made.err;
    EXPECT_THAT(made.out, testing::StartsWith(scenario.name + ": "));
    EXPECT_THAT(made.out, HasSubstr("Usage: warpheap bench " + scenario.name + " [OPTIONS]\n"));
    EXPECT_THAT(unwrapped(made.out), HasSubstr(unwrapped(scenario.text)));
    std::set<std::string> expected{"--help", "--backend", "--json", "--seed", "--deterministic"};
    for (auto const& option : bench_options())
      if (option.is_used_by(scenario.name)) expected.insert(option.name);
    EXPECT_EQ(options_in(made.out), expected) << scenario.name;
    EXPECT_THAT(made.out, Not(HasSubstr("Scenarios:"))) << scenario.name;
  }
}

TEST_F(ProgramParser, HelpOfAScenarioHasItsDefaults) {
  EXPECT_THAT(unwrapped(run("bench burst --help").out), HasSubstr("on the host there are fewer (default 1048576) "));
  EXPECT_THAT(unwrapped(run("bench exhaust --help").out), HasSubstr("on the host 8MiB)"));
  auto const both = unwrapped(run("bench churn burst --help").out);
  EXPECT_THAT(both, HasSubstr("of burst (1048576); churn (262144)"));
  EXPECT_THAT(
      both,
      HasSubstr(
          "Sizes that are asked for; LEAST-MOST:STEP stands for all sizes of these steps, as in 8-3072:8: of burst "));
  EXPECT_EQ(run("bench rw-malloc --suite papers --help").out, run("bench --help").out) << "that names a file";
}

TEST_F(ProgramParser, AllStandsForEveryAllocator) {
  auto const known = json::parse(run("info --backend host --json -").out)["allocators"];
  auto const measured = [&](std::string const& arguments) {
    auto const made = run(arguments + " --backend host --json -");
    EXPECT_EQ(made.status, 0) << made.err;
    auto const document = json::parse(made.out);
    std::vector<std::string> names;
    for (auto const& row : document["results"]) {
      std::string const name = row["allocator"];
      if (name != "null" && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    return json(names);
  };
  EXPECT_EQ(measured("bench init --repeat 1 --pool 1MiB --allocator all"), known);
  EXPECT_EQ(measured("verify --sizes 64 --threads 32 --repeat 1 --pool 1MiB --allocator slab_bitmap,all"), known);
  auto with_direct = known;
  with_direct.insert(with_direct.begin(), "direct");
  EXPECT_EQ(measured("join --tuples 10 --pool 4MiB --allocator direct,all"), with_direct);
  for (std::string const command : allocating_commands) {
    auto const help = unwrapped(run(command + " --help").out);
    EXPECT_THAT(help, HasSubstr("--allocator NAME[,NAME...] Allocators, as `warpheap info` lists them, ")) << command;
    EXPECT_THAT(help, HasSubstr("'all'")) << command;
  }
}

TEST_F(ProgramParser, SaysWhereOneAllocatorIsTaken) {
  auto const trace = " --backend host --allocator all --trace " + (folder / "trace").string();
  for (std::string const command : {"graph", "pic", "join"})
    expect_refusal(command + trace, "--allocator: --trace records one allocator, which is slab_bitmap\n");
  expect_refusal("stress --grow --backend host --allocator all", "cannot grow; that of slab_bitmap can\n");
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
       {"", "info", "test", "graph", "bench", "bench burst", "verify", "stress", "explore", "pic", "join"}) {
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
  auto const text = unwrapped(run("join --help").out);
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
  EXPECT_EQ(completed("help gr"), "graph\n");
  EXPECT_EQ(completed("verify --allocator al"), "all\n");
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
