// SPDX-License-Identifier: Apache-2.0
// `warpheap run`: starts a CUDA program as it is, with our heap behind malloc, free, new and delete
// of its kernels. A preloaded library does it; this command finds the library's parts, and tells
// what they would do.
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "cli/child_run.hpp"
#include "cli/interruption.hpp"
#include "cli/numbers.hpp"
#include "cli/standard_output.hpp"
#include "cli/usage_error.hpp"
#include "command.hpp"
#include "io/origin.hpp"
#include "io/text_table.hpp"
#include "relink/cubin.hpp"
#include "relink/relink.hpp"
#include "warpheap.h"

namespace warpheap::tool {

namespace {

using relink::code_kind;
using relink::device_code;

struct run_flags {
  std::string size;
  std::string grow;
  std::string arch;
  bool forgiving = false;
  bool quiet = false;
  bool verbose = false;
  bool check = false;
  bool compare = false;
  std::vector<std::string> line;  ///< the program, or files to check, and what is behind it
};

void declare_run(CLI::App& to, run_flags& flags) {
  to.footer(
      "warpheap run [OPTIONS] PROGRAM [ARGUMENTS]\n"
      "warpheap run --check [--arch N] FILE...\n"
      "PROGRAM is started as it is, and nothing on disk is changed. Device code that calls malloc, free, new or delete "
      "is linked with Warpheap's archive as it is loaded. Where that cannot be done, the program keeps CUDA's heap, "
      "and "
      "a line on standard error says why. This is a way to try Warpheap on a program, not to ship it. Exit status: the "
      "program's.");
  to.prefix_command();
  to.parse_complete_callback([&to, &flags] {
    flags.line = to.remaining();
    bool const is_unknown_option = !flags.line.empty() && flags.line.front().starts_with('-');
    if (is_unknown_option) throw CLI::ExtrasError(to.get_name(), flags.line);
  });
  add_text(to, "--size", flags.size,
           "The heap, as WARPHEAP_SIZE: 2GiB, 80%, free-1GiB (default: it grows up to half of the free memory)",
           "SIZE");
  add_text(to, "--grow", flags.grow, "The heap grows up to this, as WARPHEAP_GROW", "SIZE");
  add_switch(to, "--forgiving", flags.forgiving,
             "Memory is zero at first, and no two blocks share 32 bytes: for programs that are right by luck");
  add_switch(to, "--quiet", flags.quiet, "No report at the end, and calls are not counted for it");
  add_switch(to, "--verbose", flags.verbose, "Also say what was linked");
  add_switch(to, "--check", flags.check, "Run nothing: list the device code of files, and what would be linked");
  add_switch(to, "--compare", flags.compare, "Run the program twice, with CUDA's heap and with ours; print both times");
  add_text(to, "--arch", flags.arch,
           "With --check: compute capability of the GPU, such as 90 (default: of this machine's)", "N");
}

/// The folder with the preloaded library, and the one with the archive.
struct parts {
  std::string library =
      find_folder("lib/warpheap", "build/host/lib/warpheap", "libwarpheap_run.so", "the library of `run`") +
      "/libwarpheap_run.so";
  std::string archive =
      find_folder("lib", "build/archive/lib", "libwarpheap_host.so.1", "the device archive (make archive)");
};

std::vector<std::string> settings(run_flags const& flags) {
  parts const found;
  if (found.library.find_first_of(" :") != std::string::npos)
    throw usage_error{
        fmt::format("{}: the loader preloads no library whose path has a blank or a colon", found.library)};
  char const* const others = std::getenv("LD_PRELOAD");
  std::vector<std::string> made{
      fmt::format("LD_PRELOAD={}{}{}", found.library, others == nullptr ? "" : ":", others == nullptr ? "" : others),
      "WARPHEAP_ARCHIVE=" + found.archive};
  // --grow LIMIT alone: up to that, and a part of it at first. Without either the heap takes what
  // its kernels need, since the program allocates of the same memory.
  bool const has_size = !flags.size.empty() || std::getenv("WARPHEAP_SIZE") != nullptr;
  bool const is_limit = !flags.grow.empty() && flags.grow != "0" && flags.grow != "1";
  bool const is_said = has_size || !flags.grow.empty() || std::getenv("WARPHEAP_GROW") != nullptr;
  if (!flags.size.empty()) made.push_back("WARPHEAP_SIZE=" + flags.size);
  else if (is_limit && !has_size) made.push_back("WARPHEAP_SIZE=" + flags.grow);
  if (!is_said || (is_limit && !has_size)) made.emplace_back("WARPHEAP_GROW=1");
  else if (!flags.grow.empty()) made.push_back("WARPHEAP_GROW=" + flags.grow);
  if (flags.forgiving) made.emplace_back("WARPHEAP_FORGIVING=1");
  if (flags.verbose) made.emplace_back("WARPHEAP_RUN_VERBOSE=1");
  if (!flags.quiet) made.emplace_back("WARPHEAP_REPORT=1");
  return made;
}

/// Calls a function of the CUDA driver; whether it could be called, and succeeded.
template <class... Arguments>
bool asked_driver(char const* name, Arguments... arguments) {
  static auto* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) throw usage_error{"no CUDA driver (libcuda.so.1) is on this machine"};
  auto* const function = reinterpret_cast<int (*)(Arguments...)>(dlsym(driver, name));
  return function != nullptr && function(arguments...) == 0;
}

void set(std::string const& setting) {
  auto const equals = setting.find('=');
  setenv(setting.substr(0, equals).c_str(), setting.c_str() + equals + 1, 1);
}

/// Refuses what would fail in the program, where it can be seen before: settings of the environment
/// that the archive's library refuses, a driver that is too old for it, and a heap that no GPU has.
void expect_possible(run_flags const& flags, std::vector<std::string> const& environment) {
  int version = 0;
  if (!asked_driver("cuDriverGetVersion", &version)) throw usage_error{"the CUDA driver does not say its version"};
  for (auto const& each : environment)
    if (each.starts_with("WARPHEAP_SIZE=") || each.starts_with("WARPHEAP_GROW=")) set(each);
  auto const path = parts{}.archive + "/libwarpheap_host.so.1";
  auto* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw usage_error{dlerror()};
  auto const find = [&]<class Function>(Function*, char const* name) {
    auto* const found = reinterpret_cast<Function*>(dlsym(library, name));
    if (found == nullptr) throw usage_error{fmt::format("{} has no function {}", path, name)};
    return found;
  };
  int const oldest = find(&warpheap_oldest_driver, "warpheap_oldest_driver")();
  if (version < oldest)
    throw usage_error{fmt::format("the CUDA driver is for CUDA {}.{}, and the archive needs one for {}.{}",
                                  version / 1000, version % 1000 / 10, oldest / 1000, oldest % 1000 / 10)};
  warpheap_settings settings;
  if (find(&warpheap_settings_from_environment, "warpheap_settings_from_environment")(&settings) != WARPHEAP_OK)
    throw usage_error{find(&warpheap_last_error, "warpheap_last_error")()};
  bool const is_relative = flags.size.empty() || flags.size.ends_with('%') || flags.size.starts_with("free");
  size_t bytes = 0;
  if (is_relative || !asked_driver("cuInit", 0u) || !asked_driver("cuDeviceTotalMem_v2", &bytes, 0)) return;
  if (parse_bytes("--size", flags.size) > bytes)
    throw usage_error{fmt::format("--size {}: the GPU has {}", flags.size, format_bytes(bytes))};
}

/// The file that is started for `name`; `name` itself if none is found.
std::string found_program(std::string const& name) {
  char const* const folders = std::getenv("PATH");
  if (name.find('/') != std::string::npos || folders == nullptr) return name;
  std::istringstream all{folders};
  for (std::string folder; std::getline(all, folder, ':');) {
    auto const path = std::filesystem::path{folder} / name;
    std::error_code ignored;
    if (access(path.c_str(), X_OK) == 0 && !std::filesystem::is_directory(path, ignored)) return path.string();
  }
  return name;
}

/// Refuses a program that asks for no loader, which is what preloads libraries. A script's
/// interpreter asks for one.
void expect_loader(std::string const& name) {
  std::ifstream file{found_program(name), std::ios::binary};
  Elf64_Ehdr header{};
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  bool const is_readable =
      file && std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64;
  if (!is_readable) return;
  file.seekg(static_cast<std::streamoff>(header.e_phoff));
  for (u32 i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    file.read(reinterpret_cast<char*>(&segment), sizeof segment);
    if (segment.p_type == PT_INTERP) return;
  }
  throw usage_error{fmt::format("{} is linked statically: no library can be preloaded into it", name)};
}

[[noreturn]] void become(std::vector<std::string> line, std::vector<std::string> const& environment) {
  for (auto const& each : environment) set(each);
  std::vector<char*> arguments;
  arguments.reserve(line.size() + 1);
  for (auto& each : line) arguments.push_back(each.data());
  arguments.push_back(nullptr);
  // What this program ignores, the other need not.
  for (int const signal : {SIGPIPE, SIGXFSZ})
    if (!is_ignored_from_outside(signal)) std::signal(signal, SIG_DFL);
  execvp(arguments[0], arguments.data());
  throw usage_error{fmt::format("{} cannot be run: {}", line[0], std::strerror(errno))};
}

/// A run of the program, and its time.
struct timed_run {
  child_outcome outcome;
  std::string said;  ///< by our libraries
  double seconds;
};

/// Takes the lines of ours out of a program's output. They may stand within a line of the
/// program's, as its streams are written in pieces.
std::string take_ours(std::string& output) {
  std::string taken;
  for (std::string_view const begin : {"warpheap run: ", "warpheap: at most "})
    for (auto at = output.find(begin); at != std::string::npos; at = output.find(begin, at)) {
      auto const end = std::min(output.find('\n', at), output.size() - 1) + 1;
      taken += output.substr(at, end - at);
      output.erase(at, end - at);
    }
  return taken;
}

timed_run run_timed(std::vector<std::string> const& line, std::vector<std::string> const& environment) {
  using clock = std::chrono::steady_clock;
  deferred_interruption const interruption;
  std::atomic<bool> wanted{true};
  std::jthread const watch{[&](std::stop_token const& ends) {
    while (!ends.stop_requested() && wanted) {
      if (interruption.signal() != 0) wanted = false;
      std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
  }};
  auto const begin = clock::now();
  timed_run made{run_child(line, environment, std::chrono::hours{24}, wanted), {}, 0};
  made.seconds = std::chrono::duration<double>(clock::now() - begin).count();
  if (int const signal = interruption.signal()) die_of(signal);
  made.said = take_ours(made.outcome.output);
  return made;
}

int compare(std::vector<std::string> const& line, std::vector<std::string> const& environment) {
  auto const before = run_timed(line, {});
  auto const after = run_timed(line, environment);
  print_output("{}{}", after.outcome.output, after.said);
  text_table table{{"heap", ">seconds", "ended"}, 1};
  for (auto const& [heap, made] : {std::pair{"CUDA's", &before}, std::pair{"Warpheap's", &after}})
    table.add(
        {heap, fmt::format("{:.3f}", made->seconds), made->outcome.succeeded ? "with status 0" : made->outcome.ending});
  bool const same = before.outcome.output == after.outcome.output && before.outcome.ending == after.outcome.ending;
  table.note(same ? "Both runs wrote the same." : "The runs differ in what they wrote, or in how they ended.");
  print_output("{}", table.text("run", {.says_shared_values_once = false}));
  return after.outcome.succeeded ? 0 : 1;
}

std::vector<u8> contents_of(std::string const& path) {
  std::ifstream file{path, std::ios::binary};
  std::error_code ignored;
  if (!file || std::filesystem::is_directory(path, ignored))
    throw usage_error{fmt::format("{} cannot be read: {}", path, std::strerror(file ? EISDIR : errno))};
  return {std::istreambuf_iterator<char>{file}, {}};
}

constexpr std::string_view keeps = "keeps CUDA's heap: ";

/// What would become of a code.
std::string prospect(device_code const& code, u32 arch, relink::heap_archive const& archive) {
  try {
    if (!relink::calls_heap(code)) return "does not call the heap";
    relink::relinked(code, archive, arch);
    return code.kind == code_kind::cubin ? "would be linked" : "would be compiled and linked";
  } catch (relink::unusable_code const& fault) {
    return fmt::format("{}{}", keeps, fault.what());
  }
}

/// Those that machine code names; none if it cannot be read, of which prospect() tells.
std::string callers(device_code const& code) {
  if (code.kind == code_kind::ptx) return {};
  try {
    return fmt::format("{}", fmt::join(relink::heap_callers(relink::elf_view{code.bytes}), " "));
  } catch (relink::unusable_code const&) {
    return {};
  }
}

/// Lists what a fat binary holds.
void add_codes(std::string const& path, std::vector<device_code> const& codes, u32 arch,
               relink::heap_archive const& archive, text_table& table) {
  auto const* const taken = relink::code_for(codes, arch);
  auto const told = taken == nullptr ? "" : prospect(*taken, arch, archive);
  // As in a run, PTX is taken where machine code cannot be linked.
  bool const needs_text = told.starts_with(keeps);
  for (auto const& code : codes) {
    bool const is_text = needs_text && &code == relink::text_for(codes, arch) && &code != taken;
    auto what = fmt::format("not taken on sm_{}", arch);
    if (&code == taken) what = told;
    if (is_text) what = prospect(code, arch, archive);
    table.add(
        {path, fmt::format("{}_{}", code.kind == code_kind::cubin ? "sm" : "compute", code.arch), what, callers(code)});
  }
}

/// Lists the device code of a file.
void check_file(std::string const& path, u32 arch, relink::heap_archive const& archive, text_table& table) {
  auto const bytes = contents_of(path);
  std::vector<std::vector<device_code>> found;
  try {
    found = relink::codes_of_file(bytes);
  } catch (relink::unusable_code const& fault) {
    throw usage_error{fmt::format("{}: {}", path, fault.what())};
  }
  if (found.empty()) throw usage_error{fmt::format("{} has no device code of CUDA's", path)};
  for (auto const& codes : found) add_codes(path, codes, arch, archive, table);
}

/// The compute capability that is asked for, or that of the first GPU.
u32 wanted_arch(std::string const& typed) {
  if (!typed.empty()) return static_cast<u32>(parse_count("--arch", typed, 50, 999));
  constexpr int major_of = 75, minor_of = 76;  // of CUdevice_attribute
  int major = 0, minor = 0;
  if (!asked_driver("cuInit", 0u) || !asked_driver("cuDeviceGetAttribute", &major, major_of, 0) ||
      !asked_driver("cuDeviceGetAttribute", &minor, minor_of, 0))
    throw usage_error{"no GPU is on this machine: say --arch"};
  return static_cast<u32>(10 * major + minor);
}

int check(run_flags const& flags) {
  u32 const arch = wanted_arch(flags.arch);
  relink::heap_archive const archive{parts{}.archive + "/warpheap"};
  text_table table{{"file", "code", "what", "callers"}, 2};
  for (auto const& path : flags.line) check_file(path, arch, archive, table);
  print_output("{}", table.text("run --check"));
  return 0;
}

int run_program(run_flags const& flags) {
  if (flags.line.empty())
    throw usage_error{flags.check ? "no file: name programs or libraries" : "no program: name one"};
  if (flags.check) return check(flags);
  expect_loader(flags.line[0]);
  auto const environment = settings(flags);
  expect_possible(flags, environment);
  if (flags.compare) return compare(flags.line, environment);
  become(flags.line, environment);
}

}  // namespace

void add_run(CLI::App& program, int& status) {
  add_command(program, "run", "Run a CUDA program with our heap behind its kernels' malloc", declare_run, run_program,
              status);
}

}  // namespace warpheap::tool
