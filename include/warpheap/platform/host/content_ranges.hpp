// SPDX-License-Identifier: Apache-2.0
// Which ranges of memory are owned, and up to which moment of its last owner a released one must be
// known.
//
// host.R1  ranges do not overlap, and are sorted by address.
// host.R2  memory that no range has was never acquired.
#pragma once

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include "allocations.hpp"
#include "memory_model.hpp"

namespace warpheap::host::detail {

/// The act of a lane that a report names: it acquired or released contents.
struct content_event {
  u32 block = 0;
  u32 thread = 0;
  u64 step = 0;
};

struct content_range {
  u64 begin;
  u64 end;
  bool owned;
  content_event last;
  moment released;  // with weak memory, and if it is not owned
};

class content_ranges {
 public:
  /// Makes [begin, end) owned; says what is wrong with that, if anything.
  std::string acquire(worker& here, u64 begin, u64 end) {
    std::lock_guard const lock{mutex_};
    auto const now = event_now(here);
    for (auto each = first_beyond(begin); each != ranges_.end() && each->begin < end; ++each) {
      if (each->owned) {
        return format_message({describe(now), " acquires ", describe(begin, end), ", but ", describe(each->last),
                               " has acquired ", describe(each->begin, each->end), " and not released it"});
      }
      if (here.model() && !here.model()->knows(here, each->released)) {
        return format_message({describe(now), " acquires ", describe(begin, end),
                               ", but no order says that this comes after what was done there until ",
                               describe(each->last), " released ", describe(each->begin, each->end)});
      }
    }
    cut(begin, end);
    ranges_.insert(first_beyond(begin), {begin, end, true, now, {}});
    return {};
  }

  /// Makes [begin, end), which must be one owned range, a released one; says what is wrong with
  /// that, if anything.
  std::string release(worker& here, u64 begin, u64 end) {
    std::lock_guard const lock{mutex_};
    auto const now = event_now(here);
    auto const found = first_beyond(begin);
    bool const overlaps = found != ranges_.end() && found->begin < end;
    if (!overlaps) {
      return format_message({describe(now), " releases ", describe(begin, end), ", which no lane has acquired"});
    }
    if (!found->owned || found->begin != begin || found->end != end) {
      return format_message({describe(now), " releases ", describe(begin, end), ", but ", describe(found->last),
                             found->owned ? " has acquired " : " has released ", describe(found->begin, found->end)});
    }
    found->owned = false;
    found->last = now;
    found->released = here.model() ? here.model()->mark(here) : moment{};
    return {};
  }

  /// The memory is given back to the system.
  void forget(u64 begin, u64 end) {
    std::lock_guard const lock{mutex_};
    if (!ranges_.empty()) cut(begin, end);
  }

 private:
  using iterator = std::vector<content_range>::iterator;

  /// The first range that ends after `begin`.
  iterator first_beyond(u64 begin) {
    return std::partition_point(ranges_.begin(), ranges_.end(),
                                [begin](content_range const& each) { return each.end <= begin; });
  }

  /// Takes [begin, end) out of all ranges.
  void cut(u64 begin, u64 end) {
    auto first = first_beyond(begin);
    if (first != ranges_.end() && first->begin < begin) {
      auto rest = *first;
      first->end = begin;
      rest.begin = begin;
      first = ranges_.insert(first + 1, rest);
    }
    auto last = first;
    while (last != ranges_.end() && last->end <= end) ++last;
    if (last != ranges_.end() && last->begin < end) last->begin = end;
    ranges_.erase(first, last);
  }

  static content_event event_now(worker const& here) {
    return {here.running().block->index, here.running().thread, here.steps()};
  }

  static std::string describe(content_event const& event) {
    return format_message({"thread block ", event.block, " thread ", event.thread, " at step ", event.step});
  }
  static std::string describe(u64 begin, u64 end) {
    return format_message({end - begin, " bytes of ", describe_address(begin)});
  }

  std::mutex mutex_;
  std::vector<content_range> ranges_;
};

/// Those of the process: kernels may acquire what earlier ones have released.
inline content_ranges& all_contents() {
  static content_ranges ranges;
  return ranges;
}

}  // namespace warpheap::host::detail
