// SPDX-License-Identifier: Apache-2.0
// A part of a text anywhere in memory: a pointer and a length, for searches and comparisons in
// kernels, which have no standard library.
#pragma once

#include "../platform/types.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// `size()` characters from `data()` on, which must outlive the view; no zero need follow them.
/// Characters compare as unsigned numbers. Any thread, as long as none writes the text.
class string_view {
 public:
  /// What find() returns if nothing is found, and a length longer than any text's.
  static constexpr u32 npos = ~u32{0};

  /// No characters.
  constexpr string_view() = default;
  /// `size` characters.
  WARPHEAP_HOST_DEVICE constexpr string_view(char const* data, u32 size) : data_{data}, size_{size} {}
  /// A text that ends with a zero; nullptr has no characters.
  WARPHEAP_HOST_DEVICE constexpr string_view(char const* text) : data_{text} {
    while (text && text[size_]) ++size_;
  }

  /// The first character.
  WARPHEAP_HOST_DEVICE constexpr char const* data() const { return data_; }
  /// How many.
  WARPHEAP_HOST_DEVICE constexpr u32 size() const { return size_; }
  /// Whether there are none.
  WARPHEAP_HOST_DEVICE constexpr bool empty() const { return size_ == 0; }
  /// The first character.
  WARPHEAP_HOST_DEVICE constexpr char const* begin() const { return data_; }
  /// One past the last.
  WARPHEAP_HOST_DEVICE constexpr char const* end() const { return data_ + size_; }
  /// Character `index`, below size().
  WARPHEAP_HOST_DEVICE constexpr char operator[](u32 index) const { return data_[index]; }

  /// Up to `count` characters from `from` on; none if the text ends before that.
  WARPHEAP_HOST_DEVICE constexpr string_view substr(u32 from, u32 count = npos) const {
    u32 const begin = from < size_ ? from : size_, left = size_ - begin;
    return {data_ + begin, count < left ? count : left};
  }

  /// Where the first `wanted` from `from` on is; npos if there is none.
  WARPHEAP_HOST_DEVICE constexpr u32 find(char wanted, u32 from = 0) const {
    for (u32 i = from; i < size_; ++i)
      if (data_[i] == wanted) return i;
    return npos;
  }
  /// Where the first `wanted` from `from` on begins; npos if there is none. Takes at most size()
  /// times wanted.size() comparisons.
  WARPHEAP_HOST_DEVICE constexpr u32 find(string_view wanted, u32 from = 0) const {
    for (u32 i = from; i <= size_ && wanted.size_ <= size_ - i; ++i)
      if (substr(i, wanted.size_).compare(wanted) == 0) return i;
    return npos;
  }

  /// Whether it begins with `other`.
  WARPHEAP_HOST_DEVICE constexpr bool starts_with(string_view other) const {
    return substr(0, other.size_).compare(other) == 0;
  }

  /// Below 0 if it is less than `other`, 0 if they are equal, above 0 if it is greater.
  WARPHEAP_HOST_DEVICE constexpr i32 compare(string_view other) const {
    u32 i = 0;
    while (i < size_ && i < other.size_ && data_[i] == other.data_[i]) ++i;
    return at(i) - other.at(i);
  }

 private:
  /// As a number; past the end one that is less than all others.
  WARPHEAP_HOST_DEVICE constexpr i32 at(u32 i) const { return i < size_ ? static_cast<u8>(data_[i]) : -1; }

  char const* data_ = nullptr;
  u32 size_ = 0;
};

/// Whether they have the same characters.
WARPHEAP_HOST_DEVICE constexpr bool operator==(string_view one, string_view other) { return one.compare(other) == 0; }
/// Whether the first is less.
WARPHEAP_HOST_DEVICE constexpr bool operator<(string_view one, string_view other) { return one.compare(other) < 0; }

}}  // namespace warpheap::WARPHEAP_BACKEND
