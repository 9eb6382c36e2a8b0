// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

namespace warpheap::tool {

CLI::Option* add_text(CLI::App& to, char const* name, std::string& value, std::string const& help, char const* type) {
  auto const is_there = [](std::string const& text) { return std::string{text.empty() ? "the value is empty" : ""}; };
  return to.add_option(name, value, help)->type_name(type)->check(CLI::Validator{is_there, ""});
}

void add_switch(CLI::App& to, char const* name, bool& value, char const* help) {
  to.add_flag(name, value, help)->disable_flag_override();
}

void add_json_flag(CLI::App& to, std::string& path) {
  add_text(to, "--json", path, "Write the results as JSON; '-' is standard output, which then has nothing else",
           "FILE");
}

void add_output_flags(CLI::App& to, common_flags& flags) {
  add_text(to, "--backend", flags.backend,
           "Where kernels run (default cuda where this program can use a GPU, else host)", "cuda|host");
  add_json_flag(to, flags.json);
}

std::string pool_help(std::string const& gpu, std::string const& host) {
  return fmt::format("Bytes that the heap has for blocks, like 1.5GiB (default {}; on the host {})", gpu, host);
}

void add_allocator_flag(CLI::App& to, common_flags& flags, std::string const& allocators) {
  add_text(to, "--allocator", flags.allocators, fmt::format("Allocators, {}", allocators), "NAME[,NAME...]");
}

void add_common_flags(CLI::App& to, common_flags& flags, common_defaults const& defaults) {
  add_output_flags(to, flags);
  add_allocator_flag(to, flags, defaults.allocators);
  add_text(to, "--pool", flags.pool, pool_help(defaults.gpu_pool, defaults.host_pool), "SIZE");
  add_text(to, "--seed", flags.seed, defaults.random, "N")->default_str("1");
  add_switch(to, "--deterministic", flags.deterministic,
             "Host backend alone: one lane at a time, in an order that depends on --seed alone; slow");
}

}  // namespace warpheap::tool
