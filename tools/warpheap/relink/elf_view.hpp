// SPDX-License-Identifier: Apache-2.0
// A 64-bit little-endian ELF file in memory: its sections, symbols and names, with bounds checked.
#pragma once

#include <elf.h>

#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "device_code.hpp"

namespace warpheap::relink {

/// A copy of the `T` at `offset`. Throws unusable_code beyond the end.
template <class T>
T read_at(std::span<u8 const> bytes, u64 offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) throw unusable_code{"it is truncated"};
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

/// The bytes must outlive it.
class elf_view {
 public:
  /// Throws unusable_code if `bytes` are no such file.
  explicit elf_view(std::span<u8 const> bytes) : bytes_{bytes} {
    if (bytes.size() < sizeof(Elf64_Ehdr) || std::memcmp(bytes.data(), ELFMAG, SELFMAG) != 0 ||
        bytes[EI_CLASS] != ELFCLASS64 || bytes[EI_DATA] != ELFDATA2LSB)
      throw unusable_code{"it is no 64-bit ELF file"};
    header_ = read_at<Elf64_Ehdr>(bytes, 0);
    if (header_.e_shnum == 0 && header_.e_shoff != 0) throw unusable_code{"it has more sections than 65,279"};
    for (u32 i = 0; i < header_.e_shnum; ++i)
      sections_.push_back(read_at<Elf64_Shdr>(bytes, header_.e_shoff + i * sizeof(Elf64_Shdr)));
  }

  Elf64_Ehdr const& header() const { return header_; }
  std::vector<Elf64_Shdr> const& sections() const { return sections_; }

  /// What a section holds; nothing if it takes no bytes of the file.
  std::span<u8 const> contents(Elf64_Shdr const& section) const {
    if (section.sh_type == SHT_NOBITS) return {};
    if (section.sh_offset > bytes_.size() || bytes_.size() - section.sh_offset < section.sh_size)
      throw unusable_code{"it is truncated"};
    return bytes_.subspan(section.sh_offset, section.sh_size);
  }

  std::string_view name(Elf64_Shdr const& section) const {
    return header_.e_shstrndx < sections_.size() ? text(sections_[header_.e_shstrndx], section.sh_name)
                                                 : std::string_view{};
  }

  /// The index of a section; 0, which is none, if there is none of this name.
  u32 find(std::string_view wanted) const {
    for (u32 i = 1; i < sections_.size(); ++i)
      if (name(sections_[i]) == wanted) return i;
    return 0;
  }

  std::vector<Elf64_Sym> symbols() const {
    std::vector<Elf64_Sym> all;
    for (auto const& section : sections_)
      if (section.sh_type == SHT_SYMTAB)
        for (u64 at = 0; at + sizeof(Elf64_Sym) <= section.sh_size; at += sizeof(Elf64_Sym))
          all.push_back(read_at<Elf64_Sym>(contents(section), at));
    return all;
  }

  std::string_view name(Elf64_Sym const& symbol) const {
    for (auto const& section : sections_)
      if (section.sh_type == SHT_SYMTAB && section.sh_link < sections_.size())
        return text(sections_[section.sh_link], symbol.st_name);
    return {};
  }

 private:
  std::string_view text(Elf64_Shdr const& table, u64 offset) const {
    auto const texts = contents(table);
    if (offset >= texts.size()) throw unusable_code{"a name is beyond its table"};
    auto const* const first = reinterpret_cast<char const*>(texts.data()) + offset;
    return {first, strnlen(first, texts.size() - offset)};
  }

  std::span<u8 const> bytes_;
  Elf64_Ehdr header_;
  std::vector<Elf64_Shdr> sections_;
};

}  // namespace warpheap::relink
