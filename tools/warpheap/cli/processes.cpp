// SPDX-License-Identifier: Apache-2.0
#include "processes.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
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

int run_this_program(std::vector<std::string> const& arguments) {
  std::fflush(stdout);  // its lines come after ours
  std::string name = "warpheap";
  auto texts = arguments;
  std::vector<char*> pointers{name.data()};
  for (auto& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  pid_t child = 0;
  int const error = posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, pointers.data(), environ);
  if (error) throw usage_error{fmt::format("this program cannot be started again: {}", std::strerror(error))};
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) throw usage_error{fmt::format("a process was lost: {}", std::strerror(errno))};
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
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
