// Starts NVSHMEM in processes that find each other through a file, so that a job needs no MPI: the
// first process writes its address there, the others read it. The processes come from run_as_pes(),
// mpirun or srun, or from a script that sets the variables of job_place.
//
// Source: NVSHMEM's initialization by unique id.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "symmetric_memory.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {

/// Which process of a job this is.
struct job_place {
  int pe = 0;   ///< its number
  int pes = 1;  ///< how many there are
  /// Its number among those of this machine: it takes this device, modulo their count.
  int pe_on_host = 0;
  std::string meeting;  ///< a file that all processes reach, and that is new for each job

  /// Whether something has started this process as one of a job.
  static bool is_given() { return variables() != nullptr; }

  /// From WARPHEAP_PE, WARPHEAP_PES, WARPHEAP_PE_ON_HOST and WARPHEAP_MEETING, or from the
  /// variables of Open MPI or Slurm; a job of one process if there are none. Processes of several
  /// machines need WARPHEAP_MEETING. Throws std::invalid_argument if a variable is no number or the
  /// numbers do not fit together.
  static job_place from_environment() {
    auto const* const from = variables();
    if (!from) return {0, 1, 0, file_for(std::to_string(getpid()))};
    job_place mine{number(from->pe), number(from->pes), number(from->pe_on_host), text("WARPHEAP_MEETING")};
    if (mine.meeting.empty()) mine.meeting = file_for(text(from->job));
    if (mine.pe < 0 || mine.pe >= mine.pes || mine.pe_on_host < 0)
      throw std::invalid_argument{std::string{from->pe} + " is " + text(from->pe) + ", " + from->pes + " " +
                                  text(from->pes) + ", " + from->pe_on_host + " " + text(from->pe_on_host)};
    return mine;
  }

  /// A file for the job called `job`, on this machine.
  static std::string file_for(std::string const& job) {
    return (std::filesystem::temp_directory_path() / ("warpheap-" + job)).string();
  }

 private:
  struct variable_names {
    char const *pe, *pes, *pe_on_host, *job;
  };
  /// Those that are set; nullptr if none are.
  static variable_names const* variables() {
    static constexpr variable_names known[] = {
        {"WARPHEAP_PE", "WARPHEAP_PES", "WARPHEAP_PE_ON_HOST", "WARPHEAP_MEETING"},
        {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "PMIX_NAMESPACE"},
        {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_JOB_ID"}};
    for (auto const& names : known)
      if (std::getenv(names.pe)) return &names;
    return nullptr;
  }

  static std::string text(char const* name) {
    char const* const value = std::getenv(name);
    return value ? value : "";
  }
  static int number(char const* name) {
    std::string const value = text(name);
    size_t end = 0;
    int read = 0;
    try {
      read = std::stoi(value, &end);
    } catch (std::logic_error const&) {
    }
    if (value.empty() || end != value.size())
      throw std::invalid_argument{std::string{name} + " is no number: " + value};
    return read;
  }
};

/// NVSHMEM in this process, from its start to its end. All PEs make and destroy one. Selects the
/// device of this process first.
class nvshmem_job {
 public:
  /// Throws std::runtime_error if the first process does not come to the meeting within `patience`.
  explicit nvshmem_job(job_place const& mine, std::chrono::seconds patience = std::chrono::seconds{60}) {
    int devices = 0;
    backend::throw_on_error(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
    backend::throw_on_error(cudaSetDevice(mine.pe_on_host % devices), "cudaSetDevice");
    nvshmemx_uniqueid_t id = mine.pe == 0 ? announce(mine) : wait_for_announcement(mine, patience);
    nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
    nvshmemx_set_attr_uniqueid_args(mine.pe, mine.pes, &id, &attributes);
    nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes);  // ends the process if it fails
    if (mine.pe == 0) std::filesystem::remove(mine.meeting);       // all have read it
  }
  nvshmem_job(nvshmem_job const&) = delete;
  nvshmem_job& operator=(nvshmem_job const&) = delete;
  ~nvshmem_job() { nvshmem_finalize(); }

 private:
  static nvshmemx_uniqueid_t announce(job_place const& mine) {
    nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
    if (nvshmemx_get_uniqueid(&id) != 0) throw std::runtime_error{"nvshmemx_get_uniqueid failed"};
    std::string const half = mine.meeting + ".half";
    std::ofstream{half, std::ios::binary}.write(reinterpret_cast<char const*>(&id), sizeof id);
    std::filesystem::rename(half, mine.meeting);  // so that nobody reads a part of it
    return id;
  }

  static nvshmemx_uniqueid_t wait_for_announcement(job_place const& mine, std::chrono::seconds patience) {
    auto const end = std::chrono::steady_clock::now() + patience;
    while (std::chrono::steady_clock::now() < end) {
      nvshmemx_uniqueid_t id;
      if (std::ifstream{mine.meeting, std::ios::binary}.read(reinterpret_cast<char*>(&id), sizeof id)) return id;
      std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
    throw std::runtime_error{"PE " + std::to_string(mine.pe) + " of " + std::to_string(mine.pes) + ": PE 0 wrote no " +
                             mine.meeting + " in " + std::to_string(patience.count()) + " s"};
  }
};

/// How many of this machine's devices `pes` processes take, so that each has as many of them:
/// otherwise NVSHMEM does not come to an end.
inline int devices_for(int pes) {
  int devices = 0;
  backend::throw_on_error(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
  while (pes % devices != 0) --devices;
  return devices;
}

/// Runs this program again, as `pes` processes of one job on this machine, and waits for them.
/// Returns 0 if all returned 0. When one ends otherwise, the rest are ended too, since they would
/// wait for it forever. `arguments` are those of main().
inline int run_as_pes(int pes, char** arguments) {
  std::string const meeting = job_place::file_for(std::to_string(getpid()));
  int const devices = devices_for(pes);
  std::vector<pid_t> running;
  for (int pe = 0; pe < pes; ++pe) {
    pid_t const child = fork();
    if (child < 0) throw std::runtime_error{"fork failed"};
    if (child == 0) {
      setenv("WARPHEAP_PE", std::to_string(pe).c_str(), 1);
      setenv("WARPHEAP_PES", std::to_string(pes).c_str(), 1);
      setenv("WARPHEAP_PE_ON_HOST", std::to_string(pe % devices).c_str(), 1);
      setenv("WARPHEAP_MEETING", meeting.c_str(), 1);
      execv("/proc/self/exe", arguments);
      _exit(127);
    }
    running.push_back(child);
  }
  int result = 0;
  while (!running.empty()) {
    int status = 0;
    pid_t const ended = wait(&status);
    std::erase(running, ended);
    if (status == 0 || result != 0) continue;
    result = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    for (pid_t const other : running) kill(other, SIGKILL);
  }
  std::filesystem::remove(meeting);
  return result;
}

}  // namespace warpheap::inline WARPHEAP_BACKEND
