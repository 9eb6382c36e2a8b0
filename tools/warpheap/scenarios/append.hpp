// SPDX-License-Identifier: Apache-2.0
// append: `threads` threads add an element of 16 bytes each to one list, and to many lists. Half of
// the elements are those of every 256th list, so that the fullest has about 128 times the mean.
//
//   append_buffer  the container, with pages of the default allocator
//   two_passes     a kernel counts, an exclusive scan says where each list begins, a second kernel
//                  writes. The lists lie in one piece
//   fixed_bound    an array for each list, with places for the elements of the fullest
//
//   first    empty lists that have no memory yet. The time has the allocations: pages, from a heap
//            that is there, or the array, from the device
//   steady   the same again: the lists are cleared and filled, in the memory that they have
//   read     all elements, by 256 threads a list or more
//   destroy  the memory is given back
//
// `memory_bytes` is everything that the lists take. Each read is checked: it must find each element
// in its list, unchanged, once.
#pragma once

#include <numeric>
#include <utility>

#include "measure/exclusive_scan.hpp"
#include "scenario.hpp"
#include "warpheap/container/append_buffer.hpp"
#include "warpheap/util/random.hpp"
#include "warpheap/warpheap.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

/// What a thread appends, and what a read makes of it: a sum that no other element, and no other
/// list of it, has.
struct appended {
  u64 number, check;

  WARPHEAP_HOST_DEVICE static appended of(u64 number) { return {number, mix(number)}; }
  WARPHEAP_HOST_DEVICE u64 sum_in(u64 list) const { return mix(number + 3 * check) * (2 * list + 1); }
};

/// The lists that elements go to.
struct list_choice {
  u32 lists;
  std::vector<u32> of = {};  ///< by element

  list_choice(u64 elements, u32 count) : lists{count}, of(elements) {
    u64 const large = count / 256 + (count < 256), small = count - large, half = small ? elements / 2 : elements;
    for (u64 i = 0; i < elements; ++i)
      of[i] = static_cast<u32>(i < half ? i * large / half : large + (i - half) * small / (elements - half));
  }

  u64 sum() const {
    u64 all = 0;
    for (u64 i = 0; i < of.size(); ++i) all += appended::of(i).sum_in(of[i]);
    return all;
  }
  u64 largest() const {
    std::vector<u64> sizes(lists);
    for (u32 const list : of) ++sizes[list];
    return *std::max_element(sizes.begin(), sizes.end());
  }
};

/// Kernels: thread i has element i.
struct append_once {
  template <class Buffer>
  WARPHEAP_DEVICE void operator()(heap_ref heap, Buffer* buffers, u32 const* lists, u64 elements) const {
    u64 const i = global_thread_index();
    if (i < elements) buffers[lists[i]].append(heap, appended::of(i));
  }
};
struct count_element {
  WARPHEAP_DEVICE void operator()(u64* counts, u32 const* lists, u64 elements) const {
    u64 const i = global_thread_index();
    if (i < elements) aggregated_fetch_add(simt::active_mask(), counts[lists[i]]);
  }
};

/// Lists in arrays: each begins where `begins` says, or has `bound` places.
struct array_lists {
  appended* elements;
  u64 const* begins;
  u64 bound;
  u64* counts;

  WARPHEAP_DEVICE appended* of(u32 list) const { return elements + (begins ? begins[list] : list * bound); }
  WARPHEAP_DEVICE void append(u32 list, appended const& value) const {
    u64 const place = aggregated_fetch_add(simt::active_mask(), counts[list]);
    if (place < bound) of(list)[place] = value;
  }
  template <class Visit>
  WARPHEAP_DEVICE void for_each(u32 list, u64 first, u64 stride, Visit visit) const {
    appended const* const mine = of(list);
    for (u64 const end = counts[list]; first < end; first += stride) visit(mine[first]);
  }
};
struct fill_once {
  WARPHEAP_DEVICE void operator()(array_lists to, u32 const* lists, u64 elements) const {
    u64 const i = global_thread_index();
    if (i < elements) to.append(lists[i], appended::of(i));
  }
};

/// Append buffers.
struct paged_lists {
  append_buffer<appended> const* buffers;

  template <class Visit>
  WARPHEAP_DEVICE void for_each(u32 list, u64 first, u64 stride, Visit visit) const {
    buffers[list].for_each(first, stride, visit);
  }
};

/// Kernel: `blocks_a_list` thread blocks read a list; each thread writes what it has added up.
struct read_lists {
  template <class Lists>
  WARPHEAP_DEVICE void operator()(Lists lists, u32 blocks_a_list, u64* sums) const {
    u32 const list = simt::block_index() / blocks_a_list, threads = simt::block_dim();
    u64 const first = u64{simt::block_index() % blocks_a_list} * threads + simt::thread_index();
    u64 sum = 0;
    lists.for_each(list, first, u64{blocks_a_list} * threads, [&](appended const& each) { sum += each.sum_in(list); });
    sums[global_thread_index()] = sum;
  }
};

/// What all subjects have: the elements' lists, and the sums of a read.
class appending_subject {
 public:
  explicit appending_subject(list_choice const& choice)
      : count_{choice.lists},
        elements_{choice.of.size()},
        lists_{choice.of},
        blocks_a_list_{static_cast<u32>(std::max<u64>(elements_ / count_ / 256, 1))},
        sums_(u64{count_} * blocks_a_list_ * 256) {}

  /// The sum of the last read.
  u64 sum() const {
    auto const of_threads = sums_.to_host();
    return std::accumulate(of_threads.begin(), of_threads.end(), u64{0});
  }

 protected:
  template <class Lists>
  void read_all(Lists lists) const {
    launch({count_ * blocks_a_list_, 256}, read_lists{}, lists, blocks_a_list_, sums_.data());
  }

  u32 count_;
  u64 elements_;
  device_buffer<u32> lists_;

 private:
  u32 blocks_a_list_;
  device_buffer<u64> sums_;
};

class append_buffer_subject : public appending_subject {
 public:
  static constexpr char const* name = "append_buffer";

  explicit append_buffer_subject(list_choice const& choice)
      : appending_subject{choice}, heap_{pool_bytes(elements_)}, buffers_(count_) {}

  void first() { append(); }
  void steady() {
    clear(buffers_.data(), count_);
    append();
  }
  void read() { read_all(paged_lists{buffers_.data()}); }
  void destroy() { warpheap::destroy(heap_.ref(), buffers_.data(), count_); }
  u64 memory_bytes() const { return buffers_.size_bytes() + heap_.statistics().live_bytes; }
  std::string fault() const { return fault_of_emptied(heap_); }

 private:
  /// More than enough.
  static u64 pool_bytes(u64 elements) { return (u64{64} << 20) + 8 * elements * sizeof(appended); }

  void append() { launch(shape_for(elements_), append_once{}, heap_.ref(), buffers_.data(), lists_.data(), elements_); }

  heap heap_;
  device_buffer<append_buffer<appended>> buffers_;
};

/// Lists in one array from the device.
class array_subject : public appending_subject {
 public:
  explicit array_subject(list_choice const& choice) : appending_subject{choice}, counts_(count_) {}
  array_subject(array_subject const&) = delete;
  array_subject& operator=(array_subject const&) = delete;
  ~array_subject() { destroy(); }

  void read() { read_all(lists_now_); }
  void destroy() { backend::deallocate_bytes(std::exchange(array_, nullptr)); }
  u64 memory_bytes() const { return places_ * sizeof(appended) + counts_.size_bytes(); }
  static std::string fault() { return {}; }

 protected:
  void allocate(u64 places) {
    places_ = places;
    array_ = static_cast<appended*>(backend::allocate_bytes(places * sizeof(appended)));
  }
  void fill(u64 const* begins, u64 bound) {
    backend::fill_bytes(counts_.data(), 0, counts_.size_bytes());
    lists_now_ = {array_, begins, bound, counts_.data()};
    launch(shape_for(elements_), fill_once{}, lists_now_, lists_.data(), elements_);
  }

 private:
  appended* array_ = nullptr;
  u64 places_ = 0;
  device_buffer<u64> counts_;
  array_lists lists_now_{};
};

class two_passes_subject : public array_subject {
 public:
  static constexpr char const* name = "two_passes";

  explicit two_passes_subject(list_choice const& choice)
      : array_subject{choice}, scan_{count_ + 1}, wanted_(count_ + 1), begins_(count_ + 1) {}

  void first() {
    count_and_scan();
    allocate(begins_[count_]);
    fill(begins_.data(), elements_);
  }
  void steady() {
    count_and_scan();
    fill(begins_.data(), elements_);
  }
  u64 memory_bytes() const { return array_subject::memory_bytes() + wanted_.size_bytes() + begins_.size_bytes(); }

 private:
  void count_and_scan() {
    backend::fill_bytes(wanted_.data(), 0, wanted_.size_bytes());
    launch(shape_for(elements_), count_element{}, wanted_.data(), lists_.data(), elements_);
    scan_.run(wanted_.data(), begins_.data());
  }

  exclusive_scan scan_;
  device_buffer<u64> wanted_, begins_;
};

class fixed_bound_subject : public array_subject {
 public:
  static constexpr char const* name = "fixed_bound";

  explicit fixed_bound_subject(list_choice const& choice) : array_subject{choice}, bound_{choice.largest()} {}

  void first() {
    allocate(count_ * bound_);
    steady();
  }
  void steady() { fill(nullptr, bound_); }

 private:
  u64 bound_;
};

/// Rows of a subject: what it does, and what is wrong with it.
template <class Subject>
class appending_rows {
 public:
  appending_rows(Subject& subject, list_choice const& choice, u32 repeat)
      : subject_{subject}, sum_{choice.sum()}, repeat_{repeat} {
    result row{.scenario = "append", .primitive = Subject::name};
    row.parameters = {{"threads", choice.of.size()},
                      {"lists", choice.lists},
                      {"largest_list", choice.largest()},
                      {"bytes", sizeof(appended)}};
    row.operations = static_cast<double>(choice.of.size());
    for (auto const* operation : {"first", "steady", "read", "destroy"}) {
      row.operation = operation;
      rows_.push_back(row);
    }
  }

  std::vector<result> measure() {
    for (u32 round = 0; round <= repeat_ && fault_.empty(); ++round) {
      time(round, rows_[0], &Subject::first);
      subject_.read();
      check_read();
      time(round, rows_[1], &Subject::steady);
      time(round, rows_[2], &Subject::read);
      check_read();
      memory_bytes_ = subject_.memory_bytes();
      time(round, rows_[3], &Subject::destroy);
      if (fault_.empty()) fault_ = subject_.fault();
    }
    for (auto& row : rows_) {
      row.figures = {{"memory_bytes", static_cast<double>(memory_bytes_)}};
      row.fault = fault_;
    }
    return rows_;
  }

 private:
  /// The first round is for warming up.
  template <class Work>
  void time(u32 round, result& row, Work work) {
    auto const us = watch_.microseconds([&] { (subject_.*work)(); });
    if (round > 0) row.times_us.push_back(us);
  }
  void check_read() {
    if (subject_.sum() != sum_) fault_ = "a list has other elements than those appended to it";
  }

  Subject& subject_;
  u64 sum_;
  u32 repeat_;
  stopwatch watch_;
  std::string fault_;
  u64 memory_bytes_ = 0;
  std::vector<result> rows_;
};

/// Measures the subjects one after the other, on one list and on many.
inline std::vector<result> append_rows(request const& asked) {
  u64 const elements = default_for_backend(asked[options::threads], u64{1} << 20, u64{1} << 13);
  std::vector<result> rows;
  u64 done = 0;
  auto const measured = [&]<class Subject>(Subject&& subject, list_choice const& choice) {
    auto const made = appending_rows<Subject>{subject, choice, asked.repeat}.measure();
    rows.insert(rows.end(), made.begin(), made.end());
    return rows.back().checked();
  };
  auto const goes_on = [&] { return asked.proceed("append", done++, 6); };
  for (u32 const lists : {1u, on_gpu ? 4096u : 64u}) {
    list_choice const choice{elements, lists};
    bool const sound = goes_on() && measured(append_buffer_subject{choice}, choice) && goes_on() &&
                       measured(two_passes_subject{choice}, choice) && goes_on() &&
                       measured(fixed_bound_subject{choice}, choice);
    if (!sound) break;
  }
  return rows;
}

inline scenario about_append() {
  return {
      .name = "append",
      .text = "elements appended to one list and to many: append_buffer, two passes with a scan, and fixed bounds",
      .kind = scenario_kind::of_primitives,
      .uses = {{options::threads, "1048576"}},
      .ignores = {"--pool"},
      .baseline = append_rows,
  };
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
