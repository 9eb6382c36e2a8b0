// SPDX-License-Identifier: Apache-2.0
// Where `--trace` goes: a file that gets the trace of a job. The default allocator serves it,
// because what a job asks hardly depends on the allocator.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "replaced_file.hpp"
#include "warpheap/adaptor/trace/calls.hpp"

namespace warpheap::tool {

/// The help of --trace.
inline constexpr char const* trace_help =
    "Record what the job asks of the heap, for `warpheap replay`; the allocator is the default one";

class trace_output {
 public:
  /// `path` empty: no trace is wanted. Throws usage_error if the file cannot be written, or if
  /// `allocators`, as typed for --allocator, are others than the default one.
  trace_output(std::string const& path, std::string const& allocators, std::string const& default_allocator);

  bool is_wanted() const { return file_.has_value(); }

  /// Takes the trace of a job. Empty if none is wanted.
  std::function<void(call_trace const&)> taker();

  /// Writes the trace that was taken, and says on standard error what `command` has lost of it.
  void write(char const* command) const;

 private:
  std::optional<replaced_file> file_;
  call_trace taken_;
};

}  // namespace warpheap::tool
