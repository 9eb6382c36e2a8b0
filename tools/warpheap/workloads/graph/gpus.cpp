// SPDX-License-Identifier: Apache-2.0
#include "gpus.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "cli/numbers.hpp"

namespace warpheap::tool {

namespace {

constexpr u64 most_members = 16;

std::vector<int> first_devices(std::string const& typed, u32 there) {
  u64 const wanted = parse_count("--gpus", typed, 1, most_members);
  if (wanted > there)
    throw usage_error{
        fmt::format("--gpus: {} devices are asked for, and there {} {}; a list like 0,0 names one for several members",
                    wanted, there == 1 ? "is" : "are", there)};
  std::vector<int> devices(wanted);
  std::iota(devices.begin(), devices.end(), 0);
  return devices;
}

}  // namespace

std::vector<int> parse_gpus(std::string const& typed, u32 there, std::string const& backend) {
  if (typed.empty()) return {};
  if (typed.find(',') == std::string::npos) return first_devices(typed, there);
  auto const parts = split_list("--gpus", typed);
  if (parts.size() > most_members)
    throw usage_error{fmt::format("--gpus: {} members are asked for, and the most is {}", parts.size(), most_members)};
  std::vector<int> devices;
  devices.reserve(parts.size());
  for (auto const& part : parts) {
    u64 const device = parse_count("--gpus", part);
    if (device >= there)
      throw usage_error{fmt::format("--gpus: there is no device {}; the {} backend has {}", device, backend,
                                    there == 1 ? "device 0 alone" : fmt::format("devices 0 to {}", there - 1))};
    devices.push_back(static_cast<int>(device));
  }
  return devices;
}

u32 different(std::vector<int> const& devices) {
  return static_cast<u32>(std::set<int>(devices.begin(), devices.end()).size());
}

u32 most_on_one(std::vector<int> const& devices) {
  std::ptrdiff_t most = 0;
  for (int const device : devices) most = std::max(most, std::count(devices.begin(), devices.end(), device));
  return static_cast<u32>(most);
}

}  // namespace warpheap::tool
