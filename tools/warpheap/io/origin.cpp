// SPDX-License-Identifier: Apache-2.0
// The one source whose compilation depends on the commit.
#include "origin.hpp"

#include <filesystem>

#include "cli/usage_error.hpp"

namespace warpheap::tool {

std::string commit() { return WARPHEAP_COMMIT; }

std::string find_folder(std::string const& installed, std::string const& in_source, std::string const& file,
                        std::string const& what) {
  std::error_code ignored;
  auto const program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  auto const first = program.parent_path().parent_path() / installed;
  auto const second = std::filesystem::path{WARPHEAP_SOURCE} / in_source;
  for (auto const& each : {first, second})
    if (std::filesystem::exists(each / file, ignored)) return each.string();
  throw usage_error{what + " is not at " + first.string() + ", nor at " + second.string()};
}

}  // namespace warpheap::tool
