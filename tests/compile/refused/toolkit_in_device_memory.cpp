// SPDX-License-Identifier: Apache-2.0
// refused: toolkit_goes_with_toolkit_limit, toolkit, device_memory
#include <warpheap/all.hpp>

using namespace warpheap;
using wrong = plain_allocator<creation::toolkit>;
wrong* never;
