// Halloc: slabs of chunks, a bit a chunk, and a hash of a counter that says where to look. The c-th request of a size looks at
// places of its own in the slab that its row takes blocks from, the head; so requests of one moment rarely meet, and a fresh
// slab is filled without a collision. A head is replaced before it is full, while others take the rest of it.
//
// Chunks are 16, 24, 256 or 384 bytes, blocks 1, 2, 4 or 8 of them: sixteen sizes from 16 bytes to 3 KiB. A slab has chunks of
// one kind and may have blocks of several lengths. What is larger comes from TBuddy, whose blocks the slabs are, so memory
// goes where it is wanted; a fixed split, as in the paper, is an option.
//
// Cost: 1.6% of the pool in metadata; for lanes of a warp that ask for one size, an addition to the row's counter, one to the
// head's count, and one bitmap operation for each run of places. The pool is divided among four kinds of chunks and the rows'
// heads; a search gathers it all when it is needed. nullptr is certain.
// Source: Adinetz and Pleiter 2014. What differs: docs/design/halloc.md.
#pragma once

#include "halloc/block_search.hpp"
#include "halloc/inspection.hpp"
#include "halloc/large_search.hpp"
#include "report.hpp"

#if !defined(__CUDACC_RTC__)
#include "../../platform/device_buffer.hpp"
#endif

namespace warpheap::inline WARPHEAP_BACKEND {
namespace creation {

/// A handle on a heap: 40 bytes, trivially copyable; all copies serve the same heap.
template <halloc_config Config = halloc_config{}, class Steps = chunks::careful_steps>
class halloc {
  using table_type = chunks::slab_table<Config, Steps>;
  using supply_type = chunks::slab_supply<table_type>;
  using search_type = chunks::block_search<table_type>;
  using large_search_type = chunks::large_search<table_type>;
  using large_type = chunks::large_heap;
  using slab_state = chunks::slab_state;
  using count = chunks::count;

 public:
  static constexpr char const* name = Config.split_percent != 0 ? "halloc_split" : "halloc";
  static constexpr halloc_config config = Config;
  static constexpr allocator_traits traits{
      .alignment = 8, .self_aligned_up_to = size_t{1} << 20, .detects_misuse = true, .exact_out_of_memory = true};
  static constexpr bool tells_heaps_apart = true;

  halloc() = default;

  /// A block of at least `bytes` bytes; nullptr for 0, and when there is none. Any lanes, converged or not.
  WARPHEAP_DEVICE void* create(size_t bytes) const {
    if (bytes == 0) return nullptr;
    if (bytes > chunks::largest_bytes) return create_large(bytes);
    return create_size(chunks::size_for(static_cast<u32>(bytes)));
  }

  /// The same at a multiple of `alignment`, a power of two.
  WARPHEAP_DEVICE void* create_aligned(size_t alignment, size_t bytes) const {
    if (bytes == 0) return nullptr;
    u32 const size = chunks::aligned_size_for(alignment, bytes);
    if (size < chunks::sizes) return create_size(size);
    return alignment <= large_page ? create_large(bytes) : create_large_aligned(alignment, bytes);
  }

  /// The same for all lanes of `mask` at once, each with its own size. All call with the same mask.
  WARPHEAP_DEVICE void* create_warp(u32 mask, size_t bytes) const {
    bool const small = bytes != 0 && bytes <= chunks::largest_bytes;
    u32 const together = simt::ballot(mask, small);
    if (!small) return create(bytes);
    u32 const size = chunks::size_for(static_cast<u32>(bytes));
    return serve(together, group_by(together, key_of(size)), size);
  }

  /// Gives a block back. Any lanes, converged or not. nullptr does nothing; what is no live block is counted and ignored.
  WARPHEAP_DEVICE void destroy(void* memory) const {
    if (!memory) return;
    u64 const offset = table_.offset_of(memory), slab = table_.slab_at(offset);
    if (slab >= table_.slabs()) return destroy_large(memory);
    // relaxed: written before the block was handed out, and what handed it to us ordered that.
    u32 const role = table_.role(static_cast<u32>(slab)).load(order::relaxed);
    if (role == 0) return destroy_large(memory);
    block_address const at = locate(static_cast<u32>(slab), offset, role - 1);
    if (at.chunks != 0) return destroy_together(at);
    table_.add_count(at.starts ? count::double_frees : count::foreign_frees, 1);
  }

  /// Bytes of the live block at `memory`; 0 if it is none.
  WARPHEAP_DEVICE size_t usable_size(void const* memory) const {
    u64 const offset = table_.offset_of(memory), slab = table_.slab_at(offset);
    u32 const role = slab < table_.slabs() ? table_.role(static_cast<u32>(slab)).load(order::relaxed) : 0;
    if (role == 0) return table_.large().usable_size(memory);
    block_address const at = locate(static_cast<u32>(slab), offset, role - 1);
    return u64{popcount(at.chunks)} * chunks::chunk_bytes(role - 1);
  }
  /// Whether `memory` is a live block; and whether it lies in the pool.
  WARPHEAP_DEVICE bool owns(void const* memory) const { return usable_size(memory) != 0; }
  WARPHEAP_DEVICE bool contains(void const* memory) const {
    return table_.large().contains(memory) || table_.slab_at(table_.offset_of(memory)) < table_.slabs();
  }

  /// Blocks of `bytes` bytes that could be allocated now; exact when the heap is quiet. One lane visits every slab.
  WARPHEAP_DEVICE u64 available_slots(size_t bytes) const {
    if (bytes == 0) return 0;
    if (bytes > chunks::largest_bytes) return available_large(table_, bytes);
    return available_small(table_, chunks::size_for(static_cast<u32>(bytes)));
  }

#if !defined(__CUDACC_RTC__)
  /// Bytes to reserve for a pool of `pool_bytes`: its memory, what is known of it, and room to align them. Throws
  /// std::invalid_argument if that is no slab.
  static size_t required_bytes(size_t pool_bytes) {
    auto const planned = chunks::plan_halloc(pool_bytes, Config, backend::multiprocessors());
    return planned.total_bytes();
  }

  /// The heap in memory of required_bytes(pool_bytes) bytes, which may start anywhere. initialize() must follow.
  static halloc place(void* memory, size_t pool_bytes) {
    auto const planned = chunks::plan_halloc(pool_bytes, Config, backend::multiprocessors());
    halloc made;
    auto const large = large_type::place(memory, planned.large_bytes);
    u8* const pool = planned.split ? planned.slabs_at(memory) : large.pages().pool();
    made.table_ = table_type{planned.metadata_at(memory), pool, planned.geometry, large};
    return made;
  }

  /// Makes everything free, in order on stream `on`; does not wait.
  void initialize(stream_view on) const {
    table_.large().initialize(on);
    backend::fill_bytes(table_.metadata(), 0, table_.geometry().metadata_bytes(), on);
    launch(on, {1, 256}, chunks::fill_rows{}, table_);
  }

  size_t pool_bytes() const {
    u64 const slabs = u64{table_.slabs()} << table_.geometry().slab_log2();
    return table_.large().pool_bytes() + (Config.split_percent != 0 ? slabs : 0);
  }
  size_t metadata_bytes() const { return table_.large().metadata_bytes() + table_.geometry().metadata_bytes(); }

  heap_statistics statistics() const { return snapshot().statistics(pool_bytes(), metadata_bytes()); }
  /// What a heap whose configuration says counts_work has done.
  halloc_work work() const { return snapshot().work(); }
  u64 available_slots_on_host(size_t bytes) const {
    device_buffer<u64> const slots(1);
    launch({1, 1}, chunks::count_slots{}, *this, bytes, slots.data());
    synchronize();
    return slots[0];
  }
  invariant_report check_invariants() const { return snapshot().check_invariants(); }
  template <class Visitor>
  void for_each_live(Visitor visit) const {
    snapshot().for_each_live(visit);
  }
#endif

  WARPHEAP_HOST_DEVICE table_type const& table() const { return table_; }

 private:
  static constexpr size_t large_page = 4096;

  /// Where a pointer leads in a slab.
  struct block_address {
    u32 slab;
    u32 word;     ///< of the slab
    u32 chunks;   ///< of the word: the block's; 0 if no live block starts there
    bool starts;  ///< some block may start there
  };

#if !defined(__CUDACC_RTC__)
  chunks::halloc_snapshot<table_type> snapshot() const { return chunks::halloc_snapshot<table_type>{table_}; }
#endif

  WARPHEAP_HOST_DEVICE static halloc of(table_type const& table) {
    halloc made;
    made.table_ = table;
    return made;
  }

  /// What lanes that act as one have in common: `what`, less than the metadata's bytes, of the same heap.
  WARPHEAP_DEVICE u64 key_of(u32 what) const { return reinterpret_cast<u64>(table_.metadata()) + what; }

  WARPHEAP_DEVICE void* create_size(u32 size) const {
    u32 const company = simt::active_mask();
    return serve(company, group_by(company, key_of(size)), size);
  }

  /// What a leader was promised for its group.
  struct lead {
    u32 slab = 0;
    u32 blocks = 0;    ///< promised; or `refused`: there is nothing
    u32 number = 0;    ///< of the first of us, for the hash
    u32 replaces = 0;  ///< the head to be replaced, + 1

    static constexpr u32 refused = 63, slab_bits = 26, refusal = refused << slab_bits;

    WARPHEAP_DEVICE u32 packed() const { return slab | blocks << slab_bits; }
    WARPHEAP_DEVICE static u32 slab_of(u32 packed) { return packed & low_mask32(slab_bits); }
    WARPHEAP_DEVICE static u32 blocks_of(u32 packed) { return packed >> slab_bits; }
  };

  /// Numbers for `wanted` requests, and blocks of the head for as many as it has room. Any lane alone.
  WARPHEAP_DEVICE lead ask_head(u32 entry, u32 size, u32 wanted) const {
    // relaxed: the numbers are distinct, and the head says for itself what it is.
    u64 const before = table_.head(entry).fetch_add(u64{wanted} << table_type::head_bits, order::relaxed);
    u32 const head = table_type::head_of(before), length = chunks::length_of(size);
    lead got{.slab = head != 0 ? head - 1 : 0, .number = table_type::number_of(before)};
    if (head == 0) return got;
    slab_state const old = table_.promise(got.slab, wanted << length);
    chunks::place_rule const& rule = table_.rule(entry);
    if (old.serves(chunks::kind_of(size)) && !old.has_no_room(length)) {
      u32 const room = old.room(rule.capacity, length);
      got.blocks = wanted < room ? wanted : room;
    }
    if (got.blocks != wanted) table_.subtract(got.slab, (wanted - got.blocks) << length);
    u32 const used = old.used() + (got.blocks << length);
    if (got.blocks != 0 && old.used() < rule.replace_at && used >= rule.replace_at) got.replaces = head;
    return got;
  }

  /// Blocks of one size for the lanes of a group. All lanes of `company` call together, each with its group in it: collectives
  /// of many masks would be served one after the other, so the groups talk in one.
  WARPHEAP_DEVICE void* serve(u32 company, lane_group const& group, u32 size) const {
    u32 const entry = table_.my_entry(size), length = chunks::length_of(size);
    lead got{};
    if (group.leads) got = ask_head(entry, size, group.size);
    // The leader's acquire is everybody's: the slab as its maker left it.
    simt::sync_warp(company);
    u32 const where = simt::shuffle(company, got.packed(), group.leader);
    u32 const number = simt::shuffle(company, got.number, group.leader) + group.rank;
    u32 const slab = lead::slab_of(where), blocks = lead::blocks_of(where);
    bool const promised = group.rank < blocks;

    // A run of places is one lane's work: the lowest of those who have a part of it.
    hash_probe const probe = table_.rule(entry).probe;
    u32 const chunk = probe.first(number) << length, in_word = chunk % chunks::word_chunks;
    bool const first =
        promised && (group.rank == 0 || (number % hash_probe::max_numbers & low_mask32(probe.run_log2)) == 0);
    u32 const firsts = simt::ballot(company, first) & group.mask, below = simt::lanes_below();
    u32 const my_first = highest_bit((firsts & (below | (below + 1))) | 1);
    u32 got_starts = 0;
    if (first) {
      u32 const later = firsts & ~(below | (below + 1));
      u32 const rank_after = later != 0 ? popcount(group.mask & low_mask32(lowest_bit(later))) : group.size;
      u32 const last = rank_after < blocks ? rank_after : blocks;
      u32 const starts = chunks::starts_in(static_cast<u32>(low_mask((last - group.rank) << length)), length)
                         << in_word;
      u32 seen;
      got_starts = chunks::take_blocks(table_, slab, chunk / chunks::word_chunks, starts, length, seen);
    }
    // Its acquire is the others', as well as the block's length.
    simt::sync_warp(company);
    got_starts = simt::shuffle(company, got_starts, promised ? my_first : simt::lane_id());
    bool const mine = promised && (got_starts >> in_word & 1) != 0;
    u32 const unserved = simt::ballot(company, !mine) & group.mask;
    if (got.replaces != 0) supply_type::replace(table_, entry, got.replaces);
    if (mine) return table_.address(slab, chunks::kind_of(size), chunk);
    table_.add_work(count::probes, promised);
    return serve_slowly(table_, unserved, size, slab, number, promised);
  }

  /// The rest of serve(), for those who got nothing yet, all of `mask`; some have a promise of `slab`.
  WARPHEAP_COLD static void* serve_slowly(table_type table, u32 mask, u32 size, u32 slab, u32 number, bool promised) {
    WARPHEAP_NO_UNROLL
    for (u32 fruitless = 0;;) {
      void* mine = promised ? of(table.afresh()).probe(slab, size, number) : nullptr;
      // Who has a promise and no block gives it back: in a slab of mixed lengths there may be none.
      u32 const broken = popcount(simt::ballot(mask, promised && !mine));
      if (broken != 0 && group_of(mask).leads) table.afresh().subtract(slab, broken << chunks::length_of(size));
      mask = simt::ballot(mask, !mine);
      if (mine) return mine;
      lead got{};
      if (group_of(mask).leads && fruitless < most_fruitless) got = of(table.afresh()).ask_rows(size, popcount(mask));
      u32 const where = simt::shuffle(mask, got.packed(), lowest_bit(mask));
      if (where == lead::refusal) return of(table).refuse(group_of(mask));
      slab = lead::slab_of(where);
      number = simt::shuffle(mask, got.number, lowest_bit(mask)) + popcount(mask & simt::lanes_below());
      promised = popcount(mask & simt::lanes_below()) < lead::blocks_of(where);
      // The leader's acquire is everybody's.
      simt::sync_warp(mask);
      if (lead::blocks_of(where) != 0) {
        ++fruitless;
        continue;
      }
      // Said here, they hold no registers meanwhile.
      slab = number = fruitless = 0;
      promised = false;
      mine = search_type::run(table, mask, size);
      u32 const rest = simt::ballot(mask, mine == search_type::again());
      if (mine == nullptr) return of(table).refuse(group_of(mask));  // all or none of us
      if (mine != search_type::again()) return mine;
      mask = rest;
    }
  }
  static constexpr u32 most_fruitless = 3;

  WARPHEAP_DEVICE void* refuse(lane_group const& group) const {
    if (group.leads) table_.add_count(count::failures, group.size);
    return nullptr;
  }

  /// A block for who has a promise, at the places of its number; nullptr if it met none. Any lane alone.
  WARPHEAP_DEVICE void* probe(u32 slab, u32 size, u32 number) const {
    chunks::place_rule const rule = table_.rule(table_.my_entry(size));
    u32 const length = chunks::length_of(size), first = rule.probe.first(number);
    u32 vain = 0;
    WARPHEAP_NO_UNROLL
    for (u32 turn = 0; turn < Config.probes; ++turn, ++vain) {
      u32 const chunk = (turn == 0 ? first : rule.probe.next(first, turn)) << length,
                word = chunk / chunks::word_chunks;
      u32 free = chunks::look_at(table_, slab, word, rule.capacity);
      while (u32 const starts = chunks::starts_in(free, length)) {
        // Ours if it is free, else any: those beside us in the warp would all come to the lowest.
        u32 const own = starts & 1u << chunk % chunks::word_chunks;
        u32 const any = nth_bit(starts, scale_below(simt::lane_id() * 0x9e37'79b9u, popcount(starts)));
        u32 const wanted = own != 0 ? own : 1u << any;
        u32 seen = 0;
        if (chunks::take_blocks(table_, slab, word, wanted, length, seen) != 0) {
          table_.add_work(count::probes, vain);
          return table_.address(slab, chunks::kind_of(size), chunks::word_chunks * word + lowest_bit(wanted));
        }
        free &= ~seen;
        ++vain;
      }
      // While hashing, a look at the count now and then: it may have become known that there is no room.
      if (turn % Config.check_every == Config.check_every - 1 && table_.load(slab).has_no_room(length)) break;
    }
    table_.add_work(count::probes, vain);
    return nullptr;
  }

  /// Blocks of this row's head, or of the next one, for as many as it has room; else nothing, and then a search must follow, or
  /// it is known that there is nothing. Any lane alone; waits for those who replace the head, for a while.
  WARPHEAP_DEVICE lead ask_rows(u32 size, u32 wanted) const {
    if (search_type::is_certified(table_, size)) return {.blocks = lead::refused};
    u32 const entry = table_.my_entry(size), kind = chunks::kind_of(size), length = chunks::length_of(size);
    u32 const capacity = table_.geometry().capacity(kind);
    backoff nap{64, 1024};
    WARPHEAP_NO_UNROLL
    for (u32 turn = 0; turn < most_turns; ++turn) {
      // relaxed: a hint, as the next one; the promise checks.
      u32 const head = table_type::head_of(table_.head(entry).load(order::relaxed));
      if (head != 0) {
        slab_state const now = table_.load(head - 1);
        if (now.serves(kind) && now.room(capacity, length) != 0 && !now.has_no_room(length)) {
          lead const got = ask_head(entry, size, wanted);
          if (got.replaces != 0) supply_type::replace(table_, entry, got.replaces);
          if (got.blocks != 0) return got;
        }
      }
      auto const outcome = supply_type::replace(table_, entry, head);
      if (outcome == chunks::replaced::none_found) return {};
      if (outcome == chunks::replaced::by_others) nap.pause();
    }
    return {};
  }
  static constexpr u32 most_turns = 64;

  WARPHEAP_DEVICE void* create_large(size_t bytes) const {
    u32 const order = large_type::order_for(bytes);
    if (order > table_.large().top_order()) return refuse(group_of(1u << simt::lane_id()));
    void* const memory = table_.large().create(bytes);
    return memory ? memory : create_large_slowly(table_, order);
  }
  WARPHEAP_COLD static void* create_large_slowly(table_type table, u32 order) {
    halloc const self = of(table);
    lane_group const group = group_by(simt::active_mask(), self.key_of(order));
    void* const memory = Config.split_percent != 0 ? nullptr : large_search_type::run(table, group.mask, order, 0);
    return memory ? memory : self.refuse(group_of(1u << simt::lane_id()));
  }

  WARPHEAP_DEVICE void* create_large_aligned(size_t alignment, size_t bytes) const {
    u32 const order = large_type::order_for(bytes), aligned = large_type::order_for(alignment);
    bool const fits = reinterpret_cast<u64>(table_.large().pages().pool()) % alignment == 0;
    if (!fits || aligned > table_.large().top_order()) return refuse(group_of(1u << simt::lane_id()));
    if (aligned <= order) return create_large(bytes);
    void* const memory = table_.large().create_aligned(alignment, bytes);
    return memory ? memory : create_large_aligned_slowly(table_, alignment, order);
  }
  WARPHEAP_COLD static void* create_large_aligned_slowly(table_type table, size_t alignment, u32 order) {
    u32 const alone = 1u << simt::lane_id();
    void* const memory = Config.split_percent != 0 ? nullptr : large_search_type::run(table, alone, order, alignment);
    return memory ? memory : of(table).refuse(group_of(alone));
  }

  /// Gives a block of TBuddy back, and tells who searches for a slab.
  WARPHEAP_DEVICE void destroy_large(void* memory) const {
    table_.large().destroy(memory);
    if constexpr (Config.split_percent != 0) return;
    lane_group const group = group_by(simt::active_mask(), key_of(0));
    simt::sync_warp(group.mask);
    if (group.leads) table_.raise_rooms();  // P3
    // Nobody returns before it is known that there is room.
    simt::sync_warp(group.mask);
  }

  /// What block starts at an offset, in a slab with chunks of a kind.
  WARPHEAP_DEVICE block_address locate(u32 slab, u64 offset, u32 kind) const {
    u32 const inside = static_cast<u32>(offset & low_mask(table_.geometry().slab_log2()));
    u32 const unit = inside >> (4 + kind / 2 * 4), chunk = kind % 2 ? third(inside >> (3 + kind / 2 * 4)) : unit;
    if (chunk * chunks::chunk_bytes(kind) != inside || chunk >= table_.geometry().capacity(kind)) return {};
    u32 const in_word = chunk % chunks::word_chunks, at = chunk / chunks::word_chunks;
    // relaxed: of a block that is ours the bits are as they were when we got it.
    u64 const word = table_.word(slab, at).load(order::relaxed);
    if (!chunks::starts_block(word, in_word)) return {};
    bool const live = (word >> in_word & 1) != 0;
    return {slab, at, live ? Steps::chunks_at(word, in_word) : 0, true};
  }
  /// eights / 3: chunks of 24 bytes in so many eights.
  WARPHEAP_DEVICE static u32 third(u32 eights) {
    constexpr fast_divider by_three{3};
    return by_three.quotient(eights);
  }

  /// Frees blocks, those of the lanes here that lie in one word by one operation.
  WARPHEAP_DEVICE void destroy_together(block_address const& at) const {
    u32 const company = simt::active_mask();
    u64 const word =
        reinterpret_cast<u64>(table_.metadata()) + u64{at.slab} * table_.geometry().record_bytes() + 8 * at.word;
    lane_group const group = group_by(company, word);
    u32 twice = 0;
    u32 const freed = unite(company, group, at.chunks, twice);
    // The leader's release covers only what this ordered: the other lanes' last writes to their blocks.
    simt::sync_warp(company);
    u32 cleared = 0;
    if (group.leads) cleared = release(at, freed);
    // Nobody returns before the blocks are back: a lane that asks next, of a heap full but for them, must be served.
    simt::sync_warp(company);
    cleared = simt::shuffle(company, cleared, group.leader);
    // Of lanes that free one block one has freed it, if it was there.
    bool const mine = twice == 0 && (at.chunks & ~cleared) == 0;
    if (!mine) table_.add_count(count::double_frees, 1);
  }

  /// The union of the chunks of each group in `company`, in all its lanes. `twice` is not 0 for lanes whose chunks a lower lane
  /// of the group has too. As many turns as the largest group has lanes.
  WARPHEAP_DEVICE static u32 unite(u32 company, lane_group const& group, u32 mine, u32& twice) {
    u32 all = mine, rest = group.mask & ~(1u << simt::lane_id());
    while (simt::ballot(company, rest != 0)) {
      u32 const other = rest != 0 ? lowest_bit(rest) : simt::lane_id();
      u32 const theirs = simt::shuffle(company, mine, other);
      if (rest != 0 && other < simt::lane_id()) twice |= theirs & mine;
      all |= theirs;
      rest &= rest - 1;
    }
    return all;
  }

  /// Gives chunks of one word back; returns those that were taken. Any lane alone.
  WARPHEAP_DEVICE u32 release(block_address const& at, u32 freed) const {
    u64 const both = u64{freed} << 32 | freed;
    if (!Steps::clears_first) table_.subtract(at.slab, popcount(freed)), Steps::linger_in_free();
    // release: what the owners did to the blocks happens before the next owners' use; pairs with the acquire in take_blocks().
    u32 const cleared = freed & chunks::taken(table_.word(at.slab, at.word).fetch_and(~both, order::release));
    if (Steps::clears_first) Steps::linger_in_free();
    // A1: bits, not requests, own chunks: what was really cleared is subtracted.
    if (Steps::clears_first && cleared != 0) table_.subtract(at.slab, popcount(cleared));
    return cleared;
  }

  WARPHEAP_COLD static u64 available_large(table_type table, size_t bytes) {
    if constexpr (Config.split_percent == 0) large_search_type::bring_back(table, group_of(1u << simt::lane_id()));
    return table.large().available_slots(bytes);
  }

  WARPHEAP_COLD static u64 available_small(table_type table, u32 size) {
    u32 const kind = chunks::kind_of(size), length = chunks::length_of(size);
    u32 const capacity = table.geometry().capacity(kind);
    u64 slots = 0;
    for (u32 slab = 0; slab < table.slabs(); ++slab) {
      slab_state const now = table.load(slab);
      if (now.phase() == chunks::slab_phase::free || now.empty()) slots += capacity >> length;
      else if (now.serves(kind) && now.room(capacity, length) != 0)
        for (u32 word = 0; word < table.geometry().words(kind); ++word)
          slots += popcount(chunks::starts_in(chunks::look_at(table, slab, word, capacity), length));
    }
    if constexpr (Config.split_percent != 0) return slots;
    u64 const slab_bytes = u64{1} << table.geometry().slab_log2();
    return slots + table.large().available_slots(slab_bytes) * (capacity >> length);
  }

  table_type table_;
};

}  // namespace creation
}  // namespace warpheap::inline WARPHEAP_BACKEND
