// SPDX-License-Identifier: Apache-2.0
// A return address in words: functions and source lines where addr2line and debug information are
// there, else what to ask addr2line for.
#pragma once

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "format_message.hpp"

namespace warpheap::host::detail {

/// The part of a path behind its last slash.
inline char const* file_name_of(char const* path) {
  char const* name = path;
  for (; *path; ++path)
    if (*path == '/') name = path + 1;
  return name;
}

/// The call that returns to `returns_to`, innermost line first: "push.cpp:41 in push.cpp:58".
/// Lines of the backend are left out where there are others.
inline std::string describe_call_site(void const* returns_to) {
  Dl_info found{};
  link_map* module = nullptr;
  if (!dladdr1(returns_to, &found, reinterpret_cast<void**>(&module), RTLD_DL_LINKMAP)) return "unknown code";
  char own[4096] = {};
  bool const is_program = !module->l_name || !*module->l_name;
  if (is_program && ::readlink("/proc/self/exe", own, sizeof own - 1) <= 0) return "unknown code";
  std::string const path = is_program ? own : module->l_name;
  // One byte back: the call itself may be the last of its line.
  u64 const address = reinterpret_cast<u64>(returns_to) - module->l_addr - 1;
  char digits[20];
  std::snprintf(digits, sizeof digits, "0x%llx", static_cast<unsigned long long>(address));
  std::string lines, ours;
  FILE* const answer =
      path.find('\'') == path.npos
          ? ::popen(format_message({"addr2line -i -e '", path, "' ", digits, " 2>/dev/null"}).c_str(), "r")
          : nullptr;
  char line[4096];
  while (answer && std::fgets(line, sizeof line, answer)) {
    std::string place = file_name_of(line);
    place.resize((std::min)(place.find_first_of(" \n"), place.size()));
    if (place.find(":?") != place.npos || place.find(":0") != place.npos) continue;
    bool const is_ours = std::strstr(line, "/warpheap/platform/") != nullptr;
    auto& list = is_ours ? ours : lines;
    list += format_message({list.empty() ? "" : " in ", place});
  }
  if (answer) ::pclose(answer);
  if (lines.empty()) lines = ours;
  if (!lines.empty()) return lines;
  return format_message({file_name_of(path.c_str()), "+", digits});
}

}  // namespace warpheap::host::detail
