// The units of a rw_malloc: where they and their words lie, and what is known of a block.
//
//   base - units * unit_bytes    unit 0 | unit 1 | ...     the pool, its start aligned to 4 KiB
//   base                         counts, steps, pass       as in a random_walk
//                                words                     8 bytes for 32 units: which are taken
//                                                          (walk_word.hpp)
//                                marks                     8 bytes for 32 units: where blocks start
//                                                          and end
//                                groups                    8 bytes for group_words words: their
//                                                          runs (group_word.hpp)
//
//    63       34 33  32  31      0         63      32 31       0
//   |  extent   | W | L |  taken  |       |   ends   |  starts  |
//
//   U1  a live block's first unit has a start mark and its last an end mark; there are no others.
//       The thread that takes the block sets them, the end no later than the start, before it
//       returns the address. The thread that frees it clears them before the units are free.
//   U2  the thread that clears the start mark by a read-modify-write that found it set frees the
//       block; no other does. It may have received nothing from the block's owner: a second free
//       knows the address from an earlier block there. So the start mark itself hands over the end
//       mark and the extent, by release and acquire.
//   U3  if a block touches three words or more, the extent of its second word is that number. All
//       other extents are 0. So two loads find a block's end however long it is.
#pragma once

#include "../report.hpp"
#include "../shared/walk_faults.hpp"
#include "config.hpp"
#include "group_word.hpp"

#if !defined(__CUDACC_RTC__)
#include <string>
#endif

namespace warpheap::inline WARPHEAP_BACKEND {

/// How a lane works with runs of units. The broken twins in tests override this.
struct no_run_faults : no_walk_faults {
  /// The last unit of a block.
  WARPHEAP_HOST_DEVICE static constexpr u64 last_of(u64 unit, u64 units) { return unit + units - 1; }
  /// Where a lane's part of a shared block starts: `before` units of other lanes' parts come first.
  WARPHEAP_HOST_DEVICE static constexpr u64 part_of(u64 unit, u32 before) { return unit + before; }

  /// Marks both ends of a block that lies in several words (U1). Returns what the first word's
  /// marks were.
  WARPHEAP_DEVICE static u64 mark_ends(atomic_ref<u64> first, u64 start_bit, atomic_ref<u64> last, u64 end_bit) {
    last.fetch_or(end_bit, order::relaxed);  // relaxed: the next operation hands it over
    // release: the end mark and the extent happen before the free of the block (U2); pairs with the
    // acquire in receive_ends().
    return first.fetch_or(start_bit, order::release);
  }

  /// Receives what the owner of a block did before it set the start mark, which the caller saw by a
  /// read-modify-write on `first` (U2).
  WARPHEAP_DEVICE static void receive_ends(atomic_ref<u64> first) {
    // acquire: reads the value that the caller's operation left, or a later one. Each of them
    // passes on what the mark released; pairs with the release in mark_ends(). A separate load, so
    // that blocks of one word pay nothing.
    static_cast<void>(first.load(order::acquire));
  }

  /// Sets the watch of a word (G1); returns what it held.
  WARPHEAP_DEVICE static walk_word watch(atomic_ref<u64> word) {
    // acquire: pairs with the release of a free before it in the word's order; a free after it
    // finds the watch.
    return walk_word{word.fetch_or(group_word::watch_bit, order::acquire)};
  }

  /// What is noted of a group.
  WARPHEAP_DEVICE static group_word read_note(atomic_ref<u64> group) {
    // acquire: our next look at the words sees all that came free before they were noted in this
    // turn (G2); pairs with the acq_rel in run_search::note_anew() and the release in
    // run_take::note_taken().
    return group_word{group.load(order::acquire)};
  }

  /// Notes the runs of a group, if its word is still `noted` (G2).
  WARPHEAP_DEVICE static void note(atomic_ref<u64> group, u64 noted, u64 now) {
    // relaxed: the words were looked at after the acq_rel that set this turn, and this operation
    // follows that one in the order of the group's word.
    group.compare_exchange(noted, now, order::relaxed, order::relaxed);
  }

  /// Whether a block may go to the beginning of a run only if another block ends before it.
  static constexpr bool looks_for_ends = true;

  /// Gives units of a word back; returns what it held. release_fence() came before.
  WARPHEAP_DEVICE static walk_word give_back(atomic_ref<u64> word, u64 bits) {
    // fenced: what the owner did to the block happens before its next owner; pairs with the acquire
    // in try_lock().
    return walk_word{word.fetch_and(~bits, order::fenced)};
  }

  /// Says that units of a group came free (G1). release_fence() came before.
  WARPHEAP_DEVICE static void disturb(atomic_ref<u64> group) {
    // fenced: the cleared bits happen before the look of a search that sees the group so; pairs
    // with the acq_rel in run_search::note_anew().
    group.fetch_and(~group_word::noted_bit, order::fenced);
  }
};

/// Counts that no invariant rests on.
enum class unit_count : u32 { double_frees, foreign_frees, failures };

/// A block as its marks and words describe it.
struct unit_run {
  u64 first;
  u64 units;

  WARPHEAP_HOST_DEVICE u32 first_word() const { return static_cast<u32>(first / 32); }
  WARPHEAP_HOST_DEVICE u32 words() const { return static_cast<u32>((first + units - 1) / 32) - first_word() + 1; }
  /// Its units in its i-th word.
  WARPHEAP_HOST_DEVICE u32 part(u32 i) const {
    if (i != 0 && i + 1 < words()) return full_mask;  // most words of a long run
    return part_of_word(u64{32} * (first_word() + i), first, first + units);
  }
  /// The extent that its i-th word must have (U3).
  WARPHEAP_HOST_DEVICE u32 extent(u32 i) const { return i == 1 && words() > 2 ? words() : 0; }
};

/// View of a heap of units; 16 bytes, trivially copyable, owns nothing.
template <creation::rw_malloc_config Config>
class unit_table {
 public:
  static constexpr u64 none = run_wish::nowhere;
  static constexpr u64 max_units = u64{1} << 34;
  static constexpr size_t unit_bytes = Config.unit_bytes;
  static constexpr size_t pool_alignment = 4096;
  static constexpr u32 size_classes = 35;
  static constexpr u64 group_units = 32 * Config.group_words;
  using pass_type = shared_pass<size_classes>;

  unit_table() = default;
  /// `base` is where the pool ends and the metadata begins.
  WARPHEAP_HOST_DEVICE unit_table(u8* base, u64 units) : base_{base}, units_{units} {}

  WARPHEAP_HOST_DEVICE u64 units() const { return units_; }
  WARPHEAP_HOST_DEVICE u32 words() const { return static_cast<u32>((units_ + 31) / 32); }
  WARPHEAP_HOST_DEVICE u64 pool_bytes() const { return units_ * unit_bytes; }
  WARPHEAP_HOST_DEVICE u8* pool() const { return base_ - padded_pool_bytes(units_); }
  WARPHEAP_HOST_DEVICE void* address(u64 unit) const { return pool() + unit * unit_bytes; }
  WARPHEAP_HOST_DEVICE u8* metadata() const { return base_; }
  WARPHEAP_HOST_DEVICE u64 groups() const { return (words() + Config.group_words - 1) / Config.group_words; }
  /// Units of a group, including those that do not exist (walk_word K3).
  WARPHEAP_HOST_DEVICE u32 units_of_group(u64 group) const {
    u64 const words_from = words() - group * Config.group_words;
    return 32 * static_cast<u32>(words_from < Config.group_words ? words_from : Config.group_words);
  }
  WARPHEAP_HOST_DEVICE u64 metadata_bytes() const { return words_offset + 16 * u64{words()} + 8 * groups(); }

  /// The unit that starts at `memory`; none if no unit does.
  WARPHEAP_HOST_DEVICE u64 unit_at(void const* memory) const {
    u64 const offset = reinterpret_cast<u64>(memory) - reinterpret_cast<u64>(pool());
    return offset < pool_bytes() && offset % unit_bytes == 0 ? offset / unit_bytes : none;
  }
  WARPHEAP_HOST_DEVICE bool contains(void const* memory) const {
    return reinterpret_cast<u64>(memory) - reinterpret_cast<u64>(pool()) < pool_bytes();
  }
  /// The wish for a block of `units` units at a multiple of `alignment` bytes, a power of two.
  WARPHEAP_HOST_DEVICE run_wish wish(u64 units, size_t alignment) const {
    if (alignment <= unit_bytes) return run_wish{units};
    u64 const align = alignment / unit_bytes;
    return run_wish{units, align, reinterpret_cast<u64>(pool()) / unit_bytes & (align - 1)};
  }

  WARPHEAP_DEVICE atomic_ref<u64> word(u32 index) const { return atomic_ref<u64>{words_at()[index]}; }
  WARPHEAP_DEVICE atomic_ref<u64> marks(u32 index) const { return atomic_ref<u64>{words_at()[words() + index]}; }
  WARPHEAP_DEVICE atomic_ref<u64> group(u64 index) const {
    return atomic_ref<u64>{words_at()[2 * u64{words()} + index]};
  }
  /// What the word held lately: a hint.
  WARPHEAP_DEVICE walk_word look_at(u32 index) const { return walk_word{word(index).load(order::relaxed)}; }

  /// Whether a live block ends with the unit (U1): a hint.
  WARPHEAP_DEVICE bool has_end(u64 unit) const {
    return (marks(static_cast<u32>(unit / 32)).load(order::relaxed) >> (32 + unit % 32) & 1) != 0;
  }

  WARPHEAP_HOST_DEVICE pass_type pass() const { return pass_type{reinterpret_cast<u64*>(base_ + pass_offset)}; }
  WARPHEAP_HOST_DEVICE u64* steps() const { return reinterpret_cast<u64*>(base_ + steps_offset); }

  WARPHEAP_DEVICE void count(unit_count which) const {
    // relaxed: nobody reads it before the kernel ends.
    atomic_ref<u64>{reinterpret_cast<u64*>(base_)[static_cast<u32>(which)]}.fetch_add(1, order::relaxed);
  }

  /// Marks a block whose units are the caller's (U1); returns `unit` once its start mark is set.
  template <class Faults>
  WARPHEAP_DEVICE u64 own(u64 unit, u64 units) const {
    u64 const last = Faults::last_of(unit, units);
    u32 const first_word = static_cast<u32>(unit / 32), last_word = static_cast<u32>(last / 32);
    u64 const start_bit = u64{1} << unit % 32, end_bit = u64{1} << (32 + last % 32);
    // relaxed, both: the units were acquired, and their old owner cleared its marks before. One
    // operation sets both marks in one word; else the start mark hands the end mark over.
    u64 const before = first_word == last_word
                           ? marks(first_word).fetch_or(start_bit | end_bit, order::relaxed)
                           : Faults::mark_ends(marks(first_word), start_bit, marks(last_word), end_bit);
    // The mark is never set already (U1). The test makes the address depend on the atomic: a GPU
    // does not wait for an atomic whose result it does not need, and an address that was passed on
    // by a relaxed word came before its mark.
    return before & start_bit ? none : unit;
  }

  /// The block that starts at `unit`. `seen` are its first word's marks, its start mark among them.
  template <class Faults>
  WARPHEAP_DEVICE unit_run run_at(u64 unit, u64 seen) const {
    u32 const first = static_cast<u32>(unit / 32);
    u32 const ends = static_cast<u32>(seen >> 32) & ~low_mask32(unit % 32);
    if (ends != 0) return unit_run{unit, u64{32} * first + lowest_bit(ends) + 1 - unit};
    Faults::receive_ends(marks(first));
    // relaxed: received; in a block that the caller may use or free no other thread changes them.
    u32 const extent = walk_word_extent(look_at(first + 1)), ends_in = first + (extent != 0 ? extent - 1 : 1);
    // the bounds are for a block that its holder is freeing just now
    u32 const last = ends_in < words() ? ends_in : words() - 1;
    u32 const last_ends = static_cast<u32>(marks(last).load(order::relaxed) >> 32);
    return unit_run{unit, u64{32} * last + (last_ends != 0 ? lowest_bit(last_ends) + 1 : 0) - unit};
  }

  /// The live block that starts at `memory`; of 0 units if none does.
  template <class Faults>
  WARPHEAP_DEVICE unit_run block_at(void const* memory) const {
    u64 const unit = unit_at(memory);
    if (unit == none) return unit_run{0, 0};
    // relaxed, by a read-modify-write: the caller may have the address without any memory order,
    // and a load might read the marks of an older block there. run_at() receives the end.
    u64 const seen = marks(static_cast<u32>(unit / 32)).fetch_or(0, order::relaxed);
    return seen >> unit % 32 & 1 ? run_at<Faults>(unit, seen) : unit_run{0, 0};
  }

  /// Ends the life of the block at `unit` and returns it; of 0 units if none starts there (U2).
  template <class Faults>
  WARPHEAP_DEVICE unit_run disown(u64 unit) const {
    u32 const first = static_cast<u32>(unit / 32);
    u64 const bit = u64{1} << unit % 32;
    // relaxed: only one read-modify-write finds the mark, run_at() receives the end, and the words
    // order the contents.
    u64 const seen = marks(first).fetch_and(~bit, order::relaxed);
    if ((seen & bit) == 0) return unit_run{0, 0};
    unit_run const run = run_at<Faults>(unit, seen);
    u64 const last = run.first + run.units - 1;
    marks(static_cast<u32>(last / 32)).fetch_and(~(u64{1} << (32 + last % 32)), order::relaxed);
    return run;
  }

  WARPHEAP_HOST_DEVICE static u32 walk_word_extent(walk_word seen) {
    return static_cast<u32>(seen.word >> extent_shift);
  }
  static constexpr u32 extent_shift = 34;
  /// The bits that a free leaves in a word that its block has to itself: they are no block's.
  static constexpr u64 others_bits = walk_word::lock_bit | group_word::watch_bit;

  // Offsets in the metadata.
  static constexpr u64 steps_offset = 128;
  static constexpr u64 pass_offset = 256;
  static constexpr u64 words_offset = pass_offset + pass_type::bytes;
  static_assert(words_offset % 128 == 0);

#if !defined(__CUDACC_RTC__)
  /// Memory for `units` units with their metadata, wherever it starts.
  static u64 reserved_bytes(u64 units) {
    return padded_pool_bytes(units) + unit_table{nullptr, units}.metadata_bytes() + pool_alignment;
  }

  static unit_table place(void* memory, u64 units) {
    u64 const start = align_up(reinterpret_cast<u64>(memory), pool_alignment);
    return unit_table{reinterpret_cast<u8*>(start) + padded_pool_bytes(units), units};
  }

  /// Makes every unit free, in order on stream `on`.
  void initialize(stream_view on) const;
#endif

 private:
  /// So that the metadata starts at a multiple of 128.
  WARPHEAP_HOST_DEVICE static constexpr u64 padded_pool_bytes(u64 units) { return align_up(units * unit_bytes, 128); }
  WARPHEAP_HOST_DEVICE u64* words_at() const { return reinterpret_cast<u64*>(base_ + words_offset); }

  u8* base_ = nullptr;
  u64 units_ = 0;
};

#if !defined(__CUDACC_RTC__)

/// Kernel: sets the bits of units that do not exist (walk_word K3).
struct close_last_unit_word {
  template <class Table>
  WARPHEAP_DEVICE void operator()(Table table) const {
    u32 const rest = table.units() % 32;
    // relaxed: the launch orders it.
    if (rest != 0) table.word(table.words() - 1).fetch_or(full_mask & ~low_mask32(rest), order::relaxed);
  }
};

template <creation::rw_malloc_config Config>
void unit_table<Config>::initialize(stream_view on) const {
  backend::fill_bytes(metadata(), 0, metadata_bytes(), on);
  launch(on, {1, 1}, close_last_unit_word{}, *this);
}

#endif

}  // namespace warpheap::inline WARPHEAP_BACKEND
