#pragma once

#include <string>

namespace override_test {

/// What came of a heap that was made before CUDA knew the program's device code.
extern std::string const early_answer;

}  // namespace override_test
