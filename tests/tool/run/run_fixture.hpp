// SPDX-License-Identifier: Apache-2.0
// Programs that are started under `warpheap run`, on a machine that has a GPU of compute capability
// 9.0 as far as they can tell.
#pragma once

#include <gmock/gmock.h>

#include <regex>
#include <sstream>

#include "tests/tool/program_fixture.hpp"
#include "tests/tool/relink/made_cubin.hpp"
#include "tests/tool/relink/made_fat_binary.hpp"

namespace warpheap::tool {

using lines = std::vector<std::string>;

inline lines lines_of(std::string const& text) {
  std::istringstream all{text};
  lines found;
  for (std::string each; std::getline(all, each);) found.push_back(each);
  return found;
}

class run_test : public program_test {
 protected:
  void SetUp() override {
    program_test::SetUp();
    if (IsSkipped()) return;
    install();
    write_images();
    for (auto const* const name :
         {"FAKE_VERSION", "FAKE_REFUSES", "FAKE_SECOND_GPU", "FAKE_HEAP_FAULT", "FAKE_BIND_FAULT",
          "FAKE_SETTINGS_FAULT", "FAKE_LINK_FAULT", "FAKE_HEAP_LOADS", "WARPHEAP_ARCHIVE", "WARPHEAP_RUN_VERBOSE",
          "LD_PRELOAD", "WARPHEAP_SIZE", "WARPHEAP_GROW", "WARPHEAP_REPORT", "WARPHEAP_FORGIVING"})
      unsetenv(name);
    set("LD_LIBRARY_PATH", FAKE_FOLDER);
    set("WARPHEAP_NVJITLINK", FAKE_LINKER);
    set("FAKE_LINKED", path_of("linked"));
    set("FAKE_CALLS", path_of("calls"));
  }

  static void set(std::string const& name, std::string const& value) { setenv(name.c_str(), value.c_str(), 1); }

  std::string path_of(std::string const& name) const { return (folder / name).string(); }

  void write_bytes(std::string const& name, relink::byte_list const& bytes) const {
    write(name, {bytes.begin(), bytes.end()});
  }

  static std::string program_for(std::string const& way) {
    return std::string{FAKE_FOLDER} + (way.starts_with("linked") ? "/fake_program_linked" : "/fake_program");
  }

  /// The outcome of fake_program.cpp with these steps. Files of the steps are in the test's folder.
  outcome started(std::string const& steps, std::string const& way = "address",
                  std::string const& options = "--quiet") {
    std::filesystem::remove(folder / "calls");
    return run_shell("cd '" + folder.string() + "' && timeout 30 '" + program + "' run " + options + " '" +
                     program_for(way) + "' " + way + " " + steps);
  }

  /// What was asked of the libraries that stand in for CUDA's, without addresses, the linker's
  /// input and the setting that is the default.
  lines calls() const {
    lines found;
    for (auto const& each : lines_of(contents(folder / "calls"))) {
      bool const is_left_out =
          each.starts_with("linker: kind") || each.starts_with("program: image") || each == "heap: WARPHEAP_GROW is 1";
      if (!is_left_out) found.push_back(std::regex_replace(each, std::regex{" at 0x[0-9a-f]+"}, ""));
    }
    return found;
  }

 private:
  /// The program with its own preloaded library, and an archive that is none.
  void install() {
    auto const parts = folder / "lib/warpheap";
    std::filesystem::create_directories(parts);
    std::filesystem::create_directory(folder / "bin");
    auto const here = folder / "bin/warpheap";
    std::error_code is_elsewhere;
    std::filesystem::create_hard_link(program, here, is_elsewhere);
    if (is_elsewhere) std::filesystem::copy_file(program, here);
    std::filesystem::create_symlink(
        std::filesystem::path{program}.parent_path().parent_path() / "lib/warpheap/libwarpheap_run.so",
        parts / "libwarpheap_run.so");
    std::filesystem::create_symlink(std::filesystem::path{FAKE_FOLDER} / "libwarpheap_host.so",
                                    folder / "lib/libwarpheap_host.so.1");
    write_bytes("lib/warpheap/device_sm_90.cubin", relink::archive_cubin(90).file());
    program = here.string();
  }

  void write_images() const {
    using relink::code_kind;
    auto const calling = relink::program_cubin().file(), quiet = relink::program_cubin(true).file();
    write_bytes("calling.cubin", calling);
    write_bytes("calling.fat", relink::fat_binary({{code_kind::cubin, 90, calling}}));
    write_bytes("quiet.fat", relink::fat_binary({{code_kind::cubin, 90, quiet}}));
    write_bytes("both.fat", relink::fat_binary({{code_kind::cubin, 90, calling},
                                                {code_kind::ptx, 80, relink::bytes_of(relink::calling_ptx())}}));
    write("calling.ptx", relink::calling_ptx());
    write_bytes("linked", relink::linked_cubin().file());
  }
};

}  // namespace warpheap::tool
