// SPDX-License-Identifier: Apache-2.0
// An allocator is made of five policies, and every allocator is a type with the same interface: one
// kernel runs on the default heap, on the toolkit's, and on one whose five policies are chosen
// here.
#include <warpheap/allocator/toolkit.hpp>
#include <warpheap/platform/device_buffer.hpp>
#include <warpheap/warpheap.hpp>

#include <cstdio>

namespace {

using namespace warpheap::literals;

// When memory runs out, this prints a message and then returns nullptr, like return_null.
struct say_it {
  static constexpr char const* name = "say_it";

  WARPHEAP_DEVICE static void* handle(warpheap::size_t bytes) {
    std::printf("no room for %llu bytes\n", static_cast<unsigned long long>(bytes));
    return nullptr;
  }
};

// A configuration is a value; fields that it does not name keep their defaults.
constexpr warpheap::creation::slab_bitmap_config small_slabs{.max_slab_log2 = 16};
constexpr warpheap::distribution::warp_coalesce_config large_pages{.page_bytes = 8192};

using our_allocator =
    // slabs of 64 KiB at most
    warpheap::allocator<warpheap::creation::slab_bitmap<small_slabs>,
                        // combines small requests of a warp
                        warpheap::distribution::basic_warp_coalesce<large_pages>,
                        // our own policy
                        say_it,
                        // memory that we own already
                        warpheap::reserve_pool::external,
                        // sizes padded to multiples of 16
                        warpheap::alignment::shrink<16>>;

static_assert(!our_allocator::traits.exact_out_of_memory, "parts wait for their neighbours: less is promised");

struct ask_and_free {
  template <class Ref>
  WARPHEAP_DEVICE void operator()(Ref heap, unsigned* served, warpheap::size_t bytes) const {
    void* const memory = heap.malloc(bytes);
    served[warpheap::global_thread_index()] = memory != nullptr;
    heap.free(memory);
  }
};

// How many of `threads` threads get a block of `bytes` bytes each.
template <class Heap>
unsigned serve(Heap const& heap, unsigned threads, warpheap::size_t bytes) {
  warpheap::device_buffer<unsigned> const served{threads};
  warpheap::launch({1, threads}, ask_and_free{}, heap.ref(), served.data(), bytes);
  warpheap::synchronize();
  unsigned sum = 0;
  for (unsigned const one : served.to_host()) sum += one;
  return sum;
}

}  // namespace

int main() {
  warpheap::device_buffer<unsigned char> const memory{16_MiB};
  warpheap::heap const plain{16_MiB};
  warpheap::toolkit_heap const theirs{16_MiB};
  warpheap::basic_heap<our_allocator> const ours{memory.data(), memory.size()};
  std::printf("%s\n%s\n%s\n", plain.info().c_str(), theirs.info().c_str(), ours.info().c_str());
  std::printf("of %zu bytes, %zu are for blocks\n", memory.size(), ours.pool_bytes());

  bool const all_served =
      serve(plain, 256, 100) == 256 && serve(theirs, 256, 100) == 256 && serve(ours, 256, 100) == 256;
  bool const none_served = serve(ours, 1, 1_GiB) == 0;
  bool const all_free = plain.statistics().live_blocks == 0 && ours.statistics().live_blocks == 0;
  bool const right = all_served && none_served && all_free && ours.check_invariants().empty();
  std::printf("%s\n", right ? "right" : "wrong");
  return right ? 0 : 1;
}
