// SPDX-License-Identifier: Apache-2.0
// relink.R1: whether a linked cubin has all of the one that was linked.
#pragma once

#include <string>

#include "elf_view.hpp"

namespace warpheap::relink {

/// What the driver would read differently; empty if there is nothing.
std::string difference(elf_view const& original, elf_view const& linked);

}  // namespace warpheap::relink
