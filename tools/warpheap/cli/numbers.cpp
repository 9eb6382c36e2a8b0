// SPDX-License-Identifier: Apache-2.0
#include "numbers.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace warpheap::tool {

namespace {

constexpr char const* counts_text = "like 1000000, 1_000_000, 1e6, without a unit";
constexpr char const* sizes_text = "like 1000, 64K, 512MiB, 1.5GiB";

}  // namespace

std::string numbers_help() {
  return fmt::format("Sizes are {} ({}). Counts are {}.", sizes_text, size_units_text, counts_text);
}

u64 parse_count(std::string_view what, std::string_view text, u64 least, u64 most) {
  leading_number const read{text};
  auto const number = read.times(1);
  if (!number.is_whole || !read.rest().empty())
    throw usage_error{fmt::format("{}: '{}' is not a whole number; these are {}", what, text, counts_text)};
  if (!number.fits || number.value < least || number.value > most)
    throw usage_error{fmt::format("{}: {} is not between {} and {}", what, text, least, most)};
  return number.value;
}

double parse_real(std::string_view what, std::string_view text, double least, double most) {
  double value = 0;
  auto const digits = leading_number::without_separators(text);
  auto const end = digits.data() + digits.size();
  auto const [stop, error] = std::from_chars(digits.data(), end, value);
  if (error == std::errc::invalid_argument || stop != end)
    throw usage_error{fmt::format("{}: '{}' is not a number", what, text)};
  // Not value < least: every comparison with "nan" is false.
  if (error != std::errc{} || !(value >= least && value <= most))
    throw usage_error{fmt::format("{}: {} is not between {} and {}", what, text, least, most)};
  return value;
}

u64 parse_bytes(std::string_view what, std::string_view text, u64 least, u64 most) {
  size_text const read{text};
  if (!read.is_size)
    throw usage_error{
        fmt::format("{}: '{}' is not a size; sizes are {} ({})", what, text, sizes_text, size_units_text)};
  if (!read.is_whole) throw usage_error{fmt::format("{}: '{}' is not a whole number of bytes", what, text)};
  if (!read.fits) throw usage_error{fmt::format("{}: '{}' is more than {} bytes", what, text, most)};
  if (read.bytes < least) throw usage_error{fmt::format("{}: '{}' is less than {}", what, text, format_bytes(least))};
  if (read.bytes > most) throw usage_error{fmt::format("{}: '{}' is more than {}", what, text, format_bytes(most))};
  return read.bytes;
}

std::vector<std::string> split_list(std::string_view what, std::string_view text) {
  std::vector<std::string> parts;
  for (size_t start = 0; start <= text.size();) {
    auto const comma = std::min(text.find(',', start), text.size());
    if (comma == start) throw usage_error{fmt::format("{}: '{}' has an empty item", what, text)};
    parts.emplace_back(text.substr(start, comma - start));
    start = comma + 1;
  }
  return parts;
}

bench::size_range parse_range(std::string_view what, std::string_view text, u64 least, u64 most) {
  auto const dash = text.find('-');
  if (dash == std::string_view::npos || dash == 0)
    throw usage_error{fmt::format("{}: '{}' is not a range of sizes; ranges are like 16-512", what, text)};
  bench::size_range const range{parse_bytes(what, text.substr(0, dash), least, most),
                                parse_bytes(what, text.substr(dash + 1), least, most)};
  if (range.least > range.most) throw usage_error{fmt::format("{}: '{}' ends before it starts", what, text)};
  return range;
}

std::vector<u64> parse_stepped_bytes(std::string_view what, std::string_view text, u64 least, u64 most) {
  auto const colon = text.find(':');
  if (colon == std::string_view::npos) {
    if (text.find('-', 1) != std::string_view::npos)
      throw usage_error{fmt::format("{}: '{}' has no step; steps are like 8-3072:8", what, text)};
    return {parse_bytes(what, text, least, most)};
  }
  auto const range = parse_range(what, text.substr(0, colon), least, most);
  u64 const step = parse_bytes(what, text.substr(colon + 1), 1, most), count = (range.most - range.least) / step + 1;
  if (count > most_stepped_sizes)
    throw usage_error{fmt::format("{}: '{}' is {} sizes, more than {}", what, text, count, most_stepped_sizes)};
  std::vector<u64> sizes(count);
  for (u64 i = 0; i < count; ++i) sizes[i] = range.least + i * step;
  return sizes;
}

std::vector<u64> parse_sizes(std::string const& text, u64 most) {
  std::vector<u64> sizes;
  if (text.empty()) return sizes;
  for (auto const& part : split_list("--sizes", text))
    for (u64 const bytes : parse_stepped_bytes("--sizes", part, 1, most)) sizes.push_back(bytes);
  return sizes;
}

std::vector<bench::size_range> parse_ranges(std::string const& text, u64 most) {
  std::vector<bench::size_range> ranges;
  if (text.empty()) return ranges;
  constexpr u64 most_drawn = u64{1} << 30;  // sizes are drawn with 32 bits
  for (auto const& part : split_list("--ranges", text))
    ranges.push_back(parse_range("--ranges", part, 1, std::min(most, most_drawn)));
  return ranges;
}

int decimals_of(double value) {
  if (value >= 99.95) return 0;
  return value >= 9.995 ? 1 : 2;
}

std::string format_rate(double per_second) {
  constexpr char const* names[] = {"", " k", " M", " G", " T"};
  size_t power = 0;
  while (per_second >= 999.5 && power + 1 < std::size(names)) {
    per_second /= 1000;
    ++power;
  }
  return fmt::format("{:.{}f}{}", per_second, decimals_of(per_second), names[power]);
}

}  // namespace warpheap::tool
