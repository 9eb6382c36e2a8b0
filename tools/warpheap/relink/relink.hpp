// SPDX-License-Identifier: Apache-2.0
// Programs' device code with another malloc. A cubin of a program keeps `malloc` and `free` as
// undefined symbols, which the driver defines when it loads it. nvJitLink links it with an archive
// that defines them, once its type says that it is relocatable. That use is documented nowhere, so:
//
//   relink.R1  All that the driver reads of the program's cubin is in the new one, unchanged and at
//       its place: code, constants, initial values, relocations, symbols, attributes. Only the heap
//       functions are defined, and tables may have become longer. difference() says what is not,
//       and such a cubin is not used.
//   relink.R2  What nvJitLink makes of symbols that a finished cubin has no more, or has otherwise,
//       is as it was: the sections that reserve shared memory, which it drops or resizes, and the
//       types of variables, without which the driver refuses the cubin.
//   relink.R3  Every kernel has the registers of the heap's functions, and stack for them: calls by
//       pointers are in no table of the cubin's.
//
// PTX is what nvJitLink is made for. Compiling it takes seconds, where a cubin takes milliseconds.
#pragma once

#include <filesystem>

#include "device_code.hpp"

namespace warpheap::relink {

/// Bytes of stack that the archive's functions need at most. Kernels that recurse find them in what
/// the context has.
inline constexpr u32 most_heap_stack = 1024;

/// The folder with the archive: device_sm_75.cubin and so on.
class heap_archive {
 public:
  explicit heap_archive(std::filesystem::path folder) : folder_{std::move(folder)} {}
  /// The cubin that is linked to code for a GPU of compute capability `arch`. Throws unusable_code
  /// if there is none.
  std::vector<u8> cubin_for(u32 arch) const;

 private:
  std::filesystem::path folder_;
};

/// Whether device code calls the heap. Throws unusable_code if that cannot be seen.
bool calls_heap(device_code const& code);

/// The code with the archive's heap, for a GPU of compute capability `arch`. Throws unusable_code
/// if that cannot be done.
std::vector<u8> relinked(device_code const& code, heap_archive const& archive, u32 arch);

}  // namespace warpheap::relink
