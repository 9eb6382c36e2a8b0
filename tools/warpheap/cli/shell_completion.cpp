// SPDX-License-Identifier: Apache-2.0
#include "shell_completion.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "nearest_names.hpp"
#include "usage_error.hpp"

namespace warpheap::tool {

namespace {

std::string joined(std::vector<std::string> const& words) { return fmt::format("{}", fmt::join(words, " ")); }

/// Names of the options, and values of the arguments: the words that may begin here.
std::vector<std::string> words_of(command_outline const& command) {
  std::vector<std::string> words;
  for (auto const& option : command.options) words.insert(words.end(), option.names.begin(), option.names.end());
  for (auto const& argument : command.arguments)
    words.insert(words.end(), argument.values.begin(), argument.values.end());
  return words;
}

std::vector<std::string> names_of(std::vector<command_outline> const& commands) {
  std::vector<std::string> names;
  names.reserve(commands.size());
  for (auto const& command : commands) names.push_back(command.name);
  return names;
}

std::string replaced(std::string text, std::string const& from, std::string const& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

/// In single quotes, for zsh.
std::string zsh_quoted(std::string const& text) { return "'" + replaced(text, "'", "'\\''") + "'"; }
/// In single quotes, in which fish knows two escapes.
std::string fish_quoted(std::string const& text) {
  return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
}

/// The first clause: as much as fits beside a name.
std::string brief(std::string const& text) { return text.substr(0, text.find_first_of(";(:")); }

}  // namespace

std::string bash_completion(program_outline const& outline) {
  auto const& program = outline.program;
  std::string values, words;
  for (auto const& command : outline.commands) {
    for (auto const& option : command.options) {
      if (option.type.empty()) continue;
      std::string what = "return ;;";
      if (option.is_file) what = "files=yes ;;";
      else if (!option.values.empty())
        what = fmt::format("words='{}'{} ;;", joined(option.values), option.is_list ? " list=yes" : "");
      values += fmt::format("    '{} {}') {}\n", command.name, option.names.back(), what);
    }
    bool const takes_files = std::any_of(command.arguments.begin(), command.arguments.end(),
                                         [](auto const& argument) { return argument.is_file; });
    words += fmt::format("        {}) words='{}'{} ;;\n", command.name, joined(words_of(command)),
                         takes_files ? "; case $word in -*) ;; *) files=yes ;; esac" : "");
  }
  auto first = names_of(outline.commands), before = words_of(program);
  first.insert(first.end(), before.begin(), before.end());
  return fmt::format(R"(# Completes the command line of {0} in bash.
_{0}() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} option=${{COMP_WORDS[COMP_CWORD - 1]}} words= list= files= items=
  # Of --option=value, bash makes three words.
  if [ "$word" = = ]; then word=
  elif [ "$option" = = ]; then option=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  case "${{COMP_WORDS[1]}} $option" in
{1}    *)
      case "${{COMP_WORDS[1]}}" in
{2}      esac ;;
  esac
  [ "$COMP_CWORD" -gt 1 ] || words='{3}'
  if [ -n "$files" ]; then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
    return
  fi
  if [ -n "$list" ]; then
    compopt -o nospace 2>/dev/null
    case $word in *,*) items=${{word%,*}}, ;; esac
  fi
  mapfile -t COMPREPLY < <(compgen -P "$items" -W "$words" -- "${{word#"$items"}}")
}}
complete -F _{0} {0}
)",
                     program.name, values, words, joined(first));
}

std::string zsh_completion(program_outline const& outline) {
  auto const in_brackets = [](std::string const& text) {
    return replaced(replaced(replaced(brief(text), "[", "\\["), "]", "\\]"), ":", "\\:");
  };
  auto const action = [](option_outline const& option) -> std::string {
    if (option.is_file) return "_files";
    if (option.values.empty()) return " ";
    return option.is_list ? "_sequence compadd - " + joined(option.values) : "(" + joined(option.values) + ")";
  };
  std::string listed, cases;
  for (auto const& command : outline.commands) {
    listed += fmt::format("    {}\n", zsh_quoted(command.name + ":" + replaced(command.text, ":", "\\:")));
    cases += fmt::format("  {})\n    _arguments", command.name);
    for (auto const& option : command.options)
      for (auto const& name : option.names) {
        bool const takes_value = !option.type.empty();
        auto const spec =
            fmt::format("{}{}[{}]", name, takes_value && name[1] == '-' ? "=" : "", in_brackets(option.text));
        cases += " \\\n      " + zsh_quoted(takes_value ? spec + ":" + "value:" + action(option) : spec);
      }
    for (auto const& argument : command.arguments)
      cases += " \\\n      " + zsh_quoted("*:" + replaced(argument.type, ":", "\\:") + ":" + action(argument));
    cases += " ;;\n";
  }
  return fmt::format(R"(#compdef {0}
# Completes the command line of {0} in zsh.
local -a commands
commands=(
{1})
if (( CURRENT == 2 )); then
  _describe command commands
  return
fi
shift words
(( CURRENT-- ))
case $words[1] in
{2}esac
)",
                     outline.program.name, listed, cases);
}

std::string fish_completion(program_outline const& outline) {
  auto const& name = outline.program.name;
  std::string made = fmt::format("# Completes the command line of {0} in fish.\ncomplete -c {0} -f\n", name);
  auto const add_option = [&](option_outline const& option, std::string const& condition) {
    made += fmt::format("complete -c {} -n {}", name, fish_quoted(condition));
    for (auto const& each : option.names) made += each[1] == '-' ? " -l " + each.substr(2) : " -s " + each.substr(1);
    if (option.is_file) made += " -r -F";
    else if (!option.type.empty()) made += " -x";
    if (!option.values.empty())
      made += " -a " +
              fish_quoted(option.is_list ? "(__fish_append , " + joined(option.values) + ")" : joined(option.values));
    made += " -d " + fish_quoted(brief(option.text)) + "\n";
  };
  for (auto const& option : outline.program.options) add_option(option, "__fish_use_subcommand");
  for (auto const& command : outline.commands) {
    made += fmt::format("complete -c {} -n __fish_use_subcommand -a {} -d {}\n", name, command.name,
                        fish_quoted(command.text));
    auto const condition = "__fish_seen_subcommand_from " + command.name;
    for (auto const& option : command.options) add_option(option, condition);
    for (auto const& argument : command.arguments) {
      auto const what = argument.is_file ? "-F" : "-a " + fish_quoted(joined(argument.values));
      made += fmt::format("complete -c {} -n {} {}\n", name, fish_quoted(condition), what);
    }
  }
  return made;
}

std::string completion_for(std::string const& shell, program_outline const& outline) {
  if (shell == "bash") return bash_completion(outline);
  if (shell == "zsh") return zsh_completion(outline);
  if (shell == "fish") return fish_completion(outline);
  throw usage_error{fmt::format("there is no completion for a shell called '{}'; {}", shell,
                                names_instead_of(shell, {"bash", "zsh", "fish"}))};
}

}  // namespace warpheap::tool
