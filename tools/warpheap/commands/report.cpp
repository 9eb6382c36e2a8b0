// SPDX-License-Identifier: Apache-2.0
// `warpheap report`: one page that shows what `bench` and other commands measured. A Python script
// makes it, since text and pictures are easier to write and to test there, and no machine that
// only runs kernels needs it. This command finds the script and becomes its process, so the exit
// status and messages are the script's. It needs Jinja2 and matplotlib, and says so without them.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "cli/usage_error.hpp"
#include "command.hpp"
#include "io/origin.hpp"
#include "io/replaced_file.hpp"

namespace warpheap::tool {

namespace {

struct report_flags {
  std::vector<std::string> results;
  std::vector<std::string> before;
  std::string output = "report.html";
  std::string images;
};

std::vector<std::string> script_arguments(report_flags const& flags) {
  std::vector<std::string> typed{"--output", flags.output};
  if (!flags.images.empty()) typed.insert(typed.end(), {"--images", flags.images});
  for (auto const& before : flags.before) typed.insert(typed.end(), {"--before", before});
  typed.emplace_back("--");
  typed.insert(typed.end(), flags.results.begin(), flags.results.end());
  return typed;
}

void declare_report(CLI::App& to, report_flags& flags) {
  to.footer(
      "The page is one file of HTML, with pictures as SVG, and needs neither a network nor JavaScript. Any results do: "
      "those of one scenario or of all, of a GPU or of the host backend. Machines, drivers and commits that differ are "
      "pointed out.\n"
      "Needs python3 (3.10 or later), Jinja2 and matplotlib (Debian: python3-jinja2, python3-matplotlib).");
  to.add_option("FILE", flags.results,
                "Results as --json wrote them; a folder stands for all .json files in it, '-' for standard input")
      ->type_name("FILE");
  to.add_option("--before", flags.before,
                "Older results, with which these are compared row by row; give it after the others")
      ->type_name("FILE");
  add_text(to, "--output", flags.output, "Where the page goes; '-' is standard output", "FILE")
      ->default_str(flags.output);
  add_text(to, "--images", flags.images, "Also write each picture to this folder, as SVG and PNG", "FOLDER");
}

int run_report(report_flags const& flags) {
  if (flags.results.empty()) throw usage_error{"no results: name files that `warpheap bench --json FILE` wrote"};
  std::vector<named_path> inputs;
  for (auto const& each : flags.results) inputs.emplace_back("FILE", each);
  for (auto const& each : flags.before) inputs.emplace_back("--before", each);
  refuse_shared_files({{"--output", flags.output}}, inputs);
  std::vector<std::string> words{
      "python3", "-B",
      find_folder("share/warpheap/report", "scripts/report", "__main__.py", "the script that makes the page")};
  for (auto const& typed : script_arguments(flags)) words.push_back(typed);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp(arguments.front(), arguments.data());
  throw usage_error{fmt::format("python3, which makes the page, could not be started: {}", std::strerror(errno))};
}

}  // namespace

void add_report(CLI::App& program, int& status) {
  add_command(program, "report", "Show results as one page", declare_report, run_report, status);
}

}  // namespace warpheap::tool
