// SPDX-License-Identifier: Apache-2.0
// What an exception says.
#pragma once

#include <string>

namespace warpheap::test {

/// What the `Error` says that `body` throws; "nothing thrown" if it throws nothing.
template <class Error, class Body>
std::string message_of(Body body) {
  try {
    body();
  } catch (Error const& error) {
    return error.what();
  }
  return "nothing thrown";
}

}  // namespace warpheap::test
