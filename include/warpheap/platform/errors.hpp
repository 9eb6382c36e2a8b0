// SPDX-License-Identifier: Apache-2.0
// Exceptions of host functions. Device code throws nothing: it returns nullptr and counts the
// cause.
#pragma once

#include <stdexcept>
#include <string>

namespace warpheap {

/// The device or the host lacks the requested memory. The message has the requested bytes and the
/// limit.
struct out_of_memory : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A launch or a call of the backend failed; the message has the call and the runtime's error.
struct backend_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A CUDA call failed. `code` is its cudaError_t.
struct cuda_error : backend_error {
  /// `what` is the message, which says what `status` means.
  cuda_error(int status, std::string const& what) : backend_error{what}, code{status} {}
  int code;  ///< a cudaError_t
};

}  // namespace warpheap
