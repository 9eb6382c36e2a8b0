// SPDX-License-Identifier: Apache-2.0
// A program on alpaka and mallocMC, of which one line names Warpheap: mallocMC's creation policy.
// Each thread allocates, another kernel checks the contents and frees, then all slots are free.
#include <alpaka/alpaka.hpp>
#include <mallocMC/mallocMC.hpp>

#include <cstdio>

#include <warpheap/heap/mallocmc_creation.hpp>

using Dim = alpaka::DimInt<1>;
using Idx = std::size_t;
using Acc = alpaka::AccGpuCudaRt<Dim, Idx>;

struct ShrinkConfig {
  static constexpr auto dataAlignment = 16;
};

using Heap = mallocMC::Allocator<Acc, warpheap::mallocmc_creation<>, mallocMC::DistributionPolicies::Noop,
                                 mallocMC::OOMPolicies::ReturnNull, mallocMC::ReservePoolPolicies::AlpakaBuf<Acc>,
                                 mallocMC::AlignmentPolicies::Shrink<ShrinkConfig>>;
using Handle = Heap::AllocatorHandle;

struct take {
  ALPAKA_FN_ACC void operator()(Acc const& acc, Handle heap, unsigned** blocks, unsigned* refused) const {
    auto const i = static_cast<unsigned>(alpaka::getIdx<alpaka::Grid, alpaka::Threads>(acc)[0]);
    unsigned const words = 4 + i % 61;
    auto* const block = static_cast<unsigned*>(heap.malloc(acc, words * sizeof(unsigned)));
    blocks[i] = block;
    if (!block) alpaka::atomicAdd(acc, refused, 1u, alpaka::hierarchy::Grids{});
    for (unsigned word = 0; block && word < words; ++word) block[word] = i + word;
  }
};

struct give {
  ALPAKA_FN_ACC void operator()(Acc const& acc, Handle heap, unsigned** blocks, unsigned* wrong) const {
    auto const i = static_cast<unsigned>(alpaka::getIdx<alpaka::Grid, alpaka::Threads>(acc)[0]);
    for (unsigned word = 0; blocks[i] && word < 4 + i % 61; ++word)
      if (blocks[i][word] != i + word) alpaka::atomicAdd(acc, wrong, 1u, alpaka::hierarchy::Grids{});
    heap.free(acc, blocks[i]);
  }
};

int main() {
  constexpr Idx threads = 256, n = 1 << 20;
  alpaka::Platform<Acc> const platform;
  auto const device = alpaka::getDevByIdx(platform, 0);
  alpaka::Queue<Acc, alpaka::Blocking> queue{device};
  auto blocks = alpaka::allocBuf<unsigned*, Idx>(device, n);
  auto faults = alpaka::allocBuf<unsigned, Idx>(device, Idx{2});  // refused, wrong
  alpaka::memset(queue, faults, 0, Idx{2});

  Heap heap{device, queue, std::size_t{1} << 30};
  std::puts(Heap::info("\n").c_str());
  unsigned const before = heap.getAvailableSlots(device, queue, 1024);
  alpaka::WorkDivMembers<Dim, Idx> const grid{n / threads, threads, Idx{1}};
  unsigned* const count = alpaka::getPtrNative(faults);
  alpaka::exec<Acc>(queue, grid, take{}, heap.getAllocatorHandle(), alpaka::getPtrNative(blocks), count);
  unsigned const between = heap.getAvailableSlots(device, queue, 1024);
  alpaka::exec<Acc>(queue, grid, give{}, heap.getAllocatorHandle(), alpaka::getPtrNative(blocks), count + 1);
  unsigned const after = heap.getAvailableSlots(device, queue, 1024);

  alpaka::Platform<alpaka::DevCpu> const host_platform;
  auto const host = alpaka::getDevByIdx(host_platform, 0);
  auto seen = alpaka::allocBuf<unsigned, Idx>(host, Idx{2});
  alpaka::memcpy(queue, seen, faults, Idx{2});
  unsigned const refused = alpaka::getPtrNative(seen)[0], wrong = alpaka::getPtrNative(seen)[1];
  std::printf("%u refused, %u words wrong; slots of 1 KiB: %u, %u while in use, %u at the end\n", refused, wrong,
              before, between, after);
  bool const right = refused == 0 && wrong == 0 && between < before && after == before;
  std::puts(right ? "PASSED" : "FAILED");
  return right ? 0 : 1;
}
