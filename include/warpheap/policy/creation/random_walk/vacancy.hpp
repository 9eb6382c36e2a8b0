// Whether memory has come free since somebody looked everywhere and found none: what makes a refusal certain, and quick
// where it is repeated.
//
// Nothing counts what is free, so who finds nothing on its walk looks at every word. While it does, memory may come free
// behind it and be taken before it. So it marks the words that it saw full (K3); a free into a marked word adds to an
// epoch, and a look at everything between two equal epochs saw everything full at the instant of the second.
//
//   E1  searches_begun is raised, by a read-modify-write, before a search's first look, which gives the search its number.
//       So a search with a larger number began after ours was called.
//   E2  certificate(c) = e + 1: somebody looked at everything and found nothing for class c, and at the end the epoch was e.
//       fruitless(c) = n: the same, by search n.
//
// A crowd at a full heap need not look for each of its requests: a certificate tells those who come later that nothing has
// changed, and a search's number those who came before it. Cost: nothing for a free, until the heap was full once; from then
// on an addition to one of some counters by multiprocessor.
#pragma once

#include "../../../sync/warp_aggregate.hpp"

namespace warpheap::inline WARPHEAP_BACKEND {

/// What somebody looked for: a size within its class. Where there was none of it there was none of what is larger.
///
///    63              20 19        0
///   |  epoch or number  |   rest   |     a certificate, and a fruitless search; epochs modulo 2^44
struct vacancy_size {
  static constexpr u32 rest_bits = 20;

  u32 size_class = 0;
  u32 rest = 0;  ///< the size less the least of its class; in steps of a 2^20th of that where it is larger

  /// Of `units` consecutive units: rounded up by who says that there are none, down by who asks.
  WARPHEAP_HOST_DEVICE static constexpr vacancy_size of_run(u64 units, bool up) {
    u32 const c = log2_floor(units), coarse = c > rest_bits ? c - rest_bits : 0;
    u64 const rest = units - (u64{1} << c);
    return {c, static_cast<u32>((up ? rest + low_mask(coarse) : rest) >> coarse)};
  }

  WARPHEAP_HOST_DEVICE constexpr bool covered_by(u64 word) const {
    return word != 0 && (word & low_mask(rest_bits)) <= rest;
  }
};

/// View of the words of one heap's epoch and certificates; owns nothing.
template <u32 Counters, u32 Classes>
class vacancy_watch {
 public:
  static constexpr u64 bytes = 8 * (16 * (Counters + 1) + align_up(2 * Classes, 16));

  WARPHEAP_HOST_DEVICE explicit vacancy_watch(u64* words) : words_{words} {}

  /// Something has come free in a watched word (K3). Any lane alone, after it cleared the bits.
  WARPHEAP_DEVICE void raise() const {
    // release: the cleared bits happen before whoever counts this; pairs with the acquire in epoch().
    counter(simt::sm_id() & (Counters - 1)).fetch_add(1, order::release);
  }

  /// A search begins; its number (E1). All lanes of `company` call and hold the result.
  WARPHEAP_DEVICE u64 begin(u32 company) const {
    // What any of us knows to have been freed, all of us see.
    simt::sync_warp(company);
    auto const group = group_of(company);
    u64 number = 0;
    // acq_rel: what all knew to have been freed who came before us, and what we know for all who come later, each other's
    // partners (E1).
    if (group.leads) number = begun().fetch_add(1, order::acq_rel) + 1;
    return broadcast(group, number);
  }

  /// The epoch: monotonic, so that two equal ones have no raise between them. All lanes of `company` call.
  WARPHEAP_DEVICE u64 epoch(u32 company) const {
    // acquire: pairs with the release in raise().
    return sum(company, [this](u32 i) { return counter(i).load(order::acquire); });
  }

  /// The same, certain to count every raise that was made before: a read-modify-write reads the newest value.
  WARPHEAP_DEVICE u64 newest_epoch(u32 company) const {
    // acq_rel: as in epoch().
    return sum(company, [this](u32 i) { return counter(i).fetch_add(0, order::acq_rel); });
  }

  /// Whether it is known that there has been nothing for `size` since `epoch` (E2).
  WARPHEAP_DEVICE bool is_certified(vacancy_size size, u64 epoch) const {
    // acquire: pairs with the release in publish(); the raises counted for the certificate happen before us.
    u64 const seen = certificate(size.size_class).load(order::acquire);
    return size.covered_by(seen) && seen >> vacancy_size::rest_bits == stamp(epoch + 1);
  }

  /// Whether a search that began after our number was drawn found nothing for `size` (E2).
  WARPHEAP_DEVICE bool is_overtaken(vacancy_size size, u64 number) const {
    // relaxed: numbers alone; whoever believes one came before that search began (E1).
    u64 const seen = fruitless(size.size_class).load(order::relaxed);
    return size.covered_by(seen) && seen >> vacancy_size::rest_bits > number;
  }

  /// Says that search `number` found nothing for `size`, and that the epoch was `epoch` at its end (E2).
  WARPHEAP_DEVICE void publish(vacancy_size size, u64 number, u64 epoch) const {
    if (size.rest >> vacancy_size::rest_bits != 0) return;  // between two that can be told apart
    // release: what we saw happens before whoever relies on it; pairs with the acquire in is_certified().
    certificate(size.size_class).store(stamp(epoch + 1) << vacancy_size::rest_bits | size.rest, order::release);
    fruitless(size.size_class).store(stamp(number) << vacancy_size::rest_bits | size.rest, order::relaxed);
  }

 private:
  WARPHEAP_HOST_DEVICE static u64 stamp(u64 count) { return count & low_mask(64 - vacancy_size::rest_bits); }

  WARPHEAP_DEVICE atomic_ref<u64> counter(u32 i) const { return atomic_ref<u64>{words_[16 * i]}; }
  WARPHEAP_DEVICE atomic_ref<u64> begun() const { return atomic_ref<u64>{words_[16 * Counters]}; }
  WARPHEAP_DEVICE atomic_ref<u64> certificate(u32 c) const { return atomic_ref<u64>{words_[16 * (Counters + 1) + c]}; }
  WARPHEAP_DEVICE atomic_ref<u64> fruitless(u32 c) const {
    return atomic_ref<u64>{words_[16 * (Counters + 1) + Classes + c]};
  }

  /// The sum over all counters, read by the lanes side by side; what each of them acquired, all have.
  template <class Read>
  WARPHEAP_DEVICE static u64 sum(u32 company, Read read) {
    simt::sync_warp(company);
    auto const group = group_of(company);
    u64 mine = 0, all = 0;
    WARPHEAP_NO_UNROLL
    for (u32 i = group.rank; i < Counters; i += group.size) mine += read(i);
    WARPHEAP_NO_UNROLL
    for (u32 rest = company; rest; rest &= rest - 1) all += simt::shuffle(company, mine, lowest_bit(rest));
    simt::sync_warp(company);
    return all;
  }

  u64* words_;
};

}  // namespace warpheap::inline WARPHEAP_BACKEND
