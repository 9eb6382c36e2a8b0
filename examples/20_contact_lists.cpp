// SPDX-License-Identifier: Apache-2.0
// Contacts of many worlds that are simulated at the same time, as for reinforcement learning. Most
// worlds have a few, some a hundred times as many. Bounded lists would need the fullest world's
// bound in every world; here each world has an append_buffer, which takes pages from a heap as they
// are needed. A step clears, fills and uses the lists. On a GPU it is captured as a graph and
// replayed without the host in between.
#include <warpheap/container/append_buffer.hpp>
#include <warpheap/platform/device_buffer.hpp>
#include <warpheap/util/random.hpp>
#include <warpheap/warpheap.hpp>

#include <algorithm>
#include <cstdio>
#include <vector>

namespace {

using namespace warpheap;
using namespace warpheap::literals;

constexpr u32 bodies = 64;  // of a world
#if defined(__CUDACC__)
constexpr u32 worlds = 4096, steps = 1000;
#else
constexpr u32 worlds = 512, steps = 20;
#endif

struct contact {
  u32 first, second;
  i32 distance[2];
  float impulse[4];
};
using contact_list = append_buffer<contact, append_buffer_config{.first_page = 8}>;

/// A body's position in a step, in one coordinate. In every 256th world the bodies are piled up.
WARPHEAP_HOST_DEVICE i32 place(u32 world, u32 body, u32 step, u32 coordinate) {
  u32 const width = world % 256 == 3 ? 1 << 11 : 1 << 16;
  return static_cast<i32>(mix32((world * bodies + body) * 2 + coordinate + mix32(step)) % width);
}

/// Whether two bodies touch, and their distance.
WARPHEAP_HOST_DEVICE bool touch(u32 world, u32 step, contact& pair) {
  for (u32 i = 0; i < 2; ++i) pair.distance[i] = place(world, pair.second, step, i) - place(world, pair.first, step, i);
  i64 const x = pair.distance[0], y = pair.distance[1];
  return x * x + y * y < 1 << 20;
}

struct begin_step {
  WARPHEAP_DEVICE void operator()(u32* step) const { ++*step; }
};

/// A thread block for each world, and a thread for each body.
struct find_contacts {
  WARPHEAP_DEVICE void operator()(heap_ref heap, contact_list* lists, u32 const* step) const {
    u32 const world = simt::block_index();
    contact pair{};
    pair.first = simt::thread_index();
    for (pair.second = pair.first + 1; pair.second < bodies; ++pair.second)
      if (touch(world, *step, pair)) lists[world].append(heap, pair);
  }
};

struct push_apart {
  WARPHEAP_DEVICE void operator()(contact_list* lists, float* speeds) const {
    u32 const world = simt::block_index();
    float* const mine = speeds + world * bodies;
    lists[world].for_each(simt::thread_index(), simt::block_dim(), [=](contact& each) {
      each.impulse[0] = static_cast<float>(each.distance[0]) / 1024;
      atomic_ref<float>{mine[each.first]}.fetch_add(-each.impulse[0], order::relaxed);
      atomic_ref<float>{mine[each.second]}.fetch_add(each.impulse[0], order::relaxed);
    });
  }
};

/// A step of all worlds, in order on a stream.
void launch_step(stream_view on, heap_ref memory, contact_list* lists, float* speeds, u32* step) {
  launch(on, {1, 1}, begin_step{}, step);
  clear(lists, worlds, on);
  launch(on, {worlds, bodies}, find_contacts{}, memory, lists, step);
  launch(on, {worlds, 32}, push_apart{}, lists, speeds);
}

/// Calls work(on) `steps` times.
template <class Work>
void replay(Work work) {
  stream const on;
#if defined(__CUDACC__)
  cudaGraph_t graph;
  cudaGraphExec_t replayable;
  cudaStreamBeginCapture(on, cudaStreamCaptureModeGlobal);
  work(on);
  cudaStreamEndCapture(on, &graph);
  cudaGraphInstantiate(&replayable, graph, 0);
  for (u32 step = 0; step < steps; ++step) cudaGraphLaunch(replayable, on);
  synchronize(on);
  cudaGraphExecDestroy(replayable);
  cudaGraphDestroy(graph);
#else
  for (u32 step = 0; step < steps; ++step) work(on);
  synchronize(on);
#endif
}

/// How many contacts a world has, counted by the host.
u64 contacts_of(u32 world, u32 step) {
  u64 found = 0;
  contact pair{};
  for (pair.first = 0; pair.first < bodies; ++pair.first)
    for (pair.second = pair.first + 1; pair.second < bodies; ++pair.second) found += touch(world, step, pair);
  return found;
}

}  // namespace

int main() {
  heap const memory{64_MiB};
  device_buffer<contact_list> const lists{worlds};  // zeroed memory is an empty list
  device_buffer<float> const speeds{worlds * bodies};
  device_buffer<u32> const step{1};
  replay([&](stream_view on) { launch_step(on, memory.ref(), lists.data(), speeds.data(), step.data()); });

  bool right = step[0] == steps;
  u64 contacts = 0, most = 0;
  auto const at_end = lists.to_host();
  for (u32 world = 0; world < worlds; ++world) {
    u64 const found = at_end[world].size();
    right = right && found == contacts_of(world, steps) && at_end[world].dropped() == 0;
    contacts += found;
    most = std::max(most, found);
  }
  auto const kib = [](u64 bytes) { return static_cast<double>(bytes) / 1024; };
  std::printf("%u worlds with %.1f contacts each, and %llu in the fullest\n", worlds,
              static_cast<double>(contacts) / worlds, most);
  std::printf("lists: %.0f KiB, and %.0f of pages; with the bound of the fullest world: %.0f KiB\n",
              kib(lists.size_bytes()), kib(memory.statistics().live_bytes), kib(worlds * most * sizeof(contact)));

  destroy(memory.ref(), lists.data(), worlds);
  synchronize();
  right = right && memory.statistics().live_blocks == 0;
  std::printf("%s\n", right ? "right" : "wrong");
  return right ? 0 : 1;
}
