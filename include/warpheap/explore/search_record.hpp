// SPDX-License-Identifier: Apache-2.0
// The file in which a search of a whole program says how far it is, while it goes on. The tool that
// starts it maps the file too.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

#include "deviation.hpp"

namespace warpheap::explore {

/// Why a search is over.
enum class search_end : u32 {
  none,       ///< it goes on, or was stopped
  complete,   ///< no schedule is left, of any number of preemptions
  failed,     ///< an execution ended with another status than 0, or by a signal
  hung,       ///< an execution did not end in time
  strayed,    ///< the program did something else under the same schedule
  no_memory,  ///< what the search keeps has grown to its limit
  too_long,   ///< a schedule had more deviations than a record holds
  no_process  ///< the system started no more
};

/// One process writes at a time: the search or its only child. A file of zeros is a new record.
struct search_record {
  static constexpr u32 most_deviations = 8192;

  u32 timeout_seconds;          ///< asked for: after these an execution counts as hung; 0: never
  std::atomic<u64> executions;  ///< those that were cut short, too
  u64 launches;                 ///< of these, those that were searched
  u64 large_launch;             ///< threads of the largest one that was not
  u32 bounds_done;              ///< every schedule of fewer preemptions than this has been executed
  search_end end;
  u32 deviation_count;  ///< of the last execution
  deviation deviations[most_deviations];

  /// The schedule of the last execution.
  std::vector<deviation> schedule() const { return {deviations, deviations + deviation_count}; }
};

/// The record in `file`, which is made if it is not there; null if that fails.
inline search_record* map_search_record(char const* file) {
  int const opened = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (opened < 0) return nullptr;
  void* memory = MAP_FAILED;
  if (ftruncate(opened, sizeof(search_record)) == 0)
    memory = mmap(nullptr, sizeof(search_record), PROT_READ | PROT_WRITE, MAP_SHARED, opened, 0);
  close(opened);
  return memory == MAP_FAILED ? nullptr : static_cast<search_record*>(memory);
}

}  // namespace warpheap::explore
