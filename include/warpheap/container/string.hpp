// SPDX-License-Identifier: Apache-2.0
// Text that one thread at a time writes: a vector of characters with a zero after the last, so that
// printf("%s", line.c_str()) works in kernels.
//
//   string line;
//   line.append(heap, "lane ");
//   line.append(heap, simt::lane_id());
//   line.append(heap, 0.125, 2);              // 0.12
//
// Numbers are written by util/number_text.hpp: every digit is correct.
#pragma once

#include "../util/number_text.hpp"
#include "string_view.hpp"
#include "vector.hpp"

#if !defined(__CUDACC_RTC__)
#include <string>
#endif

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// Integers of any size, and bool; not char, which has its own append().
template <class N>
concept appended_integer = requires(N number, N other) {
  number % other;
};

/// `size()` characters in a block of a heap: 16 bytes, trivially copyable, empty in zeroed memory.
/// The rules of vector about copies, threads and heaps apply.
///
///   string.S1  the block, if there is one, has room for a character more, and there is a zero
///
/// An append() that gets no memory returns false and leaves the text as it was.
class string {
 public:
  /// No characters, no memory.
  constexpr string() = default;

  /// Characters, without the zero.
  WARPHEAP_HOST_DEVICE u32 size() const { return characters_.size(); }
  /// Whether there are none.
  WARPHEAP_HOST_DEVICE bool empty() const { return characters_.empty(); }
  /// Characters that fit before it has to grow.
  WARPHEAP_HOST_DEVICE u32 capacity() const { return characters_.capacity() ? characters_.capacity() - 1 : 0; }
  /// The text with a zero at its end, even if it is empty.
  WARPHEAP_HOST_DEVICE char const* c_str() const { return characters_.data() ? characters_.data() : ""; }
  /// Character `index`. One from size() on ends the kernel, except under NDEBUG.
  WARPHEAP_DEVICE char& operator[](u32 index) const { return characters_[index]; }
  /// The first character.
  WARPHEAP_HOST_DEVICE char* begin() const { return characters_.begin(); }
  /// One past the last.
  WARPHEAP_HOST_DEVICE char* end() const { return characters_.end(); }

  /// The text as it is now.
  WARPHEAP_HOST_DEVICE string_view view() const { return {characters_.data(), size()}; }
  /// As view(), so that it can be compared with other texts.
  WARPHEAP_HOST_DEVICE operator string_view() const { return view(); }
  /// As string_view's.
  WARPHEAP_HOST_DEVICE string_view substr(u32 from, u32 count = string_view::npos) const {
    return view().substr(from, count);
  }
  /// As string_view's.
  WARPHEAP_HOST_DEVICE u32 find(char wanted, u32 from = 0) const { return view().find(wanted, from); }
  /// As string_view's.
  WARPHEAP_HOST_DEVICE u32 find(string_view wanted, u32 from = 0) const { return view().find(wanted, from); }
  /// As string_view's.
  WARPHEAP_HOST_DEVICE bool starts_with(string_view other) const { return view().starts_with(other); }
  /// As string_view's.
  WARPHEAP_HOST_DEVICE i32 compare(string_view other) const { return view().compare(other); }

  /// Adds a text, which may be a part of this one.
  template <container_heap Heap>
  WARPHEAP_DEVICE bool append(Heap const& upstream, string_view text, source_site site = source_site::current()) {
    return append(upstream, text.data(), text.size(), site);
  }
  /// Adds `count` characters, which may be its own.
  template <container_heap Heap>
  WARPHEAP_DEVICE bool append(Heap const& upstream, char const* text, u32 count,
                              source_site site = source_site::current()) {
    if (count == 0) return true;
    u32 const before = size();
    bool const fits = characters_.append(upstream, text, count, site) && characters_.push_back(upstream, 0, site);
    end_at(fits ? before + count : before);
    return fits;
  }
  /// Adds a character.
  template <container_heap Heap>
  WARPHEAP_DEVICE bool append(Heap const& upstream, char character, source_site site = source_site::current()) {
    return append(upstream, &character, 1, site);
  }
  /// Adds an integer in decimal digits, with a minus sign if it is negative.
  template <container_heap Heap, appended_integer Integer>
  WARPHEAP_DEVICE bool append(Heap const& upstream, Integer number, source_site site = source_site::current()) {
    if constexpr (static_cast<Integer>(-1) < 1)
      return append(upstream, integer_text::of_signed(static_cast<i64>(number)), site);
    else return append(upstream, integer_text{static_cast<u64>(number)}, site);
  }
  /// Adds an integer in hexadecimal digits, without "0x", padded with zeros to `width` digits,
  /// which is at most 20.
  template <container_heap Heap>
  WARPHEAP_DEVICE bool append_hex(Heap const& upstream, u64 number, u32 width = 1,
                                  source_site site = source_site::current()) {
    return append(upstream, integer_text{number, 16, width}, site);
  }
  /// Adds a number with `decimals` digits after the point, at most most_decimals, as printf's
  /// "%.*f" writes it: correctly rounded, ties to even; "inf", "-inf" and "nan". Also fails if it
  /// does not fit with one or two characters more.
  template <container_heap Heap>
  WARPHEAP_DEVICE bool append(Heap const& upstream, double number, u32 decimals = 6,
                              source_site site = source_site::current()) {
    u32 const count = decimals < most_decimals ? decimals : most_decimals, before = size();
    char* const added = characters_.extend(upstream, most_fixed_chars(number, count) + 1, site);
    if (added) end_at(before + write_fixed(added, number, count));
    return added;
  }

  /// Makes room for exactly `count` characters in all; false if there is no memory.
  template <container_heap Heap>
  WARPHEAP_DEVICE bool reserve(Heap const& upstream, u64 count, source_site site = source_site::current()) {
    bool const fits = count < ~u64{0} && characters_.reserve(upstream, count + 1, site);
    end_at(size());
    return fits;
  }
  /// Removes all characters from `count` on, which is at most size(), and keeps the memory.
  WARPHEAP_DEVICE void truncate(u32 count) {
    WARPHEAP_ASSERT(count <= size(), "string: a length past the end");
    end_at(count);
  }
  /// Removes all characters, and keeps the memory.
  WARPHEAP_DEVICE void clear() { end_at(0); }
  /// Frees memory that the text does not need, as vector does.
  template <container_heap Heap>
  WARPHEAP_DEVICE void shrink_to_fit(Heap const& upstream, source_site site = source_site::current()) {
    if (empty()) return destroy(upstream, site);
    u32 const count = size();
    characters_.push_back(upstream, 0, site);  // string.S1: there is room
    characters_.shrink_to_fit(upstream, site);
    characters_.truncate(count);
  }
  /// Frees all memory: the string is then empty, and may be used again.
  template <container_heap Heap>
  WARPHEAP_DEVICE void destroy(Heap const& upstream, source_site site = source_site::current()) {
    characters_.destroy(upstream, site);
  }

#if !defined(__CUDACC_RTC__)
  /// The text on the host, once all earlier work of the default stream is done. Call it on a copy
  /// of the string, such as device_buffer's.
  std::string to_std_string() const {
    std::string text(size(), '\0');
    backend::copy_bytes(text.data(), begin(), size());
    return text;
  }
#endif

 private:
  template <class Heap>
  WARPHEAP_DEVICE bool append(Heap const& upstream, integer_text const& text, source_site site) {
    return append(upstream, text.data(), text.size(), site);
  }

  /// Ends the text after `count` characters, for which there is room (string.S1).
  WARPHEAP_DEVICE void end_at(u32 count) {
    characters_.truncate(count);
    if (characters_.data()) characters_.data()[count] = 0;
  }

  vector<char> characters_;
};
static_assert(sizeof(string) == 16 && __is_trivially_copyable(string));

}}  // namespace warpheap::WARPHEAP_BACKEND
