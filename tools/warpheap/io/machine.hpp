// SPDX-License-Identifier: Apache-2.0
// Where a figure comes from: the machine, the driver and the commit, as in every JSON document of
// the tool.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "backend/backend.hpp"

namespace warpheap::tool {

/// `{cpu, device, driver, cuda, commit, time}`; null where the backend has none.
nlohmann::ordered_json machine_of(backend const& on);

/// This library's version, like "1.2.3".
std::string version();

}  // namespace warpheap::tool
