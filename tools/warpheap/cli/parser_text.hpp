// SPDX-License-Identifier: Apache-2.0
// Texts of the option parser, in our words: its help in lines that fit, and each mistake as a
// sentence.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace warpheap::tool {

/// Help whose lines are at most `line_columns` long. It ends with how numbers are written, if the
/// command takes some.
class help_formatter : public CLI::Formatter {
 public:
  help_formatter();
  std::string make_option(CLI::Option const* option, bool is_positional) const override;
  std::string make_description(CLI::App const* app) const override;
  std::string make_footer(CLI::App const* app) const override;

 protected:
  /// How numbers are written; empty if no option takes one.
  static std::string numbers_footer(CLI::App const& app);
};

/// The commands that help lists.
std::vector<std::string> command_names(CLI::App const& app);

/// What was wrong with the arguments, of `command` where one was named: a sentence without the
/// program's name.
std::string sentence_of(CLI::ParseError const& error, CLI::App const& app, std::string const& command);

}  // namespace warpheap::tool
