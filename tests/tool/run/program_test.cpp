// SPDX-License-Identifier: Apache-2.0
// `warpheap run` as its users meet it.
#include <csignal>

#include "run_fixture.hpp"

namespace warpheap::tool { namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

using RunProgram = run_test;

TEST_F(RunProgram, AProgramWithoutCudaIsAsItIs) {
  auto const ended = started("say=hello status=3", "none", "");
  EXPECT_EQ(ended.status, 3);
  EXPECT_EQ(ended.out, "hello\n");
  EXPECT_THAT(ended.err, IsEmpty());
  EXPECT_THAT(calls(), IsEmpty());
}

TEST_F(RunProgram, ItsExitStatusIsTheProgramsAndTheHeapIsToReport) {
  auto const ended = started("say=hello library=calling.fat launch status=77", "address", "");
  EXPECT_EQ(ended.status, 77);
  EXPECT_EQ(ended.out, "hello\n");
  EXPECT_THAT(ended.err, IsEmpty());
  EXPECT_THAT(calls(), Contains("heap: WARPHEAP_REPORT is 1"));
}

TEST_F(RunProgram, OptionsBehindTheProgramAreTheProgramsOwn) {
  auto const ended = run("run --quiet /bin/echo --quiet --check -x");
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(ended.out, "--quiet --check -x\n");
}

TEST_F(RunProgram, SettingsOfTheHeapAreHandedOn) {
  started("library=calling.fat", "address", "--quiet --size 2GiB --grow 80% --forgiving");
  EXPECT_THAT(calls(), Contains("heap: WARPHEAP_SIZE is 2GiB"));
  EXPECT_THAT(calls(), Contains("heap: WARPHEAP_GROW is 80%"));
  EXPECT_THAT(calls(), Contains("heap: WARPHEAP_FORGIVING is 1"));
  started("library=calling.fat");
  EXPECT_THAT(calls(), Not(Contains(StartsWith("heap: WARPHEAP_")))) << "but for the default";
  EXPECT_THAT(contents(folder / "calls"), HasSubstr("heap: WARPHEAP_GROW is 1\n"));
  started("library=calling.fat", "address", "--quiet --grow 8GiB");
  EXPECT_THAT(calls(), Contains("heap: WARPHEAP_SIZE is 8GiB"));
  EXPECT_THAT(contents(folder / "calls"), HasSubstr("heap: WARPHEAP_GROW is 1\n"));
  started("library=calling.fat", "address", "--quiet --grow 0");
  EXPECT_THAT(calls(), Not(Contains(StartsWith("heap: WARPHEAP_SIZE"))));
  EXPECT_THAT(contents(folder / "calls"), HasSubstr("heap: WARPHEAP_GROW is 0\n"));
  set("WARPHEAP_SIZE", "3GiB");
  started("library=calling.fat", "address", "--quiet --grow 8GiB");
  EXPECT_THAT(calls(), Contains("heap: WARPHEAP_SIZE is 3GiB"));
  EXPECT_THAT(calls(), Contains("heap: WARPHEAP_GROW is 8GiB"));
}

TEST_F(RunProgram, SignalsThatTheToolIgnoresAreNotIgnored) {
  EXPECT_EQ(run("run --quiet sh -c 'kill -s PIPE $$; exit 3'").status, 128 + SIGPIPE);
}

TEST_F(RunProgram, HelpIsThatOfTheCommand) { EXPECT_EQ(run("help run true").out, run("run --help").out); }

TEST_F(RunProgram, SettingsThatTheArchiveRefusesAreRefused) {
  set("FAKE_SETTINGS_FAULT", "WARPHEAP_SIZE: 'much' is not a size");
  expect_refusal("run --size much true", "WARPHEAP_SIZE: 'much' is not a size");
}

TEST_F(RunProgram, TheProgramsFileStaysAsItIs) {
  std::filesystem::copy_file(program_for("address"), folder / "program");
  auto const before = contents(folder / "program"), image = contents(folder / "calling.fat");
  auto const ended =
      run("run --quiet '" + path_of("program") + "' address library=" + path_of("calling.fat") + " launch");
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(calls(), Contains("driver: library 1, cubin"));
  EXPECT_TRUE(contents(folder / "program") == before);
  EXPECT_TRUE(contents(folder / "calling.fat") == image);
}

TEST_F(RunProgram, AScriptIsRunAndSoAreItsPrograms) {
  auto const script = write("script", "#!/bin/sh\necho \"$1\"\n'" + program_for("address") +
                                          "' address library=" + path_of("calling.fat") + "\nexit 9\n");
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  auto const ended = run("run --quiet '" + script + "' hello");
  EXPECT_EQ(ended.status, 9) << ended.err;
  EXPECT_EQ(ended.out, "hello\n");
  EXPECT_THAT(calls(), Contains("driver: library 1, cubin"));
}

TEST_F(RunProgram, OtherPreloadedLibrariesStayAndFindWhatComesAfterThem) {
  set("LD_PRELOAD", std::string{FAKE_FOLDER} + "/libfake_preloaded.so");
  auto const ended = started("parent preloaded_launch library=calling.fat", "linked");
  unsetenv("LD_PRELOAD");
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.err, IsEmpty());
  auto const all = calls();
  EXPECT_THAT(all, Not(Contains(HasSubstr("its own"))));
  ASSERT_THAT(all, Contains("preloaded: the next getppid is another"));
  EXPECT_THAT(all, Contains("program: its parent is right"));
  EXPECT_THAT(all, Contains("preloaded: the next cuGraphLaunch is perhaps another"));
  EXPECT_THAT(all, Contains("driver: launch in context 0")) << "it reaches the driver";
  EXPECT_THAT(all, Contains("driver: library 1, cubin"));
}

TEST_F(RunProgram, WhatCannotBeRunIsRefusedInASentence) {
  expect_refusal("run", "no program: name one");
  expect_refusal("run " + path_of("nothing"), path_of("nothing") + " cannot be run: No such file or directory");
  expect_refusal("run warpheap_no_such_program", "warpheap_no_such_program cannot be run: No such file or directory");
  expect_refusal("run '" + folder.string() + "'", folder.string() + " cannot be run: Permission denied");
  expect_refusal("run " + write("text", "no program"), "text cannot be run: Permission denied");
}

TEST_F(RunProgram, AStaticProgramIsRefused) {
  relink::made_elf made;
  made.has_segments = true;
  made.sections = {relink::code_section("main", 32, 1)};
  write_bytes("static", made.file());
  std::filesystem::permissions(folder / "static", std::filesystem::perms::owner_all);
  auto const reason = "is linked statically: no library can be preloaded into it";
  expect_refusal("run '" + path_of("static") + "'", reason);
  expect_refusal("run --compare '" + path_of("static") + "'", reason);
  auto const path = std::getenv("PATH") + std::string{":"} + folder.string();
  auto const found = run_shell("PATH='" + path + "' '" + program + "' run static");
  EXPECT_EQ(found.status, 2);
  EXPECT_THAT(found.err, HasSubstr(reason));
}

TEST_F(RunProgram, WithoutADriverItSaysSo) {
  if (run_shell("ldconfig -p | grep -q libcuda.so.1").status == 0) GTEST_SKIP() << "a driver is on this machine";
  unsetenv("LD_LIBRARY_PATH");
  expect_refusal("run true", "no CUDA driver (libcuda.so.1) is on this machine");
}

TEST_F(RunProgram, AnOldDriverIsRefused) {
  set("FAKE_VERSION", "11080");
  expect_refusal("run true", "the CUDA driver is for CUDA 11.8, and the archive needs one for 13.0");
  set("FAKE_VERSION", "13000");
  EXPECT_EQ(run("run true").status, 0);
}

TEST_F(RunProgram, WithoutItsPartsItSaysWhichIsMissing) {
  std::filesystem::remove(folder / "lib/libwarpheap_host.so.1");
  auto const ended = run("run true");
  if (ended.status == 0) GTEST_SKIP() << "the checkout has them too";
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(ended.err, HasSubstr("the device archive (make archive) is not at " + path_of("lib")));
}

// --compare

TEST_F(RunProgram, TwoRunsThatWriteTheSameAreSaidToBe) {
  auto const ended = started("say=hello library=calling.fat launch", "address", "--compare");
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(lines_of(ended.out),
              ElementsAre("hello", "run", "", "heap        seconds  ended",
                          testing::MatchesRegex("CUDA's +[0-9]+\\.[0-9][0-9][0-9]  with status 0"),
                          testing::MatchesRegex("Warpheap's +[0-9]+\\.[0-9][0-9][0-9]  with status 0"), "",
                          "Both runs wrote the same."));
  // The first ran without us.
  EXPECT_THAT(calls(), ElementsAre("driver: library 1, fat binary", "driver: launch in context 0",
                                   "linker: -arch=sm_90", "heap: WARPHEAP_REPORT is 1", "heap: 1 made in context 0",
                                   "driver: limit 0 of 2048 in context 0", "driver: library 1, cubin",
                                   "heap: 1 bound to library 1 in context 0", "driver: launch in context 0"));
}

TEST_F(RunProgram, TwoRunsThatWriteDifferentThingsAreSaidTo) {
  auto const script =
      write("script", "#!/bin/sh\nif [ -n \"$WARPHEAP_ARCHIVE\" ]; then echo ours; exit 3; fi\necho CUDA\n");
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  auto const ended = run("run --compare --quiet '" + script + "'");
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.out, StartsWith("ours\n"));
  EXPECT_THAT(ended.out, HasSubstr("ended with exit status 3"));
  EXPECT_THAT(ended.out, HasSubstr("The runs differ in what they wrote, or in how they ended."));
}

TEST_F(RunProgram, WhatAnInterruptedComparisonStartedEndsWithIt) {
  // A run that gets so far writes down that it is alive.
  auto const script = write("slow", "#!/bin/sh\necho $$ >'" + path_of("started") + "'\nsleep 60\n");
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  auto const ended = run_interrupted("run --compare --quiet '" + script + "'");
  EXPECT_EQ(ended.status, 128 + SIGINT);
  auto const process = std::stoi(contents(folder / "started"));
  EXPECT_EQ(kill(process, 0), -1) << "process " << process << " is left";
}

TEST_F(RunProgram, LinesOfOursAreNotComparedWhereverTheyStand) {
  auto const script =
      write("partial", "#!/bin/sh\nprintf begin\n[ -z \"$LD_PRELOAD\" ] || echo 'warpheap: at most 0 B'\n");
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  EXPECT_THAT(run("run --compare --quiet '" + script + "'").out, HasSubstr("Both runs wrote the same."));
}

// --check

TEST_F(RunProgram, AFilesCodeIsListedWithWhatWouldBecomeOfIt) {
  using relink::code_kind;
  auto all = relink::fat_binary({{code_kind::cubin, 80, relink::program_cubin().file()},
                                 {code_kind::cubin, 90, relink::program_cubin().file()},
                                 {code_kind::ptx, 90, relink::bytes_of(relink::calling_ptx())}});
  auto const second = relink::fat_binary({{code_kind::cubin, 90, relink::program_cubin(true).file()}});
  auto const third = relink::fat_binary({{code_kind::ptx, 90, relink::bytes_of(relink::calling_ptx())}});
  all.insert(all.end(), second.begin(), second.end());
  all.insert(all.end(), third.begin(), third.end());
  write_bytes("library.so", relink::library_with(all));
  auto const ended = run_shell("cd '" + folder.string() + "' && '" + program + "' run --check library.so");
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(
      lines_of(ended.out),
      ElementsAre("run --check: file library.so", "", "code        what                          callers",
                  "sm_80       not taken on sm_90            caller",
                  "sm_90       would be linked               caller", "compute_90  not taken on sm_90            -",
                  "sm_90       does not call the heap        -", "compute_90  would be compiled and linked  -"));
}

TEST_F(RunProgram, AFilesCodeIsListedForTheGpuThatIsAskedFor) {
  unsetenv("LD_LIBRARY_PATH");
  write_bytes(
      "library.so",
      relink::library_with(relink::fat_binary({{relink::code_kind::cubin, 86, relink::program_cubin(true).file()}})));
  auto const library = "'" + path_of("library.so") + "'";
  EXPECT_THAT(run("run --check --arch 89 " + library).out, HasSubstr("does not call the heap"));
  EXPECT_THAT(run("run --check --arch 80 " + library).out, HasSubstr("not taken on sm_80"));
  expect_refusal("run --check --arch 4 " + library, "--arch");
}

TEST_F(RunProgram, CodeThatCannotBeLinkedIsListedWithTheReason) {
  using relink::code_kind;
  auto const broken = relink::program_cubin().file();
  auto const all = relink::fat_binary(
      {{code_kind::cubin, 90, {broken.begin(), broken.begin() + 200}}, {code_kind::cubin, 80, {1, 2, 3}}});
  write_bytes("library.so", relink::library_with(all));
  auto const ended = run("run --check '" + path_of("library.so") + "'");
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("keeps CUDA's heap: it is truncated"));
  EXPECT_THAT(ended.out, HasSubstr("not taken on sm_90"));
  set("FAKE_LINK_FAULT", "error: no memory");
  write_bytes("library.so", relink::library_with(relink::fat_binary({{code_kind::cubin, 90, broken}})));
  EXPECT_THAT(run("run --check '" + path_of("library.so") + "'").out,
              HasSubstr("keeps CUDA's heap: nvJitLink fails: error: no memory"));
}

TEST_F(RunProgram, TextIsListedAsTakenWhereMachineCodeCannotBeLinked) {
  using relink::code_kind;
  auto const all = relink::fat_binary({{code_kind::cubin, 90, {1, 2, 3}},
                                       {code_kind::ptx, 80, relink::bytes_of(relink::calling_ptx())},
                                       {code_kind::ptx, 90, relink::bytes_of(relink::calling_ptx())}});
  write_bytes("library.so", relink::library_with(all));
  auto const listed = lines_of(run("run --check '" + path_of("library.so") + "'").out);
  EXPECT_THAT(listed, Contains(StartsWith("sm_90       keeps CUDA's heap: ")));
  EXPECT_THAT(listed, Contains(StartsWith("compute_80  not taken on sm_90")));
  EXPECT_THAT(listed, Contains(StartsWith("compute_90  would be compiled and linked")));
}

TEST_F(RunProgram, FilesWithoutDeviceCodeAreRefused) {
  expect_refusal("run --check", "no file: name programs or libraries");
  expect_refusal("run --check " + path_of("nothing"), "nothing cannot be read: No such file or directory");
  expect_refusal("run --check '" + folder.string() + "'", "cannot be read: Is a directory");
  expect_refusal("run --check " + write("text", "no program"), "text: it is no 64-bit ELF file");
  expect_refusal("run --check /bin/sh", "/bin/sh has no device code of CUDA's");
  auto const whole =
      relink::library_with(relink::fat_binary({{relink::code_kind::cubin, 90, relink::program_cubin().file()}}));
  write_bytes("cut", {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(whole.size() / 2)});
  expect_refusal("run --check " + path_of("cut"), "cut: it is truncated");
}

}}  // namespace warpheap::tool
