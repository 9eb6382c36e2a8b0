// SPDX-License-Identifier: Apache-2.0
// `warpheap info`: what this program has and what this machine has.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "choices.hpp"
#include "cli/numbers.hpp"
#include "cli/standard_output.hpp"
#include "command.hpp"
#include "io/json_output.hpp"
#include "io/machine.hpp"
#include "io/origin.hpp"
#include "io/text_table.hpp"
#include "scenarios/scenario.hpp"
#include "workloads/join/settings.hpp"

namespace warpheap::tool {

namespace {

void declare_info(CLI::App& to, common_flags& flags) { add_output_flags(to, flags); }

int run_info(common_flags const& flags) {
  json_output output{flags.json};
  auto const on = choose_backend(flags.backend);
  auto document = new_document(*on);
  document["version"] = version();
  document["backends"] = backend_names();
  document["backend"] = on->name();
  document["allocators"] = nlohmann::ordered_json::array();
  document["variants"] = nlohmann::ordered_json::array();
  document["descriptions"] = nlohmann::ordered_json::object();
  document["scenarios"] = names_of(bench::scenarios_of(*on));
  document["devices"] = nlohmann::ordered_json::array();

  text_table allocators{{"allocator", "what it is"}};
  for (auto const& known : on->allocators()) {
    document["allocators"].push_back(known.name);
    document["descriptions"][known.name] = known.text;
    allocators.add({known.name, known.text});
  }
  text_table variants{{"allocator", "what it is"}};
  auto const add_variant = [&](std::string const& name, std::string const& text) {
    document["variants"].push_back(name);
    document["descriptions"][name] = text;
    variants.add({name, text});
  };
  for (auto const& known : on->variants()) add_variant(known.name, known.text);
  for (std::string const name : join_walks)
    add_variant(name, fmt::format("{} with pages of 256 bytes, for join alone", name.substr(0, name.find("_256"))));
  text_table devices{{">device", "name", ">memory", ">multiprocessors", ">compute capability"}};
  for (auto const& device : on->devices()) {
    document["devices"].push_back({{"name", device.name},
                                   {"memory_bytes", device.memory_bytes},
                                   {"multiprocessors", device.multiprocessors},
                                   {"compute_capability", device.compute_capability}});
    devices.add({fmt::format("{}", document["devices"].size() - 1), device.name,
                 fmt::format("{:.1f} GiB", static_cast<double>(device.memory_bytes) / (u64{1} << 30)),
                 fmt::format("{}", device.multiprocessors), device.compute_capability});
  }
  if (!output.owns_standard_output()) {
    print_output("warpheap {} (commit {})\n", version(), commit());
    print_output("backends: {}; default here: {}\n\n{}\n", fmt::join(backend_names(), ", "), on->name(),
                 allocators.text("allocators"));
    print_output("{}\n",
                 variants.text("configurations of papers, for some scenarios of bench, for pic and for verify"));
    if (on->devices().empty()) print_output("no CUDA device in use\n");
    else print_output("{}", devices.text("devices"));
  }
  output.write(document);
  return 0;
}

}  // namespace

void add_info(CLI::App& program, int& status) {
  add_command(program, "info", "Backends, allocators and devices", declare_info, run_info, status);
}

}  // namespace warpheap::tool
