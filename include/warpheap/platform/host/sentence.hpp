// Messages put together from words and numbers out of line: every program that launches a kernel compiles the reports of
// all that could go wrong with it. std::string's operator+ inlined into each cost half a second, and parts that own their
// words, each with a destructor to call on every way out, another fifth of one.
#pragma once

#include <initializer_list>
#include <string>

#include "../types.hpp"

namespace warpheap::host::detail {

/// A part of a sentence: words, or a number in decimal. The words are the caller's, to the end of its expression.
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

 private:
  char const* words_ = nullptr;
  u64 number_ = 0;
};

[[gnu::noinline]] inline std::string sentence(std::initializer_list<part> parts) {
  std::string text;
  for (auto const& each : parts) each.append_to(text);
  return text;
}

}  // namespace warpheap::host::detail
