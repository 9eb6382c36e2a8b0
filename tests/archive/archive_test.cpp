// SPDX-License-Identifier: Apache-2.0
// The archive on a GPU, as a program uses it that knows warpheap.h and no header of C++20.
#include <cuda.h>
#include <cuda_runtime.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "unit.h"
#include "warpheap.h"

// Modules for the driver, as the linker has left them.
#define EMBED(name, file)                                                                                              \
  asm(".pushsection .rodata\n.balign 64\n.globl " #name "\n" #name ":\n.incbin \"" file "\"\n.byte 0\n.popsection\n"); \
  extern "C" char const name[]
EMBED(linked_module, LINKED_MODULE);
EMBED(alone_module, ALONE_MODULE);

namespace {

using testing::HasSubstr;

constexpr unsigned threads = 4096;
constexpr size_t mib = size_t{1} << 20;

struct destroy_heap {
  void operator()(warpheap_heap* heap) const {
    EXPECT_EQ(warpheap_destroy(heap), WARPHEAP_OK) << warpheap_last_error();
  }
};
using heap_owner = std::unique_ptr<warpheap_heap, destroy_heap>;

warpheap_settings settings_of(char const* size, char const* grow = nullptr) {
  warpheap_settings settings{};
  settings.size = size;
  settings.grow = grow;
  return settings;
}

/// Bound to the program and its library.
heap_owner bound_heap(warpheap_settings const& settings) {
  warpheap_heap* heap = nullptr;
  EXPECT_EQ(warpheap_create(&heap, &settings), WARPHEAP_OK) << warpheap_last_error();
  EXPECT_EQ(warpheap_bind_program(heap), WARPHEAP_OK) << warpheap_last_error();
  return heap_owner{heap};
}

warpheap_statistics statistics_of(heap_owner const& heap) {
  warpheap_statistics seen{};
  seen.struct_bytes = sizeof seen;
  EXPECT_EQ(warpheap_read_statistics(heap.get(), &seen), WARPHEAP_OK) << warpheap_last_error();
  return seen;
}

std::string report_of(heap_owner const& heap) {
  char line[512] = {};
  EXPECT_EQ(warpheap_report(heap.get(), line, sizeof line), WARPHEAP_OK) << warpheap_last_error();
  return line;
}

/// Managed memory, zeroed.
template <class T>
class managed {
 public:
  explicit managed(size_t count) {
    EXPECT_EQ(cudaMallocManaged(&data_, count * sizeof(T)), cudaSuccess);
    std::memset(static_cast<void*>(data_), 0, count * sizeof(T));
  }
  managed(managed const&) = delete;
  managed& operator=(managed const&) = delete;
  ~managed() { cudaFree(data_); }

  T* get() const { return data_; }
  T& operator[](size_t i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
};

unsigned made(managed<void*> const& blocks, unsigned count = threads) {
  unsigned there = 0;
  for (unsigned i = 0; i < count; ++i) there += blocks[i] != nullptr;
  return there;
}

/// The driver's function.
template <class Function>
Function driver_function(Function, char const* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  EXPECT_EQ(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result), cudaSuccess) << name;
  return reinterpret_cast<Function>(found);
}

/// Blocks of 64 bytes that a module's kernel of 32 threads gets.
unsigned allocated_by(CUmodule module) {
  CUfunction kernel = nullptr;
  EXPECT_EQ(driver_function(&cuModuleGetFunction, "cuModuleGetFunction")(&kernel, module, "allocate"), CUDA_SUCCESS);
  managed<void*> const blocks(32);
  void** const to = blocks.get();
  unsigned long long const bytes = 64;
  void* arguments[] = {const_cast<void***>(&to), const_cast<unsigned long long*>(&bytes)};
  EXPECT_EQ(
      driver_function(&cuLaunchKernel, "cuLaunchKernel")(kernel, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr),
      CUDA_SUCCESS);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  return made(blocks, 32);
}

CUmodule loaded(char const* image) {
  CUmodule module = nullptr;
  EXPECT_EQ(driver_function(&cuModuleLoadData, "cuModuleLoadData")(&module, image), CUDA_SUCCESS);
  return module;
}
void unload(CUmodule module) { EXPECT_EQ(driver_function(&cuModuleUnload, "cuModuleUnload")(module), CUDA_SUCCESS); }

TEST(Archive, ServesNewAndMallocOfUneditedKernels) {
  auto const heap = bound_heap(settings_of("64MiB"));
  managed<int*> const arrays(threads);
  ASSERT_EQ(unit_of_program.make(arrays.get(), threads), cudaSuccess);
  std::set<int*> different;
  for (unsigned i = 0; i < threads; ++i) {
    ASSERT_NE(arrays[i], nullptr) << i;
    different.insert(arrays[i]);
  }
  EXPECT_EQ(different.size(), threads);
  EXPECT_EQ(statistics_of(heap).live_blocks, threads);
  std::vector<int> held(1 + 77 % 64);
  ASSERT_EQ(cudaMemcpy(held.data(), arrays[77], held.size() * sizeof(int), cudaMemcpyDefault), cudaSuccess);
  EXPECT_THAT(held, testing::Each(77));
  ASSERT_EQ(unit_of_program.release(reinterpret_cast<void**>(arrays.get()), threads), cudaSuccess);
  auto const after = statistics_of(heap);
  EXPECT_EQ(after.live_blocks, 0u);
  EXPECT_GT(after.highest_live_bytes, 0u);
  EXPECT_EQ(after.calls, 0u) << "not counted";
}

TEST(Archive, ServesAllItsNames) {
  auto const heap = bound_heap(settings_of("64MiB"));
  managed<unsigned> const faults(1);
  ASSERT_EQ(unit_of_program.exercise(faults.get(), threads), cudaSuccess);
  EXPECT_EQ(faults[0], 0u);
  EXPECT_EQ(statistics_of(heap).live_blocks, 0u);
}

TEST(Archive, CountsCallsExactly) {
  auto settings = settings_of("64MiB");
  settings.counts = 1;
  auto const heap = bound_heap(settings);
  managed<unsigned> const faults(1);
  ASSERT_EQ(unit_of_program.exercise(faults.get(), threads), cudaSuccess);
  auto const seen = statistics_of(heap);
  EXPECT_EQ(seen.calls, 7u * threads);
  EXPECT_EQ(seen.frees, 3u * threads);
  EXPECT_EQ(seen.refused_calls, 1u * threads) << "the alignment that is no power of two";
  EXPECT_THAT(report_of(heap), HasSubstr(std::to_string(7 * threads) + " calls, " + std::to_string(3 * threads) +
                                         " frees, " + std::to_string(threads) + " refused"));
}

TEST(Archive, ServesLibrariesWithAnArchiveOfTheirOwn) {
  auto const heap = bound_heap(settings_of("64MiB"));
  managed<void*> const blocks(threads);
  ASSERT_EQ(unit_of_library.allocate(blocks.get(), threads, 100), cudaSuccess);
  EXPECT_EQ(made(blocks), threads);
  EXPECT_EQ(statistics_of(heap).live_blocks, threads);
  ASSERT_EQ(unit_of_program.release(blocks.get(), threads), cudaSuccess) << "either frees what the other has made";
  EXPECT_EQ(statistics_of(heap).live_blocks, 0u);
}

// archive.A1: calls of a pool that grows would wait 20 ms.
TEST(Archive, RefusesAtOnceWhereThePoolKeepsItsSize) {
  auto settings = settings_of("2MiB");
  settings.counts = 1;
  auto const heap = bound_heap(settings);
  managed<void*> const blocks(threads);
  ASSERT_EQ(unit_of_program.allocate(blocks.get(), threads, 1), cudaSuccess);  // loads the kernel
  ASSERT_EQ(warpheap_reset(heap.get(), nullptr), WARPHEAP_OK);
  auto const began = std::chrono::steady_clock::now();
  ASSERT_EQ(unit_of_program.allocate(blocks.get(), threads, 4096), cudaSuccess);
  std::chrono::duration<double, std::milli> const took = std::chrono::steady_clock::now() - began;
  EXPECT_LT(took.count(), 15.0);
  unsigned const served = made(blocks);
  EXPECT_GT(served, 256u);
  EXPECT_LT(served, 513u);
  auto const seen = statistics_of(heap);
  EXPECT_EQ(seen.refused_calls, threads - served);
  EXPECT_GE(seen.largest_refused_bytes, 4096u);
  EXPECT_THAT(report_of(heap), HasSubstr("refused: the pool of 2 MiB was full"));
}

TEST(Archive, SaysThatARequestWasLargerThanThePool) {
  auto const heap = bound_heap(settings_of("16MiB"));
  managed<void*> const blocks(1);
  ASSERT_EQ(unit_of_program.allocate(blocks.get(), 1, 32 * mib), cudaSuccess);
  EXPECT_EQ(blocks[0], nullptr);
  EXPECT_THAT(report_of(heap), HasSubstr("1 refused: one was for more than the pool of 16 MiB"));
}

TEST(Archive, GrowsWhileItsKernelWaits) {
  auto const heap = bound_heap(settings_of("2MiB", "512MiB"));
  EXPECT_EQ(statistics_of(heap).committed_bytes, 2 * mib);
  managed<void*> const blocks(256);
  ASSERT_EQ(unit_of_program.allocate(blocks.get(), 256, mib / 2), cudaSuccess);
  EXPECT_EQ(made(blocks, 256), 256u);
  auto const seen = statistics_of(heap);
  EXPECT_GE(seen.committed_bytes, 128 * mib);
  EXPECT_EQ(seen.pool_bytes, 512 * mib);
  EXPECT_THAT(report_of(heap), HasSubstr(" have memory)"));
}

TEST(Archive, GrowsUpToItsSize) {
  auto const heap = bound_heap(settings_of("64MiB", "1"));
  EXPECT_EQ(statistics_of(heap).committed_bytes, 2 * mib);
  managed<void*> const blocks(threads);
  ASSERT_EQ(unit_of_program.allocate(blocks.get(), threads, mib), cudaSuccess);
  EXPECT_GT(made(blocks), 48u);
  EXPECT_LT(made(blocks), 65u);
  EXPECT_EQ(statistics_of(heap).committed_bytes, 64 * mib);
}

TEST(Archive, GrowsWhenItIsTold) {
  auto const heap = bound_heap(settings_of("2MiB", "64MiB"));
  size_t mapped = 0;
  ASSERT_EQ(warpheap_grow(heap.get(), 10 * mib, &mapped), WARPHEAP_OK) << warpheap_last_error();
  EXPECT_EQ(mapped, 10 * mib);
  EXPECT_EQ(statistics_of(heap).committed_bytes, 12 * mib);
}

TEST(Archive, IsEmptyAfterAReset) {
  auto const heap = bound_heap(settings_of("64MiB"));
  managed<void*> const blocks(threads);
  ASSERT_EQ(unit_of_program.allocate(blocks.get(), threads, 1000), cudaSuccess);
  EXPECT_EQ(statistics_of(heap).live_blocks, threads);
  ASSERT_EQ(warpheap_reset(heap.get(), nullptr), WARPHEAP_OK) << warpheap_last_error();
  EXPECT_EQ(statistics_of(heap).live_blocks, 0u);
}

TEST(Archive, GivesNothingBeforeItIsBoundAndAfter) {
  managed<void*> const blocks(threads);
  auto const now = [&](unit const& of) {
    EXPECT_EQ(of.allocate(blocks.get(), threads, 16), cudaSuccess);
    EXPECT_EQ(of.release(blocks.get(), threads), cudaSuccess);
    return made(blocks);
  };
  EXPECT_EQ(now(unit_of_program), 0u);
  {
    auto const heap = bound_heap(settings_of("64MiB"));
    EXPECT_EQ(now(unit_of_program), threads);
    ASSERT_EQ(warpheap_unbind(heap.get()), WARPHEAP_OK);
    EXPECT_EQ(now(unit_of_program), 0u);
    EXPECT_EQ(now(unit_of_library), 0u);
    ASSERT_EQ(warpheap_bind_program(heap.get()), WARPHEAP_OK);
    EXPECT_EQ(now(unit_of_library), threads);
  }
  EXPECT_EQ(now(unit_of_program), 0u) << "its heap is destroyed";
  EXPECT_EQ(now(unit_of_library), 0u);
}

// archive.A3
TEST(Archive, TheHeapThatWasBoundLastServes) {
  auto const first = bound_heap(settings_of("16MiB"));
  managed<void*> const blocks(threads);
  {
    auto const second = bound_heap(settings_of("16MiB"));
    ASSERT_EQ(warpheap_unbind(first.get()), WARPHEAP_OK);
    ASSERT_EQ(unit_of_program.allocate(blocks.get(), threads, 16), cudaSuccess);
    EXPECT_EQ(statistics_of(second).live_blocks, threads) << "unbinding the first leaves the second alone";
  }
  EXPECT_NE(warpheap_handle(first.get()), 0u);
}

TEST(Archive, ForgivesWhatReliesOnZerosAndSectors) {
  auto settings = settings_of("4MiB", "256MiB");
  settings.forgiving = 1;
  auto const heap = bound_heap(settings);
  managed<void*> const blocks(threads);
  managed<unsigned> const dirty(1);
  for (size_t const bytes : {size_t{8}, size_t{40}, size_t{20000}}) {
    ASSERT_EQ(unit_of_program.allocate(blocks.get(), threads, bytes), cudaSuccess);
    EXPECT_EQ(made(blocks), threads) << bytes;
    for (unsigned i = 0; i < threads; ++i) ASSERT_EQ(reinterpret_cast<size_t>(blocks[i]) % 32, 0u);
    ASSERT_EQ(unit_of_program.find_dirty(blocks.get(), threads, bytes, dirty.get()), cudaSuccess);
    EXPECT_EQ(dirty[0], 0u) << bytes;
  }
  EXPECT_GT(statistics_of(heap).committed_bytes, 4 * mib) << "the pool has grown, by zeros";
}

TEST(Archive, BindsAModuleAndSurvivesItsUnloading) {
  auto heap = bound_heap(settings_of("64MiB"));
  CUmodule const module = loaded(linked_module);
  EXPECT_EQ(allocated_by(module), 0u);
  ASSERT_EQ(warpheap_bind_module(heap.get(), module), WARPHEAP_OK) << warpheap_last_error();
  EXPECT_EQ(allocated_by(module), 32u);
  CUmodule const another = loaded(linked_module);
  ASSERT_EQ(warpheap_bind_module(heap.get(), another), WARPHEAP_OK) << warpheap_last_error();
  unload(another);
  heap.reset();
  EXPECT_EQ(allocated_by(module), 0u);
  unload(module);
}

TEST(Archive, BindsALibrary) {
  auto const heap = bound_heap(settings_of("64MiB"));
  CUlibrary library = nullptr;
  ASSERT_EQ(driver_function(&cuLibraryLoadData, "cuLibraryLoadData")(&library, linked_module, nullptr, nullptr, 0,
                                                                     nullptr, nullptr, 0),
            CUDA_SUCCESS);
  ASSERT_EQ(warpheap_bind_library(heap.get(), library), WARPHEAP_OK) << warpheap_last_error();
  CUmodule module = nullptr;
  ASSERT_EQ(driver_function(&cuLibraryGetModule, "cuLibraryGetModule")(&module, library), CUDA_SUCCESS);
  EXPECT_EQ(allocated_by(module), 32u);
  ASSERT_EQ(driver_function(&cuLibraryUnload, "cuLibraryUnload")(library), CUDA_SUCCESS);
}

TEST(Archive, RefusesAModuleWithoutTheArchive) {
  auto const heap = bound_heap(settings_of("16MiB"));
  CUmodule const module = loaded(alone_module);
  EXPECT_EQ(warpheap_bind_module(heap.get(), module), WARPHEAP_NOT_FOUND);
  EXPECT_THAT(warpheap_last_error(), HasSubstr("it was not linked with the archive"));
  unload(module);
}

// archive.A2
TEST(Archive, RefusesDeviceCodeOfAnotherVersion) {
  auto const heap = bound_heap(settings_of("16MiB"));
  CUmodule const module = loaded(linked_module);
  CUdeviceptr binding = 0;
  size_t bytes = 0;
  ASSERT_EQ(driver_function(&cuModuleGetGlobal, "cuModuleGetGlobal")(&binding, &bytes, module, WARPHEAP_DEVICE_HEAP),
            CUDA_SUCCESS);
  EXPECT_EQ(warpheap_bind_variable(heap.get(), binding, bytes - 16), WARPHEAP_WRONG_VERSION);
  unsigned long long const next = static_cast<unsigned long long>(warpheap_version()) + 100;
  ASSERT_EQ(cudaMemcpy(reinterpret_cast<char*>(binding) + 8, &next, sizeof next, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(warpheap_bind_variable(heap.get(), binding, bytes), WARPHEAP_WRONG_VERSION);
  EXPECT_THAT(warpheap_last_error(), HasSubstr("device code was linked with the archive of slab_bitmap of Warpheap "));
  EXPECT_EQ(allocated_by(module), 0u) << "nothing was written";
  unload(module);
}

TEST(Archive, RefusesSizesThatTheDeviceDoesNotHave) {
  warpheap_heap* heap = nullptr;
  auto settings = settings_of("4096GiB");
  EXPECT_EQ(warpheap_create(&heap, &settings), WARPHEAP_OUT_OF_MEMORY) << warpheap_last_error();
  EXPECT_EQ(heap, nullptr);
  settings = settings_of("free-4096GiB");
  EXPECT_EQ(warpheap_create(&heap, &settings), WARPHEAP_BAD_ARGUMENT);
  EXPECT_THAT(warpheap_last_error(), HasSubstr("leaves nothing"));
  settings = settings_of("64MiB", "2MiB");
  EXPECT_EQ(warpheap_create(&heap, &settings), WARPHEAP_BAD_ARGUMENT);
  EXPECT_THAT(warpheap_last_error(), HasSubstr("64 MiB at first cannot grow to 2 MiB"));
}

TEST(Archive, TakesAShareOfWhatIsFree) {
  size_t free = 0, total = 0;
  ASSERT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  auto const heap = bound_heap(settings_of("25%"));
  auto const seen = statistics_of(heap);
  auto const taken = seen.pool_bytes + seen.metadata_bytes;
  EXPECT_LE(taken, free / 4 + 8 * mib);
  EXPECT_GE(taken, free / 5);
}

// In a context of the driver's, which stays current.
TEST(Archive, LivesInAContextOfTheProgramsOwnAndOutlivesIt) {
  CUcontext own = nullptr, current = nullptr;
  auto const get_current = driver_function(&cuCtxGetCurrent, "cuCtxGetCurrent");
  ASSERT_EQ(cudaFree(nullptr), cudaSuccess);
  void* create = nullptr;
  cudaDriverEntryPointQueryResult found{};
  ASSERT_EQ(cudaGetDriverEntryPointByVersion("cuCtxCreate", &create, 11000, cudaEnableDefault, &found), cudaSuccess);
  using create_context = CUresult (*)(CUcontext*, unsigned, CUdevice);
  ASSERT_EQ(reinterpret_cast<create_context>(create)(&own, 0, 0), CUDA_SUCCESS);

  warpheap_heap* heap = nullptr;
  auto const settings = settings_of("16MiB", "64MiB");
  ASSERT_EQ(warpheap_create(&heap, &settings), WARPHEAP_OK) << warpheap_last_error();
  CUmodule const module = loaded(linked_module);
  ASSERT_EQ(warpheap_bind_module(heap, module), WARPHEAP_OK) << warpheap_last_error();
  EXPECT_EQ(allocated_by(module), 32u);
  EXPECT_EQ(warpheap_destroy(heap), WARPHEAP_OK) << warpheap_last_error();
  EXPECT_EQ(allocated_by(module), 0u);
  ASSERT_EQ(get_current(&current), CUDA_SUCCESS);
  EXPECT_EQ(current, own);

  ASSERT_EQ(warpheap_create(&heap, &settings), WARPHEAP_OK) << warpheap_last_error();
  ASSERT_EQ(driver_function(&cuCtxDestroy, "cuCtxDestroy")(own), CUDA_SUCCESS);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  char line[100];
  EXPECT_EQ(warpheap_report(heap, line, sizeof line), WARPHEAP_CONTEXT_GONE);
  EXPECT_EQ(warpheap_destroy(heap), WARPHEAP_CONTEXT_GONE);
  EXPECT_THAT(warpheap_last_error(), HasSubstr("was reset or destroyed"));
}

// Last, as they take the device's memory away.
TEST(ArchiveAtTheEnd, OutlivesAResetOfTheDevice) {
  for (char const* const grow : {static_cast<char const*>(nullptr), "64MiB"}) {
    auto settings = settings_of("16MiB", grow);
    settings.report = 1;
    warpheap_heap* heap = nullptr;
    ASSERT_EQ(warpheap_create(&heap, &settings), WARPHEAP_OK) << warpheap_last_error();
    ASSERT_EQ(warpheap_bind_program(heap), WARPHEAP_OK) << warpheap_last_error();
    ASSERT_EQ(cudaDeviceReset(), cudaSuccess);
    warpheap_statistics seen{};
    seen.struct_bytes = sizeof seen;
    EXPECT_EQ(warpheap_read_statistics(heap, &seen), WARPHEAP_CONTEXT_GONE);
    EXPECT_EQ(warpheap_unbind(heap), WARPHEAP_CONTEXT_GONE);
    EXPECT_EQ(warpheap_destroy(heap), WARPHEAP_CONTEXT_GONE);
    auto const another = bound_heap(settings_of("16MiB"));
    managed<void*> const blocks(threads);
    ASSERT_EQ(unit_of_program.allocate(blocks.get(), threads, 16), cudaSuccess);
    EXPECT_EQ(made(blocks), threads);
  }
}

// When the program ends, a line on standard error says what this heap has done.
TEST(ArchiveAtTheEnd, ReportsHeapsThatNobodyDestroys) {
  auto settings = settings_of("16MiB");
  settings.report = 1;
  warpheap_heap* heap = nullptr;
  ASSERT_EQ(warpheap_create(&heap, &settings), WARPHEAP_OK) << warpheap_last_error();
  ASSERT_EQ(warpheap_bind_program(heap), WARPHEAP_OK) << warpheap_last_error();
  managed<void*> const blocks(threads);
  ASSERT_EQ(unit_of_program.allocate(blocks.get(), threads, 16), cudaSuccess);
}

}  // namespace
