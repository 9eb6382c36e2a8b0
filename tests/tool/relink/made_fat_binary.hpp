// SPDX-License-Identifier: Apache-2.0
// Fat binaries that tests write, as nvcc writes them.
#pragma once

#include <dlfcn.h>

#include "made_elf.hpp"

namespace warpheap::relink {

enum class compression { none, lz4, zstd };

/// A piece of code of a fat binary.
struct stored_code {
  code_kind kind;
  u32 arch;
  byte_list bytes;
  compression how = compression::none;
};

/// Whether this machine has the library that compresses so.
inline bool can_compress(compression how) {
  return how == compression::none ||
         dlopen(how == compression::zstd ? "libzstd.so.1" : "liblz4.so.1", RTLD_NOW) != nullptr;
}

inline byte_list compressed(byte_list const& bytes, compression how) {
  if (how == compression::none) return bytes;
  byte_list made(2 * bytes.size() + 1024);
  if (how == compression::zstd) {
    auto* const library = dlopen("libzstd.so.1", RTLD_NOW);
    auto* const run =
        reinterpret_cast<size_t (*)(void*, size_t, void const*, size_t, int)>(dlsym(library, "ZSTD_compress"));
    made.resize(run(made.data(), made.size(), bytes.data(), bytes.size(), 3));
    return made;
  }
  auto* const library = dlopen("liblz4.so.1", RTLD_NOW);
  auto* const run = reinterpret_cast<int (*)(void const*, void*, int, int)>(dlsym(library, "LZ4_compress_default"));
  made.resize(static_cast<size_t>(
      run(bytes.data(), made.data(), static_cast<int>(bytes.size()), static_cast<int>(made.size()))));
  return made;
}

/// The entry of a code: 64 bytes before it, and padding behind it.
inline void put_entry(byte_list& to, stored_code const& code) {
  auto stored = compressed(code.bytes, code.how);
  bool const is_compressed = code.how != compression::none;
  auto const stored_bytes = static_cast<u32>(stored.size());
  pad(stored, 8);
  put(to, static_cast<u16>(code.kind == code_kind::ptx ? 1 : 2));
  put(to, u16{0x101});
  put(to, u32{64});
  put(to, u64{stored.size()});
  put(to, is_compressed ? stored_bytes : u32{0});
  put(to, u32{0});
  put(to, u32{0});  // the version of the code
  put(to, code.arch);
  put(to, u64{0});  // no name
  u64 flags = 0;
  if (code.how == compression::lz4) flags = 0x2000;
  if (code.how == compression::zstd) flags = 0x8000;
  put(to, flags);
  put(to, u64{0});
  put(to, is_compressed ? u64{code.bytes.size()} : u64{0});
  to.insert(to.end(), stored.begin(), stored.end());
}

inline byte_list fat_binary(std::vector<stored_code> const& codes) {
  byte_list entries;
  for (auto const& each : codes) put_entry(entries, each);
  byte_list made;
  put(made, u32{0xba55'ed50});
  put(made, u16{1});
  put(made, u16{16});
  put(made, u64{entries.size()});
  made.insert(made.end(), entries.begin(), entries.end());
  return made;
}

/// A shared library with these bytes in its section of device code.
inline byte_list library_with(byte_list const& fat_binaries, std::string const& section = ".nv_fatbin") {
  made_elf made;
  made.sections = {{".text", SHT_PROGBITS, byte_list(32, 0xc3), 0, 0, {}, {}, 0},
                   {section, SHT_PROGBITS, fat_binaries, 0, 0, {}, {}, 0}};
  return made.file();
}

}  // namespace warpheap::relink
