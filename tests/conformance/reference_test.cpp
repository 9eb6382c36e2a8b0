// The suite can be passed: a slow and simple allocator that promises everything does.
#include "reference.hpp"
#include "suite.hpp"

using reference_allocator = warpheap::conformance::reference<>;

WARPHEAP_CONFORMANCE(reference, reference_allocator);
