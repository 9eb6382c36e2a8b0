// SPDX-License-Identifier: Apache-2.0
// What a check found. Checks return a verdict in place of asserting, so that the same check can be
// held against an allocator that must pass it and against a broken one that must not.
#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <utility>

namespace warpheap::conformance {

/// The faults that a check found, one a line; a check that found none, and did its work, passes.
class verdict {
 public:
  bool ok() const { return faults_.empty(); }
  std::string const& faults() const { return faults_; }

  void equal(char const* what, auto const& got, auto const& wanted) {
    if (!(got == wanted)) add(what, ": ", got, ", not ", wanted);
  }
  void at_least(char const* what, auto const& got, auto const& least) {
    if (!(got >= least)) add(what, ": ", got, ", less than ", least);
  }
  void holds(char const* what, bool condition) {
    if (!condition) add("not so: ", what);
  }
  void include(verdict const& other) {
    if (faults_.size() < enough) faults_ += other.faults_;
  }
  void add(auto const&... text) {
    std::ostringstream line;
    (line << ... << text) << '\n';
    if (faults_.size() < enough) faults_ += line.str();
  }

  /// For EXPECT_TRUE and EXPECT_FALSE, which then print the faults.
  operator testing::AssertionResult() const {
    return ok() ? testing::AssertionSuccess() : testing::AssertionFailure() << faults_;
  }

 private:
  static constexpr size_t enough = 2000;  ///< characters after which more faults say nothing new

  std::string faults_;
};

}  // namespace warpheap::conformance
