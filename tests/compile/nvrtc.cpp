// Compiles a kernel that uses the whole public header with NVRTC, for the architectures named on the command line, and
// prints how much processor time each took. NVRTC has no standard headers: what slips into the core fails here.
//
//   nvrtc INCLUDE_FOLDER ARCHITECTURE...      e.g. nvrtc include 75 90
//
// Exit status 0 if every compilation succeeded within the limit, 1 at the first that did not.
#include <nvrtc.h>

#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

namespace {

// Of processor time, so that a busy machine does not fail. The goal is half a second.
constexpr double most_seconds = 3;

constexpr char kernel[] = R"(
#include <warpheap/warpheap.hpp>
extern "C" __global__ void build(warpheap::heap_ref heap, void** results) {
  void* memory = heap.malloc(16 + threadIdx.x);
  if (threadIdx.x & 1) heap.free(memory);
  results[threadIdx.x] = memory;
}
)";

std::string log_of(nvrtcProgram program) {
  std::size_t bytes = 0;
  nvrtcGetProgramLogSize(program, &bytes);
  std::string log(bytes, '\0');
  nvrtcGetProgramLog(program, log.data());
  return log;
}

bool compile(std::string const& include, std::string const& architecture) {
  nvrtcProgram program = nullptr;
  if (nvrtcCreateProgram(&program, kernel, "kernel.cu", 0, nullptr, nullptr) != NVRTC_SUCCESS) return false;
  std::string const arch = "--gpu-architecture=compute_" + architecture, path = "--include-path=" + include;
  char const* const options[] = {arch.c_str(), path.c_str(), "--std=c++20"};

  auto const began = std::clock();
  bool const good = nvrtcCompileProgram(program, 3, options) == NVRTC_SUCCESS;
  double const took = static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;

  std::printf("compute_%-4s %s in %.3f s\n", architecture.c_str(), good ? "compiled" : "FAILED", took);
  if (!good) std::printf("%s\n", log_of(program).c_str());
  if (took > most_seconds) std::printf("compute_%s: over %.0f s\n", architecture.c_str(), most_seconds);
  nvrtcDestroyProgram(&program);
  return good && took <= most_seconds;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: nvrtc INCLUDE_FOLDER ARCHITECTURE...\n");
    return 2;
  }
  for (int i = 2; i < argc; ++i)
    if (!compile(argv[1], argv[i])) return 1;  // what one architecture refuses, the next refuses in the same words
  return 0;
}
