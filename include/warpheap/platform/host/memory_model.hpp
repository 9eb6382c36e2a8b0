// What loads may return in deterministic mode.
#pragma once

#include "worker.hpp"

namespace warpheap::host::detail {

/// An atomic access.
struct access {
  u64 address;
  u32 bytes;
  order how;
  scope among;
};

class memory_model {
 public:
  u64 load(worker&, access const&, u64 newest) { return newest; }
  void change(worker&, operation, access const&, u64, u64) {}
  void fence(worker&) {}
  void join_warp(warp&, u32) {}
  void join_block(thread_block&) {}
};

}  // namespace warpheap::host::detail
