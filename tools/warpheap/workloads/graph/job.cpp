// SPDX-License-Identifier: Apache-2.0
#include "job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "random_order.hpp"
#include "reference.hpp"
#include "search.hpp"
#include "warpheap/util/random.hpp"

namespace warpheap::tool {

namespace {

class graph_run {
 public:
  graph_run(std::unique_ptr<dynamic_graph> dynamic, edge_list const& graph, entry_keys const& keys,
            graph_settings const& settings, bench::progress const& report)
      : graph_{graph},
        keys_{keys},
        settings_{settings},
        report_{report},
        random_{settings.seed},
        dynamic_{std::move(dynamic)} {
    batches_ = (graph_.edges.size() + settings.batch_size - 1) / settings.batch_size + 2 * u64{settings.rounds};
    outcome_.allocator = settings.allocator;
  }

  graph_outcome run() {
    load();
    for (u32 round = 0; round < settings_.rounds; ++round) exchange_sample();
    note(reference_.difference(dynamic_->read(), work("checking", 1)));
    note(dynamic_->fault());
    if (settings_.search_from) search_from(*settings_.search_from);
    outcome_.counts = dynamic_->counts();
    outcome_.members = dynamic_->members();
    outcome_.edges = outcome_.counts.inserted - outcome_.counts.erased;
    free_everything();
    return outcome_;
  }

 private:
  void load() {
    insert_in_batches();
    reference_.insert(keys_, work("reference", 1));
    compare_counts("loading");
  }

  /// All edges, in a random order.
  void insert_in_batches() {
    auto shuffling = work("shuffling", random_order_passes);
    edge_list const shuffled{graph_.vertices, graph_.directed,
                             random_order(graph_.edges, graph_.edges.size(), random_seed(), shuffling)};
    u64 const edges = shuffled.edges.size();
    for (u64 first = 0; first < edges; first += settings_.batch_size) {
      report();
      dynamic_->insert(group_by_vertex(keys_of(shuffled, first, std::min<u64>(first + settings_.batch_size, edges))));
      note_peak();
    }
  }

  /// One round: erases a random sample of the edges, and inserts it again or other edges in its
  /// place.
  void exchange_sample() {
    edge_list sample{graph_.vertices, graph_.directed, {}};
    {
      auto const there = edges_there();
      auto sampling = parallel_work{};
      sample.edges = random_order(there, std::min<u64>(settings_.batch_size, there.size()), random_seed(), sampling);
    }
    erase(keys_of(sample));
    if (settings_.replace)
      for (auto& replaced : sample.edges) replaced = random_edge();
    insert(keys_of(sample));
  }

  /// The reference's edges; an undirected one goes from the lower end to the higher.
  edges_array edges_there() const {
    auto const& parts = reference_.parts();
    auto const is_edge = [&](u64 key) { return graph_.directed || key >> 32 <= static_cast<u32>(key); };
    std::vector<u64> edges_before(parts.size() + 1);
    parallel_work{}.pass(parts.size(), [&](u64 i) {
      edges_before[i + 1] = static_cast<u64>(std::count_if(parts[i].begin(), parts[i].end(), is_edge));
    });
    std::partial_sum(edges_before.begin(), edges_before.end(), edges_before.begin());
    edges_array there(edges_before.back());
    parallel_work{}.pass(parts.size(), [&](u64 i) {
      auto* next = there.data() + edges_before[i];
      for (u64 const key : parts[i])
        if (is_edge(key)) *next++ = {static_cast<u32>(key >> 32), static_cast<u32>(key)};
    });
    return there;
  }

  /// An edge between two different vertices, if there are two.
  edge random_edge() {
    auto const from = static_cast<u32>(below(graph_.vertices));
    auto const to = u64{from} + (graph_.vertices > 1 ? 1 + below(graph_.vertices - 1) : 0);
    return {from, static_cast<u32>(to % graph_.vertices)};
  }

  void insert(entry_keys const& keys) {
    report();
    dynamic_->insert(group_by_vertex(keys));
    reference_.insert(keys);
    note_peak();
    compare_counts("an insertion");
  }

  void erase(entry_keys const& keys) {
    report();
    dynamic_->erase(group_by_vertex(keys));
    reference_.erase(keys);
    note_peak();
    compare_counts("a deletion");
  }

  void search_from(u32 source) {
    auto const wanted = search(reference_, graph_.vertices, source);
    auto const made = dynamic_->search(source);
    note(difference_of_levels(wanted, made.of_vertex));
    outcome_.search = {source, wanted.vertices, wanted.entries, wanted.depth, made.seconds};
  }

  void compare_counts(char const* after) {
    auto const now = dynamic_->counts();
    if (now.lost)
      note(fmt::format("{} adjacency entries were lost: the heap of {} bytes had no memory for them", now.lost,
                       settings_.pool_bytes));
    if (now.inserted - now.erased != reference_.size())
      note(fmt::format("after {} the graph has {} adjacency entries and the reference {}", after,
                       now.inserted - now.erased, reference_.size()));
  }

  void note_peak() { outcome_.peak_bytes = std::max(outcome_.peak_bytes, dynamic_->counts().live_bytes); }

  void free_everything() {
    dynamic_->clear();
    auto const now = dynamic_->counts();
    if (now.mallocs != now.frees || now.live_bytes != 0)
      note(fmt::format("{} blocks came and {} went; {} bytes are left", now.mallocs, now.frees, now.live_bytes));
    note(dynamic_->fault());
    outcome_.trace = dynamic_->trace();
  }

  /// Keeps the first fault.
  void note(std::string const& fault) {
    if (outcome_.fault.empty()) outcome_.fault = fault;
  }

  void report() { report_("building, " + settings_.allocator, batch_++, batches_); }
  parallel_work work(char const* phase, u64 passes) const {
    return {report_, fmt::format("{}, {}", phase, settings_.allocator), passes};
  }
  u64 random_seed() { return u64{random_.next()} << 32 | random_.next(); }
  u64 below(u64 limit) { return random_.below(static_cast<u32>(std::min<u64>(limit, 0xffff'ffffu))); }

  edge_list const& graph_;
  entry_keys const& keys_;
  graph_settings const& settings_;
  bench::progress const& report_;
  random_sequence random_;
  std::unique_ptr<dynamic_graph> dynamic_;
  reference_graph reference_;
  graph_outcome outcome_;
  u64 batch_ = 0;
  u64 batches_ = 0;
};

}  // namespace

graph_outcome build_graph(std::unique_ptr<dynamic_graph> dynamic, edge_list const& graph, entry_keys const& keys,
                          graph_settings const& settings, bench::progress const& report) {
  return graph_run{std::move(dynamic), graph, keys, settings, report}.run();
}

}  // namespace warpheap::tool
