// SPDX-License-Identifier: Apache-2.0
// Cubins that tests write, small and without code that runs: what relinking reads of them, and what
// a linker makes of them. Relocations and attributes name symbols. These are numbered as the file
// is written, so that two cubins may say the same in other numbers.
#pragma once

#include <set>

#include "made_elf.hpp"
#include "relink/cubin.hpp"

namespace warpheap::relink {

struct made_symbol {
  std::string name;     ///< empty for the section's own
  std::string section;  ///< empty if it is undefined
  u64 value = 0, size = 0;
  u8 type = STT_FUNC, other = 0;

  /// What relocations and attributes call it.
  std::string const& called() const { return name.empty() ? section : name; }
};

struct made_relocation {
  std::string section;
  u64 offset = 0;
  u32 type = 0;
  std::string symbol;
  i64 addend = 0;
};

struct made_attribute {
  std::string function;  ///< empty for the section .nv.info
  u8 number = 0;
  std::vector<std::string> symbols;
  std::vector<u32> words;  ///< behind the symbols

  std::string section() const { return function.empty() ? ".nv.info" : ".nv.info." + function; }
};

struct made_cubin {
  static constexpr u8 kernel = 0x10;               ///< of a symbol's st_other
  static constexpr u8 frame = 0x11, entry = 0x1d;  ///< numbers of attributes
  static constexpr u8 linkable_variable = 13;      ///< the type that nvlink gives variables

  u16 type = ET_EXEC;
  u32 arch = 90;
  std::vector<made_section> sections;
  std::vector<made_symbol> symbols;
  std::vector<made_relocation> relocations;
  std::vector<made_attribute> attributes;

  made_section& section(std::string_view name) { return *std::ranges::find(sections, name, &made_section::name); }
  made_symbol& symbol(std::string_view name) { return *std::ranges::find(symbols, name, &made_symbol::name); }
  made_attribute& attribute_of(std::string_view function, u8 number, std::string_view symbol = {}) {
    return *std::ranges::find_if(attributes, [&](auto const& each) {
      return each.function == function && each.number == number && (symbol.empty() || each.symbols[0] == symbol);
    });
  }

  byte_list file() const;

 private:
  u32 number(std::string_view called) const {
    auto const found = std::ranges::find(symbols, called, &made_symbol::called);
    return static_cast<u32>(found - symbols.begin()) + 1;
  }
  /// A section .nv.info or .nv.info.FUNCTION.
  made_section info(std::string const& name) const;
  /// What is relocated in a section.
  made_section relocations_of(std::string const& name) const;
  /// The symbols, where section 0 of the list is section `first` of the file, and their names.
  std::vector<made_section> symbol_tables(u64 first) const;
};

inline made_section made_cubin::info(std::string const& name) const {
  made_section made{name, SHT_LOPROC, {}, 0, 0, ".symtab", {}, 0};
  for (auto const& each : attributes) {
    if (each.section() != name) continue;
    put(made.bytes, attribute::sized);
    put(made.bytes, each.number);
    put(made.bytes, static_cast<u16>(4 * (each.symbols.size() + each.words.size())));
    for (auto const& symbol : each.symbols) put(made.bytes, number(symbol));
    for (u32 const word : each.words) put(made.bytes, word);
  }
  return made;
}

inline made_section made_cubin::relocations_of(std::string const& name) const {
  made_section made{".rela" + name, SHT_RELA, {}, 0, 0, ".symtab", name, 0};
  for (auto const& each : relocations)
    if (each.section == name)
      put(made.bytes, Elf64_Rela{each.offset, ELF64_R_INFO(u64{number(each.symbol)}, each.type), each.addend});
  return made;
}

inline std::vector<made_section> made_cubin::symbol_tables(u64 first) const {
  name_table names;
  made_section table{".symtab", SHT_SYMTAB, byte_list(sizeof(Elf64_Sym)), 0, 0, ".strtab", {}, 1};
  for (auto const& each : symbols) {
    auto const found = std::ranges::find(sections, each.section, &made_section::name);
    Elf64_Sym symbol{names.add(each.name), 0, each.other, SHN_UNDEF, each.value, each.size};
    symbol.st_info = static_cast<u8>(ELF64_ST_INFO(STB_GLOBAL, each.type));
    if (found != sections.end()) symbol.st_shndx = static_cast<u16>(first + static_cast<u64>(found - sections.begin()));
    put(table.bytes, symbol);
  }
  return {{".strtab", SHT_STRTAB, names.bytes, 0, 0, {}, {}, 0}, table};
}

inline byte_list made_cubin::file() const {
  std::set<std::string> infos{".nv.info"}, relocated;
  for (auto const& each : attributes) infos.insert(each.section());
  for (auto const& each : relocations) relocated.insert(each.section);
  made_elf made{type, EM_CUDA, arch, 7, true, symbol_tables(4 + infos.size() + relocated.size())};
  for (auto const& name : infos) made.sections.push_back(info(name));
  for (auto const& name : relocated) made.sections.push_back(relocations_of(name));
  made.sections.insert(made.sections.end(), sections.begin(), sections.end());
  return made.file();
}

/// Machine code of as many bytes, in which no two places are alike.
inline made_section code_section(std::string const& function, u8 bytes, u8 first) {
  made_section made{".text." + function, SHT_PROGBITS, byte_list(bytes), 0, SHF_ALLOC | SHF_EXECINSTR, {}, {}, 0};
  for (u8 i = 0; i < bytes; ++i) made.bytes[i] = static_cast<u8>(first + i);
  return made;
}

/// A program's cubin with two kernels: `caller` calls malloc and free, has 48 bytes of shared
/// memory and reads `table`; `other` recurses, and calls neither. `is_quiet`: none calls the heap.
inline made_cubin program_cubin(bool is_quiet = false) {
  made_cubin made;
  made.sections = {code_section("caller", 64, 1),
                   code_section("other", 32, 101),
                   {".nv.constant0.caller", SHT_PROGBITS, byte_list(24, 7), 0, SHF_ALLOC, {}, {}, 0},
                   {".nv.constant0.other", SHT_PROGBITS, byte_list(16, 8), 0, SHF_ALLOC, {}, {}, 0},
                   {".nv.global.init", SHT_PROGBITS, {1, 2, 3, 4, 5, 6, 7, 8}, 0, SHF_ALLOC | SHF_WRITE, {}, {}, 0},
                   {".nv.shared.caller", SHT_NOBITS, {}, 48, SHF_ALLOC | SHF_WRITE, {}, ".text.caller", 0},
                   {".nv.global", SHT_NOBITS, {}, 4, SHF_ALLOC | SHF_WRITE, {}, {}, 0}};
  made.symbols = {{"", ".nv.constant0.caller", 0, 0, STT_SECTION, 0},
                  {"caller", ".text.caller", 0, 64, STT_FUNC, made_cubin::kernel},
                  {"other", ".text.other", 0, 32, STT_FUNC, made_cubin::kernel},
                  {"table", ".nv.global.init", 0, 8, STT_OBJECT, 0},
                  {"flag", ".nv.global", 0, 4, STT_OBJECT, 0}};
  made.relocations = {{".text.caller", 16, 50, "table", 4}, {".text.caller", 24, 51, "table", 4}};
  made.attributes = {{"", attribute::registers, {"caller"}, {20}},
                     {"", attribute::registers, {"other"}, {40}},
                     {"", attribute::least_stack, {"caller"}, {16}},
                     {"", attribute::least_stack, {"other"}, {~u32{0}}},
                     {"", made_cubin::frame, {"caller"}, {8}},
                     {"caller", attribute::parameter_bank, {".nv.constant0.caller"}, {0x180210}},
                     {"caller", made_cubin::entry, {}, {0x60}}};
  if (is_quiet) return made;
  made.symbols.push_back({"malloc", "", 0, 0, STT_FUNC, 0});
  made.symbols.push_back({"free", "", 0, 0, STT_FUNC, 0});
  made.relocations.push_back({".text.caller", 32, 40, "malloc", 0});
  made.relocations.push_back({".text.caller", 48, 40, "free", 0});
  made.attributes.push_back({"caller", attribute::externals, {"malloc", "free"}, {}});
  return made;
}

/// An archive for one architecture: the heap's functions, one of its own, and its variable.
inline made_cubin archive_cubin(u32 arch) {
  made_cubin made;
  made.type = ET_REL;
  made.arch = arch;
  made.sections = {code_section("malloc", 48, 200),
                   code_section("free", 16, 33),
                   code_section("scan", 16, 50),
                   {".nv.global", SHT_NOBITS, {}, 8, SHF_ALLOC | SHF_WRITE, {}, {}, 0}};
  made.symbols = {{"malloc", ".text.malloc", 0, 48, STT_FUNC, 0},
                  {"free", ".text.free", 0, 16, STT_FUNC, 0},
                  {"scan", ".text.scan", 0, 16, STT_FUNC, 0},
                  {"warpheap_device_heap", ".nv.global", 0, 8, STT_OBJECT, 0}};
  made.attributes = {{"", attribute::registers, {"malloc"}, {32}}};
  return made;
}

/// What a linker makes of it with an archive: the functions are there, symbols have other numbers,
/// and types of variables and shared memory are lost.
inline made_cubin linked_cubin() {
  auto made = program_cubin();
  made.symbols.resize(made.symbols.size() - 2);
  made.attributes.pop_back();
  made.symbols.insert(made.symbols.begin(), {{"malloc", ".text.malloc", 0, 48, STT_FUNC, 0},
                                             {"free", ".text.free", 0, 16, STT_FUNC, 0},
                                             {"warpheap_device_heap", ".nv.global", 8, 8, STT_OBJECT, 0}});
  for (auto& each : made.symbols)
    if (each.type == STT_OBJECT) each.type = made_cubin::linkable_variable;
  std::erase_if(made.sections, [](auto const& each) { return each.name == ".nv.shared.caller"; });
  made.section(".nv.global").reserved = 16;
  made.sections.insert(made.sections.begin(), {code_section("malloc", 48, 200), code_section("free", 16, 33)});
  made.attribute_of("", attribute::least_stack, "other").words = {0};
  made.attributes.insert(made.attributes.begin(), {{"", attribute::registers, {"malloc"}, {32}},
                                                   {"", attribute::registers, {"free"}, {24}},
                                                   {"", attribute::least_stack, {"malloc"}, {200}},
                                                   {"", attribute::least_stack, {"free"}, {96}}});
  return made;
}

/// linked_cubin() with relink.R2 done.
inline made_cubin restored_cubin() {
  auto made = linked_cubin();
  for (auto& each : made.symbols)
    if (each.type == made_cubin::linkable_variable) each.type = STT_OBJECT;
  made.sections.push_back(program_cubin().section(".nv.shared.caller"));
  return made;
}

/// PTX whose kernel calls malloc.
inline std::string calling_ptx(std::string const& target = "sm_80") {
  return ".version 8.0\n.target " + target +
         "\n.address_size 64\n.extern .func  (.param .b64 func_retval0) malloc\n(\n\t.param .b64 malloc_param_0\n)\n;\n"
         ".visible .entry caller()\n{\n\tret;\n}\n";
}

}  // namespace warpheap::relink
