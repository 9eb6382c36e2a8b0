// The version of this copy of Warpheap. These three numbers are the only place where it is written:
// the build reads them.
#pragma once

#define WARPHEAP_VERSION_MAJOR 0
#define WARPHEAP_VERSION_MINOR 2
#define WARPHEAP_VERSION_PATCH 0

/// One number to compare: 10,000 a major version, 100 a minor one.
#define WARPHEAP_VERSION (WARPHEAP_VERSION_MAJOR * 10000 + WARPHEAP_VERSION_MINOR * 100 + WARPHEAP_VERSION_PATCH)
