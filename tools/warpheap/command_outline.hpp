// The commands and options of the program as plain data, read off the parser, so that what
// describes them elsewhere, as a shell's completion or a manual page, is made of what the program
// takes.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the parser's own
class App;
}

namespace warpheap::tool {

/// An option, or the arguments of a command that are none.
struct option_outline {
  std::vector<std::string> names;  ///< with their dashes; empty for arguments
  std::string type;                ///< what its value is called; empty if it takes none
  std::string initial;             ///< the value if none is typed; empty if backends differ
  std::string text;
  std::vector<std::string> values;  ///< all there are; empty if that is no question of names
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
  command_outline program;  ///< what it takes before a command
  std::vector<command_outline> commands;
};

/// Names that options take, by "command option" or by the option alone, and those of arguments by
/// their name.
using known_names = std::map<std::string, std::vector<std::string>>;

/// Every command that help lists. A type of "one|other" means values; "FILE" a file; one that ends
/// with "...]" a list.
program_outline outline_of(CLI::App const& app, std::string const& version, known_names const& known);

}  // namespace warpheap::tool
