// SPDX-License-Identifier: Apache-2.0
// A heap that reports, while kernels run, where its live blocks were allocated and which calls it
// refused: the heap profile of an otherwise unchanged program.
//
//   warpheap::profiled<warpheap::heap> heap{64_MiB};       in place of warpheap::heap
//   kernel<<<grid, block>>>(heap.ref());                   profiled<heap>::ref_type
//   for (auto const& holder : heap.holders()) std::puts(holder.describe().c_str());
//   std::puts(heap.refusals().describe().c_str());
//
// About one block in 1,024 is a sample, which keeps the place of its allocation in the source;
// counts of blocks and bytes are estimates from these. Refused calls are all counted, and the first
// one is kept. docs/guide/finding_errors.md.
// Source: sampling by allocation as in tcmalloc's heap profiler; the block's address decides,
// instead of a count.
#pragma once

#include "profile/profile_log.hpp"
#include "trace/traced_ref.hpp"
#include "upstream_heap.hpp"

#if !defined(__CUDACC_RTC__)

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../heap/service_thread.hpp"
#include "../platform/device_buffer.hpp"
#include "device_texts.hpp"

namespace warpheap { inline namespace WARPHEAP_BACKEND {

/// How often a profiled heap samples, and how many samples it keeps.
struct profiled_config {
  u32 one_in_log2 = 10;  ///< a sample for about 2^this blocks; 0: for every block
  u32 places = 1 << 15;  ///< for samples of live blocks, 16 bytes each; a power of two from 16 up
};

/// Live blocks that were allocated at one place, by estimate.
struct holder {
  std::string file;   ///< of the calls that made them; empty if that is unknown
  u32 line = 0;       ///< 0: `file` is a name that was given
  double blocks = 0;  ///< as many as the samples stand for
  double bytes = 0;   ///< requested for them
  u64 samples = 0;    ///< sampled blocks; from few of them estimates are rough

  /// All of it in a line.
  std::string describe() const {
    return std::to_string(static_cast<u64>(bytes)) + " bytes in " + std::to_string(static_cast<u64>(blocks)) +
           " blocks, by " + std::to_string(samples) + (samples == 1 ? " sample: " : " samples: ") +
           (file.empty() ? "an unknown place" : file) + (line ? ":" + std::to_string(line) : "");
  }
};

/// A refused call.
struct refused_call {
  u64 bytes = 0;         ///< requested
  std::string file;      ///< of the call
  u32 line = 0;          ///< 0: `file` is a name that was given
  u32 thread_block = 0;  ///< of the thread that called
  u32 thread = 0;        ///< in its thread block
};

/// Calls that returned nullptr.
struct refusal_report {
  u64 calls_of[64] = {};              ///< by log2 of the bytes requested, rounded down
  std::optional<refused_call> first;  ///< none yet, or still being written

  /// How many.
  u64 calls() const {
    u64 sum = 0;
    for (u64 const each : calls_of) sum += each;
    return sum;
  }
  /// All of it in a line.
  std::string describe() const {
    auto text = std::to_string(calls()) + " calls refused:";
    for (u32 i = 0; i < 64; ++i)
      if (calls_of[i] != 0)
        text += " " + std::to_string(calls_of[i]) + " of " + std::to_string(u64{1} << i) + " bytes or more,";
    if (calls() != 0) text.back() = first ? ';' : '.';
    if (first)
      text += " first " + std::to_string(first->bytes) + " bytes at " + first->file + ":" +
              std::to_string(first->line) + " by thread block " + std::to_string(first->thread_block) + " thread " +
              std::to_string(first->thread);
    return text;
  }
};

namespace profile_parts {

/// Kernel: copies the words to where the host reads them.
struct tell_profile {
  WARPHEAP_DEVICE void operator()(u64* words, u32 count, u64* shared) const {
    for (u64 i = global_thread_index(); i < count; i += u64{simt::grid_dim()} * simt::block_dim()) {
      // acquire: the first refusal behind `is_told`; pairs with the release in profile_log.
      u64 const seen = atomic_ref<u64>{words[i]}.load(order::acquire);
      atomic_ref<u64, scope::system>{shared[i]}.store(seen, order::relaxed);
    }
  }
};

}  // namespace profile_parts

/// A heap around another one, `Heap`, with its constructors and members. holders() and refusals()
/// launch small kernels in their own stream and wait only for those: call them at any time, from
/// one host thread at a time.
template <class Heap, profiled_config Config = profiled_config{}>
class profiled : public upstream_heap<Heap> {
  using base = upstream_heap<Heap>;
  using base::upstream_;
  using log_type = profile_log<Config.one_in_log2, Config.places>;

 public:
  /// The reference for kernels.
  using ref_type = traced_ref<typename Heap::ref_type, log_type>;
  /// The settings.
  static constexpr profiled_config config = Config;

  /// Throws what the constructor of `Heap` throws, and out_of_memory if there is no memory for the
  /// samples.
  template <class... Arguments>
    requires std::constructible_from<Heap, Arguments...>
  explicit profiled(Arguments&&... arguments) : base(std::forward<Arguments>(arguments)...) {}

  /// What kernels take, by value.
  ref_type ref() const noexcept { return ref_type{upstream_.ref(), log_type{words_.data(), flag_.device()}}; }

  /// Frees everything at once, in order on stream `on`, and discards samples and refusals.
  void reset(stream_view on = {}) {
    upstream_.reset(on);
    backend::fill_bytes(words_.data(), 0, words_.size_bytes(), on);
    flag_.store(0, 0);
  }

  /// The places that hold memory now, by estimate: the most bytes first. Bytes are rounded to the
  /// middle of a power of two and the next.
  std::vector<holder> holders() const {
    std::map<u64, holder> found;
    device_texts texts;
    u64 taken = 0;
    auto const words = read();
    for (u32 i = profile_parts::header_words; i < log_type::words; i += profile_parts::sample_words) {
      if (words[i] == 0) continue;
      ++taken;
      texts.want(site_of(words[i + 1]));
      auto& group = found[words[i + 1]];
      ++group.samples;
      group.bytes += 1.5 * static_cast<double>(u64{1} << (words[i] >> 12 & 0xff));
    }
    texts.fetch(own_);
    double const each = blocks_of_sample(taken);
    std::vector<holder> all;
    for (auto& [place, group] : found) {
      group.file = texts.of(site_of(place));
      group.line = site_of(place).line;
      group.blocks = each * static_cast<double>(group.samples);
      group.bytes *= each;
      all.push_back(std::move(group));
    }
    std::sort(all.begin(), all.end(), [](auto const& a, auto const& b) { return a.bytes > b.bytes; });
    return all;
  }

  /// The calls that were refused since the heap was made or reset.
  refusal_report refusals() const {
    auto const words = read();
    refusal_report told;
    std::copy_n(words.begin(), 64, told.calls_of);
    auto const of = [&](profile_parts::first_word which) { return words[static_cast<u32>(which)]; };
    if (of(profile_parts::first_word::is_told) == 0) return told;
    source_site const site{reinterpret_cast<char const*>(of(profile_parts::first_word::file)),
                           static_cast<u32>(of(profile_parts::first_word::line))};
    device_texts texts;
    texts.want(site);
    texts.fetch(own_);
    u64 const place = of(profile_parts::first_word::place);
    told.first = refused_call{of(profile_parts::first_word::bytes), texts.of(site), site.line,
                              static_cast<u32>(place >> 32), static_cast<u32>(place)};
    return told;
  }

  /// Whether a call was refused since the heap was made or reset; reads one word of host memory.
  bool has_refused() const { return flag_.load(0) != 0; }

  /// Metadata bytes of `Heap`, and of the samples.
  size_t metadata_bytes() const { return upstream_.metadata_bytes() + words_.size_bytes(); }
  /// "profiled" and the description of `Heap`.
  std::string info(std::string const& separator = "; ") const requires requires(Heap const heap) { heap.info(); }
  { return "profiled" + separator + upstream_.info(separator); }

 private:
  static source_site site_of(u64 word) {
    return {reinterpret_cast<char const*>(word >> 16), static_cast<u32>(word & 0xffff)};
  }

  /// How many live blocks a sample stands for, if `taken` places have one: those replaced by others
  /// count too, as many as fall on a taken place by chance.
  static double blocks_of_sample(u64 taken) {
    double const places = Config.places, share = static_cast<double>(taken) / places;
    double const replaced = taken == 0 || share >= 1 ? 1 : -std::log(1 - share) / share;
    return replaced * static_cast<double>(u64{1} << Config.one_in_log2);
  }

  std::vector<u64> read() const {
    launch(own_, {8, 256}, profile_parts::tell_profile{}, words_.data(), log_type::words, shared_.device());
    synchronize(own_);
    std::vector<u64> words(log_type::words);
    for (u32 i = 0; i < log_type::words; ++i) words[i] = shared_.load(i);
    return words;
  }

  device_buffer<u64> words_{log_type::words};
  backend::shared_words shared_{log_type::words};
  backend::shared_words flag_{1};
  stream own_ = stream::apart();
};

/// Calls `told(refusals)` once, on its own thread, soon after a profiled heap has refused its first
/// call, while the kernel continues. The heap must outlive it, and not be moved.
class refusal_watch {
 public:
  template <class Heap, class Told>
  refusal_watch(Heap const& watched, Told told)
      : thread_{[this, &watched, told = std::move(told), device = backend::current_device()] {
          backend::device_scope const on{device};
          while (!stops_ && !watched.has_refused()) std::this_thread::sleep_for(std::chrono::microseconds{100});
          if (watched.has_refused()) told(watched.refusals());
        }} {}
  refusal_watch(refusal_watch const&) = delete;
  refusal_watch& operator=(refusal_watch const&) = delete;
  /// Ends the thread, which first reports a refusal that it has not seen yet.
  ~refusal_watch() { stops_ = true; }

 private:
  std::atomic<bool> stops_{false};
  service_thread thread_;
};

}}  // namespace warpheap::WARPHEAP_BACKEND

#endif
