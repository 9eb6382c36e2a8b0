// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace override_test {

/// The result of making a heap before CUDA knew the program's device code.
extern std::string const early_answer;

}  // namespace override_test
