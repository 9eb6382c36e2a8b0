// SPDX-License-Identifier: Apache-2.0
#include "command_line.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <memory>
#include <new>
#include <sstream>
#include <stdexcept>

#include "choices.hpp"
#include "cli/command_outline.hpp"
#include "cli/interruption.hpp"
#include "cli/man_page.hpp"
#include "cli/nearest_names.hpp"
#include "cli/parser_text.hpp"
#include "cli/shell_completion.hpp"
#include "cli/standard_output.hpp"
#include "cli/usage_error.hpp"
#include "commands.hpp"
#include "io/machine.hpp"
#include "io/origin.hpp"
#include "scenarios/scenario.hpp"
#include "warpheap/platform/errors.hpp"
#include "workloads/join/settings.hpp"

namespace warpheap::tool {

namespace {

constexpr int bad_result = 1;
constexpr int bad_usage = 2;

/// Names that a shell completes: the commands, and the allocators and scenarios of every backend.
known_names names_to_complete(CLI::App const& app) {
  auto const on = choose_backend("host");
  known_names known;
  known["command"] = command_names(app);
  for (auto const& allocator : on->allocators()) known["--allocator"].push_back(allocator.name);
  known["--allocator"].emplace_back(every_allocator);
  known["join --allocator"] = known["--allocator"];
  known["join --allocator"].insert(known["join --allocator"].end(), {direct_output, direct_output_by_warp});
  for (auto const* const name : join_walks) known["join --allocator"].emplace_back(name);
  for (auto const* const command : {"bench", "pic", "verify"}) {
    auto& names = known[fmt::format("{} --allocator", command)];
    names = known["--allocator"];
    for (auto const& variant : variant_names(*on)) names.push_back(variant);
  }
  known["scenarios"] = names_of(bench::scenarios_of(*on));
  return known;
}

/// `help`. It calls `show` with the words behind it, whose help it is to show.
void add_help(CLI::App& app, std::function<void(std::vector<char const*>)> show) {
  auto* const help = app.add_subcommand("help", "Show this help, or that of a command")->group("Commands");
  auto const words = std::make_shared<std::vector<std::string>>();
  help->add_option("command", *words, "A command; behind bench also scenarios")->type_name("COMMAND");
  help->callback([words, show = std::move(show)] {
    std::vector<char const*> typed;
    for (auto const& word : *words) typed.push_back(word.c_str());
    show(typed);
  });
}

/// Commands that write files of an installation, and that help does not list.
void add_files_of_installation(CLI::App& app, std::string& shell) {
  auto const outline = [&app] { return outline_of(app, version(), names_to_complete(app)); };
  auto* const completion = app.add_subcommand("completion", "The script that completes this command line in a shell");
  completion->group("");
  completion->add_option("shell", shell, "The shell")->type_name("bash|zsh|fish")->required();
  completion->callback([&shell, outline] { print_output("{}", completion_for(shell, outline())); });
  auto* const manual = app.add_subcommand("man", "The manual page");
  manual->group("");
  manual->callback([outline] { print_output("{}", man_page(outline())); });
}

std::string version_line() {
  return fmt::format("warpheap {} (commit {}; backends: {})", version(), commit(), fmt::join(backend_names(), ", "));
}

/// Runs the command that was typed. `command_name` becomes its name, for messages.
int dispatch(int count, char const* const* arguments, program_parts const& parts, std::string& command_name) {
  CLI::App app{"Dynamic memory for GPU threads: programs that run on it, allocators measured and verified", "warpheap"};
  app.formatter(std::make_shared<help_formatter>());
  app.set_version_flag("-V,--version", version_line, "Print the version, commit and backends, and exit");
  app.require_subcommand(1);
  int status = 0;
  for (auto const add : parts.commands) add(app, status);
  add_help(app, [&](std::vector<char const*> words) {
    words.insert(words.begin(), arguments[0]);
    // Behind a program's name it would be the program's. Scenarios come before it.
    bool const has_scenarios = words.size() > 1 && std::string_view{words[1]} == "bench";
    words.insert(has_scenarios ? words.end() : words.begin() + std::min<std::ptrdiff_t>(2, std::ssize(words)),
                 "--help");
    status = dispatch(static_cast<int>(words.size()), words.data(), parts, command_name);
  });
  // Set after the commands are added, or their help would end with it as well.
  app.footer(
      "The exit status is 0 when all is well, 1 when a check of results failed, and 2 for bad usage, bad input, or "
      "output that could not be written.");
  std::string shell;
  add_files_of_installation(app, shell);
  auto const is_command = [&](CLI::App* command) { return command->check_name(arguments[1]); };
  if (count > 1 && !app.get_subcommands(is_command).empty()) command_name = arguments[1];
  else if (count > 1 && arguments[1][0] != '-')
    throw usage_error{
        fmt::format("there is no command '{}'; {}", arguments[1], names_instead_of(arguments[1], command_names(app)))};
  try {
    app.parse(count, arguments);
  } catch (CLI::Success const& help) {
    std::ostringstream text;
    int const shown = app.exit(help, text, text);
    write_output(text.str());
    return shown;
  } catch (CLI::ParseError const& error) {
    throw usage_error{sentence_of(error, app, command_name)};
  }
  return status;
}

/// Runs what was typed and returns the exit status; `command` becomes the command's name. Every
/// error is one line on standard error.
int run_typed(int count, char const* const* arguments, program_parts const& parts, std::string& command) {
  try {
    return dispatch(count, arguments, parts, command);
  } catch (usage_error const& error) {
    parts.complain(command, error.what());
  } catch (out_of_memory const& error) {
    parts.complain(command, error.what());
  } catch (std::invalid_argument const& error) {
    parts.complain(command, error.what());
  } catch (std::bad_alloc const&) {
    parts.complain(command, "out of memory on the host");
  } catch (std::exception const& error) {
    parts.complain(command, error.what());
    return bad_result;
  }
  return bad_usage;
}

/// Opens descriptors 0, 1 and 2 if the parent closed them: a file that is opened later must not be
/// taken for standard output.
void reserve_standard_descriptors() {
  int made = 0;
  while (made >= 0 && made <= STDERR_FILENO) made = open("/dev/null", O_RDONLY);
  if (made >= 0) close(made);
}

}  // namespace

int run(int count, char const* const* arguments) {
  return run(count, arguments,
             {.commands = {add_info, add_test, add_run, add_graph, add_bench, add_verify, add_stress, add_explore,
                           add_pic, add_join, add_top, add_report, add_replay},
              .complain = complain});
}

int run(int count, char const* const* arguments, program_parts const& parts) {
  reserve_standard_descriptors();
  handle_signals();
  std::string command;
  int const status = run_typed(count, arguments, parts, command);
  auto const fault = output_fault();
  if (fault.empty()) return status;
  parts.complain(command, fault);
  return status ? status : bad_usage;
}

}  // namespace warpheap::tool
