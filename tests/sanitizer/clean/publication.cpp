// A value published by release and received by acquire.
#include "publication.hpp"

int main() { return publish_once<warpheap::order::release, warpheap::order::acquire>(); }
