// SPDX-License-Identifier: Apache-2.0
// rcu_delegation: what is gained when a lane that must wait for readers may leave that to another
// lane. Threads search a doubly linked list for a tag each, inside a read section of SRCU. The
// thread that finds its tag removes the element, under the mutexes of the element and its
// neighbour, so that removals do not queue before the barrier is even asked. Then it retires the
// element. It waits for the readers itself, as SRCU has it (`classical_barrier`), or for others'
// reclamations too (`barrier`); or it leaves when another thread is about to wait
// (`conditional_barrier`). Every tag of the list is searched for by one thread, so
// there are as many writers as elements, and the other threads only read. Threads: `workers`; one
// in `readers_per_writer` threads is a writer.
//
// A callback poisons the element, so that a reader which is still there would find out. Checked: no
// thread met a poisoned element, every element was removed and reclaimed once, the list is empty
// and SRCU at rest.
// Source: Gelado and Garland 2019, section 5.2 and figure 6.
#pragma once

#include <numeric>

#include "primitives.hpp"
#include "scenario.hpp"
#include "warpheap/sync/srcu.hpp"
#include "warpheap/util/random.hpp"

namespace warpheap::bench::options {

inline constexpr option<std::vector<u64>> readers_per_writer{
    {.name = "--readers-per-writer",
     .rank = 80,
     .type = "N[,N...]",
     .text = "One in N threads removes an element (default 1,4,16,64,256,1024)",
     .parse = counts_of<most_workers>}};

}  // namespace warpheap::bench::options

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND {

/// An element of the list; links are indices. The node comes first: a callback is given its
/// address.
struct tagged_element {
  srcu_node node;
  u32 next, previous;
  u32 tag;
  u32 mutex;      // of `next`, and of the next element's `previous`
  u32 reclaimed;  // times

  static constexpr u32 poison = ~0u;
};

/// What the threads share. Element `size`, one past the last, is the head of the circle.
struct tagged_list {
  srcu_state state;
  u32 late;  // looks at a poisoned element
  tagged_element* elements;
  u32 size;
};

/// What became of a thread.
enum class errand : u32 { not_run, found_nothing, waited, delegated };

/// Ways to wait for the readers. wait() tells whether the caller waited, or left it to another
/// thread.
struct full_barrier {
  static constexpr char const* name = "barrier";
  template <class Reclaim>
  WARPHEAP_DEVICE static bool wait(srcu guard, Reclaim reclaim) {
    guard.barrier(reclaim);
    return true;
  }
};
struct classical_barrier {
  static constexpr char const* name = "classical_barrier";
  template <class Reclaim>
  WARPHEAP_DEVICE static bool wait(srcu guard, Reclaim reclaim) {
    guard.classical_barrier(reclaim);
    return true;
  }
};
struct delegated_barrier {
  static constexpr char const* name = "conditional_barrier";
  template <class Reclaim>
  WARPHEAP_DEVICE static bool wait(srcu guard, Reclaim reclaim) {
    return guard.conditional_barrier(reclaim);
  }
};

struct poison_element {
  WARPHEAP_DEVICE void operator()(srcu_node& node) const {
    auto& element = reinterpret_cast<tagged_element&>(node);
    // relaxed: SRCU orders them, or a reader is late and may see them.
    atomic_ref<u32>{element.tag}.store(tagged_element::poison, order::relaxed);
    atomic_ref<u32>{element.next}.store(tagged_element::poison, order::relaxed);
    atomic_ref<u32>{element.reclaimed}.fetch_add(1, order::relaxed);
  }
};

/// Kernel: thread i searches for wanted[i], and removes what it finds.
template <class Barrier>
struct search_and_remove {
  WARPHEAP_DEVICE void operator()(tagged_list* list, u32 const* wanted, u32* errands, u64 threads) const {
    u64 const i = global_thread_index();
    if (i >= threads) return;
    srcu const guard{list->state};
    u32 const section = guard.read_lock();
    u32 const found = find(list, wanted[i]);
    // Inside the section: a neighbour whose mutex we wait for may have been removed by then.
    if (found < list->size) unlink(list, found);
    guard.read_unlock(section);
    auto became = errand::found_nothing;
    if (found < list->size) {
      guard.retire(list->elements[found].node);
      became = Barrier::wait(guard, poison_element{}) ? errand::waited : errand::delegated;
    }
    errands[i] = static_cast<u32>(became);
  }

 private:
  /// The element with that tag; the head if there is none. In a read section.
  WARPHEAP_DEVICE static u32 find(tagged_list* list, u32 tag) {
    u32 at = list->size;
    for (;;) {
      // relaxed: nothing is inserted while this runs, and read_lock() has acquired what was
      // unlinked.
      at = atomic_ref<u32>{list->elements[at].next}.load(order::relaxed);
      if (at == list->size) return at;
      u32 const here =
          at < list->size ? atomic_ref<u32>{list->elements[at].tag}.load(order::relaxed) : tagged_element::poison;
      if (here == tag) return at;
      if (here != tagged_element::poison) continue;
      atomic_ref<u32>{list->late}.fetch_add(1, order::relaxed);
      return list->size;
    }
  }

  /// Removes an element that no other thread removes. Mutexes are taken in the list's order, from
  /// the head on, so no threads wait in a circle.
  WARPHEAP_DEVICE static void unlink(tagged_list* list, u32 element) {
    auto const previous_of = [&](u32 of) { return atomic_ref<u32>{list->elements[of].previous}; };
    auto const next_of = [&](u32 of) { return atomic_ref<u32>{list->elements[of].next}; };
    for (;;) {
      // relaxed, all of them: the mutexes order writers, and SRCU what readers may see.
      u32 const previous = previous_of(element).load(order::relaxed);
      scoped_lock const before{spin_mutex{list->elements[previous].mutex}};
      // it was removed meanwhile
      if (previous_of(element).load(order::relaxed) != previous) continue;
      scoped_lock const own{spin_mutex{list->elements[element].mutex}};
      u32 const next = next_of(element).load(order::relaxed);
      next_of(previous).store(next, order::relaxed);
      previous_of(next).store(previous, order::relaxed);
      return;
    }
  }
};

/// A random order of 0 … count - 1.
inline std::vector<u32> shuffled(u32 count, u64 seed) {
  std::vector<u32> all(count);
  std::iota(all.begin(), all.end(), 0u);
  random_sequence random{seed};
  for (u32 i = count; i > 1; --i) std::swap(all[i - 1], all[random.below(i)]);
  return all;
}

/// Elements 0 … size - 1, tagged by their index, in a random order around the head.
inline std::vector<tagged_element> random_list(u32 size, u64 seed) {
  std::vector<tagged_element> elements(size + 1);
  auto order = shuffled(size, seed);
  order.push_back(size);
  for (u32 i = 0; i <= size; ++i) {
    u32 const from = order[i], to = order[i == size ? 0 : i + 1];
    elements[from].next = to;
    elements[to].previous = from;
    elements[from].tag = from;
  }
  return elements;
}

/// What is wrong after a run; empty if nothing is.
inline std::string fault_of(tagged_list const& list, std::vector<tagged_element> const& elements,
                            std::vector<u32> const& errands) {
  if (list.late) return std::to_string(list.late) + " readers met an element that was reclaimed";
  u64 removed = 0, ran = 0;
  for (u32 const each : errands) {
    ran += each != static_cast<u32>(errand::not_run);
    removed += each == static_cast<u32>(errand::waited) || each == static_cast<u32>(errand::delegated);
  }
  if (ran != errands.size()) return "a thread did not finish";
  if (removed != list.size) return std::to_string(removed) + " elements removed of " + std::to_string(list.size);
  for (u32 i = 0; i < list.size; ++i)
    if (elements[i].reclaimed != 1)
      return "an element was reclaimed " + std::to_string(elements[i].reclaimed) + " times";
  if (elements[list.size].next != list.size) return "the list is not empty";
  if (!srcu_word::check_at_rest(list.state)) return "SRCU is not at rest";
  return {};
}

/// One launch, and its check. The figure is the share of writers that left the wait to another
/// thread.
template <class Barrier>
run_outcome run_removal_once(launch_shape shape, u64 threads, u32 writers, u64 seed) {
  device_buffer<tagged_element> const elements{random_list(writers, seed)};
  device_buffer<tagged_list> const list{
      std::vector<tagged_list>{{.state = {}, .late = 0, .elements = elements.data(), .size = writers}}};
  device_buffer<u32> const wanted{shuffled(static_cast<u32>(threads), mix(seed))};
  device_buffer<u32> const errands(threads);
  run_outcome made;
  made.microseconds = stopwatch{}.microseconds(
      [&] { launch(shape, search_and_remove<Barrier>{}, list.data(), wanted.data(), errands.data(), threads); });
  auto const each = errands.to_host();
  made.fault = fault_of(list[0], elements.to_host(), each);
  auto const delegated = std::count(each.begin(), each.end(), static_cast<u32>(errand::delegated));
  made.figure = static_cast<double>(delegated) / writers;
  return made;
}

/// Rows of three kinds of barrier. The second and third have `ratio`, their speed over the first's.
template <class First = full_barrier, class Second = classical_barrier, class Third = delegated_barrier>
std::vector<result> rcu_delegation(request const& asked) {
  auto const numbers =
      asked.get(options::workers, powers(64, default_for_backend(0, u64{1} << 14, 512), on_gpu ? 4 : 8));
  auto const shares = asked.get(options::readers_per_writer, {1, 4, 16, 64, 256, 1024});
  std::vector<result> rows;
  for (u64 const threads : numbers)
    for (u64 const share : shares) {
      if (!asked.proceed("rcu_delegation", rows.size() / 3, numbers.size() * shares.size())) return rows;
      auto const writers = static_cast<u32>(std::max<u64>(threads / share, 1));
      auto const shapes = shapes_of(threads, asked);
      auto const laps = take_turns(
          shapes, asked.repeat,
          [&](launch_shape shape) { return run_removal_once<First>(shape, threads, writers, asked.seed); },
          [&](launch_shape shape) { return run_removal_once<Second>(shape, threads, writers, asked.seed); },
          [&](launch_shape shape) { return run_removal_once<Third>(shape, threads, writers, asked.seed); });
      result row{.scenario = "rcu_delegation", .primitive = "srcu", .operation = First::name};
      row.parameters = {{"threads", threads}, {"writers", writers}};
      row.operations = static_cast<double>(threads);
      add_thread_blocks(row, shapes);
      std::array<result, 3> subjects{row, row, row};
      subjects[1].operation = Second::name;
      subjects[2].operation = Third::name;
      if (!append_laps(rows, subjects, "delegated_share", laps)) return rows;
    }
  return rows;
}

inline scenario about_rcu_delegation() {
  return {
      .name = "rcu_delegation",
      .text =
          "threads remove elements of a list that others search: every barrier a wait of its own, against barriers "
          "that are delegated",
      .kind = scenario_kind::of_primitives,
      .rank = 20,
      .uses = {{options::workers, "64, 256, ... 16384"},
               {options::thread_blocks, "means over the list; default 256"},
               {options::readers_per_writer}},
      .ignores = {"--pool"},
      .baseline = rcu_delegation<>,
  };
}

}}  // namespace warpheap::bench::WARPHEAP_BACKEND
