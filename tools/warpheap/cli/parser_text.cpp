// SPDX-License-Identifier: Apache-2.0
#include "parser_text.hpp"

#include <fmt/format.h>

#include "nearest_names.hpp"
#include "numbers.hpp"
#include "wrapped_text.hpp"

namespace warpheap::tool {

help_formatter::help_formatter() {
  label("SUBCOMMAND", "COMMAND");
  label("Positionals", "Arguments");
}

std::string help_formatter::make_option(CLI::Option const* option, bool is_positional) const {
  std::string made = "  " + make_option_name(option, is_positional) + make_option_opts(option);
  bool const has_room = made.size() + 2 <= get_column_width();
  made += has_room ? std::string(get_column_width() - made.size(), ' ') : "\n" + std::string(get_column_width(), ' ');
  return made + wrapped(make_option_desc(option), get_column_width(), get_column_width()) + "\n";
}

std::string help_formatter::make_description(CLI::App const* app) const {
  return wrapped(app->get_description()) + "\n";
}

std::string help_formatter::make_footer(CLI::App const* app) const {
  auto const footer = app->get_footer();
  return (footer.empty() ? footer : wrapped(footer) + "\n") + numbers_footer(*app);
}

std::string help_formatter::numbers_footer(CLI::App const& app) {
  auto const takes_number = [](CLI::Option const* option) {
    auto const type = option->get_type_name();
    return type == "N" || type.find("SIZE") != type.npos;
  };
  return app.get_options(takes_number).empty() ? "" : wrapped(numbers_help()) + "\n";
}

std::vector<std::string> command_names(CLI::App const& app) {
  std::vector<std::string> names;
  for (auto const* const command : app.get_subcommands([](CLI::App const* each) { return !each->get_group().empty(); }))
    names.push_back(command->get_name());
  return names;
}

namespace {

/// The names of its options, with their dashes.
std::vector<std::string> option_names(CLI::App const& app) {
  std::vector<std::string> names;
  for (auto const* const option : app.get_options()) {
    for (auto const& name : option->get_snames()) names.push_back("-" + name);
    for (auto const& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string sentence_of_extra(std::string const& extra, CLI::App const& app, std::string const& command) {
  auto const help = fmt::format("'warpheap{}{} --help'", command.empty() ? "" : " ", command);
  if (extra.size() > 1 && extra.front() == '-') {
    auto const typed = extra.substr(0, extra.find('='));
    auto const nearest = did_you_mean(typed, option_names(command.empty() ? app : *app.get_subcommand(command)));
    return fmt::format("there is no option '{}'{}; {}", typed, command.empty() ? " before the command" : "",
                       nearest.empty() ? help + " lists those that there are" : nearest);
  }
  return fmt::format("nothing was expected where '{}' stands; {} says what is", extra, help);
}

/// The option whose name begins the parser's message about a value, not always with the dashes.
std::string option_of(std::string const& said) {
  auto const name = said.substr(0, said.find_first_of(": "));
  return name.front() == '-' ? name : "--" + name;
}

}  // namespace

std::string sentence_of(CLI::ParseError const& error, CLI::App const& app, std::string const& command) {
  std::string const said = error.what();
  auto const extra = app.remaining(true);
  if (!extra.empty()) return sentence_of_extra(extra.front(), app, command);
  if (dynamic_cast<CLI::RequiredError const*>(&error) && command.empty())
    return fmt::format("a command is missing; there are: {}; 'warpheap --help' says what they do",
                       fmt::join(command_names(app), ", "));
  if (dynamic_cast<CLI::ArgumentMismatch const*>(&error)) {
    if (said.find("override") != std::string::npos) return fmt::format("the option {} takes no value", option_of(said));
    if (said.find("missing") != std::string::npos)
      return fmt::format("the option {} needs a value, and none follows it", option_of(said));
    return fmt::format("the option {} takes one value, and it is given more than once", option_of(said));
  }
  return said;
}

}  // namespace warpheap::tool
