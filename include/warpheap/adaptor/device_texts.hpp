// SPDX-License-Identifier: Apache-2.0
// Texts that kernels can read and the host cannot, such as the names of their source files.
#pragma once

#if !defined(__CUDACC_RTC__)

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "../platform/simt.hpp"
#include "../util/source_site.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

namespace detail {

/// Kernel: copies texts, whose addresses are the first words, behind those.
struct copy_texts {
  static constexpr u32 words = 32, most_bytes = 8 * words;  ///< of a text, with its zero

  WARPHEAP_DEVICE void operator()(u64* shared, u64 count) const {
    u64 const me = global_thread_index();
    if (me >= count) return;
    // relaxed, both: the host waits for the kernel.
    auto const* text = reinterpret_cast<char const*>(atomic_ref<u64, scope::system>{shared[me]}.load(order::relaxed));
    bool ends = false;
    for (u32 i = 0; i < words; ++i) {
      u64 word = 0;
      for (u32 byte = 0; byte < 8 && !ends; ++byte) {
        bool const is_last = 8 * i + byte + 1 == most_bytes;
        ends = is_last || *text == 0;
        if (!ends) word |= u64{static_cast<u8>(*text++)} << (8 * byte);
      }
      atomic_ref<u64, scope::system>{shared[count + me * words + i]}.store(word, order::relaxed);
    }
  }
};

}  // namespace detail

/// Texts in the memory of kernels, by their addresses.
class device_texts {
 public:
  /// Notes an address; nullptr does nothing.
  void want(source_site const& site) {
    if (site.file) texts_[site.file];
  }

  /// Fetches all that are wanted by a kernel on stream `on`, and waits for that.
  void fetch(stream_view on = {}) {
    if (texts_.empty()) return;
    using kernel = detail::copy_texts;
    backend::shared_words const shared{texts_.size() * (1 + kernel::words)};
    size_t next = 0;
    for (auto const& [address, text] : texts_) shared.store(next++, reinterpret_cast<u64>(address));
    launch(on, shape_for(texts_.size(), 128), kernel{}, shared.device(), u64{texts_.size()});
    synchronize(on);
    for (auto& [address, text] : texts_) {
      char bytes[kernel::most_bytes];
      for (u32 i = 0; i < kernel::words; ++i, ++next) {
        u64 const word = shared.load(next);
        std::memcpy(bytes + 8 * i, &word, sizeof word);
      }
      text = bytes;
    }
  }

  /// The text of a site; empty if it has none.
  std::string of(source_site const& site) const { return site.file ? texts_.at(site.file) : std::string{}; }

 private:
  std::map<char const*, std::string> texts_;
};

}}  // namespace warpheap::WARPHEAP_BACKEND

#endif
