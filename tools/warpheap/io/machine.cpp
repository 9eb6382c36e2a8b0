// SPDX-License-Identifier: Apache-2.0
#include "machine.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "origin.hpp"
#include "warpheap/version.hpp"

namespace warpheap::tool {

namespace {

/// The first group of the first line of `path` that matches the pattern; empty if none does.
std::string find_in_file(char const* path, char const* pattern) {
  std::ifstream file{path};
  std::regex const wanted{pattern};
  std::smatch found;
  for (std::string line; std::getline(file, line);)
    if (std::regex_search(line, found, wanted)) return found[1];
  return {};
}

nlohmann::ordered_json text_or_null(std::string const& text) {
  return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
}

/// The version of the kernel driver, or that of its interface if the driver's is not known.
std::string driver_of(backend const& on) {
  auto const interface = on.driver_version();
  if (interface.empty()) return {};
  auto const exact = find_in_file("/proc/driver/nvidia/version", "NVRM version:.* ([0-9]+\\.[0-9.]+) ");
  return exact.empty() ? interface : exact;
}

}  // namespace

nlohmann::ordered_json machine_of(backend const& on) {
  auto const devices = on.devices();
  auto const now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  nlohmann::ordered_json machine;
  machine["cpu"] = text_or_null(find_in_file("/proc/cpuinfo", "^(?:model name|Model)\\s*: (.*)$"));
  machine["device"] = text_or_null(devices.empty() ? std::string{} : devices.front().name);
  machine["driver"] = text_or_null(driver_of(on));
  machine["cuda"] = text_or_null(on.runtime_version());
  machine["commit"] = commit();
  machine["time"] = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
  return machine;
}

std::string version() {
  return fmt::format("{}.{}.{}{}", WARPHEAP_VERSION_MAJOR, WARPHEAP_VERSION_MINOR, WARPHEAP_VERSION_PATCH,
                     WARPHEAP_VERSION_SUFFIX);
}

}  // namespace warpheap::tool
