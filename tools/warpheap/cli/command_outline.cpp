// SPDX-License-Identifier: Apache-2.0
#include "command_outline.hpp"

#include <CLI/CLI.hpp>

namespace warpheap::tool {

namespace {

/// "one|other[,...]" as its alternatives; empty if the type is not like that.
std::vector<std::string> alternatives_in(std::string const& type) {
  std::vector<std::string> made;
  auto const text = type.substr(0, type.find('['));
  if (text.find('|') == std::string::npos) return made;
  for (size_t start = 0; start <= text.size();) {
    auto const end = std::min(text.find('|', start), text.size());
    made.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return made;
}

option_outline option_of(CLI::Option const& option, std::string const& command, known_names const& known) {
  option_outline made;
  for (auto const& name : option.get_snames()) made.names.push_back("-" + name);
  for (auto const& name : option.get_lnames()) made.names.push_back("--" + name);
  if (option.get_items_expected_max() > 0) made.type = option.get_type_name();
  made.initial = option.get_default_str();
  made.text = option.get_description();
  made.is_list = made.type.size() > 4 && made.type.substr(made.type.size() - 4) == "...]";
  made.is_file = made.type == "FILE";
  made.values = alternatives_in(made.type);
  auto const name = made.names.empty() ? option.get_name(true) : made.names.back();
  for (auto const& key : {name, command + " " + name})
    if (auto const at = known.find(key); at != known.end()) made.values = at->second;
  return made;
}

command_outline command_of(CLI::App const& app, known_names const& known) {
  command_outline made{app.get_name(), app.get_description(), app.get_footer(), {}, {}};
  for (auto const* const option : app.get_options())
    (option->get_positional() ? made.arguments : made.options).push_back(option_of(*option, app.get_name(), known));
  return made;
}

}  // namespace

program_outline outline_of(CLI::App const& app, std::string const& version, known_names const& known) {
  program_outline made{version, command_of(app, known), {}};
  for (auto const* const command : app.get_subcommands([](CLI::App const* each) { return !each->get_group().empty(); }))
    made.commands.push_back(command_of(*command, known));
  return made;
}

}  // namespace warpheap::tool
