// SPDX-License-Identifier: Apache-2.0
// refused: refuse_some: calls are counted beside a pool
#include <warpheap/all.hpp>
#include <warpheap/policy/creation/refuse_some.hpp>

using namespace warpheap;
creation::refuse_some<creation::toolkit> never;
