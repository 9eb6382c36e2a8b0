// SPDX-License-Identifier: Apache-2.0
// Vectors and strings: each thread collects the prime factors of a number, however many there are,
// and writes them into a line of text. The host reads both.
#include <warpheap/container/string.hpp>
#include <warpheap/container/vector.hpp>
#include <warpheap/platform/device_buffer.hpp>
#include <warpheap/warpheap.hpp>

#include <cstdio>

namespace {

using namespace warpheap::literals;
using factors = warpheap::vector<unsigned>;
using text = warpheap::string;

struct factorize {
  WARPHEAP_DEVICE void operator()(warpheap::heap_ref heap, factors* all, text* lines) const {
    auto const me = static_cast<unsigned>(warpheap::global_thread_index());
    factors found;  // empty, and takes no memory yet
    for (unsigned rest = me + 2, factor = 2; rest > 1; ++factor)
      for (; rest % factor == 0; rest /= factor)
        if (!found.push_back(heap, factor)) return found.destroy(heap);  // no memory

    text line;
    line.append(heap, me + 2);
    for (unsigned const factor : found) {
      line.append(heap, line.find('=') == warpheap::string_view::npos ? " = " : " * ");
      line.append(heap, factor);
    }
    all[me] = found;  // the same vector: its 16 bytes, for other kernels and the host
    lines[me] = line;
  }
};

struct destroy_all {
  WARPHEAP_DEVICE void operator()(warpheap::heap_ref heap, factors* all, text* lines) const {
    auto const me = warpheap::global_thread_index();
    all[me].destroy(heap);
    lines[me].destroy(heap);
  }
};

}  // namespace

int main() {
  warpheap::heap const heap{64_MiB};
  warpheap::device_buffer<factors> const all{1024};
  warpheap::device_buffer<text> const lines{1024};
  warpheap::launch({8, 128}, factorize{}, heap.ref(), all.data(), lines.data());
  warpheap::synchronize();

  bool right = true;
  unsigned number = 1;
  for (auto const& each : all.to_host()) {
    unsigned product = 1;
    for (unsigned const factor : each.to_host()) product *= factor;
    right = right && product == ++number;
  }
  auto const line = lines[1000 - 2].to_std_string();
  std::printf("%s\n", line.c_str());

  warpheap::launch({8, 128}, destroy_all{}, heap.ref(), all.data(), lines.data());
  warpheap::synchronize();
  right = right && line == "1000 = 2 * 2 * 2 * 5 * 5 * 5" && heap.statistics().live_blocks == 0;
  return right ? 0 : 1;
}
