// SPDX-License-Identifier: Apache-2.0
// Which allocation an address belongs to, so that a report says "buffer 3 + 0x40" on every run and
// machine.
#pragma once

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include "diagnosis.hpp"

namespace warpheap::host::detail {

struct memory_range {
  u64 begin;
  u64 bytes;
};

class allocation_registry {
 public:
  void add(void const* memory, size_t bytes) {
    std::lock_guard const lock{mutex_};
    live_.push_back({{reinterpret_cast<u64>(memory), bytes}, ++made_});
  }

  /// Of a thread block.
  void add_shared(void const* memory, size_t bytes) {
    std::lock_guard const lock{mutex_};
    live_.push_back({{reinterpret_cast<u64>(memory), bytes}, 0});
  }

  /// Returns its bytes.
  size_t remove(void const* memory) {
    std::lock_guard const lock{mutex_};
    for (size_t i = live_.size(); i-- > 0;) {
      if (live_[i].begin != reinterpret_cast<u64>(memory)) continue;
      size_t const bytes = live_[i].bytes;
      live_[i] = live_.back();
      live_.pop_back();
      return bytes;
    }
    return 0;
  }

  /// From now on allocations are numbered as if those that are left were the first ones.
  void restart_numbers() {
    std::lock_guard const lock{mutex_};
    made_ =
        static_cast<u64>(std::count_if(live_.begin(), live_.end(), [](auto const& each) { return each.number != 0; }));
  }

  std::vector<memory_range> ranges() {
    std::lock_guard const lock{mutex_};
    return {live_.begin(), live_.end()};
  }

  std::string describe(u64 address) {
    std::lock_guard const lock{mutex_};
    for (auto const& each : live_) {
      if (address - each.begin >= each.bytes) continue;
      auto const offset = hexadecimal(address - each.begin);
      return each.number == 0 ? format_message({"shared memory + ", offset})
                              : format_message({"buffer ", each.number, " + ", offset});
    }
    return format_message({"address ", hexadecimal(address)});
  }

 private:
  struct allocation : memory_range {
    u64 number;  // 0: shared memory of a thread block
  };

  std::mutex mutex_;
  std::vector<allocation> live_;
  u64 made_ = 0;
};

inline allocation_registry& allocations() {
  static allocation_registry registry;
  return registry;
}

inline std::string describe_address(u64 address) { return allocations().describe(address); }

}  // namespace warpheap::host::detail
