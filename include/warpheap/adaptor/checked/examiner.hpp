// SPDX-License-Identifier: Apache-2.0
// What a thread does with a block that it examines: it looks at the redzones, the poison and the
// header, and reports what it finds, once.
#pragma once

#include "block.hpp"
#include "block_map.hpp"
#include "error_table.hpp"
#include "quarantine.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND { namespace checked_parts {

/// The state of a checked heap in device memory.
template <u32 Ranges>
struct shared_state {
  block_map<Ranges> map;
  quarantine held;
  error_table errors;
};

/// View of the state, by value.
template <u32 Ranges, checked_config Config>
class examiner {
 public:
  using state_type = shared_state<Ranges>;

  WARPHEAP_HOST_DEVICE explicit examiner(state_type* state) : state_{state} {}

  WARPHEAP_DEVICE static guarded_block block_at(void const* memory) {
    return guarded_block{memory, Config.front_redzone_bytes, Config.redzone_bytes};
  }

  /// Examines a known block, whose bits in the map are `bits`, for a check by the host.
  WARPHEAP_DEVICE void check_block(void* memory, u64 bits) const {
    guarded_block const block = block_at(memory);
    block_record record;
    if (!block.read(record)) return report_overwritten(*this, memory, found_in::check, {});
    report_redzones(block, record, found_in::check, {});
    if (!(bits & block_bits::live) && record.is_freed()) report_writes(block, record, found_in::check, {});
  }

  /// Looks at both redzones, and mends what it reports.
  WARPHEAP_DEVICE void report_redzones(guarded_block const& block, block_record const& record, found_in where,
                                       source_site const& site) const {
    byte_damage const before = block.front_damage(), behind = block.damage_behind(record.bytes());
    if (before.count == 0 && behind.count == 0) return;
    if (before.count != 0)
      report(*this, memory_error::underrun, where, block.address(), record, block.front() - before.first, 0, site);
    if (behind.count != 0)
      report(*this, memory_error::overrun, where, block.address(), record, behind.last + 1, 0, site);
    block.mend(record.bytes());
  }

  /// Reports a header that cannot be believed, once.
  WARPHEAP_COLD static void report_overwritten(examiner look, void* memory, found_in where, source_site site) {
    if (block_at(memory).mark_overwritten()) report(look, memory_error::damaged_header, where, memory, {}, 0, 0, site);
  }

  /// Looks for writes to a freed block since, and mends what it reports.
  WARPHEAP_DEVICE void report_writes(guarded_block const& block, block_record const& record, found_in where,
                                     source_site const& site) const {
    byte_damage const written = block.contents_damage(record.bytes());
    if (written.count == 0) return;
    report(*this, memory_error::use_after_free, where, block.address(), record, written.count, written.first, site);
    block.poison_alone(record.bytes());
  }

  /// A free of what is no live block: freed already, within a block, or nothing of ours.
  WARPHEAP_COLD static void report_bad_free(examiner look, void* memory, source_site site) {
    auto const& map = look.state_->map;
    void* const nearest = map.find_below(memory);
    block_record record;
    bool const readable = nearest && block_at(nearest).read(record);
    u64 const distance = reinterpret_cast<u64>(memory) - reinterpret_cast<u64>(nearest);
    if (nearest == memory && nearest)
      return report(look, memory_error::double_free, found_in::free, nearest, readable ? record : block_record{}, 0, 0,
                    site);
    if (readable && distance < record.bytes() + Config.redzone_bytes)
      return report(look, memory_error::inner_free, found_in::free, nearest, record, distance, 0, site);
    report(look, memory_error::foreign_free, found_in::free, memory, {}, 0, 0, site);
  }

 private:
  WARPHEAP_COLD static void report(examiner look, memory_error kind, found_in where, void* memory, block_record record,
                                   u64 extent, u64 first, source_site site) {
    recorded_error error;
    error.kind = kind;
    error.where = where;
    error.address = reinterpret_cast<u64>(memory);
    error.bytes = record.bytes();
    error.extent = extent;
    error.first = first;
    error.reaches_end = (kind == memory_error::overrun && extent == Config.redzone_bytes) ||
                        (kind == memory_error::underrun && extent == Config.front_redzone_bytes);
    error.in_pool = look.state_->map.contains(memory);
    error.knows_allocation = record.words[0] != 0;
    error.knows_free = record.is_freed();
    error.allocated = record.allocated();
    error.freed = record.freed();
    error.found = {site, simt::block_index(), simt::thread_index()};
    look.state_->errors.add(error);
    if constexpr (Config.reaction == on_error::trap) {
      text_line line;
      describe(line, error);
      simt::trap(line.text());
    }
  }

  state_type* state_;
};

}}}  // namespace warpheap::WARPHEAP_BACKEND::checked_parts
