// SPDX-License-Identifier: Apache-2.0
#include "printable.hpp"

#include <algorithm>

namespace warpheap::tool {

namespace {

constexpr size_t most_excerpt_bytes = 40;

/// Bytes of the character that `text` begins with; 0 if it is not UTF-8, or a control character.
size_t printable_bytes(std::string_view text) {
  auto const byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  unsigned const first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7f;
  if (first < 0xc2 || first > 0xf4) return 0;
  size_t const bytes = 2 + (first >= 0xe0) + (first >= 0xf0);
  for (size_t i = 1; i < bytes; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  bool const is_c1 = first == 0xc2 && byte(1) < 0xa0;
  return is_c1 ? 0 : bytes;
}

}  // namespace

std::string printable(std::string_view text, std::string_view kept) {
  std::string made;
  made.reserve(text.size());
  while (!text.empty()) {
    bool const is_kept = kept.find(text.front()) != kept.npos;
    size_t const bytes = is_kept ? 1 : printable_bytes(text);
    if (bytes) made += text.substr(0, bytes);
    else made += '?';
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return made;
}

std::string excerpt(std::string_view text) {
  auto const made = printable(text.substr(0, most_excerpt_bytes));
  return text.size() > most_excerpt_bytes ? made + "..." : made;
}

std::string shell_word(std::string path) {
  constexpr auto plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./,+@%=-";
  if (!path.empty() && path.front() == '-') path.insert(0, "./");  // else it is an option
  if (!path.empty() && path.find_first_not_of(plain) == path.npos) return path;
  std::string quoted = "'";
  for (char const c : path) quoted += c == '\'' ? "'\\''" : std::string{c};
  return quoted + "'";
}

}  // namespace warpheap::tool
