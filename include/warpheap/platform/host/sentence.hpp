// Messages put together from words and numbers out of line: every program that launches a kernel compiles the reports of
// all that could go wrong with it, and std::string's operator+ inlined into each cost half a second.
#pragma once

#include <initializer_list>
#include <string>

#include "../types.hpp"

namespace warpheap::host::detail {

/// A part of a sentence: words, or a number in decimal.
class part {
 public:
  [[gnu::noinline]] part(char const* words) : text_{words} {}
  [[gnu::noinline]] part(std::string words) : text_{static_cast<std::string&&>(words)} {}
  [[gnu::noinline]] part(unsigned long long number) : text_{std::to_string(number)} {}
  part(unsigned long number) : part{static_cast<unsigned long long>(number)} {}
  part(unsigned number) : part{static_cast<unsigned long long>(number)} {}
  part(part const&) = delete;
  part& operator=(part const&) = delete;
  [[gnu::noinline]] ~part() {}

  std::string const& text() const { return text_; }

 private:
  std::string text_;
};

[[gnu::noinline]] inline std::string sentence(std::initializer_list<part> parts) {
  std::string text;
  for (auto const& each : parts) text += each.text();
  return text;
}

}  // namespace warpheap::host::detail
