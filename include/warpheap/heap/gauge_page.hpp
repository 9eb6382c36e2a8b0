// SPDX-License-Identifier: Apache-2.0
// A heap's gauge as the user's other programs see it: a page of shared memory that names program
// and heap, and has two slots for readings, which the program writes alternately.
//
//   gauge.P1  All but `published` and `readings` is constant once `magic` is there.
//   gauge.P2  Reading n is in readings[n % 2], whole while `published` is n. The program writes the
//       next one to the other slot, and then raises `published`. So a reader that finds `published`
//       as it was has read a whole reading, and a program that stops anywhere leaves one.
//
// Cost of a reading: nine stores. A reader never waits: it copies the page again a limited number
// of times.
#pragma once

#if !defined(__CUDACC_RTC__)

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "../platform/shared_page.hpp"

namespace warpheap {

/// What a page shows of a heap at one moment; gauge_reading explains the members.
struct gauge_figures {
  u64 read_at = 0;  ///< nanoseconds of std::chrono::steady_clock, common to all programs here
  u64 pool_bytes = 0;
  u64 committed_bytes = 0;
  u64 live_bytes = 0;
  u64 live_blocks = 0;
  u64 highest_live_bytes = 0;
  u64 failures = 0;
  u64 largest_failed_bytes = 0;
};

/// The page. `magic` and `version` are at the same place in every version.
struct gauge_page {
  static constexpr char const* prefix = "gauge";
  static constexpr u64 magic_value = 0x7061'6568'7072'6177, current_version = 1;
  static constexpr size_t text_bytes = 64;
  static constexpr size_t words = sizeof(gauge_figures) / sizeof(u64);

  u64 magic;
  u64 version;
  u64 process;
  // Each ends with a zero.
  char program[text_bytes], heap[text_bytes], allocator[text_bytes], device[text_bytes];
  u64 published;
  u64 readings[2][words];

  /// For the program that owns the page.
  void publish(gauge_figures const& figures) {
    // relaxed: only this program writes it.
    u64 const next = word(published).load(std::memory_order_relaxed) + 1;
    auto const values = std::bit_cast<std::array<u64, words>>(figures);
    // release: `published` was raised before (gauge.P2). Readers copy by system calls.
    for (size_t i = 0; i < words; ++i) word(readings[next % 2][i]).store(values[i], std::memory_order_release);
    // release: the reading is whole (gauge.P2).
    word(published).store(next, std::memory_order_release);
  }

  /// Call it after the first publish().
  void show() {
    version = current_version;
    // release: all else is there (gauge.P1).
    word(magic).store(magic_value, std::memory_order_release);
  }

  /// The page with its newest reading; nullopt if the page is not complete, or if the program
  /// published a new reading during every attempt. `copy(to, bytes)` copies the first bytes of the
  /// page, and returns whether the page has this many.
  template <class Copy>
  static std::optional<gauge_page> newest(Copy copy) {
    constexpr u32 looks = 1000;
    for (u32 look = 0; look < looks; ++look) {
      gauge_page before, page, after;
      if (!copy(&before, sizeof before) || before.magic != magic_value) return std::nullopt;
      if (!copy(&page, sizeof page) || !copy(&after, sizeof after)) return std::nullopt;
      if (before.published != after.published) continue;  // gauge.P2
      page.published = before.published;
      return page;
    }
    return std::nullopt;
  }

  /// The newest reading of a copy.
  gauge_figures figures() const { return std::bit_cast<gauge_figures>(std::to_array(readings[published % 2])); }

 private:
  /// A word that other programs read.
  static std::atomic_ref<u64> word(u64& shared) {
    static_assert(std::atomic_ref<u64>::is_always_lock_free);
    return std::atomic_ref<u64>{shared};
  }
};

/// A heap that a running program publishes.
struct published_heap {
  u64 process;
  std::string program, name, allocator, device;
  double age_seconds;  ///< since the reading
  gauge_figures figures;
};

struct published_heaps {
  std::vector<published_heap> heaps;  ///< by process and name
  u64 of_other_versions = 0;          ///< of this library, which this one cannot read
};

namespace page_parts {

/// A page's text, which ends at its zero. Another program wrote it, so there may be no zero.
inline std::string text_of(char const (&text)[gauge_page::text_bytes]) {
  return {text, strnlen(text, gauge_page::text_bytes - 1)};
}

inline u64 steady_nanoseconds() {
  auto const now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<u64>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

inline void add_page(shared_page_view const& view, published_heaps& to) {
  u64 head[2];  // magic and version
  if (!view.read(head, sizeof head) || head[0] != gauge_page::magic_value) return;
  if (head[1] != gauge_page::current_version) {
    ++to.of_other_versions;
    return;
  }
  auto const page = gauge_page::newest([&](void* copy, size_t bytes) { return view.read(copy, bytes); });
  if (!page) return;
  auto const figures = page->figures();
  u64 const now = steady_nanoseconds();
  double const age = now > figures.read_at ? 1e-9 * static_cast<double>(now - figures.read_at) : 0;
  to.heaps.push_back({page->process, text_of(page->program), text_of(page->heap), text_of(page->allocator),
                      text_of(page->device), age, figures});
}

}  // namespace page_parts

/// The heaps that running programs of this user publish on this machine. Pages of ended programs
/// are left out, and removed.
inline published_heaps read_published_heaps() {
  published_heaps found;
  for (auto const& place : page_folder::places()) {
    auto const folder = page_folder::open(place);
    if (!folder) continue;
    for (auto const& name : folder->names(gauge_page::prefix)) {
      auto const view = shared_page_view::open(*folder, name);
      if (!view) continue;
      if (view->is_abandoned()) view->remove();
      else page_parts::add_page(*view, found);
    }
  }
  auto const order = [](published_heap const& each) { return std::tie(each.process, each.name); };
  std::sort(found.heaps.begin(), found.heaps.end(), [&](auto const& a, auto const& b) { return order(a) < order(b); });
  return found;
}

}  // namespace warpheap

#endif
