// SPDX-License-Identifier: Apache-2.0
// ELF files that tests write: a list of sections, with the section headers behind them, and the
// program headers last, where nvlink puts them.
#pragma once

#include <algorithm>
#include <iterator>
#include <string>

#include "relink/elf_view.hpp"

namespace warpheap::relink {

using byte_list = std::vector<u8>;

template <class T>
void put(byte_list& to, T const& value) {
  auto const* const first = reinterpret_cast<u8 const*>(&value);
  to.insert(to.end(), first, first + sizeof value);
}

inline void pad(byte_list& to, u64 alignment) { to.resize((to.size() + alignment - 1) / alignment * alignment); }

inline byte_list bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

/// Names with zeros between them, and where each begins.
class name_table {
 public:
  u32 add(std::string const& name) {
    if (name.empty()) return 0;
    auto const at = static_cast<u32>(bytes.size());
    bytes.insert(bytes.end(), name.begin(), name.end());
    bytes.push_back(0);
    return at;
  }

  byte_list bytes{0};
};

struct made_section {
  std::string name;
  u32 type = SHT_PROGBITS;
  byte_list bytes;
  u64 reserved = 0;  ///< the size of a section of the type SHT_NOBITS
  u64 flags = 0;
  std::string link, info;  ///< names of other sections
  u32 info_number = 0;
};

struct made_elf {
  u16 type = ET_DYN, machine = EM_X86_64;
  u32 flags = 0;
  u8 abi_version = 0;
  bool has_segments = false;
  std::vector<made_section> sections;

  byte_list file() const;

 private:
  u32 number(std::string const& name) const {
    auto const found = std::ranges::find(sections, name, &made_section::name);
    return found == sections.end() ? 0 : static_cast<u32>(found - sections.begin()) + 2;
  }
  /// Appends what the sections hold, with their names last. Section 1 is .shstrtab, and the list
  /// begins with section 2.
  std::vector<Elf64_Shdr> put_sections(byte_list& made) const;
  Elf64_Ehdr header() const;
};

inline std::vector<Elf64_Shdr> made_elf::put_sections(byte_list& made) const {
  name_table names;
  std::vector<Elf64_Shdr> headers(2);
  headers[1].sh_name = names.add(".shstrtab");
  headers[1].sh_type = SHT_STRTAB;
  for (auto const& each : sections) {
    pad(made, 8);
    Elf64_Shdr header{};
    header.sh_name = names.add(each.name);
    header.sh_type = each.type;
    header.sh_flags = each.flags;
    header.sh_offset = made.size();
    header.sh_size = each.type == SHT_NOBITS ? each.reserved : each.bytes.size();
    header.sh_link = number(each.link);
    header.sh_info = each.info.empty() ? each.info_number : number(each.info);
    headers.push_back(header);
    made.insert(made.end(), each.bytes.begin(), each.bytes.end());
  }
  headers[1].sh_offset = made.size();
  headers[1].sh_size = names.bytes.size();
  made.insert(made.end(), names.bytes.begin(), names.bytes.end());
  pad(made, 8);
  return headers;
}

/// Those of the program headers, of code and of variables, which begin at `offset`. A linker makes
/// no segment of nothing.
inline std::vector<Elf64_Phdr> segments_of(std::vector<Elf64_Shdr> const& sections, u64 offset) {
  Elf64_Phdr code{PT_LOAD, PF_R | PF_X, 0, 0, 0, 0, 0, 8}, variables{PT_LOAD, PF_R | PF_W, 0, 0, 0, 0, 0, 8};
  for (auto const& each : sections) {
    bool const is_variable = each.sh_flags & SHF_WRITE;
    if (!is_variable && !(each.sh_flags & SHF_EXECINSTR)) continue;
    auto& segment = is_variable ? variables : code;
    if (segment.p_memsz == 0) segment.p_offset = each.sh_offset;
    if (each.sh_type != SHT_NOBITS) segment.p_filesz = each.sh_offset + each.sh_size - segment.p_offset;
    segment.p_memsz += each.sh_size;
  }
  std::vector<Elf64_Phdr> made{{PT_PHDR, PF_R, offset, 0, 0, 0, 0, 8}, code, variables};
  std::erase_if(made, [](auto const& each) { return each.p_type == PT_LOAD && each.p_memsz == 0; });
  made[0].p_filesz = made[0].p_memsz = made.size() * sizeof(Elf64_Phdr);
  return made;
}

inline Elf64_Ehdr made_elf::header() const {
  Elf64_Ehdr made{};
  std::memcpy(made.e_ident, ELFMAG, SELFMAG);
  made.e_ident[EI_CLASS] = ELFCLASS64;
  made.e_ident[EI_DATA] = ELFDATA2LSB;
  made.e_ident[EI_VERSION] = EV_CURRENT;
  made.e_ident[EI_ABIVERSION] = abi_version;
  made.e_type = type;
  made.e_machine = machine;
  made.e_flags = flags;
  made.e_ehsize = sizeof made;
  made.e_shentsize = sizeof(Elf64_Shdr);
  made.e_phentsize = sizeof(Elf64_Phdr);
  made.e_shstrndx = 1;
  return made;
}

inline byte_list made_elf::file() const {
  byte_list made(sizeof(Elf64_Ehdr));
  auto const section_headers = put_sections(made);
  auto head = header();
  head.e_shoff = made.size();
  head.e_shnum = static_cast<u16>(section_headers.size());
  for (auto const& each : section_headers) put(made, each);
  if (has_segments) {
    head.e_phoff = made.size();
    auto const segments = segments_of(section_headers, head.e_phoff);
    head.e_phnum = static_cast<u16>(segments.size());
    for (auto const& each : segments) put(made, each);
  }
  std::memcpy(made.data(), &head, sizeof head);
  return made;
}

}  // namespace warpheap::relink
