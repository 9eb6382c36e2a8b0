// SPDX-License-Identifier: Apache-2.0
// Numbers as people type and read them: counts, sizes with units, lists of both.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "warpheap/util/size_text.hpp"

#include "measure/result.hpp"
#include "usage_error.hpp"

namespace warpheap::tool {

/// What help and the manual say of numbers.
std::string numbers_help();

/// A whole number, like 1000000, 1_000_000, 1e6. It has no unit: M is 2^20 of a size, and would be
/// 10^6 of a count. Throws usage_error, which names `what`, unless it is in [least, most].
u64 parse_count(std::string_view what, std::string_view text, u64 least = 0, u64 most = ~u64{0});

/// A number of bytes, as size_text reads it. Throws usage_error likewise.
u64 parse_bytes(std::string_view what, std::string_view text, u64 least = 0, u64 most = ~u64{0});

/// One size, or the sizes of `LEAST-MOST:STEP`: LEAST, LEAST + STEP and so on, up to MOST. At most
/// `most_stepped_sizes`. Throws usage_error likewise.
std::vector<u64> parse_stepped_bytes(std::string_view what, std::string_view text, u64 least, u64 most);
constexpr u64 most_stepped_sizes = 65536;

/// A real number, like 0.95; throws usage_error likewise.
double parse_real(std::string_view what, std::string_view text, double least, double most);

/// The parts between commas; throws usage_error if one is empty.
std::vector<std::string> split_list(std::string_view what, std::string_view text);

/// `LEAST-MOST`, both sizes, LEAST first.
bench::size_range parse_range(std::string_view what, std::string_view text, u64 least, u64 most);

/// The most threads that a flag takes.
inline constexpr u64 most_threads = u64{1} << 26;

/// Sizes of calls and ranges of them as typed, of at most `most` bytes; empty lists for empty text.
std::vector<u64> parse_sizes(std::string const& text, u64 most);
std::vector<bench::size_range> parse_ranges(std::string const& text, u64 most);

/// 8589934592 as "8 GiB".
using warpheap::format_bytes;

/// Decimals that make `value`, below 999.5, a number of about three digits.
int decimals_of(double value);

/// About three digits and a unit of a thousand: 1.29e9 as "1.29 G".
std::string format_rate(double per_second);

}  // namespace warpheap::tool
