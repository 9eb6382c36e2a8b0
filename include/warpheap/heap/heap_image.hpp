// SPDX-License-Identifier: Apache-2.0
// The memory of a heap, copied to the host: what save() makes and restore() takes
// (heap/checkpoint.hpp). It can be written to a file and read from one, and its blocks can be read
// on the host.
//
// A file, in numbers of 8 bytes as the machine has them: "WHIMAGE" and a zero byte, version 1, the
// root, the length of the policies' text, and how many heaps there are; the text; a heap_record for
// each heap; the memory of each. A reader trusts only the memory: a file that is too short, too
// long, or describes an impossible heap is rejected with its fault.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../platform/errors.hpp"
#include "../util/number_text.hpp"
#include "layout_stamp.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

namespace detail {

struct image_access;

inline bool is_printable(char const* text, size_t size) {
  return std::all_of(text, text + size, [](char each) { return each >= ' ' && each <= '~'; });
}

/// An image's record of one heap. All sizes are in bytes; committed <= behind <= bytes.
struct heap_record {
  layout_stamp stamp;
  u64 begin;      ///< an address
  u64 committed;  ///< the first ones, which have memory
  u64 behind;     ///< from here on there is memory again
  u64 bytes;      ///< all of them

  u64 memory_bytes() const { return committed + (bytes - behind); }

  /// Whether the sizes are consistent, and messages may print the policy.
  bool can_be() const {
    return committed <= behind && behind <= bytes && bytes != 0 && begin <= ~u64{0} - bytes &&
           stamp.magic == stamp.magic_value && stamp.pool_bytes <= bytes && stamp.metadata_bytes <= bytes &&
           is_printable(stamp.policy, strnlen(stamp.policy, sizeof stamp.policy));
  }
};

/// What a file begins with.
struct image_header {
  static constexpr char magic_value[8] = "WHIMAGE";

  char magic[8];
  u64 version, root, text_bytes, heaps;
};

/// A copy of the bytes from an address on, aligned like them up to a page.
class copied_range {
 public:
  copied_range(u64 begin, u64 bytes) : begin_{begin}, bytes_{bytes} {
    memory_.reset(static_cast<u8*>(::operator new (bytes + begin % page, std::align_val_t{page}, std::nothrow)));
    if (!memory_) throw out_of_memory{"the host has not " + std::to_string(bytes) + " bytes for the image of a heap"};
  }

  void* address() const { return reinterpret_cast<void*>(begin_); }
  u8* data() const { return memory_.get() + begin_ % page; }
  u64 bytes() const { return bytes_; }

  /// The copy of `bytes` bytes at `address`; nullptr if not all of them are here.
  u8 const* find(u64 address, u64 bytes) const {
    u64 const offset = address - begin_;
    return offset < bytes_ && bytes <= bytes_ - offset ? data() + offset : nullptr;
  }

 private:
  static constexpr size_t page = 4096;
  struct deleter {
    void operator()(u8* memory) const { ::operator delete (memory, std::align_val_t{page}); }
  };

  u64 begin_, bytes_;
  std::unique_ptr<u8, deleter> memory_;
};

inline std::string address_text(u64 address) {
  integer_text const digits{address, 16};
  return "0x" + std::string{digits.data(), digits.size()};
}

}  // namespace detail

/// A copy of a heap's memory, in host memory of the same size. Movable. Several threads may call
/// its functions at the same time, except write() to the same file.
class heap_image {
 public:
  /// Reads the image in a file. Throws std::invalid_argument, which names the file and the fault,
  /// if there is no valid image, and out_of_memory if the host has no room for it.
  static heap_image read(std::string const& path) {
    std::ifstream file{path, std::ios::binary | std::ios::ate};
    if (!file) throw std::invalid_argument{path + ": " + std::strerror(errno)};
    try {
      auto const bytes = static_cast<i64>(file.tellg());
      file.seekg(0);
      return read_from(file, static_cast<u64>((std::max)(bytes, i64{0})));
    } catch (std::invalid_argument const& fault) {
      throw std::invalid_argument{path + " " + fault.what()};
    }
  }

  /// Writes the image to a file, which replaces one of this name once it is complete. Throws
  /// std::runtime_error if it cannot be written.
  void write(std::string const& path) const {
    std::string const unfinished = path + ".part";
    std::ofstream file{unfinished, std::ios::binary};
    auto const put = [&](void const* from, u64 bytes) {
      file.write(static_cast<char const*>(from), static_cast<std::streamsize>(bytes));
    };
    detail::image_header header{{}, version, root_, policies_.size(), records_.size()};
    std::memcpy(header.magic, header.magic_value, sizeof header.magic);
    put(&header, sizeof header);
    put(policies_.data(), policies_.size());
    put(records_.data(), records_.size() * sizeof(detail::heap_record));
    for (auto const& range : ranges_) put(range.data(), range.bytes());
    file.close();
    if (file && std::rename(unfinished.c_str(), path.c_str()) == 0) return;
    std::string const why = std::strerror(errno);
    std::remove(unfinished.c_str());
    throw std::runtime_error{path + ": cannot be written: " + why};
  }

  /// The copy of the object at `memory`, valid as long as the image lives; nullptr for nullptr.
  /// Pointers in the object are still device addresses: pass them to at() too. Throws
  /// std::out_of_range if `memory` is no address in the heap.
  template <class T>
  T const* at(T const* memory) const {
    if (!memory) return nullptr;
    u64 bytes = 1;
    if constexpr (requires { sizeof(T); } && !same_type<T, void>) bytes = sizeof(T);
    u64 const address = reinterpret_cast<u64>(memory);
    for (auto const& range : ranges_)
      if (auto const* const copy = range.find(address, bytes)) return reinterpret_cast<T const*>(copy);
    throw std::out_of_range{std::to_string(bytes) + " bytes at " + detail::address_text(address) +
                            " are not in the image of the heap at " + detail::address_text(records_.back().begin)};
  }

  /// The pointer that was passed to save() beside the heap.
  void* root() const { return reinterpret_cast<void*>(root_); }
  /// Where the heap begins.
  void* address() const { return reinterpret_cast<void*>(records_.back().begin); }
  /// How many bytes were copied.
  size_t bytes() const {
    size_t sum = 0;
    for (auto const& range : ranges_) sum += range.bytes();
    return sum;
  }

 private:
  friend struct detail::image_access;
  static constexpr u64 version = 1;

  /// For heaps whose memory is still to be copied.
  heap_image(std::string policies, std::vector<detail::heap_record> records, void const* root)
      : root_{reinterpret_cast<u64>(root)}, policies_{std::move(policies)}, records_{std::move(records)} {
    for (auto const& each : records_) {
      ranges_.emplace_back(each.begin, each.committed);
      ranges_.emplace_back(each.begin + each.behind, each.bytes - each.behind);
    }
  }

  /// Of a file of `left` bytes.
  static heap_image read_from(std::istream& file, u64 left) {
    auto const take = [&](void* to, u64 bytes) {
      if (bytes > left || !file.read(static_cast<char*>(to), static_cast<std::streamsize>(bytes)))
        throw std::invalid_argument{"ends within its header"};
      left -= bytes;
    };
    detail::image_header header{};
    take(header.magic, (std::min)(left, u64{sizeof header.magic}));
    check_magic(header);
    take(&header.version, sizeof header - sizeof header.magic);
    if (header.version != version)
      throw std::invalid_argument{"is of version " + std::to_string(header.version) +
                                  ", and this program reads version " + std::to_string(version)};
    if (header.text_bytes > left || header.heaps > left / sizeof(detail::heap_record)) take(nullptr, left + 1);
    std::string policies(header.text_bytes, '\0');
    take(policies.data(), policies.size());
    std::vector<detail::heap_record> records(header.heaps);
    take(records.data(), records.size() * sizeof(detail::heap_record));
    expect_possible(policies, records, left);
    heap_image image{std::move(policies), std::move(records), reinterpret_cast<void*>(header.root)};
    for (auto const& range : image.ranges_) take(range.data(), range.bytes());
    return image;
  }

  static void check_magic(detail::image_header const& header) {
    if (std::memcmp(header.magic, header.magic_value, sizeof header.magic) == 0) return;
    throw std::invalid_argument{"is no image of a heap: it does not begin with WHIMAGE"};
  }

  /// A file's description of heaps, before `bytes` bytes of memory.
  static void expect_possible(std::string const& policies, std::vector<detail::heap_record> const& records, u64 bytes) {
    bool possible = !records.empty() && detail::is_printable(policies.data(), policies.size());
    for (auto const& each : records) possible = possible && each.can_be();
    if (!possible) throw std::invalid_argument{"describes what no heap can be"};
    u64 left = bytes;
    bool is_there = true;
    for (auto const& each : records) {
      is_there = is_there && each.memory_bytes() <= left;
      left -= each.memory_bytes();
    }
    if (!is_there || left != 0)
      throw std::invalid_argument{"has " + std::to_string(bytes) +
                                  " bytes of memory, which are not those of its heaps"};
  }

  u64 root_;
  std::string policies_;
  std::vector<detail::heap_record> records_;  ///< a heap comes after the one behind it
  std::vector<detail::copied_range> ranges_;  ///< two for each record
};

}}  // namespace warpheap::WARPHEAP_BACKEND
