// SPDX-License-Identifier: Apache-2.0
// Options as commands declare them on the parser, and those that commands have in common.
#pragma once

#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming): the parser's own
class App;
class Option;
}  // namespace CLI

namespace warpheap::tool {

/// Flags of every subcommand that runs something. Text is as typed; empty means the default.
struct common_flags {
  std::string backend;
  std::string allocators;
  std::string pool;
  std::string seed;
  std::string json;
  bool deterministic = false;
};

/// An option whose value is text of at least one character: an empty value is a script's unset
/// variable.
CLI::Option* add_text(CLI::App& to, char const* name, std::string& value, std::string const& help, char const* type);

/// An option without a value.
void add_switch(CLI::App& to, char const* name, bool& value, char const* help);

/// --json.
void add_json_flag(CLI::App& to, std::string& path);

/// --backend and --json.
void add_output_flags(CLI::App& to, common_flags& flags);

/// What differs between commands in the common flags' help.
struct common_defaults {
  std::string host_pool;
  std::string gpu_pool = "8GiB on a GPU, or half of its free memory if that is less";
  std::string allocators = "as `warpheap info` lists them, or 'all' (default slab_bitmap)";
  std::string random = "Seed of everything random";
};

/// Help of --pool.
std::string pool_help(std::string const& gpu, std::string const& host);

/// --allocator.
void add_allocator_flag(CLI::App& to, common_flags& flags, std::string const& allocators);

/// All of them.
void add_common_flags(CLI::App& to, common_flags& flags, common_defaults const& defaults);

}  // namespace warpheap::tool
