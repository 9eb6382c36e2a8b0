// SPDX-License-Identifier: Apache-2.0
// Races of plain accesses to device memory, in deterministic mode with weak memory.
//
// Each word of 8 bytes remembers which lanes touched which of its bytes, when, and where in the
// program. "When" is a moment of the lane's life, as for the contents of blocks
// (content_ranges.hpp): a later access of another lane is ordered behind it if that lane's view has
// the moment. One moment stands for all accesses of a lane until it hands on what it knows, as the
// epochs of FastTrack do (Flanagan & Freund 2009).
//
// host.D1  two touches conflict if they share a byte, one writes, and not both are atomic.
// host.D2  of two touches in conflict the later one's lane knows the moment of the earlier.
// host.D3  a touch is forgotten for a later one that every third touch would race with as well: its
//     lane knows the earlier one, it has all its bytes, it writes if that does, and it is plain if
//     that is.
// Most plain accesses repeat the last touch of their word, and are answered before any call.
// A word keeps at most eight plain writes, four plain reads and two atomics; what it forgets beyond
// that hides a race, and invents none.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <unordered_map>
#include <vector>

#include "allocations.hpp"
#include "call_site.hpp"
#include "memory_model.hpp"

namespace warpheap::host::detail {

enum class touch_kind : u8 { plain_read, plain_write, atomic_read, atomic_write };

WARPHEAP_NO_TSAN constexpr bool writes(touch_kind kind) {
  return kind == touch_kind::plain_write || kind == touch_kind::atomic_write;
}
WARPHEAP_NO_TSAN constexpr bool is_atomic(touch_kind kind) { return kind >= touch_kind::atomic_read; }

/// What a lane did to some bytes of a word.
struct touch {
  u64 stamp;         // of its lane's moment, and of no other lane's
  void const* site;  // where it was called from
  u32 number;        // of the lane, in the run
  u32 step;          // modulo 2^32
  u32 next;          // the word's touch before this one; 0: none
  u8 bytes;          // a bit for each
  touch_kind kind;
};

inline constexpr size_t memory_page = 4096;

/// Memory of a device begins on a page of its own, so that a page has it up to some address and
/// other memory from there.
inline constexpr size_t memory_alignment = memory_page;

class race_checker {
 public:
  race_checker(worker& here, memory_model& model)
      : here_{here}, model_{model}, ranges_{allocations().ranges()}, cache_{new page_record[cached_pages]} {}
  race_checker(race_checker const&) = delete;
  race_checker& operator=(race_checker const&) = delete;
  ~race_checker() {
    std::free(touches_);
    delete[] cache_;
  }

  WARPHEAP_NO_TSAN bool runs_a_lane() const { return here_.runs_a_lane(); }

  /// Whether a plain access is known to need no note(): it is not to memory of the device, or it
  /// repeats the last touch of its word.
  WARPHEAP_NO_TSAN bool needs_no_note(u64 address, u64 size, touch_kind kind) {
    u64 const offset = address % memory_page, first = address % 8;
    auto const& cached = cache_[address / memory_page % cached_pages];
    if (cached.begin != address - offset) return false;
    if (offset >= cached.bytes) return true;
    if (first + size > 8 || left_alone_ == 1 || !here_.runs_a_lane()) return false;
    auto const& last = touches_[cached.words[offset / 8]];
    bool const is_repeated = repeats(last, byte_mask(first, size), kind, model_.started_epoch(here_).stamp);
    left_alone_ -= is_repeated;
    return is_repeated;
  }

  /// After a plain access to the device's memory: whether other lanes must run now. One that polls
  /// plain memory must not keep them out for ever: the lane that writes there races.
  WARPHEAP_NO_TSAN bool is_alone_for_long() {
    if (--left_alone_ != 0) return false;
    left_alone_ = most_alone;
    return true;
  }

  /// The moment that the running lane's accesses belong to now.
  WARPHEAP_NO_TSAN moment now() {
    auto const mine = model_.started_epoch(here_);
    return mine.stamp != 0 ? mine : start_epoch();
  }

  /// The running lane, at the moment `when` or else now, accesses `size` bytes at `address`, called
  /// from `site`. Ends the run if that races. Whether it is memory of the device.
  WARPHEAP_NO_TSAN bool note(u64 address, u64 size, touch_kind kind, void const* site, moment const* when = nullptr) {
    bool is_of_device = false;
    while (size > 0) {
      u64 const first = address & 7, count = size < 8 - first ? size : 8 - first;
      auto const& page = page_of(address);
      if (address % memory_page < page.bytes) {
        is_of_device = true;
        auto& word = page.words[address % memory_page / 8];
        check_word(word, address & ~u64{7}, byte_mask(first, count), kind, site, when ? *when : now());
      }
      address += count;
      size -= count;
    }
    return is_of_device;
  }

  /// The device gets memory that begins on a page, perhaps once more: what was done there is over.
  void renew(u64 begin, u64 bytes) {
    if (std::none_of(ranges_.begin(), ranges_.end(), [&](auto const& each) { return each.begin == begin; }))
      ranges_.push_back({begin, bytes});
    for (u64 page = begin; page < begin + bytes; page += memory_page) {
      cache_[page / memory_page % cached_pages] = {};
      auto const found = pages_.find(page);
      if (found == pages_.end()) continue;
      for (u64 i = 0; i < memory_page / 8; ++i)
        while (found->second.words[i] != 0) drop(found->second.words[i]);
    }
  }

 private:
  static constexpr u64 cached_pages = 1024;
  static constexpr u32 most_alone = 1 << 16;

  /// The last touches of the words of a page, of which `bytes` bytes are the device's.
  struct page_record {
    u64 begin = 0;
    u64 bytes = 0;
    u32* words = nullptr;
  };

  [[gnu::noinline]] WARPHEAP_NO_TSAN moment start_epoch() {
    auto const mine = model_.epoch(here_);
    if (lanes_.size() <= mine.clock) lanes_.resize(mine.clock + 1);
    lanes_[mine.clock] = {here_.running().block->index, here_.running().thread};
    return mine;
  }

  WARPHEAP_NO_TSAN page_record const& page_of(u64 address) {
    auto& cached = cache_[address / memory_page % cached_pages];
    u64 const begin = address & ~u64{memory_page - 1};
    if (cached.begin != begin) cached = find_page(begin);
    return cached;
  }

  [[gnu::noinline]] page_record find_page(u64 begin) {
    auto const found = pages_.find(begin);
    if (found != pages_.end()) return found->second;
    page_record made{.begin = begin};
    for (auto const& each : ranges_) {
      bool const overlaps = each.begin < begin + memory_page && begin < each.begin + each.bytes;
      if (overlaps) made.bytes = (std::max)(made.bytes, std::min<u64>(memory_page, each.begin + each.bytes - begin));
    }
    if (made.bytes == 0) return made;
    made.words = words_.emplace_back(std::make_unique<u32[]>(memory_page / 8)).get();
    return pages_[begin] = made;
  }

  /// A bit for each of `count` bytes of a word from byte `first` on.
  WARPHEAP_NO_TSAN static u8 byte_mask(u64 first, u64 count) { return static_cast<u8>(((1u << count) - 1) << first); }

  /// Whether the word's last touch was of the same lane at the same moment, which `stamp` names,
  /// and whatever races with a touch of this kind to `bytes` races with that one.
  WARPHEAP_NO_TSAN static bool repeats(touch const& last, u8 bytes, touch_kind kind, u64 stamp) {
    bool const is_as_strong = last.kind == kind || last.kind == touch_kind::plain_write;
    return is_as_strong && last.stamp == stamp && (bytes & ~last.bytes) == 0;
  }

  WARPHEAP_NO_TSAN void check_word(u32& newest, u64 address, u8 bytes, touch_kind kind, void const* site,
                                   moment const& mine) {
    if (repeats(touches_[newest], bytes, kind, mine.stamp)) return;
    u32 of_this_kind = 0;
    for (u32* link = &newest; *link != 0;) {
      auto& earlier = touches_[*link];
      bool is_needless = is_like(earlier.kind, kind) && ++of_this_kind >= most_of(kind);
      if ((earlier.bytes & bytes) != 0) {
        bool const conflict = (writes(earlier.kind) || writes(kind)) && !(is_atomic(earlier.kind) && is_atomic(kind));
        bool const known = earlier.number == mine.clock ||
                           (conflict && model_.knows(here_, {mine.run, earlier.number, earlier.stamp}));
        if (conflict && !known) [[unlikely]]
          here_.fail(describe_race(earlier, address, bytes, kind, site));
        if (known && covers(bytes, kind, earlier)) is_needless = true;
      }
      if (is_needless) drop(*link);
      else link = &earlier.next;
    }
    u32 const before = newest;
    newest = take_touch();
    touches_[newest] = {mine.stamp, site, mine.clock, static_cast<u32>(here_.steps()), before, bytes, kind};
  }

  /// host.D3, of touches whose lane knows `earlier`.
  WARPHEAP_NO_TSAN static bool covers(u8 bytes, touch_kind kind, touch const& earlier) {
    return (earlier.bytes & ~bytes) == 0 && (writes(kind) || !writes(earlier.kind)) &&
           (!is_atomic(kind) || is_atomic(earlier.kind));
  }
  WARPHEAP_NO_TSAN static bool is_like(touch_kind left, touch_kind right) {
    return left == right || (is_atomic(left) && is_atomic(right));
  }
  WARPHEAP_NO_TSAN static u32 most_of(touch_kind kind) {
    if (is_atomic(kind)) return 2;
    return kind == touch_kind::plain_write ? 8 : 4;
  }

  /// Index of a free touch, never 0.
  WARPHEAP_NO_TSAN u32 take_touch() {
    if (u32 const found = free_) {
      free_ = touches_[found].next;
      return found;
    }
    if (made_ == room_) grow();
    return made_++;
  }

  void grow() {
    u32 const room = 2 * room_;
    auto* const grown = static_cast<touch*>(std::realloc(touches_, room * sizeof(touch)));
    if (!grown) throw out_of_memory{format_message({"no memory for ", room, " accesses that may race"})};
    touches_ = grown;
    room_ = room;
  }

  /// Takes the touch at `link` out of its word's list.
  WARPHEAP_NO_TSAN void drop(u32& link) {
    u32 const dropped = link;
    link = touches_[dropped].next;
    touches_[dropped].next = free_;
    free_ = dropped;
  }

  [[gnu::cold, gnu::noinline]] std::string describe_race(touch const& earlier, u64 address, u8 bytes, touch_kind kind,
                                                         void const* site) {
    auto const mine = name_of({here_.running().block->index, here_.running().thread});
    auto const other = name_of(lanes_[earlier.number]);
    u8 const shared = bytes & earlier.bytes;
    auto const count = static_cast<u32>(__builtin_popcount(shared)), first = static_cast<u32>(__builtin_ctz(shared));
    u64 const released = model_.next_release(earlier.number, u64{earlier.step} + 1);
    auto const missing = released == ~u64{0} ? format_message({other, " has released nothing since"})
                                             : format_message({other, " released next at step ", released, ", and ",
                                                               mine, " has acquired nothing of that"});
    return format_message({"data race: ",
                           mine,
                           " ",
                           in_present(kind),
                           " ",
                           count,
                           " bytes of ",
                           describe_address(address + first),
                           " at ",
                           describe_call_site(site),
                           " after ",
                           other,
                           " ",
                           in_past(earlier.kind),
                           " them at step ",
                           earlier.step,
                           " at ",
                           describe_call_site(earlier.site),
                           ", and no order passes from ",
                           other,
                           " to ",
                           mine,
                           ": ",
                           missing});
  }

  struct lane_name {
    u32 block = 0, thread = 0;
  };
  static std::string name_of(lane_name const& named) {
    return format_message({"thread block ", named.block, " thread ", named.thread});
  }
  static char const* in_present(touch_kind kind) {
    constexpr char const* words[] = {"reads", "writes", "atomically reads", "atomically writes"};
    return words[static_cast<u8>(kind)];
  }
  static char const* in_past(touch_kind kind) {
    constexpr char const* words[] = {"read", "wrote", "atomically read", "atomically wrote"};
    return words[static_cast<u8>(kind)];
  }

  worker& here_;
  memory_model& model_;
  std::vector<memory_range> ranges_;
  page_record* cache_;
  std::unordered_map<u64, page_record> pages_;
  std::vector<std::unique_ptr<u32[]>> words_;
  raw_vector<lane_name> lanes_;  // by number
  u32 left_alone_ = most_alone;  // plain accesses until the others must run
  u32 made_ = 1, room_ = 4096, free_ = 0;
  // The first is of no word.
  touch* touches_ = static_cast<touch*>(std::calloc(room_, sizeof(touch)));
};

/// Checks the accesses of the calling OS thread's lanes. Null while the backend itself works.
inline constinit thread_local race_checker* races_of_thread = nullptr;

/// Checks the kernels of a run, if it has weak memory, for the life of this.
class race_scope {
 public:
  race_scope(worker& here, memory_model* model) {
    if (model) checker_ = std::make_unique<race_checker>(here, *model);
    races_of_thread = checker_.get();
  }
  race_scope(race_scope const&) = delete;
  race_scope& operator=(race_scope const&) = delete;
  ~race_scope() { races_of_thread = nullptr; }

 private:
  std::unique_ptr<race_checker> checker_;
};

/// The lanes' accesses are the backend's own for the life of this.
class race_pause {
 public:
  WARPHEAP_NO_TSAN race_pause() : paused_{races_of_thread} { races_of_thread = nullptr; }
  race_pause(race_pause const&) = delete;
  race_pause& operator=(race_pause const&) = delete;
  WARPHEAP_NO_TSAN ~race_pause() { races_of_thread = paused_; }

  WARPHEAP_NO_TSAN race_checker* checker() const { return paused_; }

 private:
  race_checker* paused_;
};

/// A thread block gets memory, whatever was done there before.
[[gnu::noinline]] WARPHEAP_NO_TSAN inline void forget_races(void const* memory, size_t bytes) {
  race_pause const own_accesses;
  if (auto* const checker = own_accesses.checker()) checker->renew(reinterpret_cast<u64>(memory), bytes);
}

/// Whether a lane accesses memory of the device.
WARPHEAP_NO_TSAN inline bool check_of_device(race_checker& checker, u64 address, u64 size, touch_kind kind,
                                             void const* site) {
  race_pause const own_accesses;
  return checker.runs_a_lane() && checker.note(address, size, kind, site);
}

/// A plain access of the running lane, perhaps to memory of the device.
[[gnu::noinline]] WARPHEAP_NO_TSAN inline void note_plain(race_checker& checker, u64 address, u64 size, touch_kind kind,
                                                          void const* site) {
  if (check_of_device(checker, address, size, kind, site) && checker.is_alone_for_long()) this_worker()->point();
}

/// A plain access of the running lane.
WARPHEAP_NO_TSAN inline void check_plain(void const* memory, u64 size, touch_kind kind, void const* site) {
  auto* const checker = races_of_thread;
  u64 const address = reinterpret_cast<u64>(memory);
  if (checker && !checker->needs_no_note(address, size, kind)) note_plain(*checker, address, size, kind, site);
}

/// A volatile access: relaxed and of system scope, as PTX has it, but never old or late.
[[gnu::noinline]] WARPHEAP_NO_TSAN inline void check_volatile(void const* memory, u64 size, bool is_write,
                                                              void const* site) {
  auto* const checker = races_of_thread;
  u64 const address = reinterpret_cast<u64>(memory);
  auto const kind = is_write ? touch_kind::atomic_write : touch_kind::atomic_read;
  if (!checker || !check_of_device(*checker, address, size, kind, site)) return;
  auto& here = *this_worker();
  here.point(address);
  here.running().site = site;
  u64 value = 0;
  if (is_write || size > sizeof value) return here.note_progress();
  __builtin_memcpy(&value, memory, size);
  here.record(operation::load, address, value, value);
}

/// An atomic access of the running lane: made before the memory model records it, because a release
/// hands on the access itself.
class atomic_touch {
 public:
  WARPHEAP_NO_TSAN explicit atomic_touch(access const& what) : what_{what} {
    if (own_accesses_.checker()) when_ = own_accesses_.checker()->now();
  }

  /// After the model, because an acquire orders the access itself.
  WARPHEAP_NO_TSAN void note(bool changes, void const* site) {
    auto const kind = changes ? touch_kind::atomic_write : touch_kind::atomic_read;
    if (auto* const checker = own_accesses_.checker()) checker->note(what_.address, what_.bytes, kind, site, &when_);
  }

 private:
  race_pause own_accesses_;
  access what_;
  moment when_;
};

}  // namespace warpheap::host::detail
