// SPDX-License-Identifier: Apache-2.0
// The variables in which device code finds a heap.
//
//   archive.A3  Every variable on the list holds the heap, or belongs to a module that is gone, or
//       to device code that was bound to another heap since. Its address may be another's by then:
//       a variable is written only if it holds a stamp, and unbound only if it holds this heap.
#pragma once

#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "../binding.hpp"
#include "../units.h"
#include "context.hpp"

namespace warpheap::archive {

/// Device code that was not linked with the archive.
struct no_archive : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// Device code that was linked with the archive of another Warpheap.
struct other_version : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class bindings {
 public:
  explicit bindings(bound const& heap) : heap_{heap} {}

  /// The binding at `address`, of `bytes` bytes; 0 if its stamp alone tells. Throws other_version.
  void add(u64 address, size_t bytes) {
    binding const wanted = binding::unbound();
    binding found{};
    if (bytes == 0) bytes = sizeof found;
    if (bytes >= sizeof found.stamp) read(&found, address, bytes < sizeof found ? bytes : sizeof found);
    if (bytes != sizeof found || std::memcmp(&found, &wanted, offsetof(binding, heap)) != 0)
      throw other_version{"device code was linked with the archive of " + found.stamp.origin() +
                          ", and this library is of " + wanted.stamp.origin() +
                          (found.stamp == wanted.stamp ? ", compiled with other settings" : "")};
    write(address + offsetof(binding, heap), &heap_, sizeof heap_);
    std::erase(addresses_, address);
    addresses_.push_back(address);
  }

  /// Of a CUmodule or a CUlibrary, by the driver's function for it.
  template <class Find, class Code>
  void add_of(Find find, Code code, char const* what) {
    CUdeviceptr address = 0;
    size_t bytes = 0;
    CUresult const status = find(&address, &bytes, code, binding::symbol);
    if (status == CUDA_ERROR_NOT_FOUND)
      throw no_archive{std::string{"the "} + what + " has no variable " + binding::symbol +
                       ": it was not linked with the archive"};
    driver::throw_on_error(status, what);
    add(address, bytes);
  }

  /// Unbinds all that still hold the heap.
  void clear() noexcept {
    for (u64 const address : addresses_) try_unbind(address);
    addresses_.clear();
  }

 private:
  // On a stream of its own: these wait for no kernel of the program, and spoil no capture.
  void read(void* to, u64 address, size_t bytes) const {
    driver::throw_on_error(driver::instance().read(to, address, bytes, own_), "cuMemcpyDtoHAsync");
    backend::synchronize(own_);
  }
  void write(u64 address, void const* from, size_t bytes) const {
    driver::throw_on_error(driver::instance().write(address, from, bytes, own_), "cuMemcpyHtoDAsync");
    backend::synchronize(own_);
  }

  void try_unbind(u64 address) const noexcept {
    try {
      binding found{};
      read(&found, address, sizeof found);
      if (std::memcmp(found.heap, &heap_, sizeof heap_) != 0) return;
      binding const unbound = binding::unbound();
      write(address + offsetof(binding, heap), unbound.heap, sizeof unbound.heap);
    } catch (std::exception const&) {  // its module is gone
    }
  }

  bound heap_;
  backend::stream own_;
  std::vector<u64> addresses_;
};

}  // namespace warpheap::archive
