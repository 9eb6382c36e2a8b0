// SPDX-License-Identifier: Apache-2.0
// `warpheap graph`: the graph is read or made once, then built with every allocator that was
// chosen.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "choices.hpp"
#include "cli/numbers.hpp"
#include "cli/printable.hpp"
#include "cli/processes.hpp"
#include "cli/progress_bar.hpp"
#include "cli/standard_output.hpp"
#include "command.hpp"
#include "io/graph_file.hpp"
#include "io/json_output.hpp"
#include "io/replaced_file.hpp"
#include "io/text_file.hpp"
#include "io/text_table.hpp"
#include "io/trace_output.hpp"
#include "warpheap/platform/errors.hpp"
#include "workloads/graph/gpus.hpp"
#include "workloads/graph/job.hpp"

namespace warpheap::tool {

namespace {

using json = nlohmann::ordered_json;

struct graph_flags {
  common_flags common;
  std::string input;
  std::string format;
  std::string scale;
  std::string edge_factor;
  std::string rounds = "4";
  std::string batch_size;
  std::string trace;
  bool replace = false;
  bool undirected = false;
  bool drop_self_loops = false;
  std::string gpus;
  std::string pes;
  std::string bfs;
};

constexpr u64 graph_host_pool = u64{1} << 30;

/// The input and what became of it.
struct source {
  edge_list graph;
  entry_keys keys;  ///< keys_of(graph)
  std::string name;
  u64 self_loops = 0;
  u64 duplicates = 0;
};

/// Refuses at once a graph that would take all of the machine's memory.
void check_memory(std::string const& name, u64 vertices, u64 edges, backend const& on) {
  u64 const needed = 64 * (vertices + edges);
  if (needed > on.memory_bytes())
    throw usage_error{fmt::format("{}: {} vertices and {} edges need about {} bytes, and there are {}", name, vertices,
                                  edges, needed, on.memory_bytes())};
}

/// The graph that was asked for, as it is read or made.
source make_source(graph_flags const& flags, choices const& chosen, bench::progress const& report) {
  source made;
  if (!flags.input.empty()) {
    refuse_typed({{"--scale", flags.scale}, {"--edge-factor", flags.edge_factor}},
                 "is of a graph that is made, and --input is given");
    made.name = input_name(flags.input);
    auto const format = graph_format(flags.format, flags.input);
    made.graph = read_graph(flags.input, format, {report, "reading " + made.name, 2});
    check_memory(made.name, made.graph.vertices, made.graph.edges.size(), *chosen.on);
    return made;
  }
  refuse_typed({{"--format", flags.format}}, "is of a file, and without --input a graph is made");
  auto const scale = static_cast<u32>(parse_count("--scale", flags.scale.empty() ? "14" : flags.scale, 1, 26));
  auto const factor =
      static_cast<u32>(parse_count("--edge-factor", flags.edge_factor.empty() ? "16" : flags.edge_factor, 1, 1024));
  made.name = fmt::format("R-MAT, scale {}, edge factor {}", scale, factor);
  check_memory(made.name, u64{1} << scale, u64{factor} << scale, *chosen.on);
  made.graph = make_rmat(scale, factor, chosen.seed, {report, "making the graph", 1});
  return made;
}

source read_source(graph_flags const& flags, choices const& chosen, bench::progress const& report) {
  auto made = make_source(flags, chosen, report);
  auto& graph = made.graph;
  if (flags.undirected) graph.directed = false;
  auto const is_loop = [](edge const& each) { return each.from == each.to; };
  made.self_loops = static_cast<u64>(std::count_if(graph.edges.begin(), graph.edges.end(), is_loop));
  if (flags.drop_self_loops)
    graph.edges.erase(std::remove_if(graph.edges.begin(), graph.edges.end(), is_loop), graph.edges.end());
  u64 const loops_left = flags.drop_self_loops ? 0 : made.self_loops;
  u64 const offered = graph.directed ? graph.edges.size() : 2 * graph.edges.size() - loops_left;
  made.keys = keys_of(graph, {report, "sorting", 1 + sort_passes(graph.vertices)});
  made.duplicates = offered - made.keys.size();
  return made;
}

/// Leaves out the allocators that cannot serve a vertex's neighbours, which are one block. Members
/// of a job copy what comes for a vertex to a block with room for twice as many numbers.
std::vector<std::string> leave_out_small(source const& input, choices& chosen, bool has_members) {
  u64 degree = 0, vertex = 0, of_vertex = 0;
  for (size_t i = 0; i < input.keys.size(); ++i) {
    of_vertex = i != 0 && input.keys[i] >> 32 == input.keys[i - 1] >> 32 ? of_vertex + 1 : 1;
    if (of_vertex > degree) degree = of_vertex, vertex = input.keys[i] >> 32;
  }
  u64 const bytes = degree * sizeof(u32) * (has_members ? 2 : 1);
  auto const known = chosen.on->allocators();
  return leave_out(chosen, [&](std::string const& name) -> std::string {
    auto const one = std::find_if(known.begin(), known.end(), [&](auto const& each) { return each.name == name; });
    if (bytes <= one->largest_bytes) return {};
    return fmt::format("{} serves at most {} bytes, and vertex {} of {} has {} neighbours, {} bytes", name,
                       one->largest_bytes, vertex, input.name, degree, bytes);
  });
}

/// The devices of the members of a heap set; none if the graph lies in one heap. Leaves out the
/// allocators that have no heap sets, and adds why to `skipped`.
std::vector<int> choose_members(graph_flags const& flags, choices& chosen, std::vector<std::string>& skipped) {
  auto const devices = parse_gpus(flags.gpus, chosen.on->device_count(), chosen.on->name());
  if (devices.empty()) return devices;
  auto const possible = chosen.on->part<set_graph_job>().allocators();
  skipped = leave_out(chosen, [&](std::string const& name) {
    bool const is_one = std::find(possible.begin(), possible.end(), name) != possible.end();
    return is_one ? "" : name + " is no allocator of heap sets";
  });
  // A pool is each member's. If none was typed, the members of one device share it.
  u32 const members = most_on_one(devices);
  if (flags.common.pool.empty()) chosen.pool_bytes /= members;
  if (chosen.pool_bytes > chosen.on->memory_bytes() / members)
    throw usage_error{fmt::format("--pool: {} for each of {} members of one device do not fit: it has {} bytes",
                                  format_bytes(chosen.pool_bytes), members, chosen.on->memory_bytes())};
  return devices;
}

/// The vertex that a search begins at; none if there is no search.
std::optional<u32> choose_source(std::string const& typed, source const& input) {
  if (typed.empty()) return std::nullopt;
  if (input.graph.vertices == 0) throw usage_error{fmt::format("--bfs: {} has no vertices", input.name)};
  if (typed != "first") return static_cast<u32>(parse_count("--bfs", typed, 0, input.graph.vertices - 1));
  return input.keys.empty() ? 0 : static_cast<u32>(input.keys.front() >> 32);
}

std::unique_ptr<dynamic_graph> make_graph(std::string const& allocator, choices const& chosen,
                                          std::vector<int> const& devices, u32 vertices) {
  if (devices.empty()) return chosen.on->part<graph_job>().make(allocator, chosen.pool_bytes, vertices);
  try {
    return chosen.on->part<set_graph_job>().make(allocator, chosen.pool_bytes, vertices, devices);
  } catch (cuda_error const& error) {
    throw usage_error{fmt::format("--gpus: {}", error.what())};
  }
}

json member_json(member_counts const& member) {
  json made;
  if (!member.host.empty()) made["host"] = member.host;
  made.update({{"device", member.device},
               {"vertices", member.vertices},
               {"edges", member.graph.inserted - member.graph.erased},
               {"mallocs", member.graph.mallocs},
               {"frees", member.graph.frees},
               {"failures", member.graph.failures},
               {"lost", member.graph.lost},
               {"messages", member.messages},
               {"messages_to_others", member.messages_to_others},
               {"live_bytes", member.graph.live_bytes},
               {"peak_bytes", member.peak_bytes},
               {"send_seconds", member.send_seconds},
               {"apply_seconds", member.apply_seconds},
               {"free_seconds", member.free_seconds},
               {"search_seconds", member.search_seconds}});
  return made;
}

void add_outcome(json& to, graph_outcome const& made, source const& input) {
  to["vertices"] = input.graph.vertices;
  to["edges"] = made.edges;
  to["verified"] = made.verified();
  to["mallocs"] = made.counts.mallocs;
  to["frees"] = made.counts.frees;
  to["failures"] = made.counts.failures;
  to["lost"] = made.counts.lost;
  to["inserted"] = made.counts.inserted;
  to["erased"] = made.counts.erased;
  to["live_bytes"] = made.counts.live_bytes;
  to["peak_bytes"] = made.peak_bytes;
  to["seconds"] = made.counts.seconds;
  to["allocator"] = made.allocator;
  if (made.search)
    to["bfs"] = {{"source", made.search->source},
                 {"reached", made.search->reached},
                 {"entries", made.search->entries},
                 {"depth", made.search->depth},
                 {"seconds", made.search->seconds}};
  for (auto const& member : made.members) to["members"].push_back(member_json(member));
  if (!made.verified()) to["fault"] = made.fault;
}

json document_of(choices const& chosen, graph_flags const& flags, source const& input,
                 std::vector<graph_outcome> const& outcomes, std::vector<std::string> const& skipped) {
  auto document = new_document(*chosen.on);
  add_outcome(document, outcomes.front(), input);
  document["backend"] = chosen.on->name();
  if (auto const process = chosen.on->process()) document["pes"] = process->size;
  document["seed"] = chosen.seed;
  document["pool_bytes"] = chosen.pool_bytes;
  document["input"] = input.name;
  document["directed"] = input.graph.directed;
  document["self_loops"] = flags.drop_self_loops ? 0 : input.self_loops;
  document["duplicates"] = input.duplicates;
  document["skipped"] = skipped;
  if (outcomes.size() == 1) return document;
  document["verified"] =
      std::all_of(outcomes.begin(), outcomes.end(), [](auto const& each) { return each.verified(); });
  for (auto const& each : outcomes) add_outcome(document["runs"].emplace_back(), each, input);
  return document;
}

void print_members(std::vector<graph_outcome> const& outcomes) {
  if (outcomes.front().members.empty()) return;
  text_table table{{"allocator", ">member", ">device", ">vertices", ">edges", ">mallocs", ">frees", ">messages",
                    ">to others", ">live bytes", ">peak bytes", ">send s", ">apply s", ">free s", ">search s"},
                   2};
  for (auto const& made : outcomes)
    for (size_t i = 0; i < made.members.size(); ++i) {
      auto const& member = made.members[i];
      auto const text = [](auto const& value) { return fmt::format("{}", value); };
      auto const time = [](double seconds) { return fmt::format("{:.4f}", seconds); };
      table.add({made.allocator, text(i), text(member.device), text(member.vertices),
                 text(member.graph.inserted - member.graph.erased), text(member.graph.mallocs),
                 text(member.graph.frees), text(member.messages), text(member.messages_to_others),
                 text(member.graph.live_bytes), text(member.peak_bytes), time(member.send_seconds),
                 time(member.apply_seconds), time(member.free_seconds), time(member.search_seconds)});
    }
  print_output("\n{}", table.text("members"));
}

void print_searches(std::vector<graph_outcome> const& outcomes) {
  for (auto const& made : outcomes)
    if (made.search)
      print_output(
          "\nBreadth-first search from vertex {}, {}: {} vertices in {} levels, {} adjacency entries, {:.4f} s\n",
          made.search->source, made.allocator, made.search->reached, made.search->depth + 1, made.search->entries,
          made.search->seconds);
}

void print_table(source const& input, std::vector<graph_outcome> const& outcomes,
                 std::vector<std::string> const& skipped, std::string const& backend) {
  print_output("{}: {} vertices, {} edges ({} adjacency entries), {} duplicates ignored, on {}\n\n",
               printable(input.name), input.graph.vertices, input.graph.directed ? "directed" : "undirected",
               outcomes.front().edges, input.duplicates, backend);
  text_table table{
      {"allocator", "verified", ">mallocs", ">frees", ">failures", ">live bytes", ">peak bytes", ">seconds"}};
  for (auto const& made : outcomes)
    table.add({made.allocator, made.verified() ? "yes" : "NO", fmt::format("{}", made.counts.mallocs),
               fmt::format("{}", made.counts.frees), fmt::format("{}", made.counts.failures),
               fmt::format("{}", made.counts.live_bytes), fmt::format("{}", made.peak_bytes),
               fmt::format("{:.4f}", made.counts.seconds)});
  for (auto const& why : skipped) table.note("skipped: " + why);
  print_output("{}", table.text("graph"));
  print_members(outcomes);
  print_searches(outcomes);
}

void declare_graph(CLI::App& to, graph_flags& flags) {
  to.footer(
      "Edges: every entry of a matrix is one, its value ignored. A general matrix is a directed graph; a symmetric, "
      "skew-symmetric or hermitian one is undirected: each edge is in the adjacency of both its ends. An edge list is "
      "directed unless its head says otherwise, and counts vertices from 0, or as KONECT does from 1. Duplicates are "
      "ignored. A self loop (an entry on the diagonal) stays, once in its vertex's own adjacency, unless dropped.\n"
      "Reported: edges = adjacency entries at the end; mallocs and frees = blocks that came and went (a realloc in "
      "place is neither); failures = calls that returned nullptr; live bytes = usable bytes of the graph's blocks at "
      "the end, peak bytes = the most of that after any batch; seconds = time of the kernels that built and changed "
      "the graph.");
  add_common_flags(to, flags.common, {.host_pool = "1GiB"});
  add_text(to, "--input", flags.input,
           "Graph, '-' for standard input; without it an R-MAT graph is made, and the options marked 'R-MAT' are of "
           "that alone",
           "FILE");
  add_text(
      to, "--format", flags.format,
      "Matrix Market in coordinate format, an edge list (SNAP, KONECT), or DIMACS (default by the file's name: "
      ".txt, .tsv, .csv, .edges, .el, .edgelist and out.* are edge lists, .gr, .max, .col, .clq and .dimacs are of "
      "DIMACS, all others Matrix Market)",
      "mtx|edges|dimacs");
  add_text(to, "--scale", flags.scale, "R-MAT: 2^N vertices (default 14)", "N");
  add_text(to, "--edge-factor", flags.edge_factor, "R-MAT: N edges a vertex (default 16)", "N");
  add_text(to, "--batches", flags.rounds, "After loading, N times: erase a random batch of edges, and insert it again",
           "N")
      ->capture_default_str();
  add_text(to, "--batch-size", flags.batch_size, "Edges of a batch (default an eighth of all)", "N");
  add_text(to, "--trace", flags.trace, trace_help, "FILE");
  add_switch(to, "--replace", flags.replace, "After a deletion, insert new random edges instead of those erased");
  add_switch(to, "--undirected", flags.undirected, "Take a directed graph as undirected");
  add_switch(to, "--drop-self-loops", flags.drop_self_loops, "Leave out edges from a vertex to itself");
  add_text(to, "--gpus", flags.gpus,
           "Deal the vertices to several GPUs, each with a heap of --pool bytes: to the first N, or to those of a "
           "list, which may name one twice. The host backend has device 0 alone",
           "N|I,J[,...]");
  add_text(to, "--pes", flags.pes,
           "Deal the vertices to N processes over NVSHMEM, each with a heap of --pool bytes on a GPU of its own, or on "
           "one that it shares if there are fewer",
           "N");
  add_text(to, "--bfs", flags.bfs,
           "At the end, search the graph breadth-first from this vertex, counted from 0, or from the first that has a "
           "neighbour",
           "VERTEX|first");
}

/// How many processes `--pes` asks for. Throws usage_error if the other options leave none.
u32 parse_pes(graph_flags const& flags) {
  auto const pes = static_cast<u32>(parse_count("--pes", flags.pes, 1, most_processes));
  refuse_typed({{"--gpus", flags.gpus}, {"--trace", flags.trace}}, "is of one process, and --pes is given");
  if (flags.common.backend == "host") throw usage_error{"--pes: NVSHMEM needs CUDA, and --backend host is given"};
  return pes;
}

/// Throws usage_error if this process is none of a job of as many as `--pes` says.
void check_job(std::optional<process_place> const& process, graph_flags const& flags) {
  if (process)
    refuse_typed({{"--gpus", flags.gpus}, {"--trace", flags.trace}}, "is of one process, and this is one of a job");
  if (!flags.gpus.empty()) refuse_typed({{"--trace", flags.trace}}, "records one heap, and --gpus asks for a set");
  if (flags.pes.empty()) return;
  u32 const pes = parse_pes(flags), there = process ? process->size : 1;
  if (pes != there) throw usage_error{fmt::format("--pes: {} processes are asked for, and the job has {}", pes, there)};
}

int run_graph(graph_flags const& flags) {
  if (!flags.pes.empty())
    if (auto const status = run_as_processes(parse_pes(flags))) return *status;
  auto chosen = choose(flags.common, graph_host_pool);
  auto const process = chosen.on->process();
  check_job(process, flags);
  bool const is_first = !process || process->rank == 0;  // which alone says anything
  refuse_shared_files({{"--json", flags.common.json}, {"--trace", flags.trace}}, {{"--input", flags.input}});
  json_output output{is_first ? flags.common.json : ""};
  std::vector<std::string> skipped;
  auto const devices = choose_members(flags, chosen, skipped);
  trace_output trace{flags.trace, flags.common.allocators, chosen.on->allocators().front().name};
  graph_settings settings{.pool_bytes = chosen.pool_bytes, .seed = chosen.seed, .replace = flags.replace};
  settings.rounds = static_cast<u32>(parse_count("--batches", flags.rounds, 0, 1'000'000));
  if (flags.replace && settings.rounds == 0)
    throw usage_error{"--replace: is of batches that are erased, and --batches 0 erases none"};
  if (!flags.batch_size.empty()) settings.batch_size = parse_count("--batch-size", flags.batch_size, 1, u64{1} << 30);

  source input;
  std::vector<graph_outcome> outcomes;
  {
    progress_bar bar;
    auto const report = is_first ? bar.reporter() : [](std::string const&, u64, u64) {};
    input = read_source(flags, chosen, report);
    for (auto& why : leave_out_small(input, chosen, process || !devices.empty())) skipped.push_back(std::move(why));
    settings.search_from = choose_source(flags.bfs, input);
    if (flags.batch_size.empty()) settings.batch_size = std::max<u64>(1, input.graph.edges.size() / 8);
    for (auto const& name : chosen.allocators) {
      settings.allocator = name;
      auto const vertices = input.graph.vertices;
      auto graph = trace.is_wanted() ? chosen.on->part<graph_job>().make_traced(chosen.pool_bytes, vertices)
                                     : make_graph(name, chosen, devices, vertices);
      outcomes.push_back(build_graph(std::move(graph), input.graph, input.keys, settings, report));
    }
  }
  if (auto const take = trace.taker()) take(outcomes.front().trace);
  trace.write("graph");
  if (is_first && !output.owns_standard_output()) print_table(input, outcomes, skipped, chosen.on->name());
  output.write(document_of(chosen, flags, input, outcomes, skipped));
  for (auto const& made : outcomes) {
    if (made.verified()) continue;
    if (is_first) complain("graph", fmt::format("{}: {}", made.allocator, made.fault));
    return 1;
  }
  return 0;
}

}  // namespace

void add_graph(CLI::App& program, int& status) {
  add_command(program, "graph", "Build a dynamic graph in the heap, change it, and check it", declare_graph, run_graph,
              status);
}

}  // namespace warpheap::tool
