// SPDX-License-Identifier: Apache-2.0
// The GPUs of a job on several, as they are typed.
#pragma once

#include <string>
#include <vector>

#include "warpheap/platform/types.hpp"

namespace warpheap::tool {

/// The devices that `--gpus` names, one for each member of the job: `N` is the first N, and
/// `I,J,...` a list, which may name one twice. None for empty text. Throws usage_error unless the
/// backend has these devices, of which there are `there`, and for more than 16 members.
std::vector<int> parse_gpus(std::string const& typed, u32 there, std::string const& backend);

/// How many different devices there are among `devices`.
u32 different(std::vector<int> const& devices);

/// The most members that are on one device.
u32 most_on_one(std::vector<int> const& devices);

}  // namespace warpheap::tool
