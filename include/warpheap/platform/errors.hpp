// SPDX-License-Identifier: Apache-2.0
// What host functions throw. Device code throws nothing: it returns nullptr and counts the cause.
#pragma once

#include <stdexcept>
#include <string>

namespace warpheap {

/// The device or the host lacks the memory that was asked for. The message has the bytes asked for
/// and the limit.
struct out_of_memory : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A launch or a call of the backend failed; the message has the call and the runtime's own words.
struct backend_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A CUDA call failed. `code` is its cudaError_t.
struct cuda_error : backend_error {
  /// What `status` means, in `what`.
  cuda_error(int status, std::string const& what) : backend_error{what}, code{status} {}
  int code;  ///< a cudaError_t
};

}  // namespace warpheap
