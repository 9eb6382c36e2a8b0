// SPDX-License-Identifier: Apache-2.0
#include "relink.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

#include "cubin.hpp"
#include "jit_linker.hpp"
#include "unchanged.hpp"

namespace warpheap::relink {

namespace {

/// From here on cubins hold code for the driver's own compiler beside the machine code; whether a
/// relinked one is right was not tried on such a GPU.
constexpr u32 first_with_other_code = 100;
/// The most that the heap's functions use (override.N2), and what any kernel may have: with 32
/// registers a multiprocessor holds as many threads as it can.
constexpr u32 heap_registers = 32;
constexpr u32 unknown_stack = ~u32{0};
constexpr std::string_view shared_prefix = ".nv.shared.";
constexpr u8 kernel_symbol = 0x10;  ///< in st_other

template <class T>
void write_at(std::vector<u8>& bytes, u64 offset, T const& value) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof value) throw unusable_code{"it is truncated"};
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

/// The sections of `linked`, and their names, with those that reserve shared memory as in
/// `original`; all of them in the segment of writable memory, where nvlink puts them.
struct section_table {
  std::vector<Elf64_Shdr> sections;
  std::vector<u8> names;
  u64 added_bytes = 0;

  section_table(elf_view const& original, elf_view const& linked, u64 end_of_writable) : sections{linked.sections()} {
    auto const old_names = linked.contents(sections.at(linked.header().e_shstrndx));
    names.assign(old_names.begin(), old_names.end());
    for (auto const& each : original.sections()) {
      auto const name = original.name(each);
      if (!name.starts_with(shared_prefix) || each.sh_type != SHT_NOBITS || each.sh_size == 0) continue;
      if (u32 const kept = linked.find(name)) {
        added_bytes += each.sh_size - sections[kept].sh_size;
        sections[kept].sh_size = each.sh_size;
        continue;
      }
      auto section = each;
      section.sh_info = linked.find(".text." + std::string{name.substr(shared_prefix.size())});
      section.sh_name = static_cast<u32>(names.size());
      section.sh_offset = end_of_writable;
      names.insert(names.end(), name.begin(), name.end());
      names.push_back(0);
      sections.push_back(section);
      added_bytes += each.sh_size;
    }
  }
};

template <class T>
void append(std::vector<u8>& bytes, std::span<T const> values) {
  auto const* const first = reinterpret_cast<u8 const*>(values.data());
  bytes.insert(bytes.end(), first, first + values.size_bytes());
}

/// relink.R2. As in what nvlink writes, the program headers are last.
std::vector<u8> with_shared_memory(elf_view const& original, std::vector<u8> linked) {
  elf_view const now{linked};
  auto header = now.header();
  std::vector<Elf64_Phdr> segments;
  for (u32 i = 0; i < header.e_phnum; ++i)
    segments.push_back(read_at<Elf64_Phdr>(linked, header.e_phoff + i * sizeof(Elf64_Phdr)));
  auto const writable = std::ranges::find_if(segments, [](auto const& each) { return each.p_flags & PF_W; });
  if (writable == segments.end()) throw unusable_code{"nvJitLink made no segment for variables"};
  section_table table{original, now, writable->p_offset + writable->p_filesz};
  writable->p_memsz += table.added_bytes;

  auto& names = table.sections[header.e_shstrndx];
  names.sh_offset = linked.size();
  names.sh_size = table.names.size();
  append<u8>(linked, table.names);
  linked.resize((linked.size() + 7) / 8 * 8);
  u64 const old_segments = header.e_phoff;
  header.e_shoff = linked.size();
  header.e_shnum = static_cast<u16>(table.sections.size());
  append<Elf64_Shdr>(linked, table.sections);
  header.e_phoff = linked.size();
  for (auto& each : segments)
    if (each.p_offset == old_segments) each.p_offset = header.e_phoff;
  append<Elf64_Phdr>(linked, segments);
  write_at(linked, 0, header);
  return linked;
}

/// The values of an attribute of all functions, by the function's name.
std::map<std::string, u32> values(elf_view const& cubin, u8 number) {
  std::map<std::string, u32> found;
  auto const symbols = cubin.symbols();
  for (auto const& each : attributes_in(cubin.contents(cubin.sections()[cubin.find(".nv.info")])))
    if (each.number == number && each.format == attribute::sized && each.word(0) < symbols.size())
      found[std::string{cubin.name(symbols[each.word(0)])}] = each.word(1);
  return found;
}

/// relink.R3
void raise_needs_of_kernels(elf_view const& original, std::vector<u8>& linked) {
  elf_view const now{linked};
  auto const stacks = values(now, attribute::least_stack);
  u32 heap_stack = 0;
  for (auto const& [name, bytes] : stacks)
    if (is_heap_function(name)) heap_stack = std::max(heap_stack, bytes);
  if (heap_stack > most_heap_stack)
    throw unusable_code{"the archive's functions need " + std::to_string(heap_stack) + " bytes of stack"};
  auto const before = values(original, attribute::least_stack);
  auto const symbols = now.symbols();
  auto const info = now.contents(now.sections()[now.find(".nv.info")]);
  for (auto const& each : attributes_in(info)) {
    if (each.format != attribute::sized || each.value.size() < 8 || each.word(0) >= symbols.size()) continue;
    auto const& symbol = symbols[each.word(0)];
    if (!(symbol.st_other & kernel_symbol)) continue;
    u32 needed = 0;
    if (each.number == attribute::registers) needed = heap_registers;
    if (each.number == attribute::least_stack) {
      auto const own = before.find(std::string{now.name(symbol)});
      if (own == before.end()) continue;
      needed = own->second == unknown_stack ? unknown_stack : own->second + heap_stack;
    }
    u64 const at = static_cast<u64>(each.value.data() - linked.data()) + 4;
    write_at(linked, at, std::max(each.word(1), needed));
  }
}

/// relink.R2. nvlink gives variables of finished cubins the type that those of relocatable files
/// have, which the driver refuses.
void restore_variable_types(std::vector<u8>& linked) {
  constexpr u8 linkable_variable = 13;
  elf_view const now{linked};
  for (auto const& section : now.sections()) {
    if (section.sh_type != SHT_SYMTAB) continue;
    for (u64 at = section.sh_offset; at + sizeof(Elf64_Sym) <= section.sh_offset + section.sh_size;
         at += sizeof(Elf64_Sym)) {
      auto symbol = read_at<Elf64_Sym>(linked, at);
      if (ELF64_ST_TYPE(symbol.st_info) != linkable_variable) continue;
      symbol.st_info = ELF64_ST_INFO(ELF64_ST_BIND(symbol.st_info), STT_OBJECT);
      write_at(linked, at, symbol);
    }
  }
}

/// Names that other files of a link can see.
std::set<std::string> global_definitions(elf_view const& cubin) {
  std::set<std::string> found;
  for (auto const& each : cubin.symbols())
    if (each.st_shndx != SHN_UNDEF && ELF64_ST_BIND(each.st_info) != STB_LOCAL) found.emplace(cubin.name(each));
  return found;
}

/// Of two functions of one name the linker takes one. A program that was made with Warpheap's
/// headers has weak ones, maybe of another version, whose registers are not bounded.
void refuse_shared(std::string const& name) { throw unusable_code{"it and the archive both define " + name}; }

std::vector<u8> relinked_cubin(std::span<u8 const> original, std::span<u8 const> archive, u32 arch) {
  if (arch >= first_with_other_code)
    throw unusable_code{"machine code for sm_" + std::to_string(arch) + " is not relinked, only PTX is"};
  elf_view const before{original};
  auto const added = global_definitions(elf_view{archive});
  for (auto const& name : global_definitions(before))
    if (added.contains(name)) refuse_shared(name);
  std::vector<u8> object{original.begin(), original.end()};
  auto header = before.header();
  header.e_type = ET_REL;
  write_at(object, 0, header);
  auto linked = link({{code_kind::cubin, object, "the program's cubin"}, {code_kind::cubin, archive, "the archive"}},
                     "sm_" + std::to_string(arch));
  restore_variable_types(linked);
  linked = with_shared_memory(before, std::move(linked));
  if (auto const fault = difference(before, elf_view{linked}); !fault.empty())
    throw unusable_code{"linking would change its machine code: " + fault};
  raise_needs_of_kernels(before, linked);
  return linked;
}

/// The target that PTX asks for: `sm_90a` runs on that GPU alone and must be said in full.
std::string target_of(std::string_view ptx, u32 arch) {
  auto const plain = "sm_" + std::to_string(arch);
  for (char const suffix : {'a', 'f'})
    if (ptx.find(".target " + plain + suffix) != std::string_view::npos) return plain + suffix;
  return plain;
}

/// Whether the word `name` is somewhere in PTX.
bool names(std::string_view ptx, std::string const& name) {
  auto const word = " " + name;
  for (auto at = ptx.find(word); at != std::string_view::npos; at = ptx.find(word, at + 1)) {
    auto const after = ptx.substr(at + word.size(), 1);
    if (after == "(" || after == "\n" || after == "\r" || after == ",") return true;
  }
  return false;
}

std::vector<u8> relinked_ptx(std::span<u8 const> text, std::span<u8 const> archive, u32 arch) {
  std::string_view const ptx{reinterpret_cast<char const*>(text.data()), text.size() - 1};
  for (auto const& name : global_definitions(elf_view{archive}))
    if (!is_heap_function(name) && names(ptx, name)) refuse_shared(name);
  return link({{code_kind::ptx, text, "the program's PTX"}, {code_kind::cubin, archive, "the archive"}},
              target_of(ptx, arch));
}

}  // namespace

std::vector<u8> heap_archive::cubin_for(u32 arch) const {
  // Code of a family runs on, and links with, its later members.
  for (u32 first = arch; first >= arch / 10 * 10; --first) {
    std::ifstream file{folder_ / ("device_sm_" + std::to_string(first) + ".cubin"), std::ios::binary};
    if (file) return {std::istreambuf_iterator<char>{file}, {}};
  }
  throw unusable_code{"the archive in " + folder_.string() + " has no code for sm_" + std::to_string(arch)};
}

bool calls_heap(device_code const& code) {
  if (!code.fault.empty()) throw unusable_code{code.fault};
  if (code.kind == code_kind::cubin) return calls_heap(elf_view{code.bytes});
  return ptx_calls_heap({reinterpret_cast<char const*>(code.bytes.data()), code.bytes.size()});
}

std::vector<u8> relinked(device_code const& code, heap_archive const& archive, u32 arch) {
  if (!code.fault.empty()) throw unusable_code{code.fault};
  if (code.bytes.empty()) throw unusable_code{"it is empty"};
  auto const with = archive.cubin_for(arch);
  return code.kind == code_kind::cubin ? relinked_cubin(code.bytes, with, arch) : relinked_ptx(code.bytes, with, arch);
}

}  // namespace warpheap::relink
