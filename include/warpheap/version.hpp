// SPDX-License-Identifier: Apache-2.0
// The version of this copy of Warpheap. Only these four lines state it; the build reads them.
// Between releases it is the next release's version, with a suffix.
#pragma once

#define WARPHEAP_VERSION_MAJOR 0
#define WARPHEAP_VERSION_MINOR 3
#define WARPHEAP_VERSION_PATCH 0
/// ".dev0" before the release with the numbers above, "" in it.
#define WARPHEAP_VERSION_SUFFIX ".dev0"

/// One number to compare: 10,000 per major version, 100 per minor one, without the suffix.
#define WARPHEAP_VERSION (WARPHEAP_VERSION_MAJOR * 10000 + WARPHEAP_VERSION_MINOR * 100 + WARPHEAP_VERSION_PATCH)
