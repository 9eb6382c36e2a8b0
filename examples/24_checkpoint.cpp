// SPDX-License-Identifier: Apache-2.0
// Checkpoints of a simulation: particles on springs leave trails in a heap. When a particle flies
// off, the heap is restored, and the steps become smaller.
#include <warpheap/heap/checkpoint.hpp>
#include <warpheap/platform/device_buffer.hpp>
#include <warpheap/warpheap.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace {

using namespace warpheap;
using namespace warpheap::literals;

constexpr u32 particles = 256;
struct point {
  point* before;
  double x, speed;
};
struct trails {
  point* last[particles];
};

struct begin_trails {
  WARPHEAP_DEVICE void operator()(heap_ref heap, trails** made) const {
    auto* const all = heap.make<trails>();
    for (u32 i = 0; all && i < particles; ++i) all->last[i] = heap.make<point>(point{nullptr, 1.0 + i % 7, 0.0});
    *made = all;
  }
};

struct move {
  WARPHEAP_DEVICE void operator()(heap_ref heap, trails* all, double step) const {
    point*& last = all->last[global_thread_index()];
    double const speed = last->speed - step * last->x;
    auto* const next = heap.make<point>(point{last, last->x + step * speed, speed});
    if (next) last = next;  // without memory the particle stays
  }
};

/// The largest distance of an image's particles from their springs' rest positions.
double furthest(heap_image const& image) {
  auto const* const all = image.at(static_cast<trails const*>(image.root()));
  double most = 0;
  for (auto const* last : all->last) most = std::max(most, std::abs(image.at(last)->x));
  return most;
}

}  // namespace

int main() {
  heap heap{16_MiB};
  device_buffer<trails*> const made(1);
  launch({1, 1}, begin_trails{}, heap.ref(), made.data());
  trails* const all = made[0];

  heap_image good = save(heap, all);
  double step = 4;
  for (int rounds = 0; rounds < 4;) {
    for (int i = 0; i < 10; ++i) launch({2, particles / 2}, move{}, heap.ref(), all, step);
    heap_image now = save(heap, all);  // waits for the kernels
    if (furthest(now) < 20) {
      good = std::move(now);
      ++rounds;
    } else {
      restore(heap, good);
      step /= 2;
    }
  }

  u32 points = 0;
  for (point const* each = good.at(all)->last[0]; each; each = good.at(each)->before) ++points;
  auto const live = heap.statistics().live_blocks;
  std::printf("steps of %g; trails of %u points; %llu live blocks\n", step, points,
              static_cast<unsigned long long>(live));
  return step == 1 && points == 41 && live == 1 + 41 * particles ? 0 : 1;
}
