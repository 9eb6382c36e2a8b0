// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "made_cubin.hpp"

namespace warpheap::relink { namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> callers_in(made_cubin const& made) {
  auto const file = made.file();
  return heap_callers(elf_view{file});
}

bool calls(made_cubin const& made) {
  auto const file = made.file();
  return calls_heap(elf_view{file});
}

TEST(Cubin, CallsTheHeapIfItLeavesAFunctionOfItUndefined) {
  EXPECT_TRUE(calls(program_cubin()));
  EXPECT_FALSE(calls(program_cubin(true)));
  EXPECT_FALSE(calls(restored_cubin())) << "it defines them";
  for (auto const* const name : {"malloc", "free", "__cuda_syscall_aligned_malloc"}) {
    auto made = program_cubin(true);
    made.symbols.push_back({name, "", 0, 0, STT_FUNC, 0});
    EXPECT_TRUE(calls(made)) << name;
  }
  for (auto const* const name : {"vprintf", "my_malloc", "malloc_", "mallocator", "__cuda_syscall_malloc"}) {
    auto made = program_cubin(true);
    made.symbols.push_back({name, "", 0, 0, STT_FUNC, 0});
    EXPECT_FALSE(calls(made)) << name;
  }
}

TEST(Cubin, IsNoFileForAnotherMachine) {
  auto const file = made_elf{}.file();
  EXPECT_THROW(calls_heap(elf_view{file}), unusable_code);
}

TEST(Cubin, TellsWhichOfItsFunctionsCallTheHeap) {
  auto made = program_cubin();
  EXPECT_THAT(callers_in(made), ElementsAre("caller"));
  made.symbols.push_back({"vprintf", "", 0, 0, STT_FUNC, 0});
  made.attributes.push_back({"other", attribute::externals, {"vprintf"}, {}});
  EXPECT_THAT(callers_in(made), ElementsAre("caller"));
  made.attributes.push_back({"other", attribute::externals, {"vprintf", "free"}, {}});
  EXPECT_THAT(callers_in(made), ElementsAre("caller", "other"));
  EXPECT_THAT(callers_in(program_cubin(true)), IsEmpty());
}

TEST(Cubin, AttributesThatEndTooSoonAreRefused) {
  byte_list const section{3, 0x1b, 0xff, 0, 4, 0x0f, 8, 0, 1, 0, 0, 0, 2, 0, 0, 0};
  auto const whole = attributes_in(section);
  ASSERT_EQ(whole.size(), 2u);
  EXPECT_EQ(whole[0].value.size(), 2u) << "one that says no size has two bytes";
  EXPECT_EQ(whole[1].word(1), 2u);
  EXPECT_THROW(whole[1].word(2), unusable_code);
  EXPECT_THROW(attributes_in(std::span{section}.first(15)), unusable_code);
}

TEST(Cubin, CutAnywhereItIsRefused) {
  auto const whole = program_cubin().file();
  // The segments, which are last, are read when a linked one is mended.
  auto const segments = elf_view{whole}.header().e_phoff;
  for (u64 bytes = 0; bytes < segments; ++bytes)
    EXPECT_THROW(heap_callers(elf_view{std::span{whole}.first(bytes)}), unusable_code) << bytes;
}

TEST(Ptx, CallsTheHeapIfItDeclaresAFunctionOfIt) {
  EXPECT_TRUE(ptx_calls_heap(calling_ptx()));
  EXPECT_TRUE(ptx_calls_heap(".extern .func free\n(\n\t.param .b64 free_param_0\n)\n;"));
  EXPECT_TRUE(ptx_calls_heap(".extern .func free(.param .b64 free_param_0);"));
  EXPECT_TRUE(ptx_calls_heap(".extern .func  (.param .b64 r) __cuda_syscall_aligned_malloc (.param .b64 a);"));
  EXPECT_TRUE(ptx_calls_heap(
      ".extern .func (.param .b32 r) vprintf (.param .b64 a);\n.extern .func\tfree\r\n(.param .b64 a);"));
}

TEST(Ptx, AFunctionIsFoundHoweverItsDeclarationIsSpaced) {
  for (std::string const text :
       {".extern .func (.param .b64 r)malloc(.param .b64 a);", ".extern .func\nfree (.param .b64 a);",
        ".extern .func (.param .b64 malloc_retval0) malloc (.param .b64 a);", ".extern .func free;"})
    EXPECT_TRUE(ptx_calls_heap(text)) << text;
}

TEST(Ptx, NamesThatContainAFunctionsAreOthers) {
  for (std::string const text :
       {".extern .func (.param .b64 r) my_malloc (.param .b64 a);", ".extern .func malloc_all (.param .b64 a);",
        ".extern .func freeze (.param .b64 a);", ".visible .func (.param .b64 r) malloc (.param .b64 a) { ret; }",
        "// malloc\n.visible .entry free() { ret; }",
        ".extern .func (.param .b32 malloc_retval0) vprintf (.param .b64 a);",
        ".extern .func f (.param .b64 a);\n// .func malloc\n", ""})
    EXPECT_FALSE(ptx_calls_heap(text)) << text;
}

}}  // namespace warpheap::relink
