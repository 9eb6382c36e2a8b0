// A kernel in which every thread allocates a block and frees it, on the host backend.
#include <warpheap/warpheap.hpp>

#include <cstdio>

struct allocate_and_free {
  WARPHEAP_DEVICE void operator()(warpheap::heap_ref heap) const { heap.free(heap.malloc(100)); }
};

int main() {
  warpheap::heap heap{std::size_t{64} << 20};
  warpheap::launch({4, 64}, allocate_and_free{}, heap.ref());
  warpheap::synchronize();
  auto const after = heap.statistics();
  std::printf("%llu live blocks, %llu refused\n", after.live_blocks, after.failures);
  return after.live_blocks == 0 && after.failures == 0 ? 0 : 1;
}
