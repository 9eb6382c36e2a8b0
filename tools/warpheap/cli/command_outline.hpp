// SPDX-License-Identifier: Apache-2.0
// The commands and options of the program as plain data, read from the parser. A shell's completion
// and the manual page are made from it, so they describe what the program takes.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the parser's own
class App;
}

namespace warpheap::tool {

/// An option, or a command's positional arguments.
struct option_outline {
  std::vector<std::string> names;  ///< with their dashes; empty for arguments
  std::string type;                ///< the name of its value; empty if it takes none
  std::string initial;             ///< the value if none is typed; empty if backends differ
  std::string text;
  std::vector<std::string> values;  ///< all possible values; empty if they are no set of names
  bool is_list = false;             ///< values are typed with commas between them
  bool is_file = false;
};

struct command_outline {
  std::string name, text, notes;
  std::vector<option_outline> options;
  std::vector<option_outline> arguments;
};

struct program_outline {
  std::string version;
  command_outline program;  ///< what the program takes before a command
  std::vector<command_outline> commands;
};

/// Names that options and arguments take. The key is "command option", the option alone, or the
/// argument's name.
using known_names = std::map<std::string, std::vector<std::string>>;

/// Every command that help lists. A type of "one|other" means values; "FILE" a file; one that ends
/// with "...]" a list.
program_outline outline_of(CLI::App const& app, std::string const& version, known_names const& known);

}  // namespace warpheap::tool
