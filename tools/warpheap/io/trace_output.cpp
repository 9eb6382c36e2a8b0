// SPDX-License-Identifier: Apache-2.0
#include "trace_output.hpp"

#include <fmt/format.h>

#include "cli/standard_output.hpp"
#include "cli/usage_error.hpp"
#include "warpheap/adaptor/trace/file.hpp"

namespace warpheap::tool {

trace_output::trace_output(std::string const& path, std::string const& allocators,
                           std::string const& default_allocator) {
  if (path.empty()) return;
  if (!allocators.empty() && allocators != default_allocator)
    throw usage_error{fmt::format("--allocator: --trace records one allocator, which is {}", default_allocator)};
  file_.emplace("--trace", path);
}

std::function<void(call_trace const&)> trace_output::taker() {
  if (!file_) return {};
  return [this](call_trace const& trace) { taken_ = trace; };
}

void trace_output::write(char const* command) const {
  if (!file_) return;
  file_->write(file_of(taken_));
  if (taken_.lost) complain(command, fmt::format("--trace: {} records found no room and are lost", taken_.lost));
}

}  // namespace warpheap::tool
