// SPDX-License-Identifier: Apache-2.0
// Compiles with NVRTC, for the architectures named on the command line, the public header alone, a
// kernel that calls malloc and free, and one with containers, and prints the processor time of
// each. NVRTC has no standard headers, so a use of one in the core fails here. A kernel with a
// tight launch bound is compiled as relocatable machine code, for the first and the last
// architecture: there ptxas checks that all functions it calls fit the bound.
//
//   nvrtc INCLUDE_FOLDER ARCHITECTURE...      e.g. nvrtc include 75 90
//
// Exit status 0 if every compilation succeeded within its limit, 1 at the first that did not.
#include <nvrtc.h>

#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

namespace {

/// What is compiled, and its limit: in processor time, so that a busy machine does not fail.
struct sample {
  char const* name;
  char const* source;
  double most_seconds;
  bool relocatable = false;
};

constexpr sample samples[] = {{"header", "#include <warpheap/warpheap.hpp>\n", 0.5},
                              {"kernel", R"(
#include <warpheap/warpheap.hpp>
extern "C" __global__ void build(warpheap::heap_ref heap, void** results) {
  void* memory = heap.malloc(16 + threadIdx.x);
  if (threadIdx.x & 1) heap.free(memory);
  results[threadIdx.x] = memory;
}
)",
                               3},
                              {"containers", R"(
#include <warpheap/container/adjacency_list.hpp>
#include <warpheap/container/append_buffer.hpp>
#include <warpheap/container/arena.hpp>
#include <warpheap/container/hash_map.hpp>
#include <warpheap/container/owner.hpp>
#include <warpheap/container/string.hpp>
#include <warpheap/container/vector.hpp>
#include <warpheap/warpheap.hpp>
extern "C" __global__ void write(warpheap::heap_ref heap, warpheap::vector<double>* numbers, warpheap::string* texts) {
  warpheap::owner<double> number{heap.make<double>(threadIdx.x)};
  if (number) numbers[threadIdx.x].push_back(heap, *number);
  texts[threadIdx.x].append(heap, *number, 3);
  number.reset(heap);
}
extern "C" __global__ void insert(warpheap::heap_ref heap, warpheap::append_buffer<int>* appended,
                                  warpheap::hash_map<unsigned, unsigned>* map, warpheap::adjacency_list* neighbours,
                                  warpheap::arena<>* scratch) {
  appended->append(heap, 1);
  map->insert(warpheap::arena_ref{heap, *scratch}, threadIdx.x, 1);
  neighbours[threadIdx.x].insert(heap, 1);
}
)",
                               6}};

constexpr sample bounded = {"relocatable kernel", R"(
#include <warpheap/warpheap.hpp>
extern "C" __global__ void __launch_bounds__(1024) build(warpheap::heap_ref heap, void** results) {
  void* memory = heap.malloc(16 + threadIdx.x);
  if (threadIdx.x & 1) heap.free(memory);
  results[threadIdx.x] = memory;
}
)",
                            6, true};

std::string log_of(nvrtcProgram program) {
  std::size_t bytes = 0;
  nvrtcGetProgramLogSize(program, &bytes);
  std::string log(bytes, '\0');
  nvrtcGetProgramLog(program, log.data());
  return log;
}

bool compile(sample const& what, std::string const& include, std::string const& architecture) {
  nvrtcProgram program = nullptr;
  if (nvrtcCreateProgram(&program, what.source, "kernel.cu", 0, nullptr, nullptr) != NVRTC_SUCCESS) return false;
  std::string const kind = what.relocatable ? "sm_" : "compute_";  // machine code, or PTX
  std::string const arch = "--gpu-architecture=" + kind + architecture, path = "--include-path=" + include;
  std::vector<char const*> options{arch.c_str(), path.c_str(), "--std=c++20"};
  if (what.relocatable) options.push_back("--relocatable-device-code=true");

  auto const began = std::clock();
  bool const good = nvrtcCompileProgram(program, static_cast<int>(options.size()), options.data()) == NVRTC_SUCCESS;
  double const took = static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;

  std::printf("%s%-4s %s %s in %.3f s\n", kind.c_str(), architecture.c_str(), what.name, good ? "compiled" : "FAILED",
              took);
  if (!good) std::printf("%s\n", log_of(program).c_str());
  if (took > what.most_seconds)
    std::printf("%s%s: over %.1f s\n", kind.c_str(), architecture.c_str(), what.most_seconds);
  nvrtcDestroyProgram(&program);
  return good && took <= what.most_seconds;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: nvrtc INCLUDE_FOLDER ARCHITECTURE...\n");
    return 2;
  }
  for (int i = 2; i < argc; ++i)
    for (auto const& what : samples)
      if (!compile(what, argv[1], argv[i])) return 1;  // the next architecture would say the same
  for (int const i : {2, argc - 1})
    if (!compile(bounded, argv[1], argv[i])) return 1;
  return 0;
}
