// SPDX-License-Identifier: Apache-2.0
#include "man_page.hpp"

#include <fmt/format.h>

#include <sstream>

#include "numbers.hpp"

namespace warpheap::tool {

namespace {

/// Text for roff: a dash becomes a minus sign, and a dot or a quote at the start of a line is no
/// request.
std::string escaped(std::string const& text) {
  std::string made;
  for (char const c : text) {
    bool const at_start = made.empty() || made.back() == '\n';
    if (at_start && (c == '.' || c == '\'')) made += "\\&";
    if (c == '\\') made += "\\e";
    else if (c == '-') made += "\\-";
    else made += c;
  }
  return made;
}

std::string bold(std::string const& text) { return "\\fB" + escaped(text) + "\\fR"; }
std::string italic(std::string const& text) { return "\\fI" + escaped(text) + "\\fR"; }

std::string entry(option_outline const& option) {
  std::string names;
  for (auto const& name : option.names) names += (names.empty() ? "" : ", ") + bold(name);
  if (!option.type.empty()) names += (names.empty() ? "" : " ") + italic(option.type);
  auto text = escaped(option.text);
  if (!option.initial.empty()) text += fmt::format(" (default {})", escaped(option.initial));
  return fmt::format(".TP\n{}\n{}\n", names, text);
}

std::string section(command_outline const& command, std::string const& program) {
  std::string usage =
      bold(program + " " + command.name) + (command.options.empty() ? "" : " [" + italic("options") + "]");
  for (auto const& argument : command.arguments) usage += " [" + italic(argument.type) + "...]";
  std::string made = fmt::format(".SS {}\n{}\n.PP\n{}.\n", escaped(command.name), usage, escaped(command.text));
  for (auto const& argument : command.arguments) made += entry(argument);
  for (auto const& option : command.options) made += entry(option);
  std::istringstream notes{command.notes};
  for (std::string paragraph; std::getline(notes, paragraph);) made += fmt::format(".PP\n{}\n", escaped(paragraph));
  return made;
}

}  // namespace

std::string man_page(program_outline const& outline) {
  auto const& program = outline.program;
  std::string made =
      fmt::format(".TH {0} 1 \"\" \"{0} {1}\" \"User Commands\"\n.nh\n.ad l\n", program.name, outline.version);
  made += fmt::format(".SH NAME\n{} \\- {}\n", program.name, escaped(program.text));
  made += fmt::format(".SH SYNOPSIS\n{} {} [{}]\n", bold(program.name), italic("command"), italic("options"));
  made += ".SH OPTIONS\n";
  for (auto const& option : program.options) made += entry(option);
  made += ".SH COMMANDS\n";
  for (auto const& command : outline.commands) made += section(command, program.name);
  made += fmt::format(".SH NUMBERS\n{}\n", escaped(numbers_help()));
  return made + fmt::format(".SH EXIT STATUS\n{}\n", escaped(program.notes));
}

}  // namespace warpheap::tool
