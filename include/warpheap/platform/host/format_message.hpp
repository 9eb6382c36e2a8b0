// SPDX-License-Identifier: Apache-2.0
// Messages put together from words and numbers out of line, because every program that launches a
// kernel compiles the reports of all that could go wrong with it. std::string's operator+ inlined
// into each report cost half a second. Parts that own their words, each with a destructor to call
// on every way out, cost another fifth of a second.
#pragma once

#include <unistd.h>

#include <initializer_list>
#include <string>

#include "sanitizer.hpp"

namespace warpheap::host::detail {

/// A part of a sentence: words, or a number in decimal. The words stay the caller's, and must live
/// to the end of its expression.
class part {
 public:
  part(char const* words) : words_{words} {}
  part(std::string const& words) : words_{words.c_str()} {}
  part(unsigned long long number) : number_{number} {}
  part(unsigned long number) : number_{number} {}
  part(unsigned number) : number_{number} {}

  void append_to(std::string& text) const {
    if (words_) text += words_;
    else text += std::to_string(number_);
  }
  template <class Text>
  void append_to(Text& text) const {
    if (words_) text.add(words_);
    else text.add(number_, 10);
  }

 private:
  char const* words_ = nullptr;
  u64 number_ = 0;
};

[[gnu::noinline]] inline std::string format_message(std::initializer_list<part> parts) {
  std::string text;
  for (auto const& each : parts) each.append_to(text);
  return text;
}

/// A text of limited length for a signal handler, which may not allocate: the rest is cut off.
class fixed_text {
 public:
  WARPHEAP_NO_TSAN void add(char const* words) {
    for (; *words && size_ < sizeof data_; ++words) data_[size_++] = *words;
  }
  WARPHEAP_NO_TSAN void add(u64 number, u32 base) {
    char digits[64];
    u32 count = 0;
    do digits[count++] = "0123456789abcdef"[number % base];
    while (number /= base);
    while (count > 0 && size_ < sizeof data_) data_[size_++] = digits[--count];
  }
  WARPHEAP_NO_TSAN void write_to_standard_error() const {
    // The signal ends the process next, whether this is written or not.
    [[maybe_unused]] auto const written = ::write(STDERR_FILENO, data_, size_);
  }

 private:
  char data_[1024];
  size_t size_ = 0;
};

/// Appends to a std::string or a fixed_text.
template <class Text>
WARPHEAP_NO_TSAN void add_to(Text& text, std::initializer_list<part> parts) {
  for (auto const& each : parts) each.append_to(text);
}

}  // namespace warpheap::host::detail
