// SPDX-License-Identifier: Apache-2.0
// relink.R1: whatever differs in a linked cubin of what the driver reads, difference() names it.
#include <gmock/gmock.h>

#include "made_cubin.hpp"
#include "relink/unchanged.hpp"

namespace warpheap::relink { namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

std::string difference_to(made_cubin const& linked, made_cubin const& original = program_cubin()) {
  auto const before = original.file(), after = linked.file();
  return difference(elf_view{before}, elf_view{after});
}

/// The difference that is named after `change` was made to a linked cubin that had none.
template <class Change>
std::string told(Change change) {
  auto made = restored_cubin();
  EXPECT_EQ(difference_to(made), "");
  change(made);
  return difference_to(made);
}

void drop_symbol(made_cubin& from, std::string_view name) {
  std::erase_if(from.symbols, [&](auto const& each) { return each.name == name; });
}

TEST(Difference, IsNoneWhereTheHeapsFunctionsAreDefinedAndSymbolsHaveOtherNumbers) {
  EXPECT_EQ(difference_to(restored_cubin()), "");
  EXPECT_EQ(difference_to(program_cubin(true), program_cubin(true)), "");
}

TEST(Difference, TellsAnotherByteOfEachSection) {
  for (auto const* const name : {".text.caller", ".text.other", ".nv.constant0.caller", ".nv.global.init"})
    for (bool const is_last : {false, true})
      EXPECT_EQ(told([&](made_cubin& made) {
                  auto& bytes = made.section(name).bytes;
                  (is_last ? bytes.back() : bytes.front()) ^= 1;
                }),
                "section " + std::string{name} + " has other contents");
}

TEST(Difference, TellsAnotherSizeOfCodeConstantsAndSharedMemory) {
  for (auto const* const name : {".text.caller", ".nv.constant0.caller"})
    for (auto const bytes : {-8, 8})
      EXPECT_EQ(told([&](made_cubin& made) {
                  auto& all = made.section(name).bytes;
                  all.resize(all.size() + static_cast<u64>(bytes));
                }),
                "section " + std::string{name} + " has another size");
  for (u64 const bytes : {40, 56})
    EXPECT_EQ(told([&](made_cubin& made) { made.section(".nv.shared.caller").reserved = bytes; }),
              "section .nv.shared.caller has another size");
}

TEST(Difference, LetsVariablesBecomeMoreAndNotFewer) {
  EXPECT_EQ(told([](made_cubin& made) { made.section(".nv.global.init").bytes.resize(16); }), "");
  EXPECT_EQ(told([](made_cubin& made) { made.section(".nv.global.init").bytes.resize(7); }),
            "section .nv.global.init has another size");
  EXPECT_EQ(told([](made_cubin& made) { made.section(".nv.global").reserved = 3; }),
            "section .nv.global has another size");
}

TEST(Difference, TellsEachMissingSection) {
  for (auto const* const name : {".text.other", ".nv.constant0.other", ".nv.shared.caller"})
    EXPECT_EQ(told([&](made_cubin& made) {
                std::erase_if(made.sections, [&](auto const& each) { return each.name == name; });
              }),
              "section " + std::string{name} + " is missing");
}

TEST(Difference, TellsALostRelocation) {
  EXPECT_EQ(told([](made_cubin& made) { made.relocations.pop_back(); }),
            "lost relocation .text.caller+48: type 40 to free+0");
}

TEST(Difference, TellsARelocationToAnotherPlace) {
  EXPECT_EQ(told([](made_cubin& made) { made.relocations[0].symbol = "flag"; }),
            "lost relocation .text.caller+16: type 50 to table+4");
  EXPECT_THAT(told([](made_cubin& made) { made.relocations[0].addend = 0; }),
              StartsWith("lost relocation .text.caller+16"));
  EXPECT_THAT(told([](made_cubin& made) { made.relocations[0].offset = 20; }),
              StartsWith("lost relocation .text.caller+16"));
  EXPECT_THAT(told([](made_cubin& made) { made.relocations[0].type = 51; }),
              StartsWith("lost relocation .text.caller+16"));
}

TEST(Difference, TellsOneOfTwoEqualRelocations) {
  auto original = program_cubin();
  original.relocations.push_back(original.relocations[0]);
  EXPECT_THAT(difference_to(restored_cubin(), original), StartsWith("lost relocation .text.caller+16"));
}

TEST(Difference, TellsARelocationOfNoSymbol) {
  auto made = restored_cubin();
  made.relocations[0].symbol = "nothing";
  EXPECT_THROW(difference_to(made), unusable_code);
}

TEST(Difference, TellsAMovedSymbol) {
  auto const moved = told([](made_cubin& made) { made.symbol("table").value = 4; });
  EXPECT_THAT(moved, AllOf(StartsWith("lost symbol table at .nv.global.init+0"), HasSubstr("8 bytes")));
  EXPECT_THAT(told([](made_cubin& made) { made.symbol("flag").section = ".nv.global.init"; }),
              StartsWith("lost symbol flag at .nv.global+0"));
}

TEST(Difference, TellsALostSymbolAndAnotherSize) {
  EXPECT_THAT(told([](made_cubin& made) { drop_symbol(made, "flag"); }), StartsWith("lost symbol flag at"));
  EXPECT_THAT(told([](made_cubin& made) { made.symbol("other").size = 16; }), StartsWith("lost symbol other at"));
}

TEST(Difference, TellsAnotherTypeOfASymbol) {
  EXPECT_THAT(told([](made_cubin& made) { made.symbol("table").type = made_cubin::linkable_variable; }),
              AllOf(StartsWith("lost symbol table at"), HasSubstr("of type 1")));
}

TEST(Difference, TellsAKernelThatIsNoneAnyMore) {
  EXPECT_THAT(told([](made_cubin& made) { made.symbol("caller").other = 0; }),
              StartsWith("lost symbol caller at .text.caller+0"));
}

TEST(Difference, TellsALostOrChangedAttribute) {
  EXPECT_EQ(told([](made_cubin& made) {
              std::erase_if(made.attributes, [](auto const& each) { return each.number == made_cubin::entry; });
            }),
            "lost attribute .nv.info.caller, attribute 29, value 96 0 0 0");
  EXPECT_EQ(told([](made_cubin& made) { made.attribute_of("", made_cubin::frame).words = {16}; }),
            "lost attribute .nv.info caller, attribute 17, value 8 0 0 0");
  EXPECT_EQ(told([](made_cubin& made) { made.attribute_of("caller", attribute::parameter_bank).words = {1}; }),
            "lost attribute .nv.info.caller section .nv.constant0.caller, attribute 10, value 16 2 24 0");
}

// relink.R3
TEST(Difference, LetsRegistersAndStackChange) {
  EXPECT_EQ(told([](made_cubin& made) {
              made.attribute_of("", attribute::registers, "caller").words = {99};
              made.attribute_of("", attribute::least_stack, "caller").words = {999};
            }),
            "");
}

TEST(Difference, TellsAFunctionThatIsStillUndefined) {
  for (auto const* const name : {"malloc", "free"})
    EXPECT_EQ(told([&](made_cubin& made) { made.symbol(name).section = ""; }),
              std::string{name} + " is still undefined");
}

TEST(Difference, LeavesTheLinkerItsDebugInformation) {
  auto original = program_cubin();
  for (auto const* const name : {".debug_line", ".nv_debug_line_sass", ".note.nv.tkinfo", ".nv.callgraph"})
    original.sections.push_back({name, SHT_PROGBITS, {1, 2, 3}, 0, 0, {}, {}, 0});
  EXPECT_EQ(difference_to(restored_cubin(), original), "");
}

}}  // namespace warpheap::relink
