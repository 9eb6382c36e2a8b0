// SPDX-License-Identifier: Apache-2.0
#include "unchanged.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "cubin.hpp"

namespace warpheap::relink {

namespace {

using texts = std::multiset<std::string>;

std::string text_of(std::span<u8 const> bytes) { return {bytes.begin(), bytes.end()}; }

/// The first of `wanted` that `found` lacks.
std::string missing(texts const& wanted, texts const& found) {
  texts lacking;
  std::ranges::set_difference(wanted, found, std::inserter(lacking, lacking.end()));
  return lacking.empty() ? std::string{} : *lacking.begin();
}

bool is_debug(std::string_view name) {
  return name.starts_with(".debug") || name.starts_with(".nv_debug") || name.find(".debug_") != name.npos;
}

/// Sections whose contents are numbers of symbols and sections, which linking renumbers, or say
/// what tool made the file. What they mean is compared otherwise, or is the linker's business.
bool is_numbered(std::string_view name) {
  constexpr std::array<std::string_view, 9> prefixes{".symtab",    ".strtab",       ".shstrtab",
                                                     ".nv.info",   ".note.",        ".nv.callgraph",
                                                     ".nv.compat", ".nv.prototype", ".nv.rel.action"};
  return std::ranges::any_of(prefixes, [&](auto prefix) { return name.starts_with(prefix); });
}

/// A name for a symbol that linking does not renumber: the section's, if it has none.
std::string name_of(elf_view const& cubin, Elf64_Sym const& symbol) {
  if (auto const name = cubin.name(symbol); !name.empty()) return std::string{name};
  return symbol.st_shndx < cubin.sections().size()
             ? "section " + std::string{cubin.name(cubin.sections()[symbol.st_shndx])}
             : "";
}

/// "SECTION+OFFSET: type T to SYMBOL+ADDEND" of each.
texts relocations(elf_view const& cubin, std::vector<Elf64_Sym> const& symbols) {
  texts found;
  for (auto const& section : cubin.sections()) {
    bool const adds = section.sh_type == SHT_RELA;
    if (!adds && section.sh_type != SHT_REL) continue;
    if (section.sh_info >= cubin.sections().size() || is_debug(cubin.name(section))) continue;
    auto const contents = cubin.contents(section);
    u64 const bytes = adds ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel);
    for (u64 at = 0; at + bytes <= contents.size(); at += bytes) {
      auto const entry = read_at<Elf64_Rel>(contents, at);
      auto const addend = adds ? read_at<Elf64_Rela>(contents, at).r_addend : 0;
      u64 const symbol = ELF64_R_SYM(entry.r_info);
      if (symbol >= symbols.size()) throw unusable_code{"a relocation names no symbol"};
      found.insert(std::string{cubin.name(cubin.sections()[section.sh_info])} + "+" + std::to_string(entry.r_offset) +
                   ": type " + std::to_string(ELF64_R_TYPE(entry.r_info)) + " to " + name_of(cubin, symbols[symbol]) +
                   "+" + std::to_string(addend));
    }
  }
  return found;
}

/// "NAME at SECTION+VALUE" of each that is defined, with its size and what the driver is told in
/// `st_other`, such as that it is a kernel.
texts definitions(elf_view const& cubin, std::vector<Elf64_Sym> const& symbols) {
  texts found;
  for (auto const& each : symbols) {
    auto const type = ELF64_ST_TYPE(each.st_info);
    bool const is_sized = each.st_size != 0 && type != STT_SECTION;
    if (each.st_shndx == SHN_UNDEF || each.st_shndx >= cubin.sections().size() || !is_sized) continue;
    found.insert(name_of(cubin, each) + " at " + std::string{cubin.name(cubin.sections()[each.st_shndx])} + "+" +
                 std::to_string(each.st_value) + ", " + std::to_string(each.st_size) + " bytes, of type " +
                 std::to_string(type) + ", " + std::to_string(each.st_other));
  }
  return found;
}

/// Each attribute that says no number of a symbol, or whose symbol has a name.
texts attributes(elf_view const& cubin, std::vector<Elf64_Sym> const& symbols) {
  texts found;
  for (auto const& section : cubin.sections()) {
    auto const name = cubin.name(section);
    if (!name.starts_with(".nv.info")) continue;
    bool const of_all = name == ".nv.info";
    for (auto const& each : attributes_in(cubin.contents(section))) {
      // They are what linking changes (relink.R3).
      bool const changes = each.number == attribute::externals || each.number == attribute::least_stack ||
                           each.number == attribute::registers;
      if (changes) continue;
      auto value = each.value;
      std::string about{name};
      bool const has_symbol = (of_all && each.format == attribute::sized) || each.number == attribute::parameter_bank;
      if (has_symbol && value.size() >= 4) {
        u32 const symbol = each.word(0);
        if (symbol < symbols.size()) about += " " + name_of(cubin, symbols[symbol]);
        value = value.subspan(4);
      }
      about += ", attribute " + std::to_string(each.number) + ", value";
      for (u8 const byte : value) about += " " + std::to_string(byte);
      found.insert(about);
    }
  }
  return found;
}

std::string contents_fault(elf_view const& original, elf_view const& linked) {
  for (auto const& section : original.sections()) {
    auto const name = original.name(section);
    bool const is_relocation = section.sh_type == SHT_RELA || section.sh_type == SHT_REL;
    if (name.empty() || section.sh_size == 0 || is_relocation || is_debug(name) || is_numbered(name)) continue;
    u32 const index = linked.find(name);
    if (index == 0) return "section " + std::string{name} + " is missing";
    auto const& now = linked.sections()[index];
    bool const may_grow =
        !name.starts_with(".text") && !name.starts_with(".nv.shared") && !name.starts_with(".nv.constant0");
    if (may_grow ? now.sh_size < section.sh_size : now.sh_size != section.sh_size)
      return "section " + std::string{name} + " has another size";
    auto const before = original.contents(section);
    auto const after = linked.contents(now);
    if (after.size() < before.size() || text_of(before) != text_of(after.first(before.size())))
      return "section " + std::string{name} + " has other contents";
  }
  return {};
}

}  // namespace

std::string difference(elf_view const& original, elf_view const& linked) {
  if (auto fault = contents_fault(original, linked); !fault.empty()) return fault;
  auto const before = original.symbols(), after = linked.symbols();
  for (auto const& [what, list] :
       {std::pair{"relocation", &relocations}, std::pair{"symbol", &definitions}, std::pair{"attribute", &attributes}})
    if (auto const lost = missing(list(original, before), list(linked, after)); !lost.empty())
      return std::string{"lost "} + what + " " + lost;
  for (auto const& each : after) {
    auto const name = linked.name(each);
    if (each.st_shndx == SHN_UNDEF && is_heap_function(name)) return std::string{name} + " is still undefined";
  }
  return {};
}

}  // namespace warpheap::relink
