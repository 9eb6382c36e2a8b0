// SPDX-License-Identifier: Apache-2.0
#include "cubin.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace warpheap::relink {

namespace {

constexpr std::array<std::string_view, 3> heap_functions{"malloc", "free", "__cuda_syscall_aligned_malloc"};
constexpr std::string_view info_prefix = ".nv.info.";

bool is_of_word(char each) { return std::isalnum(static_cast<unsigned char>(each)) || each == '_' || each == '$'; }

/// Whether `text` has the name, and not only in a longer one.
bool has_word(std::string_view text, std::string_view name) {
  for (auto at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    auto const end = at + name.size();
    bool const begins = at == 0 || !is_of_word(text[at - 1]);
    if (begins && (end == text.size() || !is_of_word(text[end]))) return true;
  }
  return false;
}

}  // namespace

std::vector<attribute> attributes_in(std::span<u8 const> section) {
  std::vector<attribute> found;
  u64 at = 0;
  while (at + 4 <= section.size()) {
    attribute const head{section[at], section[at + 1], {}};
    u64 bytes = 2;
    u64 begin = at + 2;
    if (head.format == attribute::sized) {
      bytes = read_at<u16>(section, at + 2);
      begin = at + 4;
    }
    if (begin + bytes > section.size()) throw unusable_code{"its attributes are truncated"};
    found.push_back({head.format, head.number, section.subspan(begin, bytes)});
    at = begin + bytes;
  }
  return found;
}

bool is_heap_function(std::string_view name) { return std::ranges::find(heap_functions, name) != heap_functions.end(); }

bool calls_heap(elf_view const& cubin) {
  if (cubin.header().e_machine != EM_CUDA) throw unusable_code{"it is an ELF file, but no cubin"};
  auto const symbols = cubin.symbols();
  return std::ranges::any_of(
      symbols, [&](Elf64_Sym const& each) { return each.st_shndx == SHN_UNDEF && is_heap_function(cubin.name(each)); });
}

std::vector<std::string> heap_callers(elf_view const& cubin) {
  auto const symbols = cubin.symbols();
  std::vector<std::string> found;
  for (auto const& section : cubin.sections()) {
    auto const name = cubin.name(section);
    if (!name.starts_with(info_prefix)) continue;
    for (auto const& each : attributes_in(cubin.contents(section))) {
      if (each.number != attribute::externals) continue;
      for (u32 i = 0; 4 * (i + 1) <= each.value.size(); ++i)
        if (u32 const symbol = each.word(i); symbol < symbols.size() && is_heap_function(cubin.name(symbols[symbol])))
          found.emplace_back(name.substr(info_prefix.size()));
    }
  }
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

bool ptx_calls_heap(std::string_view text) {
  // It declares what it calls: `.extern .func (.param .b64 func_retval0) malloc`.
  constexpr std::string_view begin = ".extern .func";
  for (auto at = text.find(begin); at != std::string_view::npos; at = text.find(begin, at + 1)) {
    auto const declared = text.substr(at, text.find_first_of(";{", at) - at);
    if (std::ranges::any_of(heap_functions, [&](auto name) { return has_word(declared, name); })) return true;
  }
  return false;
}

}  // namespace warpheap::relink
