// SPDX-License-Identifier: Apache-2.0
// Names that look like one that was mistyped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace warpheap::tool {

/// The names, at most three, that begin with `typed`, or else those that the fewest typing errors
/// lead to: one for every three characters at most. An error is a character that is wrong, missing,
/// added or exchanged with the next one; to have `typed` in it counts as one. Upper and lower case
/// are equal.
std::vector<std::string> nearest_names(std::string_view typed, std::vector<std::string> const& known);

/// "did you mean burst?", "did you mean rw, rw_malloc or rw_bitmap?"; empty if no name is near.
std::string did_you_mean(std::string_view typed, std::vector<std::string> const& known);

/// The end of a sentence about an unknown name: did_you_mean(), or else all of them, as in "there
/// are: burst, churn".
std::string names_instead_of(std::string_view typed, std::vector<std::string> const& known);

}  // namespace warpheap::tool
