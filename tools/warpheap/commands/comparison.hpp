// SPDX-License-Identifier: Apache-2.0
// One job that is done with every allocator that was chosen: its measurements, whether all of them
// are right, and how the other allocators compare with the first.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "choices.hpp"
#include "io/json_output.hpp"

namespace warpheap::tool {

struct comparison {
  std::vector<bench::result> results;
  /// the first thing that is wrong
  std::string fault;
  nlohmann::ordered_json about = nlohmann::ordered_json::object();  ///< more of the document
  /// something else was written to standard output already
  bool takes_standard_output = false;

  void add(std::vector<bench::result> const& made);
};

/// Throws usage_error if every result was skipped: `option`, why the first was, and `asked`.
void refuse_if_all_skipped(comparison const& all, char const* option, std::string const& asked);

/// `made` takes `of_first` of the time of `first`, which has the same parameters.
struct ratio {
  bench::result const& made;
  bench::result const& first;
  double of_first;
};

/// The ratios of all results of an operation, except the first of each set of parameters and those
/// that are wrong.
std::vector<ratio> ratios(std::vector<bench::result> const& results, std::string const& operation);

/// Writes the table, with `lines` below it, and the document. Returns the exit status, and says on
/// standard error why it is not 0.
int report(char const* command, choices const& chosen, comparison const& all, json_output& output,
           std::vector<std::string> const& lines);

}  // namespace warpheap::tool
