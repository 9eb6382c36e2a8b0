// SPDX-License-Identifier: Apache-2.0
// The parts of a backend. Sources add them before main(); they are linked as objects, so no linker
// drops one.
#pragma once

#include "backend.hpp"

namespace warpheap::tool { inline namespace WARPHEAP_BACKEND {

inline std::map<std::type_index, std::any>& registered_parts() {
  static std::map<std::type_index, std::any> all;
  return all;
}

/// The part of this type, made if there is none.
template <class Part>
Part& registered_part() {
  auto& part = registered_parts()[typeid(Part)];
  if (!part.has_value()) part = Part{};
  return std::any_cast<Part&>(part);
}

/// Adds a part.
template <class Part>
struct part_registration {
  explicit part_registration(Part part) { registered_part<Part>() = part; }
};

}}  // namespace warpheap::tool::WARPHEAP_BACKEND
