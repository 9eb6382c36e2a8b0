#include "graph_job.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "reference_graph.hpp"
#include "warpheap/util/random.hpp"

namespace warpheap::tool {

namespace {

class graph_job {
 public:
  graph_job(backend const& on, edge_list graph, graph_settings const& settings, bench::progress const& report)
      : graph_{std::move(graph)},
        settings_{settings},
        report_{report},
        random_{settings.seed},
        dynamic_{on.make_graph(settings.allocator, settings.pool_bytes, graph_.vertices)} {
    batches_ = (graph_.edges.size() + settings.batch_size - 1) / settings.batch_size + 2 * u64{settings.rounds};
    outcome_.allocator = settings.allocator;
  }

  graph_outcome run() {
    load();
    for (u32 round = 0; round < settings_.rounds; ++round) exchange_sample();
    note(reference_.difference(dynamic_->read()));
    note(dynamic_->fault());
    outcome_.counts = dynamic_->counts();
    outcome_.edges = outcome_.counts.inserted - outcome_.counts.erased;
    free_everything();
    return outcome_;
  }

 private:
  void load() {
    auto& edges = graph_.edges;
    for (u64 i = edges.size(); i > 1; --i) std::swap(edges[i - 1], edges[below(i)]);
    for (u64 first = 0; first < edges.size(); first += settings_.batch_size) {
      report();
      dynamic_->insert(
          group_by_vertex(keys_of(graph_, first, std::min<u64>(first + settings_.batch_size, edges.size()))));
      note_peak();
    }
    reference_.insert(keys_of(graph_, 0, edges.size()));
    compare_counts("loading");
  }

  /// One round: a random sample of the edges goes, and comes back or makes room for others.
  void exchange_sample() {
    edge_list sample{graph_.vertices, graph_.directed, {}};
    for (u64 const key : reference_.keys()) {
      edge const there{static_cast<u32>(key >> 32), static_cast<u32>(key)};
      if (graph_.directed || there.from <= there.to) sample.edges.push_back(there);
    }
    u64 const size = std::min<u64>(settings_.batch_size, sample.edges.size());
    for (u64 i = 0; i < size; ++i) std::swap(sample.edges[i], sample.edges[i + below(sample.edges.size() - i)]);
    sample.edges.resize(size);
    erase(keys_of(sample, 0, size));
    if (settings_.replace)
      for (auto& replaced : sample.edges) replaced = random_edge();
    insert(keys_of(sample, 0, size));
  }

  /// Between two different vertices, if there are two.
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
  }

  /// The first fault is the one to tell.
  void note(std::string const& fault) {
    if (outcome_.fault.empty()) outcome_.fault = fault;
  }

  void report() { report_("graph, " + settings_.allocator, batch_++, batches_); }
  u64 below(u64 limit) { return random_.below(static_cast<u32>(std::min<u64>(limit, 0xffff'ffffu))); }

  edge_list graph_;
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

graph_outcome build_graph(backend const& on, edge_list graph, graph_settings const& settings,
                          bench::progress const& report) {
  return graph_job{on, std::move(graph), settings, report}.run();
}

}  // namespace warpheap::tool
