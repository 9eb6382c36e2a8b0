// SPDX-License-Identifier: Apache-2.0
// Programs' code that is linked by a library which makes what a test tells it to make.
#include "relink/relink.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>

#include "made_cubin.hpp"
#include "tests/tool/program_fixture.hpp"

namespace warpheap::relink { namespace {

using testing::HasSubstr;

std::string text_of_bytes(byte_list const& bytes) { return {bytes.begin(), bytes.end()}; }

class Relink : public testing::Test {
 protected:
  Relink() {
    std::string const name = testing::UnitTest::GetInstance()->current_test_info()->name();
    folder = std::filesystem::temp_directory_path() / ("warpheap_relink_" + name + std::to_string(getpid()));
    std::filesystem::create_directory(folder);
    setenv("WARPHEAP_NVJITLINK", FAKE_LINKER, 1);
    setenv("FAKE_LINKED", (folder / "linked").c_str(), 1);
    setenv("FAKE_CALLS", (folder / "calls").c_str(), 1);
    unsetenv("FAKE_LINK_FAULT");
    write("device_sm_80.cubin", archive(80));
    write("device_sm_90.cubin", archive(90));
    write("device_sm_100.cubin", archive(100));
  }
  ~Relink() override { std::filesystem::remove_all(folder); }

  static std::string archive(u32 arch) { return text_of_bytes(archive_cubin(arch).file()); }
  static std::string archive_bytes() { return std::to_string(archive(90).size()); }

  void write(std::string const& name, std::string const& text) const {
    std::ofstream{folder / name, std::ios::binary} << text;
  }

  /// `code` relinked, where the linker makes `linked`.
  byte_list made_of(device_code const& code, byte_list const& linked, u32 arch = 90) const {
    write("linked", text_of_bytes(linked));
    return relinked(code, heap_archive{folder}, arch);
  }
  byte_list made_of(made_cubin const& program, made_cubin const& linked) const {
    return made_of(code_of(program), linked.file());
  }

  /// What that is refused with; empty if it is not.
  std::string fault_of(device_code const& code, byte_list const& linked, u32 arch = 90) const {
    try {
      made_of(code, linked, arch);
      return {};
    } catch (unusable_code const& fault) {
      return fault.what();
    }
  }

  static device_code code_of(made_cubin const& program) { return {code_kind::cubin, program.arch, program.file(), {}}; }
  static device_code code_of(std::string const& ptx) {
    auto bytes = bytes_of(ptx);
    bytes.push_back(0);
    return {code_kind::ptx, 80, bytes, {}};
  }

  std::string calls() const { return tool::contents(folder / "calls"); }

  std::filesystem::path folder;
};

/// The first word of an attribute of a function.
u32 value_of(elf_view const& cubin, u8 number, std::string_view function) {
  auto const symbols = cubin.symbols();
  for (auto const& each : attributes_in(cubin.contents(cubin.sections()[cubin.find(".nv.info")])))
    if (each.number == number && cubin.name(symbols[each.word(0)]) == function) return each.word(1);
  ADD_FAILURE() << "no attribute " << int{number} << " of " << function;
  return 0;
}

TEST_F(Relink, LinksTheProgramsCubinAsARelocatableOneWithTheArchive) {
  auto const program = program_cubin();
  made_of(program, linked_cubin());
  auto const size = std::to_string(program.file().size());
  EXPECT_EQ(calls(), "linker: -arch=sm_90\nlinker: kind 1, type 1, " + size +
                         " bytes, the program's cubin\nlinker: kind 1, type 1, " + archive_bytes() +
                         " bytes, the archive\n");
}

TEST_F(Relink, CodeThatIsChangedIsRefused) {
  auto linked = linked_cubin();
  linked.section(".text.caller").bytes[9] ^= 1;
  EXPECT_EQ(fault_of(code_of(program_cubin()), linked.file()),
            "linking would change its machine code: section .text.caller has other contents");
  EXPECT_EQ(fault_of(code_of(program_cubin()), program_cubin().file()),
            "linking would change its machine code: malloc is still undefined");
}

TEST_F(Relink, ALinkedFileThatIsNoCubinIsRefused) {
  EXPECT_THAT(fault_of(code_of(program_cubin()), bytes_of("nonsense")), HasSubstr("no 64-bit ELF file"));
  EXPECT_THAT(fault_of(code_of(program_cubin()), {}), HasSubstr("no 64-bit ELF file"));
  auto const whole = linked_cubin().file();
  for (u64 bytes = 0; bytes < whole.size(); bytes += 23)
    ASSERT_NE(fault_of(code_of(program_cubin()), {whole.begin(), whole.begin() + static_cast<i64>(bytes)}), "")
        << bytes;
}

// Anything else than unusable_code ends the test.
TEST_F(Relink, ABitThatIsFlippedNeverCrashesIt) {
  unsetenv("FAKE_CALLS");
  auto const program = program_cubin().file(), linked = linked_cubin().file();
  auto const flipped = [](byte_list bytes, u64 at) {
    bytes[at] = static_cast<u8>(bytes[at] ^ 1 << at % 8);
    return bytes;
  };
  u64 refused = 0;
  for (u64 at = 0; at < program.size(); at += 5)
    refused += !fault_of({code_kind::cubin, 90, flipped(program, at), {}}, linked).empty();
  for (u64 at = 0; at < linked.size(); at += 11)
    refused += !fault_of({code_kind::cubin, 90, program, {}}, flipped(linked, at)).empty();
  EXPECT_GT(refused, program.size() / 50);
}

TEST_F(Relink, SharedMemoryThatIsDroppedIsReservedAgain) {
  auto const bytes = made_of(program_cubin(), linked_cubin());
  elf_view const made{bytes};
  auto const before = program_cubin().file();
  elf_view const original{before};
  auto const index = made.find(".nv.shared.caller");
  ASSERT_NE(index, 0u);
  auto const& section = made.sections()[index];
  auto const& wanted = original.sections()[original.find(".nv.shared.caller")];
  EXPECT_EQ(section.sh_type, SHT_NOBITS);
  EXPECT_EQ(section.sh_size, wanted.sh_size);
  EXPECT_EQ(section.sh_flags, wanted.sh_flags);
  EXPECT_EQ(section.sh_addralign, wanted.sh_addralign);
  ASSERT_LT(section.sh_info, made.sections().size());
  EXPECT_EQ(made.name(made.sections()[section.sh_info]), ".text.caller") << "whose memory it is";
}

TEST_F(Relink, SharedMemoryOfAnotherSizeIsAsItWas) {
  for (u64 const size : {8, 480}) {
    auto linked = linked_cubin();
    linked.sections.push_back(program_cubin().section(".nv.shared.caller"));
    linked.sections.back().reserved = size;
    auto const bytes = made_of(program_cubin(), linked);
    elf_view const made{bytes};
    EXPECT_EQ(made.sections().size(), elf_view{linked.file()}.sections().size()) << "none is added";
    EXPECT_EQ(made.sections()[made.find(".nv.shared.caller")].sh_size, 48u);
  }
}

TEST_F(Relink, ProgramHeadersAreLastAndSaySo) {
  auto const linked = linked_cubin().file();
  auto const bytes = made_of(code_of(program_cubin()), linked);
  elf_view const made{bytes}, before{linked};
  auto const& header = made.header();
  ASSERT_EQ(header.e_phnum, before.header().e_phnum);
  EXPECT_EQ(header.e_phoff + header.e_phnum * sizeof(Elf64_Phdr), bytes.size());
  EXPECT_EQ(header.e_phoff % 8, 0u);
  EXPECT_LE(header.e_shoff + header.e_shnum * sizeof(Elf64_Shdr), header.e_phoff);
  for (u32 i = 0; i < header.e_phnum; ++i) {
    auto const segment = read_at<Elf64_Phdr>(bytes, header.e_phoff + i * sizeof(Elf64_Phdr));
    auto const old = read_at<Elf64_Phdr>(linked, before.header().e_phoff + i * sizeof(Elf64_Phdr));
    EXPECT_LE(segment.p_offset + segment.p_filesz, bytes.size()) << i;
    EXPECT_EQ(segment.p_offset, segment.p_type == PT_PHDR ? header.e_phoff : old.p_offset) << i;
    // Shared memory is of the variables' segment.
    EXPECT_EQ(segment.p_memsz, old.p_memsz + (segment.p_flags & PF_W ? 48 : 0)) << i;
  }
}

TEST_F(Relink, ALinkedCubinWithoutASegmentForVariablesIsRefused) {
  auto linked = linked_cubin();
  for (auto& each : linked.sections) each.flags &= ~u64{SHF_WRITE};
  EXPECT_EQ(fault_of(code_of(program_cubin()), linked.file()), "nvJitLink made no segment for variables");
}

TEST_F(Relink, VariablesHaveTheTypeThatTheDriverTakes) {
  auto const bytes = made_of(program_cubin(), linked_cubin());
  elf_view const made{bytes};
  u32 variables = 0;
  for (auto const& each : made.symbols()) {
    EXPECT_NE(ELF64_ST_TYPE(each.st_info), made_cubin::linkable_variable) << made.name(each);
    if (ELF64_ST_TYPE(each.st_info) != STT_OBJECT) continue;
    EXPECT_EQ(ELF64_ST_BIND(each.st_info), STB_GLOBAL);
    ++variables;
  }
  EXPECT_EQ(variables, 3u);
}

TEST_F(Relink, KernelsHaveTheRegistersOfTheHeapsFunctions) {
  auto const bytes = made_of(program_cubin(), linked_cubin());
  elf_view const made{bytes};
  EXPECT_EQ(value_of(made, attribute::registers, "caller"), 32u);
  EXPECT_EQ(value_of(made, attribute::registers, "other"), 40u) << "more than that is kept";
  EXPECT_EQ(value_of(made, attribute::registers, "free"), 24u) << "it is no kernel";
}

TEST_F(Relink, KernelsHaveStackForTheHeapsFunctionsBesideTheirOwn) {
  auto const bytes = made_of(program_cubin(), linked_cubin());
  elf_view const made{bytes};
  EXPECT_EQ(value_of(made, attribute::least_stack, "caller"), 16u + 200u);
  EXPECT_EQ(value_of(made, attribute::least_stack, "other"), ~u32{0}) << "of one that recurses it is not known";
  EXPECT_EQ(value_of(made, attribute::least_stack, "malloc"), 200u) << "it is no kernel";
}

TEST_F(Relink, MoreStackThanThatIsKept) {
  auto linked = linked_cubin();
  linked.attribute_of("", attribute::least_stack, "caller").words = {900};
  auto const bytes = made_of(program_cubin(), linked);
  EXPECT_EQ(value_of(elf_view{bytes}, attribute::least_stack, "caller"), 900u);
}

TEST_F(Relink, PtxIsCompiledForTheGpuThatIsThere) {
  auto const linked = bytes_of("whatever is made of it");
  EXPECT_EQ(made_of(code_of(calling_ptx("sm_80")), linked), linked);
  EXPECT_THAT(calls(), HasSubstr("linker: -arch=sm_90\nlinker: kind 2, "));
  EXPECT_THAT(calls(),
              HasSubstr("the program's PTX\nlinker: kind 1, type 1, " + archive_bytes() + " bytes, the archive\n"));
}

TEST_F(Relink, PtxForOneGpuAloneIsCompiledForIt) {
  made_of(code_of(calling_ptx("sm_90a")), bytes_of("made"));
  EXPECT_THAT(calls(), HasSubstr("linker: -arch=sm_90a\n"));
  made_of(code_of(calling_ptx("sm_100f")), bytes_of("made"), 100);
  EXPECT_THAT(calls(), HasSubstr("linker: -arch=sm_100f\n"));
}

TEST_F(Relink, MachineCodeForNewerGpusIsRefused) {
  auto program = program_cubin();
  program.arch = 100;
  EXPECT_EQ(fault_of(code_of(program), linked_cubin().file(), 100),
            "machine code for sm_100 is not relinked, only PTX is");
}

TEST_F(Relink, TheArchivesCodeIsThatOfAnEarlierGpuOfTheFamily) {
  EXPECT_EQ(text_of_bytes(heap_archive{folder}.cubin_for(86)), archive(80));
  EXPECT_EQ(text_of_bytes(heap_archive{folder}.cubin_for(90)), archive(90));
  EXPECT_EQ(text_of_bytes(heap_archive{folder}.cubin_for(103)), archive(100));
  for (u32 const arch : {75, 120}) {
    auto const fault = fault_of(code_of(calling_ptx()), {}, arch);
    EXPECT_THAT(fault, HasSubstr(folder.string()));
    EXPECT_THAT(fault, HasSubstr("has no code for sm_" + std::to_string(arch)));
  }
}

TEST_F(Relink, WhatTheLinkerSaysIsToldInOneLine) {
  setenv("FAKE_LINK_FAULT", "error   : Undefined reference to 'f'\nmore", 1);
  EXPECT_EQ(fault_of(code_of(program_cubin()), linked_cubin().file()),
            "nvJitLink fails: error   : Undefined reference to 'f'");
  setenv("FAKE_LINK_FAULT", "", 1);
  EXPECT_EQ(fault_of(code_of(program_cubin()), linked_cubin().file()), "nvJitLink fails");
}

TEST_F(Relink, WhatTheArchiveDefinesTooIsRefused) {
  auto program = program_cubin();
  program.symbols.push_back({"scan", ".text.other", 0, 8, STT_FUNC, 0});
  EXPECT_EQ(fault_of(code_of(program), linked_cubin().file()), "it and the archive both define scan");
  auto const ptx = calling_ptx();
  EXPECT_EQ(fault_of(code_of(ptx + ".func scanner(\n.func (.param .b32 r) scan\n(\n"), {}),
            "it and the archive both define scan");
  EXPECT_EQ(fault_of(code_of(ptx + ".func scanner(\n.func scan_all\n"), bytes_of("made")), "");
}

TEST_F(Relink, AnArchiveThatNeedsMoreStackThanRecursionHasIsRefused) {
  auto linked = linked_cubin();
  linked.attribute_of("", attribute::least_stack, "malloc").words = {most_heap_stack + 8};
  EXPECT_EQ(fault_of(code_of(program_cubin()), linked.file()),
            "the archive's functions need " + std::to_string(most_heap_stack + 8) + " bytes of stack");
}

TEST_F(Relink, CodeIsAskedWhetherItCallsTheHeap) {
  EXPECT_TRUE(calls_heap(code_of(program_cubin())));
  EXPECT_FALSE(calls_heap(code_of(program_cubin(true))));
  EXPECT_TRUE(calls_heap(code_of(calling_ptx())));
  EXPECT_FALSE(calls_heap(code_of(std::string{".version 8.0\n.target sm_80\n"})));
  EXPECT_THAT(
      [] {
        calls_heap(device_code{code_kind::cubin, 90, {}, "zstd cannot"});
      },
      testing::ThrowsMessage<unusable_code>("zstd cannot"));
}

}}  // namespace warpheap::relink
