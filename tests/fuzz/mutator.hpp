// SPDX-License-Identifier: Apache-2.0
// Inputs for readers that must take any file: drawn by seed from texts that they accept, by small
// changes of bytes, ranges and numbers. Without a fuzzing engine: what steers the draws is the
// reader's own answer, since a message that was not seen before marks an input worth changing
// further.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "warpheap/util/random.hpp"

namespace warpheap::fuzz {

/// Texts from other programs' files, for places where readers do not expect them.
inline std::vector<std::string> const& odd_texts() {
  using namespace std::string_literals;
  static std::vector<std::string> const odd{"0",
                                            "-1",
                                            "+1",
                                            "+-1",
                                            "1e5",
                                            "7.0",
                                            "1e999",
                                            "nan",
                                            "0x10",
                                            "2147483646",
                                            "2147483647",
                                            "2147483648",
                                            "4294967295",
                                            "4294967296",
                                            "18446744073709551615",
                                            "99999999999999999999",
                                            "1.0D+00",
                                            std::string(401, '9'),
                                            "\n",
                                            "\r",
                                            "\r\n",
                                            "\t",
                                            ",",
                                            "\"",
                                            "%",
                                            "#",
                                            "\0"s,
                                            "\xff",
                                            "\xef\xbb\xbf",
                                            "\xff\xfe",
                                            "\x1b[31m",
                                            "\xc2\x9b",
                                            "\x1f\x8b",
                                            "PK\3\4",
                                            "%%MatrixMarket matrix coordinate pattern general\n",
                                            "% sym unweighted\n",
                                            "% bip positive\n",
                                            "# Undirected\n",
                                            "p sp 3 2\n",
                                            "p edge 3 2\n",
                                            "a 1 2 3\n",
                                            "e 1 2\n"};
  return odd;
}

class mutator {
 public:
  mutator(u64 seed, std::vector<std::string> texts) : random_{seed}, pool_{std::move(texts)} {}

  /// The next input.
  std::string draw() {
    auto made = pool_[below(pool_.size())];
    for (u64 changes = 1 + below(4); changes > 0; --changes) change(made);
    return made.substr(0, most_bytes);
  }

  /// Keeps an input to change it further.
  void keep(std::string const& input) { pool_.push_back(input); }

 private:
  static constexpr size_t most_bytes = 1 << 14;

  u64 below(u64 count) { return random_.below(static_cast<u32>(std::max<u64>(count, 1))); }

  /// A range of the text that begins at `start`.
  size_t length_from(std::string const& text, size_t start) {
    return below(std::min<size_t>(text.size() - start, 64) + 1);
  }

  void change(std::string& text) {
    size_t const at = below(text.size() + 1);
    switch (below(8)) {
      case 0: return flip_bit(text, at);
      case 1: return static_cast<void>(text.insert(at, 1, static_cast<char>(below(256))));
      case 2: return static_cast<void>(text.erase(at, length_from(text, at)));
      case 3: return static_cast<void>(text.insert(at, text.substr(at, length_from(text, at))));
      case 4: return static_cast<void>(text.insert(at, odd_text()));
      case 5: return replace_number(text, at);
      case 6: return static_cast<void>(text.resize(at));
      default: return splice(text, at);
    }
  }

  std::string const& odd_text() { return odd_texts()[below(odd_texts().size())]; }

  void flip_bit(std::string& text, size_t at) {
    if (at < text.size()) text[at] = static_cast<char>(text[at] ^ 1 << below(8));
  }

  /// The first number behind `at` becomes an odd one.
  void replace_number(std::string& text, size_t at) {
    auto const first = text.find_first_of("0123456789", at);
    if (first == text.npos) return;
    auto const end = std::min(text.find_first_not_of("0123456789", first), text.size());
    text.replace(first, end - first, odd_text());
  }

  /// The text up to `at`, and another one's end.
  void splice(std::string& text, size_t at) {
    auto const& other = pool_[below(pool_.size())];
    text = text.substr(0, at) + other.substr(below(other.size() + 1));
  }

  random_sequence random_;
  std::vector<std::string> pool_;
};

}  // namespace warpheap::fuzz
