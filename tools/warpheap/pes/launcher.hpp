// SPDX-License-Identifier: Apache-2.0
// A job of processes over NVSHMEM: this program again, which run_as_pes() starts on this machine,
// or processes that mpirun or srun starts, whose way of finding each other NVSHMEM knows.
//
// Those of run_as_pes() find each other by a pipe that they inherit: PE 0 writes its address there,
// once for each of the others. So nothing is left behind, no other job is met, and where PE 0 ends
// before, the pipe does too.
//
// Source: NVSHMEM's initialization by unique id.
#pragma once

#include <limits.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "child_processes.hpp"
#include "warpheap/nvshmem/symmetric_memory.hpp"

namespace warpheap::tool {

/// What run_as_pes() tells each process.
struct pe_place {
  static constexpr char const* variable = "WARPHEAP_PE";

  int pe = 0, pes = 1, device = 0;
  int from = -1, to = -1;  ///< the ends of the pipe

  std::string text() const {
    std::string all;
    for (int const each : {pe, pes, device, from, to}) all += std::to_string(each) + " ";
    return all;
  }

  /// None if run_as_pes() has not started this process. Throws std::invalid_argument if the
  /// variable does not name a place.
  static std::optional<pe_place> given() {
    char const* const value = std::getenv(variable);
    if (!value) return {};
    pe_place place;
    int const read = std::sscanf(value, "%d %d %d %d %d", &place.pe, &place.pes, &place.device, &place.from, &place.to);
    if (read != 5 || place.pe < 0 || place.pe >= place.pes || place.device < 0)
      throw std::invalid_argument{std::string{variable} + " is no place in a job: " + value};
    return place;
  }
};

/// Whether this process is one of a job, of run_as_pes() or of mpirun or srun.
inline bool is_of_a_job() {
  for (char const* const name : {pe_place::variable, "PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"})
    if (std::getenv(name)) return true;
  return false;
}

/// NVSHMEM in this process, from its start to its end, and this process's device. All PEs make and
/// destroy one.
class nvshmem_job {
 public:
  /// Throws std::runtime_error if PE 0 ends before it has said where it is.
  nvshmem_job() {
    if (auto const place = pe_place::given()) {
      cuda_backend::throw_on_error(cudaSetDevice(place->device), "cudaSetDevice");
      start_at(*place);
    } else {
      nvshmem_init();  // ends the process if it fails
      cuda_backend::throw_on_error(cudaSetDevice(nvshmem_team_my_pe(NVSHMEMX_TEAM_NODE) % cuda_backend::device_count()),
                                   "cudaSetDevice");
    }
  }
  nvshmem_job(nvshmem_job const&) = delete;
  nvshmem_job& operator=(nvshmem_job const&) = delete;
  ~nvshmem_job() { nvshmem_finalize(); }

 private:
  static void start_at(pe_place const& place) {
    nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
    // A process that reads must not hold the pipe open for writing: it would not see it end.
    close(place.pe == 0 ? place.from : place.to);
    if (place.pe == 0) announce(id, place);
    else if (read(place.from, &id, sizeof id) != static_cast<ssize_t>(sizeof id))
      throw std::runtime_error{"PE " + std::to_string(place.pe) + " of " + std::to_string(place.pes) +
                               ": PE 0 ended before NVSHMEM had started"};
    close(place.pe == 0 ? place.to : place.from);
    nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
    nvshmemx_set_attr_uniqueid_args(place.pe, place.pes, &id, &attributes);
    nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes);  // ends the process if it fails
  }

  /// Each write is whole, since it is shorter than PIPE_BUF, and so is each read of as many bytes.
  static_assert(sizeof(nvshmemx_uniqueid_t) <= PIPE_BUF);
  static void announce(nvshmemx_uniqueid_t& id, pe_place const& place) {
    if (nvshmemx_get_uniqueid(&id) != 0) throw std::runtime_error{"nvshmemx_get_uniqueid failed"};
    for (int other = 1; other < place.pes; ++other)
      if (write(place.to, &id, sizeof id) != static_cast<ssize_t>(sizeof id))
        throw std::runtime_error{"PE 0: no other process reads its address"};
  }
};

/// How many of this machine's devices `pes` processes take, so that each has as many of them:
/// otherwise NVSHMEM does not come to an end.
inline int devices_for(int pes) {
  int devices = cuda_backend::device_count();
  while (pes % devices != 0) --devices;
  return devices;
}

/// Runs this program again, as `pes` processes of one job on this machine, and waits for them.
/// Returns 0 if all returned 0. `arguments` are those of main().
inline int run_as_pes(int pes, char** arguments) {
  int const devices = devices_for(pes);
  std::array<int, 2> meeting{};
  if (pipe(meeting.data()) != 0) throw std::system_error{errno, std::generic_category(), "cannot make a pipe"};
  child_processes processes;
  for (int pe = 0; pe < pes; ++pe) {
    pe_place const place{pe, pes, pe % devices, meeting[0], meeting[1]};
    // Before the fork: a copy of a thread that had a lock of the environment's would keep it.
    setenv(pe_place::variable, place.text().c_str(), 1);
    processes.start([&] { execv("/proc/self/exe", arguments); });
  }
  unsetenv(pe_place::variable);
  for (int const end : meeting) close(end);
  return processes.wait_for_all();
}

}  // namespace warpheap::tool
