// SPDX-License-Identifier: Apache-2.0
// What a scenario is asked to measure. An option is an object: it says how it is typed, what help
// says of it, and how its text becomes a value. Those of several scenarios are in options.hpp, and
// those of one are with it. No device code.
#pragma once

#include <any>
#include <map>
#include <string>
#include <type_traits>
#include <utility>

#include "measure/result.hpp"

namespace warpheap::bench {

/// What bounds the values of options.
struct option_bounds {
  u64 pool_bytes = ~u64{0};
  u32 devices = 1;
  std::string backend = "host";
};

/// An option of `warpheap bench` that changes what a scenario does.
struct option_text {
  char const* name;  ///< with its dashes
  u32 rank;          ///< its place in the help
  char const* type;
  char const* text;  ///< for help
  /// Throws usage_error, which names the option.
  std::any (*parse)(char const* name, std::string const& typed, option_bounds const&);
  char const* initial = "";  ///< the default; empty where scenarios differ in it
};

template <class Value>
struct option : option_text {};

struct request {
  u64 pool_bytes = 0;
  u64 seed = 1;
  u32 repeat = 7;
  checkpoint proceed = [](std::string const&, u64, u64) { return true; };
  std::map<std::string, std::any> values = {};  ///< of options, by name

  /// The option's value; 0 or empty where none was given and it has no initial one.
  template <class Value>
  Value operator[](option<Value> const& of) const {
    auto const at = values.find(of.name);
    if (at != values.end()) return std::any_cast<Value>(at->second);
    return *of.initial ? std::any_cast<Value>(of.parse(of.name, of.initial, {})) : Value{};
  }
  template <class Value>
  Value& operator[](option<Value> const& of) {
    if (!values.count(of.name)) values[of.name] = std::as_const(*this)[of];
    return std::any_cast<Value&>(values[of.name]);
  }

  /// The option's value, or `otherwise` in place of 0 or an empty list.
  template <class Value>
  Value get(option<Value> const& of, std::type_identity_t<Value> otherwise) const {
    auto given = (*this)[of];
    return given == Value{} ? otherwise : given;
  }
};

}  // namespace warpheap::bench
