// SPDX-License-Identifier: Apache-2.0
// What a cubin says of itself: which of its kernels call the device's heap, and the attributes that
// the driver reads beside the code (sections .nv.info).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "elf_view.hpp"

namespace warpheap::relink {

/// An attribute of a function or a cubin, in nvlink's numbers.
struct attribute {
  // The ones that are looked at here.
  static constexpr u8 externals = 0x0f, least_stack = 0x12, registers = 0x2f, parameter_bank = 0x0a;
  static constexpr u8 sized = 4;  ///< the format of attributes that say how long they are

  u8 format, number;
  std::span<u8 const> value;

  u32 word(u32 index) const { return read_at<u32>(value, 4 * u64{index}); }
};

/// The attributes in a section .nv.info or .nv.info.FUNCTION.
std::vector<attribute> attributes_in(std::span<u8 const> section);

/// The functions of CUDA's heap that device code calls: nvcc turns each `new` and `delete` into
/// calls of these.
bool is_heap_function(std::string_view name);

/// Whether a cubin calls one that it does not define. Throws unusable_code if it is no cubin.
bool calls_heap(elf_view const& cubin);

/// The kernels and other functions that do, by name, in no order.
std::vector<std::string> heap_callers(elf_view const& cubin);

/// Whether PTX does.
bool ptx_calls_heap(std::string_view text);

}  // namespace warpheap::relink
