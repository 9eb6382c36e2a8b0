// SPDX-License-Identifier: Apache-2.0
// The version of this copy of Warpheap. These four lines are the only place where it is written:
// the build reads them. Between releases it is that of the next one, with a suffix.
#pragma once

#define WARPHEAP_VERSION_MAJOR 0
#define WARPHEAP_VERSION_MINOR 3
#define WARPHEAP_VERSION_PATCH 0
/// ".dev0" before the release of the numbers above, and "" in it.
#define WARPHEAP_VERSION_SUFFIX ".dev0"

/// One number to compare: 10,000 a major version, 100 a minor one. It leaves the suffix out.
#define WARPHEAP_VERSION (WARPHEAP_VERSION_MAJOR * 10000 + WARPHEAP_VERSION_MINOR * 100 + WARPHEAP_VERSION_PATCH)
