// SPDX-License-Identifier: Apache-2.0
// The device code that a program holds: fat binaries in its file or its memory, and the cubins and
// PTX in them. NVIDIA does not document the format; what is read here is what nvcc 11 to 13 write.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "warpheap/platform/types.hpp"

namespace warpheap::relink {

using u16 = std::uint16_t;

/// Device code that cannot be read or linked, and why.
struct unusable_code : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class code_kind { cubin, ptx };

/// One architecture's code.
struct device_code {
  code_kind kind;
  u32 arch;                 ///< 90 for sm_90 and compute_90
  std::vector<u8> bytes{};  ///< decompressed; PTX ends with a zero
  std::string fault{};      ///< why it could not be decompressed; then there are no bytes

  // In the image, until unpack().
  std::span<u8 const> stored{};
  u64 compression = 0, unpacked_bytes = 0;

  /// Makes the bytes. The image must still be there.
  void unpack();
};

/// What the driver is given as an image: a fat binary or a wrapper around one, a cubin, or PTX. All
/// of these tell their own size. Throws unusable_code for anything else. Nothing is unpacked yet:
/// libraries hold hundreds of megabytes, of which the driver takes one architecture's.
std::vector<device_code> packed_codes_of_image(void const* image);

/// Those of a file that is loaded as an image. Nothing beyond its end is read.
std::vector<device_code> packed_codes_of_bytes(std::span<u8 const> bytes);

/// All codes of an image, unpacked.
std::vector<device_code> codes_of_image(void const* image);

/// What the fat binaries of an executable or a shared library hold; a fat binary each. Throws
/// unusable_code if the file is none, or is truncated.
std::vector<std::vector<device_code>> codes_of_file(std::span<u8 const> file);

/// The code that the driver takes on a GPU of compute capability `arch`: the newest cubin that runs
/// there, else the newest PTX that can be compiled for it; nullptr if there is neither.
device_code const* code_for(std::vector<device_code> const& codes, u32 arch);

/// The newest PTX that can be compiled for it, which is taken where machine code cannot be linked;
/// nullptr if there is none.
device_code const* text_for(std::vector<device_code> const& codes, u32 arch);

}  // namespace warpheap::relink
