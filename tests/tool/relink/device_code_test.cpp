// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <random>

#include "made_cubin.hpp"
#include "made_fat_binary.hpp"

namespace warpheap::relink { namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

/// "sm_90" or "compute_90" of each.
std::vector<std::string> names_of(std::vector<device_code> const& codes) {
  std::vector<std::string> names;
  names.reserve(codes.size());
  for (auto const& each : codes)
    names.push_back((each.kind == code_kind::cubin ? "sm_" : "compute_") + std::to_string(each.arch));
  return names;
}

/// What reading it is refused with; empty if it is read.
std::string fault_of_file(byte_list const& file) {
  try {
    codes_of_file(file);
    return {};
  } catch (unusable_code const& fault) {
    return fault.what();
  }
}

device_code ptx_for(u32 arch) { return {code_kind::ptx, arch, {}, {}}; }
device_code cubin_for(u32 arch) { return {code_kind::cubin, arch, {}, {}}; }

struct wrapper {
  u32 magic = 0x4662'43b1, version = 1;
  void const* fat_binary = nullptr;
};

TEST(DeviceCode, AFatBinaryHoldsCodesForSeveralArchitectures) {
  auto const cubin = program_cubin().file();
  auto const ptx = calling_ptx();
  auto const image = fat_binary(
      {{code_kind::cubin, 80, cubin}, {code_kind::cubin, 90, {1, 2, 3}}, {code_kind::ptx, 80, bytes_of(ptx)}});
  auto const codes = codes_of_image(image.data());
  EXPECT_THAT(names_of(codes), ElementsAre("sm_80", "sm_90", "compute_80"));
  // Padding may follow a cubin, and PTX is a text that ends.
  ASSERT_GE(codes[0].bytes.size(), cubin.size());
  EXPECT_TRUE(std::ranges::equal(cubin, std::span{codes[0].bytes}.first(cubin.size())));
  EXPECT_STREQ(reinterpret_cast<char const*>(codes[2].bytes.data()), ptx.c_str());
  EXPECT_EQ(codes[2].bytes.back(), 0);
}

TEST(DeviceCode, ANewerKindOfEntryIsPassedOver) {
  auto image = fat_binary({{code_kind::cubin, 80, {1}}, {code_kind::cubin, 90, {2}}});
  image[16] = 77;
  EXPECT_THAT(names_of(codes_of_image(image.data())), ElementsAre("sm_90"));
}

class CompressedCode : public testing::TestWithParam<compression> {
 protected:
  void SetUp() override {
    if (!can_compress(GetParam())) GTEST_SKIP() << "the library is not on this machine";
  }
};

TEST_P(CompressedCode, IsAsItWas) {
  auto const cubin = program_cubin().file();
  auto const ptx = bytes_of(calling_ptx());
  auto const image = fat_binary({{code_kind::cubin, 90, cubin, GetParam()}, {code_kind::ptx, 90, ptx, GetParam()}});
  auto const codes = codes_of_image(image.data());
  ASSERT_THAT(codes, SizeIs(2));
  EXPECT_THAT(codes[0].fault, IsEmpty());
  EXPECT_EQ(codes[0].bytes, cubin);
  ASSERT_EQ(codes[1].bytes.size(), ptx.size() + 1);
  EXPECT_STREQ(reinterpret_cast<char const*>(codes[1].bytes.data()), calling_ptx().c_str());
}

TEST_P(CompressedCode, SaysWhyItCannotBeRead) {
  auto image = fat_binary({{code_kind::cubin, 90, program_cubin().file(), GetParam()}, {code_kind::cubin, 80, {9}}});
  for (u64 at = 16 + 64; at < 16 + 64 + 24; ++at) image[at] = 0xff;
  auto const codes = codes_of_image(image.data());
  ASSERT_THAT(codes, SizeIs(2)) << "one that cannot be read keeps no other from being read";
  EXPECT_THAT(codes[0].fault, testing::EndsWith("cannot decompress it"));
  EXPECT_THAT(codes[0].bytes, IsEmpty());
  EXPECT_THROW(calls_heap(elf_view{codes[0].bytes}), unusable_code);
}

TEST_P(CompressedCode, ThatSaysItIsEnormousIsNotBelieved) {
  auto image = fat_binary({{code_kind::cubin, 90, program_cubin().file(), GetParam()}});
  constexpr u64 decompressed_bytes = 16 + 56;
  image[decompressed_bytes + 6] = 1;
  EXPECT_THAT(codes_of_image(image.data())[0].fault, testing::HasSubstr("larger than 4 GiB"));
}

TEST_P(CompressedCode, IsNotReadBeyondItsEntry) {
  auto image = fat_binary({{code_kind::cubin, 90, program_cubin().file(), GetParam()}});
  constexpr u64 compressed_bytes = 16 + 16;
  image[compressed_bytes + 2] = 1;
  EXPECT_THROW(codes_of_image(image.data()), unusable_code);
}

INSTANTIATE_TEST_SUITE_P(Each, CompressedCode, testing::Values(compression::lz4, compression::zstd),
                         [](auto const& each) { return each.param == compression::lz4 ? "Lz4" : "Zstd"; });

TEST(DeviceCode, AnImageMayBeAWrapperACubinOrPtx) {
  auto const fat = fat_binary({{code_kind::cubin, 80, {1}}, {code_kind::ptx, 75, bytes_of(calling_ptx())}});
  wrapper const around{.fat_binary = fat.data()};
  EXPECT_THAT(names_of(codes_of_image(&around)), ElementsAre("sm_80", "compute_75"));

  auto cubin = program_cubin().file();
  auto const codes = codes_of_image(cubin.data());
  EXPECT_THAT(names_of(codes), ElementsAre("sm_90"));
  EXPECT_EQ(codes[0].bytes, cubin) << "its own headers say how long it is";

  auto const ptx = calling_ptx("sm_86");
  auto const texts = codes_of_image(ptx.c_str());
  EXPECT_THAT(names_of(texts), ElementsAre("compute_86"));
  EXPECT_EQ(texts[0].bytes.size(), ptx.size() + 1);
}

// From version 8 of its ABI on the number is one byte higher in the flags.
TEST(DeviceCode, ACubinOfANewerAbiTellsItsArchitectureToo) {
  made_elf made{ET_EXEC, EM_CUDA, 0x0600'5a04, 8, true, {}};
  auto const cubin = made.file();
  EXPECT_THAT(names_of(codes_of_image(cubin.data())), ElementsAre("sm_90"));
}

TEST(DeviceCode, AnImageThatIsNoneOfTheseIsRefused) {
  EXPECT_THROW(codes_of_image(nullptr), unusable_code);
  EXPECT_THROW(codes_of_image("no device code"), unusable_code);
  wrapper const around_nothing{};
  EXPECT_THROW(codes_of_image(&around_nothing), unusable_code);
  auto image = fat_binary({{code_kind::cubin, 80, {1}}});
  image[4] = 9;  // the version
  EXPECT_THROW(codes_of_image(image.data()), unusable_code);
}

TEST(DeviceCode, AFileHoldsSeveralFatBinariesWithPaddingBetween) {
  auto all = fat_binary({{code_kind::cubin, 80, {1}}});
  all.resize(all.size() + 24);
  auto const second = fat_binary({{code_kind::cubin, 90, {2}}, {code_kind::ptx, 90, bytes_of(calling_ptx())}});
  all.insert(all.end(), second.begin(), second.end());
  all.resize(all.size() + 5);
  auto const found = codes_of_file(library_with(all));
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_THAT(names_of(found[0]), ElementsAre("sm_80"));
  EXPECT_THAT(names_of(found[1]), ElementsAre("sm_90", "compute_90"));
}

TEST(DeviceCode, AFileWithoutFatBinariesHoldsNone) {
  EXPECT_THAT(codes_of_file(library_with({}, ".data")), IsEmpty());
  // What the device linker made the program of is no code that is loaded.
  EXPECT_THAT(codes_of_file(library_with(fat_binary({{code_kind::cubin, 80, {1}}}), "__nv_relfatbin")), IsEmpty());
}

TEST(DeviceCode, AFileThatIsNoElfFileIsRefused) {
  EXPECT_THAT(fault_of_file({}), testing::HasSubstr("no 64-bit ELF file"));
  EXPECT_THAT(fault_of_file(bytes_of("#!/bin/sh\n" + std::string(100, '#'))), testing::HasSubstr("no 64-bit ELF file"));
  auto of_32_bits = library_with({});
  of_32_bits[EI_CLASS] = ELFCLASS32;
  EXPECT_THAT(fault_of_file(of_32_bits), testing::HasSubstr("no 64-bit ELF file"));
}

TEST(DeviceCode, AFileThatEndsTooSoonIsRefusedWhereverItEnds) {
  auto const whole = library_with(fat_binary({{code_kind::cubin, 90, program_cubin().file()}}));
  ASSERT_EQ(fault_of_file(whole), "");
  for (u64 bytes = 0; bytes < whole.size(); ++bytes)
    ASSERT_NE(fault_of_file({whole.begin(), whole.begin() + static_cast<i64>(bytes)}), "") << bytes;
}

TEST(DeviceCode, AFatBinaryThatEndsTooSoonIsRefusedWhereverItEnds) {
  auto const whole =
      fat_binary({{code_kind::cubin, 90, byte_list(40, 1)}, {code_kind::ptx, 90, bytes_of(calling_ptx())}});
  ASSERT_EQ(fault_of_file(library_with(whole)), "");
  constexpr u64 header_bytes = 16;
  for (u64 bytes = header_bytes; bytes < whole.size(); ++bytes)
    ASSERT_NE(fault_of_file(library_with({whole.begin(), whole.begin() + static_cast<i64>(bytes)})), "") << bytes;
}

TEST(DeviceCode, SizesThatCannotBeAreRefused) {
  auto const whole = fat_binary({{code_kind::cubin, 90, byte_list(40, 1)}});
  struct place {
    u64 offset, bytes;
    char const* what;
  };
  for (auto const& [offset, bytes, what] :
       {place{6, 2, "header's"}, place{8, 8, "all entries'"}, place{20, 4, "entry's"}, place{24, 8, "code's"}})
    for (u8 const value : {u8{0x00}, u8{0xff}}) {
      auto bad = whole;
      std::fill_n(bad.begin() + static_cast<i64>(offset), bytes, value);
      bool const may_be = value == 0 && offset >= 8 && offset != 20;  // no entries, or no code
      EXPECT_EQ(fault_of_file(library_with(bad)).empty(), may_be) << what << " size " << int{value};
    }
}

TEST(DeviceCode, AFatBinaryOfNoBytesIsRefused) {
  auto empty = fat_binary({});
  empty[6] = 0;  // its header's size: what follows would be looked for at the same place for ever
  EXPECT_THAT(fault_of_file(library_with(empty)), testing::HasSubstr("truncated"));
}

/// Reads all of a file that --check reads, and whether it could.
bool can_be_read(byte_list const& file) {
  try {
    for (auto const& codes : codes_of_file(file))
      for (auto const& each : codes)
        if (each.fault.empty() && each.kind == code_kind::cubin) {
          elf_view const cubin{each.bytes};
          calls_heap(cubin);
          heap_callers(cubin);
        }
    return true;
  } catch (unusable_code const&) {
    return false;
  }
}

TEST(DeviceCode, ABitThatIsFlippedNeverCrashesIt) {
  auto const whole = library_with(
      fat_binary({{code_kind::cubin, 90, program_cubin().file()}, {code_kind::ptx, 90, bytes_of(calling_ptx())}}));
  u64 read = 0;
  for (u64 bit = 0; bit < 8 * whole.size(); ++bit) {
    auto changed = whole;
    changed[bit / 8] = static_cast<u8>(changed[bit / 8] ^ 1 << bit % 8);
    read += can_be_read(changed);
  }
  // Most bits are of code or names, and some are of sizes.
  EXPECT_GT(read, 2 * whole.size());
  EXPECT_LT(read, 15 * whole.size() / 2);
}

TEST(DeviceCode, RandomBytesNeverCrashIt) {
  auto const seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random{seed};
  for (int i = 0; i < 1000; ++i) {
    auto cubin = program_cubin().file();
    // Behind the ELF header, so that more than that is read.
    for (u64 at = sizeof(Elf64_Ehdr); at < cubin.size(); ++at)
      if (random() % 8 == 0) cubin[at] = static_cast<u8>(random());
    can_be_read(library_with(fat_binary({{code_kind::cubin, 90, cubin}})));
    for (u64 at = 16 + 64; at < cubin.size(); ++at) cubin[at] = static_cast<u8>(random());
    can_be_read(cubin);
  }
}

TEST(DeviceCode, TheNewestMachineCodeThatRunsIsTaken) {
  std::vector const codes{cubin_for(80), cubin_for(89), cubin_for(86), cubin_for(90), ptx_for(89)};
  EXPECT_EQ(code_for(codes, 89), &codes[1]);
  EXPECT_EQ(code_for(codes, 87), &codes[2]);
  EXPECT_EQ(code_for(codes, 80), &codes[0]);
  EXPECT_EQ(code_for(codes, 90), &codes[3]) << "an older family's does not run";
}

TEST(DeviceCode, PtxIsTakenWhereNoMachineCodeRuns) {
  std::vector const codes{ptx_for(70), cubin_for(80), ptx_for(80), ptx_for(90)};
  EXPECT_EQ(code_for(codes, 86), &codes[1]) << "machine code is taken before PTX";
  EXPECT_EQ(code_for(codes, 90), &codes[3]);
  EXPECT_EQ(code_for(codes, 100), &codes[3]);
  EXPECT_EQ(code_for(codes, 75), &codes[0]);
  EXPECT_EQ(code_for(codes, 60), nullptr);
  EXPECT_EQ(code_for({}, 90), nullptr);
}

}}  // namespace warpheap::relink
