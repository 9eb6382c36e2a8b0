// SPDX-License-Identifier: Apache-2.0
// Traces in files. All numbers are little endian:
//
//   offset  bytes
//        0      8  "WHTRACE" and a zero byte
//        8      4  version, 1
//       12      4  bytes of the machine's name
//       16      8  pool bytes
//       24      8  records
//       32      8  records lost
//       40      8  unmatched frees
//       48      8  unseen frees
//       56         the machine's name
//                  then 24 bytes a record:
//        0      1  kind: call_kind
//        1      1  flags: 1 first of its group, 2 refused
//        2      2  log2 of the alignment
//        4      4  thread
//        8      4  thread block
//       12      6  bytes
//       18      6  block: index of the record that made it
//
// A reader believes nothing: a file that is short, long, or holds calls that no program can have
// made is refused with its fault.
#pragma once

#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string_view>

#include "calls.hpp"

namespace warpheap {
namespace trace_parts {

inline constexpr std::string_view file_magic{"WHTRACE\0", 8};
inline constexpr u64 file_version = 1, file_header_bytes = 56, file_record_bytes = 24, most_machine_bytes = 1024;

inline void append_number(std::string& to, u64 number, u32 bytes) {
  for (u32 i = 0; i < bytes; ++i) to.push_back(static_cast<char>(number >> 8 * i & 0xff));
}

inline u64 number_at(std::string_view bytes, size_t offset, u32 count) {
  u64 number = 0;
  for (u32 i = 0; i < count; ++i) number |= u64{static_cast<u8>(bytes[offset + i])} << 8 * i;
  return number;
}

inline void append_record(std::string& to, traced_call const& call) {
  append_number(to, static_cast<u32>(call.kind), 1);
  append_number(to, u64{call.first} | u64{call.refused} << 1, 1);
  append_number(to, call.log2_alignment, 2);
  append_number(to, call.thread, 4);
  append_number(to, call.thread_block, 4);
  append_number(to, call.bytes, 6);
  append_number(to, call.block, 6);
}

/// The call of a record. What the record has and no call can have makes it of no kind.
inline traced_call call_at(std::string_view record) {
  u64 const flags = number_at(record, 1, 1);
  traced_call call{.kind = static_cast<call_kind>(number_at(record, 0, 1)),
                   .first = (flags & 1) != 0,
                   .refused = (flags & 2) != 0,
                   .log2_alignment = static_cast<u32>(number_at(record, 2, 2)),
                   .thread = static_cast<u32>(number_at(record, 4, 4)),
                   .thread_block = static_cast<u32>(number_at(record, 8, 4)),
                   .bytes = number_at(record, 12, 6),
                   .block = number_at(record, 18, 6)};
  if (flags > 3 || (call.refused && !call.asks())) call.kind = call_kind::none;
  return call;
}

}  // namespace trace_parts

/// The file's contents.
inline std::string file_of(call_trace const& trace) {
  using namespace trace_parts;
  std::string const machine = trace.machine.substr(0, most_machine_bytes);
  std::string file{file_magic};
  append_number(file, file_version, 4);
  append_number(file, machine.size(), 4);
  for (u64 const number :
       {trace.pool_bytes, u64{trace.calls.size()}, trace.lost, trace.unmatched_frees, trace.unseen_frees})
    append_number(file, number, 8);
  file += machine;
  for (auto const& call : trace.calls) append_record(file, call);
  return file;
}

/// The trace in a file's contents. Throws std::invalid_argument, with the fault, if it is none.
inline call_trace trace_of(std::string_view file) {
  using namespace trace_parts;
  auto const refuse = [](std::string const& fault) { throw std::invalid_argument{fault}; };
  if (file.substr(0, 8) != file_magic) refuse("is no trace of Warpheap: it does not begin with WHTRACE");
  if (file.size() < file_header_bytes) refuse("ends within its header");
  if (u64 const version = number_at(file, 8, 4); version != file_version)
    refuse("is of version " + std::to_string(version) + ", and this program reads version 1");
  u64 const machine_bytes = number_at(file, 12, 4), records = number_at(file, 24, 8);
  if (machine_bytes > most_machine_bytes)
    refuse("names a machine by " + std::to_string(machine_bytes) + " bytes, more than 1024");
  u64 const before = file_header_bytes + machine_bytes;
  u64 const there = file.size() < before ? 0 : (file.size() - before) / file_record_bytes;
  if (there != records || file.size() != before + records * file_record_bytes)
    refuse("has " + std::to_string(file.size()) + " bytes, which are not its " + std::to_string(records) + " records");
  call_trace trace{.machine = std::string{file.substr(file_header_bytes, machine_bytes)},
                   .pool_bytes = number_at(file, 16, 8),
                   .lost = number_at(file, 32, 8),
                   .unmatched_frees = number_at(file, 40, 8),
                   .unseen_frees = number_at(file, 48, 8)};
  trace.calls.reserve(records);
  for (u64 i = 0; i < records; ++i)
    trace.calls.push_back(call_at(file.substr(before + i * file_record_bytes, file_record_bytes)));
  if (auto const fault = fault_of(trace); !fault.empty()) refuse(fault);
  return trace;
}

/// Writes a trace. Throws std::runtime_error if the file cannot be written.
inline void save(call_trace const& trace, std::string const& path) {
  std::ofstream file{path, std::ios::binary};
  auto const contents = file_of(trace);
  file.write(contents.data(), static_cast<std::streamsize>(contents.size()));
  file.close();
  if (!file) throw std::runtime_error{path + ": cannot be written: " + std::strerror(errno)};
}

/// Reads a trace. Throws std::invalid_argument, which names the file, if there is none or it is no
/// trace.
inline call_trace load_trace(std::string const& path) {
  std::ifstream file{path, std::ios::binary};
  if (!file) throw std::invalid_argument{path + ": " + std::strerror(errno)};
  std::string contents;
  char part[4096];
  while (file.read(part, sizeof part) || file.gcount() != 0) contents.append(part, static_cast<size_t>(file.gcount()));
  if (file.bad()) throw std::invalid_argument{path + ": cannot be read"};
  try {
    return trace_of(contents);
  } catch (std::invalid_argument const& fault) {
    throw std::invalid_argument{path + " " + fault.what()};
  }
}

}  // namespace warpheap
