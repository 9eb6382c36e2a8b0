// SPDX-License-Identifier: Apache-2.0
// `warpheap graph --pes`, as far as it goes without NVSHMEM: what is refused, and which program is
// started.
#include "tests/tool/program_fixture.hpp"

namespace warpheap::tool { namespace {

class GraphProcesses : public program_test {
 protected:
  /// The program moves to a folder of its own, where the test says what lies beside it.
  void move_program() {
    auto const moved = folder / "warpheap";
    std::filesystem::copy_file(program, moved);
    program = moved.string();
  }
};

TEST_F(GraphProcesses, AreAtLeastOneAndAtMost64) {
  for (auto const* const pes : {"0", "65", "-1", "two", "2.5"})
    expect_refusal("graph --pes " + std::string{pes}, "warpheap graph: --pes: ");
  expect_refusal("graph --pes 65", "65 is not between 1 and 64");
}

TEST_F(GraphProcesses, AreRefusedWithOptionsOfOneProcess) {
  expect_refusal("graph --pes 2 --gpus 0,0", "warpheap graph: --gpus: is of one process, and --pes is given");
  expect_refusal("graph --pes 2 --backend host",
                 "warpheap graph: --pes: NVSHMEM needs CUDA, and --backend host is given");
}

TEST_F(GraphProcesses, NeedAProgramBesideThisOne) {
  move_program();
  expect_refusal("graph --pes 2", "warpheap graph: --pes: needs the program " + (folder / "warpheap_pes").string());
  write("warpheap_pes", "no program");
  expect_refusal("graph --pes 2", (folder / "warpheap_pes").string() + ": Permission denied");
}

TEST_F(GraphProcesses, AreThatProgramWithTheSameArguments) {
  move_program();
  auto const path = write("warpheap_pes", "#!/bin/sh\necho \"$@\"\nexit 7\n");
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  auto const made = run("graph --pes 64 --scale 9 --json -");
  EXPECT_EQ(made.status, 7);
  EXPECT_EQ(made.out, "graph --pes 64 --scale 9 --json -\n");
  EXPECT_EQ(made.err, "");
}

}}  // namespace warpheap::tool
