// SPDX-License-Identifier: Apache-2.0
// Device memory for a program that looks into a heap made by another one: it can be read, through a
// function of that program, and nothing else can be done with it.
//
// The other operations are declared, because headers name them, and have no definition: code that
// needs one of them does not link.
#pragma once

#include <exception>

#include "../types.hpp"

namespace warpheap::reader {

/// Copies rows, as copy_rows() of the other backends does. Returns 0 if all were copied.
using read_function = int (*)(void* to, u64 from, u64 bytes, u64 pitch, u64 rows);

/// What copies throw when the function fails.
struct unreadable : std::exception {};

namespace detail {
inline thread_local read_function current_read = nullptr;
}  // namespace detail

/// As long as the object lives, the calling thread reads device memory by `read`.
class reading {
 public:
  explicit reading(read_function read) noexcept { detail::current_read = read; }
  reading(reading const&) = delete;
  reading& operator=(reading const&) = delete;
  ~reading() { detail::current_read = nullptr; }
};

inline void copy_rows(void* to, void const* from, size_t bytes, size_t pitch, size_t rows) {
  if (detail::current_read(to, reinterpret_cast<u64>(from), bytes, pitch, rows) != 0) throw unreadable{};
}
inline void copy_bytes(void* to, void const* from, size_t bytes) { copy_rows(to, from, bytes, bytes, 1); }

class stream {
 public:
  operator void*() const noexcept;
};
using stream_view = void*;
class device_scope {
 public:
  explicit device_scope(int) noexcept;
  ~device_scope();
};
void synchronize(stream_view);
void synchronize();
void* allocate_bytes(size_t bytes);
void deallocate_bytes(void* memory) noexcept;
void fill_bytes(void* memory, u8 value, size_t bytes, stream_view on = {});
int current_device();

class shared_words {
 public:
  shared_words();
  explicit shared_words(size_t count);
  shared_words(shared_words&&) noexcept;
  shared_words& operator=(shared_words&&) noexcept;
  ~shared_words();
  u64* device() const;
  u64 load(size_t i) const;
  void store(size_t i, u64 value) const;
};
u32 multiprocessors();

template <class T>
void set_device_variable(T& variable, T const& value);
template <class Functor, class... Arguments>
void launch(stream_view on, launch_shape shape, Functor functor, Arguments... arguments);
template <class Functor, class... Arguments>
void launch(launch_shape shape, Functor functor, Arguments... arguments);

}  // namespace warpheap::reader
