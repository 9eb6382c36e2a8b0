// SPDX-License-Identifier: Apache-2.0
// reports: SUMMARY: ThreadSanitizer: data race .*publication.hpp
// A value published rightly and read after a relaxed load.
#include "publication.hpp"

int main() { return publish_once<warpheap::order::release, warpheap::order::relaxed>(); }
