// SPDX-License-Identifier: Apache-2.0
// A suite of `warpheap bench`: scenarios one after the other, each of which leaves a file of
// results.
//
// A file is written when its scenario is complete, and as a whole. So a suite that was interrupted
// goes on from its files: one that has the same machine, commit and measurements is not measured
// again, unless it has a fault.
#pragma once

#include <string>
#include <vector>

#include "choices.hpp"
#include "suite_table.hpp"

namespace warpheap::tool {

/// What is the same for all entries of a suite.
struct suite_settings {
  std::string name;    ///< of the suite
  std::string folder;  ///< of the files; made if it is not there
  bool fresh = false;  ///< measures what is there already
  bool pool_is_typed = false;
};

/// A suite's progress in text, and its share that is done.
class suite_estimate {
 public:
  /// `seconds` is what each entry is expected to take; those that are complete take none.
  explicit suite_estimate(std::vector<double> seconds);

  /// `done` of `total` steps of an entry are done, `elapsed` seconds after the suite began.
  void note(size_t entry, u64 done, u64 total, double elapsed);

  double share() const { return share_; }
  /// Seconds that are left: first as expected, then more and more by what has passed.
  double seconds_left() const;

 private:
  std::vector<double> before_;  ///< seconds of all entries before each, and of all
  double share_ = 0;
  double elapsed_ = 0;
};

/// Measures what is not complete. Returns the exit status; ends the program by a signal that came
/// meanwhile.
int run_suite(choices const& chosen, std::vector<suite_entry> const& entries, suite_settings const& settings);

}  // namespace warpheap::tool
