// SPDX-License-Identifier: Apache-2.0
// nvJitLink, found at run time: programs are relinked on machines that have the CUDA toolkit, and
// looked at on any.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "device_code.hpp"

namespace warpheap::relink {

/// What is linked.
struct link_input {
  code_kind kind;
  std::span<u8 const> bytes;
  char const* name;
};

/// The cubin that `inputs` make together for `target`, such as "sm_90". Throws unusable_code with
/// what nvJitLink says, or that it is not on this machine.
std::vector<u8> link(std::vector<link_input> const& inputs, std::string const& target);

}  // namespace warpheap::relink
