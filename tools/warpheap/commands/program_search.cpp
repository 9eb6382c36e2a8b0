// SPDX-License-Identifier: Apache-2.0
#include "program_search.hpp"

#include <fmt/format.h>

#include "cli/usage_error.hpp"

namespace warpheap::tool {

namespace {

using explore::search_end;

explore::search_record& record_in(std::string const& file) {
  auto* const record = explore::map_search_record(file.c_str());
  if (record == nullptr) throw usage_error{fmt::format("no file {} can be made", file)};
  return *record;
}

std::string schedules_of(explore::search_record const& record) {
  if (record.end == search_end::complete) return "all schedules";
  if (record.bounds_done == 0) return "not all schedules without preemptions";
  if (record.bounds_done == 1) return "all schedules without preemptions";
  u32 const most = record.bounds_done - 1;
  return fmt::format("all schedules of up to {} preemption{}", most, most == 1 ? "" : "s");
}

}  // namespace

std::string coverage_of(explore::search_record const& record) {
  if (record.launches == 0 && record.large_launch != 0)
    return fmt::format("launch of {} threads: too large to search", record.large_launch);
  if (record.launches == 0) return "no launch of 2 to 64 threads that leaves its schedule open";
  auto text = schedules_of(record);
  if (record.large_launch != 0) text += fmt::format("; a launch of {} threads took turns", record.large_launch);
  if (record.end == search_end::strayed) text += "; ended: under one schedule two runs differed";
  if (record.end == search_end::no_memory) text += "; ended: the search has used up its memory";
  if (record.end == search_end::too_long) text += "; ended: a schedule was too long to be written down";
  if (record.end == search_end::no_process) text += "; ended: the system starts no more processes";
  return text;
}

program_search::program_search(std::string file, std::chrono::milliseconds limit)
    : file_{std::move(file)}, limit_{limit}, record_{record_in(file_)} {
  record_.timeout_seconds = static_cast<u32>(std::chrono::ceil<std::chrono::seconds>(limit).count());
}

child_outcome program_search::run(std::string const& program, std::chrono::milliseconds time,
                                  std::atomic<bool> const& is_wanted) {
  auto made = run_child({program}, {"WARPHEAP_SEARCH=" + file_, "WARPHEAP_EXECUTION="}, time, is_wanted);
  if (record_.end == search_end::hung) made.ending = ending_after(limit_);
  made.succeeded |= made.was_stopped;
  return made;
}

}  // namespace warpheap::tool
