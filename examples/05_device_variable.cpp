// SPDX-License-Identifier: Apache-2.0
// A heap that kernels find by name: code deep in a kernel allocates without a heap parameter. The
// host sets the variable once, before the first launch. A __constant__ variable is set in the same
// way; a __managed__ one is assigned.
#include <warpheap/platform/device_buffer.hpp>
#include <warpheap/warpheap.hpp>

#include <cstdio>

namespace {

using namespace warpheap::literals;

// Null until the host sets it; a null reference must not be called.
WARPHEAP_DEVICE warpheap::heap_ref the_heap;

// A stack of numbers that grows as needed; only its two functions use the heap.
struct number_stack {
  unsigned* numbers = nullptr;
  unsigned used = 0;

  WARPHEAP_DEVICE bool push(unsigned number) {
    auto* const grown = static_cast<unsigned*>(the_heap.realloc(numbers, (used + 1) * sizeof(unsigned)));
    if (!grown) return false;
    numbers = grown;
    numbers[used++] = number;
    return true;
  }
  WARPHEAP_DEVICE void clear() {
    the_heap.free(numbers);
    numbers = nullptr;
    used = 0;
  }
};

// Factors each thread's number into primes, and multiplies them again.
struct factorise {
  WARPHEAP_DEVICE void operator()(unsigned* products) const {
    auto const me = static_cast<unsigned>(warpheap::global_thread_index());
    number_stack primes;
    unsigned rest = me + 1;
    for (unsigned divisor = 2; rest > 1; ++divisor)
      for (; rest % divisor == 0; rest /= divisor)
        if (!primes.push(divisor)) return;
    unsigned product = 1;
    for (unsigned i = 0; i < primes.used; ++i) product *= primes.numbers[i];
    primes.clear();
    products[me] = product;
  }
};

}  // namespace

int main() {
  warpheap::heap const heap{16_MiB};
  warpheap::set_device_variable(the_heap, heap.ref());

  warpheap::device_buffer<unsigned> const products{512};
  warpheap::launch({4, 128}, factorise{}, products.data());
  warpheap::synchronize();

  bool right = heap.statistics().live_blocks == 0;
  for (unsigned i = 0; i < 512; ++i) right = right && products[i] == i + 1;
  std::printf("512 numbers are the products of their primes: %s\n", right ? "right" : "wrong");
  return right ? 0 : 1;
}
