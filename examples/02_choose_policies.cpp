// An allocator is five policies, and another allocator is another type behind the same interface: one kernel runs on the
// default heap, on the toolkit's, and on one put together here, with a limit on slabs and a policy of our own for when
// memory runs out.
#include <warpheap/platform/device_buffer.hpp>
#include <warpheap/warpheap.hpp>

#include <cstdio>

namespace {

using namespace warpheap::literals;

// Out of memory, this says so, and then answers as return_null does.
struct say_it {
  static constexpr char const* name = "say_it";

  WARPHEAP_DEVICE static void* handle(warpheap::size_t bytes) {
    std::printf("no room for %llu bytes\n", static_cast<unsigned long long>(bytes));
    return nullptr;
  }
};

constexpr warpheap::creation::slab_bitmap_config small_slabs{.max_slab_log2 = 16};  // 64 KiB at most

using our_allocator = warpheap::allocator<warpheap::creation::slab_bitmap<small_slabs>,  // how a block is created
                                          warpheap::distribution::none,                  // each lane asks for itself
                                          say_it,                                        // out of memory
                                          warpheap::reserve_pool::device_memory,         // where the pool comes from
                                          warpheap::alignment::shrink<16>>;              // how sizes are padded

struct ask_and_free {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, unsigned* served, warpheap::size_t bytes) const {
    void* const memory = heap.malloc(bytes);
    served[warpheap::global_thread_index()] = memory != nullptr;
    heap.free(memory);
  }
};

// How many of 256 threads, a block each, get `bytes` bytes of a heap of 16 MiB.
template <class Allocator>
unsigned serve(warpheap::size_t bytes) {
  warpheap::basic_heap<Allocator> const heap{16_MiB};
  std::printf("%s\n", heap.info().c_str());
  warpheap::device_buffer<unsigned> const served{256};
  warpheap::launch({4, 64}, ask_and_free{}, heap.ref(), served.data(), bytes);
  warpheap::synchronize();
  unsigned sum = 0;
  for (unsigned const one : served.to_host()) sum += one;
  return sum;
}

}  // namespace

int main() {
  bool const all_served = serve<warpheap::default_allocator>(1000) == 256 &&
                          serve<warpheap::toolkit_allocator>(1000) == 256 && serve<our_allocator>(1000) == 256;
  warpheap::basic_heap<our_allocator> const heap{16_MiB};
  warpheap::device_buffer<unsigned> const served{1};
  warpheap::launch({1, 1}, ask_and_free{}, heap.ref(), served.data(), 1_GiB);
  warpheap::synchronize();
  return all_served && served[0] == 0 ? 0 : 1;
}
