// SPDX-License-Identifier: Apache-2.0
#include "processes.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "usage_error.hpp"

namespace warpheap::tool {

namespace {

process_starter& starter() {
  static process_starter only;
  return only;
}

}  // namespace

void add_process_starter(process_starter start) { starter() = std::move(start); }

std::optional<int> run_as_processes(u32 processes) {
  if (!starter()) return std::nullopt;
  return starter()(processes);
}

void become_pes_program(char** arguments) {
  auto const program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "warpheap_pes";
  if (!std::filesystem::exists(program))
    throw usage_error{
        fmt::format("--pes: needs the program {}, which CMake builds with -D WARPHEAP_CUDA=ON and -D "
                    "WARPHEAP_NVSHMEM=FOLDER",
                    program.string())};
  execv(program.c_str(), arguments);
  throw usage_error{fmt::format("--pes: {}: {}", program.string(), std::strerror(errno))};
}

}  // namespace warpheap::tool
