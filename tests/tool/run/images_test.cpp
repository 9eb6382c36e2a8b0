// SPDX-License-Identifier: Apache-2.0
// Which image the driver is given, and what becomes of what it loads.
#include "run_fixture.hpp"

namespace warpheap::tool { namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

using RunImages = run_test;

// What is asked until the heap is there.
std::string const linked = "linker: -arch=sm_90", made = "heap: 1 made in context 0",
                  raised = "driver: limit 0 of 2048 in context 0", launched = "driver: launch in context 0";

/// The addresses in a line for each that has one.
lines addresses_in(std::string const& text) {
  lines found;
  for (auto const& each : lines_of(text))
    if (auto const at = each.find(" at 0x"); at != std::string::npos) found.push_back(each.substr(at));
  return found;
}

TEST_F(RunImages, AnImageThatCallsNoHeapIsLeftAlone) {
  auto const ended = started("library=quiet.fat launch unload=0 module=quiet.fat");
  EXPECT_EQ(ended.status, 0);
  EXPECT_THAT(ended.err, IsEmpty());
  EXPECT_THAT(calls(), ElementsAre("driver: library 1, fat binary", launched, "driver: library 1 unloaded",
                                   "driver: module 2, fat binary"));
  auto const places = addresses_in(contents(folder / "calls"));
  ASSERT_EQ(places.size(), 4u);
  EXPECT_EQ(places[0], places[1]) << "the driver is given the program's own image, and no copy of it";
  EXPECT_EQ(places[2], places[3]);
}

TEST_F(RunImages, AnImageThatCallsTheHeapIsReplacedAndBoundBeforeItRuns) {
  auto const ended = started("library=calling.fat launch launch");
  EXPECT_EQ(ended.status, 0);
  EXPECT_THAT(ended.err, IsEmpty());
  EXPECT_THAT(calls(), ElementsAre(linked, made, raised, "driver: library 1, cubin",
                                   "heap: 1 bound to library 1 in context 0", launched, launched));
}

TEST_F(RunImages, EachKindOfImageIsReplaced) {
  for (std::string const step : {"library=calling.cubin", "library=calling.ptx", "library_wrapped=calling.fat"}) {
    auto const ended = started(step);
    EXPECT_THAT(ended.err, IsEmpty()) << step;
    EXPECT_THAT(calls(), ElementsAre(linked, made, raised, "driver: library 1, cubin",
                                     "heap: 1 bound to library 1 in context 0"))
        << step;
  }
}

TEST_F(RunImages, ModulesAreReplacedHoweverTheyAreLoaded) {
  for (std::string const way : {"address", "linked"})
    for (std::string const step : {"module=calling.fat", "module_ex=calling.fat", "module_fat=calling.fat",
                                   "module_file=calling.fat", "module_file=calling.ptx"}) {
      auto const ended = started(step, way);
      EXPECT_THAT(ended.err, IsEmpty()) << step;
      EXPECT_THAT(calls(), ElementsAre(linked, made, raised, "driver: module 1, cubin",
                                       "heap: 1 bound to module 1 in context 0"))
          << step << " " << way;
    }
}

TEST_F(RunImages, ALibraryOfAFileIsReplaced) {
  for (std::string const way : {"address", "dlsym", "linked"}) {
    EXPECT_THAT(started("library_file=calling.fat", way).err, IsEmpty());
    EXPECT_THAT(calls(), ElementsAre(linked, made, raised, "driver: library 1, cubin",
                                     "heap: 1 bound to library 1 in context 0"))
        << way;
  }
}

TEST_F(RunImages, AFileThatCallsNoHeapIsLoadedByItsName) {
  EXPECT_THAT(started("library_file=quiet.fat module_file=quiet.fat").err, IsEmpty());
  EXPECT_THAT(calls(), ElementsAre("driver: library 1 of a file", "driver: module 2 of a file"));
}

TEST_F(RunImages, WithoutAFileTheDriverSaysSo) {
  EXPECT_THAT(started("library_file=none.fat module_file=none.fat").err, IsEmpty());
  EXPECT_THAT(calls(), ElementsAre("program: cuLibraryLoadFromFile fails with error 301",
                                   "program: cuModuleLoad fails with error 301"));
}

TEST_F(RunImages, ARefusedReplacementIsFollowedByTheProgramsOwnImage) {
  set("FAKE_REFUSES", "cubin");
  auto const ended = started("library=calling.fat module=calling.fat launch");
  EXPECT_EQ(ended.status, 0);
  EXPECT_THAT(
      lines_of(ended.err),
      ElementsAre("warpheap run: kernels keep CUDA's heap: the driver refuses the relinked code with error 209",
                  "warpheap run: kernels keep CUDA's heap: the driver refuses the relinked code with error 209"));
  EXPECT_THAT(calls(), ElementsAre(linked, made, raised, "driver: cubin refused", "driver: library 1, fat binary",
                                   linked, "driver: cubin refused", "driver: module 2, fat binary", launched));
  auto const places = addresses_in(contents(folder / "calls"));
  ASSERT_EQ(places.size(), 6u);
  EXPECT_EQ(places[0], places[2]);
  EXPECT_NE(places[0], places[1]);
}

TEST_F(RunImages, ARefusedImageOfTheProgramsIsItsOwnAffair) {
  set("FAKE_REFUSES", "fat binary");
  EXPECT_THAT(started("library=quiet.fat").err, IsEmpty());
  EXPECT_THAT(calls(), ElementsAre("driver: fat binary refused", "program: cuLibraryLoadData fails with error 209"));
}

TEST_F(RunImages, WithoutAHeapTheProgramIsAsItIs) {
  set("FAKE_HEAP_FAULT", "a heap of 3 GiB is more than is free");
  auto const ended = started("library=calling.fat launch status=5");
  EXPECT_EQ(ended.status, 5);
  EXPECT_EQ(ended.err, "warpheap run: kernels keep CUDA's heap: a heap of 3 GiB is more than is free\n");
  EXPECT_THAT(calls(), ElementsAre(linked, "driver: library 1, fat binary", launched));
}

TEST_F(RunImages, ALibraryThatCannotBeBoundIsReplacedByTheProgramsOwn) {
  set("FAKE_BIND_FAULT", "the driver cannot read it");
  auto const ended = started("library=calling.fat launch launch");
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(ended.err, "warpheap run: kernels keep CUDA's heap: the driver cannot read it\n");
  EXPECT_THAT(calls(), ElementsAre(linked, "heap: 1 made in context 0", "driver: limit 0 of 2048 in context 0",
                                   "driver: library 1, cubin", "driver: library 1 unloaded",
                                   "driver: library 2, fat binary", launched, launched));
}

TEST_F(RunImages, EachLibraryThatCannotBeBoundAtALaunchIsSaidOnce) {
  set("FAKE_BIND_FAULT", "the driver cannot read it");
  auto const ended = started("no_context library=calling.fat library=calling.fat context=0 launch launch threads=2");
  EXPECT_EQ(ended.status, 0);
  std::string const line = "warpheap run: kernels get no memory: the driver cannot read it\n";
  EXPECT_EQ(ended.err, line + line);
}

TEST_F(RunImages, WhatCannotBeLinkedKeepsItsHeap) {
  set("FAKE_LINK_FAULT", "error: too many of them");
  auto const ended = started("library=calling.fat launch");
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(
      ended.err,
      "warpheap run: kernels keep CUDA's heap: machine code for sm_90: nvJitLink fails: error: too many of them\n");
  EXPECT_THAT(calls(), ElementsAre(linked, "driver: library 1, fat binary", launched));
}

TEST_F(RunImages, ALinkerThatIsNamedIsTheOnlyOne) {
  set("WARPHEAP_NVJITLINK", path_of("none.so"));
  EXPECT_THAT(started("library=calling.fat launch").err,
              StartsWith("warpheap run: kernels keep CUDA's heap: machine code for sm_90: WARPHEAP_NVJITLINK: "));
  EXPECT_THAT(calls(), ElementsAre("driver: library 1, fat binary", launched));
}

TEST_F(RunImages, WithoutAnArchiveForTheGpuTheProgramIsAsItIs) {
  std::filesystem::remove(folder / "lib/warpheap/device_sm_90.cubin");
  EXPECT_THAT(started("library=calling.fat launch").err, HasSubstr("/lib/warpheap has no code for sm_90\n"));
  EXPECT_THAT(calls(), ElementsAre("driver: library 1, fat binary", launched));
}

TEST_F(RunImages, WithoutTheCommandTheLibrarySaysWhatItLacks) {
  auto const library = folder / "lib/warpheap/libwarpheap_run.so";
  auto const ended = run_shell("LD_PRELOAD='" + library.string() + "' '" + program_for("address") +
                               "' address library='" + path_of("calling.fat") + "'");
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(ended.err, "warpheap run: kernels keep CUDA's heap: WARPHEAP_ARCHIVE does not name the archive's folder\n");
  EXPECT_THAT(calls(), ElementsAre("driver: library 1, fat binary"));
}

TEST_F(RunImages, WithoutAUsableHostLibraryNothingIsStarted) {
  std::filesystem::remove(folder / "lib/libwarpheap_host.so.1");
  std::filesystem::create_symlink(FAKE_LINKER, folder / "lib/libwarpheap_host.so.1");
  auto ended = started("library=calling.fat launch");
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(ended.err, HasSubstr("lib/libwarpheap_host.so.1 has no function warpheap_oldest_driver\n"));
  std::filesystem::remove(folder / "lib/libwarpheap_host.so.1");
  write("lib/libwarpheap_host.so.1", "no library");
  ended = started("library=calling.fat launch");
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(ended.err, testing::StartsWith("warpheap run: " + path_of("lib/libwarpheap_host.so.1")));
  EXPECT_EQ(lines_of(ended.err).size(), 1u);
  EXPECT_THAT(calls(), IsEmpty());
}

TEST_F(RunImages, ALibraryIsReplacedIfAllGpusAreOfOneKindAndAModuleForItsOwn) {
  set("FAKE_SECOND_GPU", "80");
  auto const different = "warpheap run: kernels keep CUDA's heap: the GPUs are of different compute capabilities\n";
  EXPECT_EQ(started("no_context library=calling.fat").err, different);
  EXPECT_EQ(started("library=calling.fat").err, different);
  EXPECT_THAT(started("module=calling.cubin").err, IsEmpty());
  set("FAKE_SECOND_GPU", "90");
  EXPECT_THAT(started("no_context library=calling.fat").err, IsEmpty());
}

TEST_F(RunImages, ThePtxBesideItIsCompiledWhereMachineCodeCannotBeLinked) {
  write_bytes("linked", relink::program_cubin().file());  // in which malloc is undefined
  auto const ended = started("library=both.fat", "address", "--quiet --verbose");
  EXPECT_THAT(ended.err, HasSubstr("malloc is still undefined; its PTX is compiled\n"));
  EXPECT_THAT(calls(), ElementsAre(linked, linked, made, raised, "driver: library 1, cubin",
                                   "heap: 1 bound to library 1 in context 0"));
  EXPECT_THAT(contents(folder / "calls"), HasSubstr("the program's PTX"));
}

TEST_F(RunImages, WhatIsLinkedIsSaidIfThatIsAskedFor) {
  EXPECT_EQ(started("library=calling.fat", "address", "--quiet --verbose").err,
            "warpheap run: relinked machine code for sm_90\n");
}

TEST_F(RunImages, TheHeapsOwnKernelsAreNotReplaced) {
  set("FAKE_HEAP_LOADS", "1");
  EXPECT_THAT(started("library=calling.fat create launch").err, IsEmpty());
  auto const by_itself = [](int first, std::string const& context) {
    std::string const launch = "driver: launch in " + context;
    return lines{"driver: library " + std::to_string(first) + ", PTX", launch,
                 "driver: library " + std::to_string(first + 1) + ", PTX", launch,
                 "driver: limit 0 of 1024 in " + context};
  };
  lines expected{linked};
  auto const expect = [&](lines const& more) { expected.insert(expected.end(), more.begin(), more.end()); };
  expect(by_itself(1, "context 0"));
  expect({made, raised, "driver: library 3, cubin", "heap: 1 bound to library 3 in context 0"});
  expect(by_itself(4, "context 1"));
  expect({"heap: 2 made in context 1", "driver: limit 0 of 2048 in context 1",
          "heap: 2 bound to library 3 in context 1", "driver: launch in context 1"});
  EXPECT_EQ(calls(), expected);
}

}}  // namespace warpheap::tool
