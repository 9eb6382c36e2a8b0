// SPDX-License-Identifier: Apache-2.0
// Numbers of bytes as people type and read them: 64K, 1.5GiB, 8 GiB.
#pragma once

#if !defined(__CUDACC_RTC__)

#include <algorithm>
#include <cctype>
#include <charconv>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>

#include "../platform/types.hpp"

namespace warpheap {

/// The number at the start of a text, and what follows it: 1000000, 1_000_000, 1.5 or 1e6. The
/// exponent has no sign, since a dash separates the ends of a range.
class leading_number {
 public:
  /// The number times a unit.
  struct product {
    u64 value = 0;
    bool is_whole = false;
    bool fits = false;  ///< it is whole, and no more than 64 bits; else `value` is 0
  };

  explicit leading_number(std::string_view text) : rest_{without_separators(text)} {
    auto digits = take_digits();
    is_number_ = !digits.empty();
    if (is_number_ && takes_digits_behind('.', '.')) {
      auto const fraction = take_digits();
      tens_ = -static_cast<long>(fraction.size());
      digits += fraction;
    }
    if (is_number_ && takes_digits_behind('e', 'E')) tens_ += exponent_of(take_digits());
    for (; tens_ < 0 && digits.ends_with('0'); ++tens_) digits.pop_back();
    fits_ = std::from_chars(digits.data(), digits.data() + digits.size(), digits_).ec == std::errc{};
  }

  /// `text` without underscores that have a digit on both sides: 1_000_000 as 1000000.
  static std::string without_separators(std::string_view text) {
    std::string made;
    for (size_t i = 0; i < text.size(); ++i) {
      bool const has_neighbours = i > 0 && i + 1 < text.size();
      if (text[i] != '_' || !has_neighbours || !is_digit(text[i - 1]) || !is_digit(text[i + 1])) made += text[i];
    }
    return made;
  }

  bool is_number() const { return is_number_; }
  /// What follows the number.
  std::string const& rest() const { return rest_; }

  product times(u64 unit) const {
    if (!is_number_) return {};
    u64 value = digits_;
    if (!fits_) return {.is_whole = tens_ >= 0};
    for (long i = tens_; i < 0; ++i)
      for (u64 const prime : {u64{2}, u64{5}}) {
        u64& divisible = value % prime == 0 ? value : unit;
        if (divisible % prime != 0) return {};
        divisible /= prime;
      }
    for (long i = 0; i < tens_ && value != 0; ++i)
      if (!multiply(value, 10)) return {.is_whole = true};
    if (!multiply(value, unit)) return {.is_whole = true};
    return {value, true, true};
  }

 private:
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  std::string take_digits() {
    auto const end = std::find_if_not(rest_.begin(), rest_.end(), is_digit);
    std::string taken{rest_.begin(), end};
    rest_.erase(rest_.begin(), end);
    return taken;
  }

  /// Takes the sign, in either case, if digits follow it.
  bool takes_digits_behind(char sign, char capital) {
    if (rest_.size() < 2 || (rest_[0] != sign && rest_[0] != capital) || !is_digit(rest_[1])) return false;
    rest_.erase(0, 1);
    return true;
  }

  /// One that is too large for any number of 64 bits stays so.
  static long exponent_of(std::string const& digits) {
    constexpr long too_large = 1'000'000;
    long value = 0;
    auto const error = std::from_chars(digits.data(), digits.data() + digits.size(), value).ec;
    return error == std::errc{} ? (std::min)(value, too_large) : too_large;
  }

  static bool multiply(u64& value, u64 factor) {
    if (value > ~u64{0} / factor) return false;
    value *= factor;
    return true;
  }

  std::string rest_;
  u64 digits_ = 0;  ///< the number is digits_ * 10^tens_
  long tens_ = 0;
  bool is_number_ = false;
  bool fits_ = false;
};

/// For messages and help.
inline constexpr char const* size_units_text = "G and GiB are 2^30, GB is 10^9; likewise K, M and T";

/// A number of bytes: a number, then nothing or B, a binary unit (K or KiB, M, G, T likewise) or a
/// decimal one (KB, MB, GB, TB), in capital letters or small ones. 1.5GiB is one: a whole number of
/// bytes.
struct size_text {
  u64 bytes = 0;
  bool is_size = false;   ///< it is written as a number of bytes
  bool is_whole = false;  ///< and that number is whole
  bool fits = false;      ///< and `bytes` is it

  explicit size_text(std::string_view text) {
    leading_number const read{text};
    if (!read.is_number()) return;
    for (auto const& known : units) {
      if (!same_but_for_case(read.rest(), known.name)) continue;
      auto const [value, whole, has_room] = read.times(known.bytes);
      is_size = true;
      is_whole = whole;
      fits = has_room;
      bytes = value;
    }
  }

 private:
  struct unit {
    char const* name;
    u64 bytes;
  };
  static constexpr u64 kibi = 1024;
  static constexpr unit units[] = {{"", 1},
                                   {"B", 1},
                                   {"K", kibi},
                                   {"KiB", kibi},
                                   {"KB", 1000},
                                   {"M", kibi* kibi},
                                   {"MiB", kibi* kibi},
                                   {"MB", 1'000'000},
                                   {"G", kibi* kibi* kibi},
                                   {"GiB", kibi* kibi* kibi},
                                   {"GB", 1'000'000'000},
                                   {"T", kibi* kibi* kibi* kibi},
                                   {"TiB", kibi* kibi* kibi* kibi},
                                   {"TB", 1'000'000'000'000}};

  static bool same_but_for_case(std::string_view one, std::string_view other) {
    return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                      [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); });
  }
};

/// 8589934592 as "8 GiB", 1000 as "1000 B": exact, in the largest unit that divides it.
inline std::string format_bytes(u64 bytes) {
  constexpr char const* names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t power = 0;
  while (bytes && bytes % 1024 == 0 && power + 1 < std::size(names)) {
    bytes /= 1024;
    ++power;
  }
  return std::to_string(bytes) + " " + names[power];
}

}  // namespace warpheap

#endif
