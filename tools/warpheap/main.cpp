// SPDX-License-Identifier: Apache-2.0
#include "cli/processes.hpp"
#include "commands/choices.hpp"
#include "commands/command_line.hpp"

int main(int count, char** arguments) {
#if defined(WARPHEAP_TOOL_WITH_CUDA)
  warpheap::tool::add_cuda_backend(&warpheap::tool::make_cuda_backend);
#endif
  warpheap::tool::add_process_starter(
      [arguments](warpheap::u32) -> int { warpheap::tool::become_pes_program(arguments); });
  return warpheap::tool::run(count, arguments);
}
