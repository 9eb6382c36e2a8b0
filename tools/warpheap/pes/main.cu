// SPDX-License-Identifier: Apache-2.0
// warpheap_pes: `warpheap graph` as one process of an NVSHMEM job, or as the process that starts
// them. A program of its own, because NVSHMEM wants relocatable device code, and its libraries.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "cli/complaint.hpp"
#include "cli/processes.hpp"
#include "commands/choices.hpp"
#include "commands/command_line.hpp"
#include "commands/commands.hpp"
#include "job_backend.hpp"

namespace warpheap::tool {

namespace {

/// From its start, by make_job_backend(), to the end of the program. It has no owner that unwinds:
/// the end of NVSHMEM waits for all PEs, and an error may be of this one alone.
nvshmem_job* job = nullptr;

std::unique_ptr<backend> make_job_backend() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)
    throw usage_error{"--pes: NVSHMEM needs a CUDA device, and there is none that this program can use"};
  setenv("NVSHMEM_DISABLE_NVLS", "1", 0);  // heaps have no use for NVLink's multicast
  job = new nvshmem_job;
  return std::make_unique<job_backend>();
}

/// Most errors are of all PEs. PE 0 says those and ends, and whatever started the job ends the
/// others. An error of another PE alone is said after a second in which PE 0 did not.
void complain_for_job(std::string const& command, std::string const& message) {
  int const pe = job ? nvshmem_my_pe() : pe_place::given().value_or(pe_place{}).pe;
  if (pe == 0) return complain(command, message);
  std::this_thread::sleep_for(std::chrono::seconds{1});
  complain(command, "PE " + std::to_string(pe) + ": " + message);
}

int run_graph_alone(int count, char** arguments) {
  bool has_error = false;
  add_cuda_backend(&make_job_backend);
  if (!is_of_a_job())
    add_process_starter([arguments](u32 processes) { return run_as_pes(static_cast<int>(processes), arguments); });
  int const status =
      run(count, arguments, {.commands = {add_graph}, .complain = [&](auto const& command, auto const& message) {
                               has_error = true;
                               complain_for_job(command, message);
                             }});
  if (has_error) {
    std::fflush(nullptr);
    std::_Exit(status);
  }
  // PE 0 has said all: where one process ends with status 1, the others are ended.
  if (job) nvshmem_barrier_all();
  delete job;
  return status;
}

}  // namespace

std::unique_ptr<backend> make_host_backend() {
  throw usage_error{"--backend: NVSHMEM needs CUDA, and this program has no other backend"};
}

}  // namespace warpheap::tool

int main(int count, char** arguments) { return warpheap::tool::run_graph_alone(count, arguments); }
