// SPDX-License-Identifier: Apache-2.0
// A heap that finds errors of the kernels that use it: overruns and underruns of blocks, writes to
// freed blocks, double frees, frees of addresses that are no block, and leaks. Each is reported
// with the source places and the threads that allocated and freed the block and found the error.
//
//   using heap_type = warpheap::checked<warpheap::heap>;   in place of warpheap::heap
//   heap_type heap{64_MiB};
//   kernel<<<grid, block>>>(heap.ref());                   heap_type::ref_type
//   for (auto const& error : heap.reports()) std::puts(error.describe().c_str());
//
// Cost: 112 bytes a block and more for alignment, 1/64 of the memory, and the quarantine. A free
// reads around its block and overwrites the contents. docs/design/checked.md. Sources: redzones,
// poison and quarantine as in AddressSanitizer (Serebryany et al. 2012) and the C libraries'
// debugging allocators; bits outside the heap instead of shadow memory.
#pragma once

#include "checked/checked_ref.hpp"
#include "checked/survey.hpp"
#include "device_texts.hpp"
#include "upstream_heap.hpp"

#if !defined(__CUDACC_RTC__)

#include <cstdio>
#include <exception>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// A found error, for the host. The sites' files are in the strings.
struct error_report : recorded_error {
  std::string allocated_file;  ///< of the call that made the block
  std::string freed_file;      ///< of the one that freed it
  std::string found_file;      ///< of the one that found the error

  /// All of it in a line.
  std::string describe() const {
    recorded_error readable = *this;
    if (allocated.site.file) readable.allocated.site.file = allocated_file.c_str();
    if (freed.site.file) readable.freed.site.file = freed_file.c_str();
    if (found.site.file) readable.found.site.file = found_file.c_str();
    checked_parts::text_line line;
    checked_parts::describe(line, readable);
    return line.text();
  }
};

/// Errors of one kind at the same places, which differ only in threads, addresses and sizes.
struct error_group {
  error_report first;  ///< the one that was found first
  u64 errors = 0;      ///< how many
  u64 threads = 0;     ///< that found them, or allocated the blocks if the host found them

  /// All of it in a line.
  std::string describe() const {
    if (errors == 1) return first.describe();
    return first.describe() + "; " + std::to_string(errors) + " such errors of " + std::to_string(threads) +
           (threads == 1 ? " thread" : " threads");
  }
};

/// Live blocks of one size that were allocated at one place.
struct leak_report {
  std::string file;        ///< of the calls that made them
  u32 line = 0;            ///< 0: `file` is a name that was given
  size_t block_bytes = 0;  ///< of each block
  u64 blocks = 0;          ///< how many
  recorded_call first;     ///< of the block with the lowest address

  /// Bytes of all these blocks.
  u64 bytes() const { return blocks * block_bytes; }
  /// All of it in a line.
  std::string describe() const {
    recorded_call readable = first;
    if (first.site.file) readable.site.file = file.c_str();
    checked_parts::text_line text;
    (text.bytes(bytes()) << " leaked in " << blocks << (blocks == 1 ? " block of " : " blocks of ")).bytes(block_bytes);
    text << (blocks == 1 ? ": allocated " : ": the first allocated ") << readable;
    return text.text();
  }
};

/// A heap around another one, `Heap`, which must have a pool. It has the constructors of `Heap`,
/// and its members, which see the caller's blocks. Host functions wait only for the kernels that
/// they run themselves: call them when no kernel uses the heap.
template <class Heap, checked_config Config = checked_config{}>
class checked : public upstream_heap<Heap> {
  using base = upstream_heap<Heap>;
  using base::upstream_;
  static constexpr u32 pieces = Heap::memory_pieces;
  static_assert(pieces != 0, "checked: the toolkit's heap has no pool of its own; compute-sanitizer knows its blocks");
  using state_type = checked_parts::shared_state<pieces>;

 public:
  /// What ref() returns.
  using ref_type = checked_ref<typename Heap::ref_type, pieces, Config>;
  /// The settings.
  static constexpr checked_config config = Config;

  /// Throws what the constructor of `Heap` throws, and out_of_memory if there is no memory for the
  /// records.
  template <class... Arguments>
    requires std::constructible_from<Heap, Arguments...>
  explicit checked(Arguments&&... arguments) : base(std::forward<Arguments>(arguments)...) {
    auto const memory = upstream_.memory();
    state_type state;
    u64* words = map_words_.data();
    for (u32 i = 0; i < pieces; ++i) {
      u64 const begin = align_down(reinterpret_cast<u64>(memory[i].begin), 16);
      state.map.ranges[i] = {begin, reinterpret_cast<u64>(memory[i].begin) + memory[i].bytes - begin, words};
      words += state.map.ranges[i].word_count();
    }
    state.held = fresh_quarantine();
    state.errors = checked_parts::error_table{records_.data(), Config.most_reports};
    backend::copy_bytes(state_.data(), &state, sizeof state);
  }
  checked(checked&&) noexcept = default;
  checked& operator=(checked&&) noexcept = default;
  /// Prints the errors if the configuration says so.
  ~checked() {
    if constexpr (Config.prints_at_end) {
      try {
        if (state_.size() != 0) print();
      } catch (std::exception const&) {  // the device's context may be lost
      }
    }
  }

  /// The reference that kernels take by value.
  ref_type ref() const noexcept { return ref_type{upstream_.ref(), state_.data()}; }

  /// Frees everything at once, in order on stream `on`, and keeps the reports.
  void reset(stream_view on = {}) {
    upstream_.reset(on);
    backend::fill_bytes(map_words_.data(), 0, map_words_.size_bytes(), on);
    backend::fill_bytes(slots_.data(), 0, slots_.size_bytes(), on);
    launch(on, {1, 1}, checked_parts::forget_held{}, state_.data(), fresh_quarantine());
  }

  /// The errors found so far: the first `most_reports`, in the order in which they were found.
  std::vector<error_report> reports() const { return reports_from(0); }
  /// These reports in groups of equal kind and places, in the order of each group's first.
  std::vector<error_group> error_groups() const {
    using place = std::tuple<std::string const&, u32>;
    std::map<std::tuple<memory_error, found_in, place, place, place>, size_t> known;
    std::vector<std::set<std::tuple<u32, u32>>> threads;
    std::vector<error_group> found;
    auto const all = reports();
    for (auto const& each : all) {
      auto const [at, is_new] = known.insert({{each.kind,
                                               each.where,
                                               {each.allocated_file, each.allocated.site.line},
                                               {each.freed_file, each.freed.site.line},
                                               {each.found_file, each.found.site.line}},
                                              found.size()});
      if (is_new) {
        found.push_back({each});
        threads.emplace_back();
      }
      auto const& by = each.where == found_in::check ? each.allocated : each.found;
      ++found[at->second].errors;
      threads[at->second].insert({by.thread_block, by.thread});
    }
    for (size_t i = 0; i < found.size(); ++i) found[i].threads = threads[i].size();
    return found;
  }
  /// All errors found so far.
  u64 error_count() const { return state_[0].errors.count(); }
  /// All errors of one kind found so far.
  u64 error_count(memory_error kind) const { return state_[0].errors.count_of(kind); }

  /// Examines all live blocks and those in quarantine. Returns the newly found errors, as far as
  /// the table has room for them.
  std::vector<error_report> check_blocks() const {
    u64 const before = state_[0].errors.kept();
    checked_parts::survey(checked_parts::check_blocks{}, ref(), map_words_.size());
    return reports_from(before);
  }

  /// The live blocks by site and size, the most bytes first.
  std::vector<leak_report> leaks() const {
    std::map<std::tuple<char const*, u32, u64>, leak_report> groups;
    device_texts texts;
    for (auto const& block : checked_parts::list_live(ref(), map_words_.size())) {
      auto const& site = block.allocated.site;
      texts.want(site);
      auto& group = groups[{site.file, site.line, block.bytes}];
      if (group.blocks++ != 0) continue;
      group.line = site.line;
      group.block_bytes = block.bytes;
      group.first = block.allocated;
    }
    texts.fetch();
    std::vector<leak_report> found;
    for (auto& [key, group] : groups) {
      group.file = texts.of(group.first.site);
      found.push_back(std::move(group));
    }
    std::sort(found.begin(), found.end(), [](auto const& a, auto const& b) {
      return a.bytes() != b.bytes() ? a.bytes() > b.bytes() : std::tie(a.file, a.line) < std::tie(b.file, b.line);
    });
    return found;
  }

  /// Prints groups of errors, and leaks, one per line.
  void print(std::FILE* to = stderr) const {
    for (auto const& group : error_groups()) std::fprintf(to, "warpheap: %s\n", group.describe().c_str());
    auto const& errors = state_[0].errors;
    if (u64 const more = errors.count() - errors.kept()) std::fprintf(to, "warpheap: %llu more errors\n", more);
    for (auto const& leak : leaks()) std::fprintf(to, "warpheap: %s\n", leak.describe().c_str());
  }

  /// Calls `visit(address, bytes)` for every live block of a quiet heap, in address order.
  template <class Visitor>
  void for_each_live(Visitor visit) const {
    for (auto const& block : checked_parts::list_live(ref(), map_words_.size()))
      visit(reinterpret_cast<void*>(block.address), static_cast<size_t>(block.bytes));
  }

  /// Counts of a quiet heap: blocks, bytes and misuse as callers see them, all others from the
  /// upstream heap.
  heap_statistics statistics() const requires Heap::takes_snapshots {
    heap_statistics counted = upstream_.statistics();
    device_buffer<checked_parts::live_counts> const live(1);
    checked_parts::survey(checked_parts::list_blocks{}, ref(), map_words_.size(), live.data(),
                          static_cast<checked_parts::live_block*>(nullptr), u64{0});
    counted.live_blocks = live[0].blocks;
    counted.live_bytes = live[0].bytes;
    counted.metadata_bytes = metadata_bytes();
    counted.double_frees = error_count(memory_error::double_free);
    counted.foreign_frees = error_count(memory_error::foreign_free) + error_count(memory_error::inner_free);
    return counted;
  }

  /// Blocks of `bytes` that could be allocated now, by lanes that call alone.
  u64 available_slots(size_t bytes) const requires requires(Heap const heap) { heap.available_slots(bytes); }
  { return upstream_.available_slots(ref_type::created_bytes(bytes)); }
  /// Bytes of everything outside the pool, including the records.
  size_t metadata_bytes() const {
    return upstream_.metadata_bytes() + map_words_.size_bytes() + slots_.size_bytes() + records_.size_bytes() +
           state_.size_bytes();
  }
  /// "checked" and the upstream heap's own description.
  std::string info(std::string const& separator = "; ") const requires requires(Heap const heap) { heap.info(); }
  { return "checked" + separator + upstream_.info(separator); }

 private:
  static u64 words_for(Heap const& upstream) {
    u64 words = 0;
    for (auto const& piece : upstream.memory()) words += piece.bytes / checked_parts::mapped_range::bytes_a_word + 2;
    return words;
  }

  checked_parts::quarantine fresh_quarantine() const {
    return {slots_.data(), Config.quarantine_blocks, Config.quarantine_bytes};
  }

  std::vector<error_report> reports_from(u64 first) const {
    u64 const kept = state_[0].errors.kept();
    auto const records = records_.to_host();
    device_texts texts;
    for (u64 i = first; i < kept; ++i)
      for (auto const* call : {&records[i].allocated, &records[i].freed, &records[i].found}) texts.want(call->site);
    texts.fetch();
    std::vector<error_report> found;
    for (u64 i = first; i < kept; ++i)
      found.push_back({records[i], texts.of(records[i].allocated.site), texts.of(records[i].freed.site),
                       texts.of(records[i].found.site)});
    return found;
  }

  device_buffer<u64> map_words_{words_for(upstream_)};
  device_buffer<u64> slots_{Config.quarantine_blocks};
  device_buffer<recorded_error> records_{Config.most_reports};
  device_buffer<state_type> state_{1};
};

}}  // namespace warpheap::WARPHEAP_BACKEND

#endif
