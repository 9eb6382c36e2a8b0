#include "cli/choices.hpp"
#include "cli/command_line.hpp"

int main(int count, char** arguments) {
#if defined(WARPHEAP_TOOL_WITH_CUDA)
  warpheap::tool::add_cuda_backend(&warpheap::tool::make_cuda_backend);
#endif
  return warpheap::tool::run(count, arguments);
}
