// SPDX-License-Identifier: Apache-2.0
#include "choices.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/nearest_names.hpp"
#include "cli/numbers.hpp"
#include "cli/usage_error.hpp"
#include "scenarios/scenario.hpp"

namespace warpheap::tool {

namespace {

/// The commands and scenarios that take variants.
std::string users_of_variants(backend const& on) {
  std::vector<std::string> scenarios;
  for (auto const& each : bench::scenarios_of(on))
    if (each.measures_variants) scenarios.push_back(each.name);
  return fmt::format("bench {}, and pic and verify", fmt::join(scenarios, ", "));
}

constexpr u64 least_pool_bytes = u64{1} << 20;
constexpr u64 gpu_pool_bytes = u64{8} << 30;

backend_maker make_cuda = nullptr;

std::vector<std::string> choose_allocators(backend const& on, std::string const& typed,
                                           std::vector<std::string> const& others) {
  std::vector<std::string> all;
  for (auto const& each : on.allocators()) all.push_back(each.name);
  if (typed.empty()) return {all.front()};
  auto known = all;
  known.insert(known.end(), others.begin(), others.end());
  std::vector<std::string> chosen;
  auto const add = [&](std::string const& name) {
    if (std::find(chosen.begin(), chosen.end(), name) == chosen.end()) chosen.push_back(name);
  };
  for (auto const& name : split_list("--allocator", typed)) {
    if (name == every_allocator) {
      for (auto const& each : all) add(each);
      continue;
    }
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      refuse_variants(on, {name}, others);
      throw usage_error{
          fmt::format("--allocator: no allocator is called '{}'; {}", name, names_instead_of(name, known))};
    }
    add(name);
  }
  return chosen;
}

u64 choose_pool(backend const& on, std::string const& typed, u64 host_pool_bytes) {
  u64 const memory = on.memory_bytes();
  if (typed.empty()) return on.name() == "host" ? host_pool_bytes : std::min(gpu_pool_bytes, memory / 2);
  u64 const bytes = parse_bytes("--pool", typed, least_pool_bytes);
  if (bytes > memory)
    throw usage_error{fmt::format("--pool: {} do not fit: the {} backend has {} bytes of memory", format_bytes(bytes),
                                  on.name(), memory)};
  return bytes;
}

choices choose_on(std::unique_ptr<backend> on, common_flags const& flags, u64 host_pool_bytes,
                  std::vector<std::string> const& others) {
  choices made;
  made.on = std::move(on);
  made.allocators = choose_allocators(*made.on, flags.allocators, others);
  made.pool_bytes = choose_pool(*made.on, flags.pool, host_pool_bytes);
  if (!flags.seed.empty()) made.seed = parse_count("--seed", flags.seed);
  made.deterministic = flags.deterministic;
  if (flags.deterministic) made.on->run_deterministically(made.seed);
  return made;
}

}  // namespace

std::vector<std::string> leave_out(choices& chosen, std::function<std::string(std::string const&)> const& why_not) {
  std::vector<std::string> able, reasons;
  for (auto const& name : chosen.allocators) {
    auto const why = why_not(name);
    if (why.empty()) able.push_back(name);
    else reasons.push_back(why);
  }
  if (able.empty()) throw usage_error{"--allocator: " + reasons.front()};
  chosen.allocators = able;
  return reasons;
}

std::vector<std::string> variant_names(backend const& on) {
  std::vector<std::string> names;
  for (auto const& each : on.variants()) names.push_back(each.name);
  return names;
}

void refuse_variants(backend const& on, std::vector<std::string> const& allocators,
                     std::vector<std::string> const& taken) {
  auto const has = [](auto const& names, auto const& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  auto const variants = variant_names(on);
  for (auto const& name : allocators)
    if (has(variants, name) && !has(taken, name))
      throw usage_error{fmt::format("--allocator: '{}' is a configuration of a paper, which only these measure: {}",
                                    name, users_of_variants(on))};
}

void add_cuda_backend(backend_maker make) { make_cuda = make; }

std::vector<std::string> backend_names() {
  if (make_cuda) return {"host", "cuda"};
  return {"host"};
}

std::unique_ptr<backend> choose_backend(std::string const& name) {
  if (name == "host") return make_host_backend();
  if (name != "cuda" && !name.empty())
    throw usage_error{
        fmt::format("--backend: no backend is called '{}'; {}", name, names_instead_of(name, {"cuda", "host"}))};
  if (auto cuda = make_cuda ? make_cuda() : nullptr) return cuda;
  if (name.empty()) return make_host_backend();
  throw usage_error{make_cuda ? "--backend: cuda needs a CUDA device, and there is none that this program can use"
                              : "--backend: this program was built without cuda; there is: host"};
}

choices choose(common_flags const& flags, u64 host_pool_bytes, std::vector<std::string> const& others) {
  return choose_on(choose_backend(flags.backend), flags, host_pool_bytes, others);
}

choices choose_with_variants(common_flags const& flags, u64 host_pool_bytes) {
  auto on = choose_backend(flags.backend);
  auto const variants = variant_names(*on);
  return choose_on(std::move(on), flags, host_pool_bytes, variants);
}

void refuse_typed(std::vector<typed_option> const& options, std::string const& reason) {
  for (auto const& [name, typed] : options)
    if (!typed.empty()) throw usage_error{fmt::format("{}: {}", name, reason)};
}

}  // namespace warpheap::tool
