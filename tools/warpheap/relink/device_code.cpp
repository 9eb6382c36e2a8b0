// SPDX-License-Identifier: Apache-2.0
#include "device_code.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>

#include "elf_view.hpp"

namespace warpheap::relink {

namespace {

/// What nvcc leaves in a program's section .nvFatBinSegment, and passes to the driver.
struct fat_wrapper {
  static constexpr u32 magic_value = 0x4662'43b1;
  u32 magic, version;
  void const* fat_binary;
};

struct fat_header {
  static constexpr u32 magic_value = 0xba55'ed50;
  u32 magic;
  u16 version, header_bytes;
  u64 bytes;  ///< of all entries
};

/// Before each piece of code.
struct fat_entry {
  static constexpr u16 is_ptx = 1, is_cubin = 2;
  static constexpr u64 lz4 = 0x2000, zstd = 0x8000;
  u16 kind, version;
  u32 header_bytes;
  u64 bytes;             ///< of the code, padded
  u32 compressed_bytes;  ///< 0 where it is not compressed
  u32 options;
  u16 minor, major;
  u32 arch, name, name_bytes;
  u64 flags, reserved, decompressed_bytes;
};
static_assert(sizeof(fat_entry) == 64);

constexpr u64 most_decompressed_bytes = u64{1} << 32;

/// A function of a library that nearly every system has, and none needs at compile time. No lock is
/// held while the loader has its own.
template <class Function>
Function* function_of(std::atomic<Function*>& found, char const* library, char const* name) {
  if (auto* const made = found.load(std::memory_order_relaxed)) return made;
  auto* const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  auto* const made = handle == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(handle, name));
  found.store(made, std::memory_order_relaxed);
  return made;
}

std::string decompress(u64 compression, std::span<u8 const> from, std::vector<u8>& to) {
  if (compression & fat_entry::zstd) {
    static std::atomic<size_t (*)(void*, size_t, void const*, size_t)> found{nullptr};
    auto* const decode = function_of(found, "libzstd.so.1", "ZSTD_decompress");
    if (decode == nullptr) return "it is compressed by zstd, and libzstd.so.1 is not on this machine";
    if (decode(to.data(), to.size(), from.data(), from.size()) == to.size()) return {};
    return "zstd cannot decompress it";
  }
  static std::atomic<int (*)(char const*, char*, int, int)> found{nullptr};
  auto* const decode = function_of(found, "liblz4.so.1", "LZ4_decompress_safe");
  if (decode == nullptr) return "it is compressed by LZ4, and liblz4.so.1 is not on this machine";
  int const made = decode(reinterpret_cast<char const*>(from.data()), reinterpret_cast<char*>(to.data()),
                          static_cast<int>(from.size()), static_cast<int>(to.size()));
  return made == static_cast<int>(to.size()) ? "" : "LZ4 cannot decompress it";
}

device_code code_of(fat_entry const& entry, std::span<u8 const> stored) {
  auto const kind = entry.kind == fat_entry::is_ptx ? code_kind::ptx : code_kind::cubin;
  device_code code{
      kind, entry.arch, {}, {}, stored, entry.flags & (fat_entry::lz4 | fat_entry::zstd), entry.decompressed_bytes};
  if (code.compression == 0) return code;
  if (entry.compressed_bytes > stored.size()) throw unusable_code{"its fat binary is truncated"};
  code.stored = stored.first(entry.compressed_bytes);
  return code;
}

void unpack_all(std::vector<device_code>& codes) {
  for (auto& each : codes) each.unpack();
}

/// The codes of the fat binary that `bytes` begin with.
std::vector<device_code> codes_of_fat_binary(std::span<u8 const> bytes) {
  auto const header = read_at<fat_header>(bytes, 0);
  if (header.magic != fat_header::magic_value || header.version != 1)
    throw unusable_code{"its fat binary is of an unknown version"};
  if (header.header_bytes < sizeof header || header.bytes > bytes.size() ||
      bytes.size() - header.bytes < header.header_bytes)
    throw unusable_code{"its fat binary is truncated"};
  std::vector<device_code> found;
  auto rest = bytes.subspan(header.header_bytes, header.bytes);
  while (rest.size() >= sizeof(fat_entry)) {
    auto const entry = read_at<fat_entry>(rest, 0);
    if (entry.header_bytes < sizeof(fat_entry) || entry.header_bytes > rest.size() ||
        entry.bytes > rest.size() - entry.header_bytes)
      throw unusable_code{"its fat binary is truncated"};
    if (entry.kind == fat_entry::is_ptx || entry.kind == fat_entry::is_cubin)
      found.push_back(code_of(entry, rest.subspan(entry.header_bytes, entry.bytes)));
    rest = rest.subspan(entry.header_bytes + entry.bytes);
  }
  return found;
}

/// Bytes of the ELF file at `image`, up to the last thing that its headers name.
u64 elf_bytes(u8 const* image) {
  auto const header = read_at<Elf64_Ehdr>({image, sizeof(Elf64_Ehdr)}, 0);
  u64 end = std::max<u64>(header.e_shoff + u64{header.e_shnum} * sizeof(Elf64_Shdr),
                          header.e_phoff + u64{header.e_phnum} * sizeof(Elf64_Phdr));
  for (u32 i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, image + header.e_shoff + i * sizeof section, sizeof section);
    if (section.sh_type != SHT_NOBITS) end = std::max<u64>(end, section.sh_offset + section.sh_size);
  }
  return end;
}

/// The compute capability for which a cubin was made: in its flags, whose place has moved once.
u32 arch_of_cubin(std::span<u8 const> bytes) {
  constexpr u8 first_version_of_new_flags = 8;
  auto const flags = read_at<Elf64_Ehdr>(bytes, 0).e_flags;
  return bytes[EI_ABIVERSION] >= first_version_of_new_flags ? flags >> 8 & 0xff : flags & 0xff;
}

/// That of PTX: `.target sm_90`.
u32 arch_of_ptx(std::string_view text) {
  constexpr std::string_view before = ".target sm_";
  auto const at = text.find(before);
  u32 arch = 0;
  if (at != std::string_view::npos)
    for (auto rest = text.substr(at + before.size()); !rest.empty() && rest[0] >= '0' && rest[0] <= '9' && arch < 10000;
         rest.remove_prefix(1))
      arch = 10 * arch + static_cast<u32>(rest[0] - '0');
  return arch;
}

}  // namespace

void device_code::unpack() {
  if (!bytes.empty() || !fault.empty()) return;
  if (compression == 0) {
    bytes.assign(stored.begin(), stored.end());
  } else if (unpacked_bytes > most_decompressed_bytes) {
    fault = "it says that it is larger than 4 GiB";
  } else {
    bytes.resize(unpacked_bytes);
    fault = decompress(compression, stored, bytes);
    if (!fault.empty()) bytes.clear();
  }
  if (kind == code_kind::ptx && !bytes.empty()) bytes.push_back(0);
}

std::vector<device_code> codes_of_image(void const* image) {
  auto codes = packed_codes_of_image(image);
  unpack_all(codes);
  return codes;
}

std::vector<device_code> packed_codes_of_image(void const* image) {
  if (image == nullptr) throw unusable_code{"it is a null pointer"};
  auto const* const bytes = static_cast<u8 const*>(image);
  u32 magic;
  std::memcpy(&magic, bytes, sizeof magic);
  if (magic == fat_wrapper::magic_value)
    return packed_codes_of_image(static_cast<fat_wrapper const*>(image)->fat_binary);
  if (magic == fat_header::magic_value) {
    auto const header = read_at<fat_header>({bytes, sizeof(fat_header)}, 0);
    return packed_codes_of_bytes({bytes, header.header_bytes + header.bytes});
  }
  bool const is_elf = std::memcmp(bytes, ELFMAG, SELFMAG) == 0;
  return packed_codes_of_bytes({bytes, is_elf ? elf_bytes(bytes) : std::strlen(static_cast<char const*>(image))});
}

std::vector<device_code> packed_codes_of_bytes(std::span<u8 const> bytes) {
  if (bytes.size() >= sizeof(fat_header) && read_at<u32>(bytes, 0) == fat_header::magic_value)
    return codes_of_fat_binary(bytes);
  if (bytes.size() >= SELFMAG && std::memcmp(bytes.data(), ELFMAG, SELFMAG) == 0) {
    elf_view const whole{bytes};
    return {{code_kind::cubin, arch_of_cubin(bytes), {}, {}, bytes}};
  }
  std::string_view const text{reinterpret_cast<char const*>(bytes.data()), bytes.size()};
  if (text.find(".version") == std::string_view::npos) throw unusable_code{"it is no fat binary, cubin or PTX"};
  return {{code_kind::ptx, arch_of_ptx(text), {}, {}, bytes}};
}

std::vector<std::vector<device_code>> codes_of_file(std::span<u8 const> file) {
  elf_view const elf{file};
  std::vector<std::vector<device_code>> found;
  for (auto const& section : elf.sections()) {
    // __nv_relfatbin has what the device linker made this of.
    if (elf.name(section) != ".nv_fatbin") continue;
    auto rest = elf.contents(section);
    while (rest.size() >= sizeof(fat_header)) {
      auto const header = read_at<fat_header>(rest, 0);
      // Between two of them is padding.
      u64 passed = sizeof(u64);
      if (header.magic == fat_header::magic_value) {
        found.push_back(codes_of_fat_binary(rest));
        unpack_all(found.back());
        passed = header.header_bytes + header.bytes;
      }
      rest = rest.subspan(std::min<u64>(passed, rest.size()));
    }
  }
  return found;
}

device_code const* text_for(std::vector<device_code> const& codes, u32 arch) {
  device_code const* best = nullptr;
  for (auto const& each : codes)
    if (each.kind == code_kind::ptx && each.arch <= arch && (best == nullptr || each.arch > best->arch)) best = &each;
  return best;
}

device_code const* code_for(std::vector<device_code> const& codes, u32 arch) {
  device_code const* best = nullptr;
  for (auto const& each : codes) {
    bool const runs =
        each.kind == code_kind::cubin ? each.arch / 10 == arch / 10 && each.arch <= arch : each.arch <= arch;
    if (!runs) continue;
    bool const is_better =
        best == nullptr || (each.kind == best->kind ? each.arch > best->arch : each.kind == code_kind::cubin);
    if (is_better) best = &each;
  }
  return best;
}

}  // namespace warpheap::relink
