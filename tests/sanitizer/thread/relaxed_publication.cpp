// SPDX-License-Identifier: Apache-2.0
// reports: SUMMARY: ThreadSanitizer: data race .*publication.hpp
// A value published by a relaxed flag.
#include "publication.hpp"

int main() { return publish_once<warpheap::order::relaxed, warpheap::order::acquire>(); }
