// SPDX-License-Identifier: Apache-2.0
// Triangles of a changing graph: threads insert edges into the neighbour lists of both ends, erase
// some again, and then walk the sorted lists side by side.
#include <warpheap/container/adjacency_list.hpp>
#include <warpheap/platform/device_buffer.hpp>
#include <warpheap/warpheap.hpp>

#include <cstdio>

using warpheap::adjacency_list, warpheap::insert_result, warpheap::shared_adjacency_list;
constexpr unsigned vertices = 1024;

// Edges among each 8 consecutive vertices.
struct insert_edges {
  WARPHEAP_DEVICE void operator()(warpheap::heap_ref heap, shared_adjacency_list* of, unsigned* refused) const {
    auto const me = static_cast<unsigned>(warpheap::global_thread_index());
    unsigned const from = me / 8, to = from / 8 * 8 + me % 8;
    if (to <= from) return;
    if (of[from].insert(heap, to) == insert_result::refused) *refused = 1;
    if (of[to].insert(heap, from) == insert_result::refused) *refused = 1;
  }
};

// Removes the last vertex of each 8.
struct erase_edges {
  WARPHEAP_DEVICE void operator()(warpheap::heap_ref heap, shared_adjacency_list* of) const {
    auto const from = static_cast<unsigned>(warpheap::global_thread_index());
    unsigned const last = from / 8 * 8 + 7;
    if (of[from].erase(heap, last)) of[last].erase(heap, from);
  }
};

struct count_triangles {
  WARPHEAP_DEVICE void operator()(shared_adjacency_list const* of, unsigned* count) const {
    adjacency_list const mine = of[warpheap::global_thread_index()].list;
    unsigned found = 0;
    for (unsigned const other : mine)
      for (auto a = mine.begin(), b = of[other].list.begin(); a != mine.end() && b != of[other].list.end();)
        if (*a < *b) ++a;
        else if (*a > *b) ++b;
        else ++found, ++a, ++b;
    warpheap::atomic_ref<unsigned>{*count}.fetch_add(found, warpheap::order::relaxed);
  }
};

int main() {
  warpheap::heap const heap{16u << 20};
  warpheap::device_buffer<shared_adjacency_list> const lists{vertices};
  warpheap::device_buffer<unsigned> const refused{1}, count{2};
  auto const* const seen = lists.data();
  warpheap::launch({8 * vertices / 128, 128}, insert_edges{}, heap.ref(), lists.data(), refused.data());
  warpheap::launch({vertices / 128, 128}, count_triangles{}, seen, count.data());
  warpheap::launch({vertices / 128, 128}, erase_edges{}, heap.ref(), lists.data());
  warpheap::launch({vertices / 128, 128}, count_triangles{}, seen, count.data() + 1);
  warpheap::synchronize();
  // Each triangle is found from its 6 directed edges: 56 among 8 vertices, then 35 among 7.
  unsigned const before = count[0] / 6, after = count[1] / 6;
  std::printf("%u triangles, then %u\n", before, after);
  bool const right = refused[0] == 0 && before == vertices / 8 * 56 && after == vertices / 8 * 35;
  std::printf("%s\n", right ? "right" : "wrong");
  return right ? 0 : 1;
}
