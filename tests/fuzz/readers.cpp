// SPDX-License-Identifier: Apache-2.0
// Every reader of files, given what no program wrote. It must accept an input or refuse it by the
// exception of bad input, with a message of one printable line; whatever else happens is a fault,
// which sanitizers and the checks below turn into an abort. The input is then in a file, and
// `readers TARGET FILE` reads it again.
//
//   readers SECONDS SEED [FILE…]   FILEs are texts to begin with, beside those of the targets
//   readers TARGET FILE
//
// A new reader is one entry of `targets`.
#include <fmt/format.h>
#include <sanitizer/common_interface_defs.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>

#include "cli/printable.hpp"
#include "cli/usage_error.hpp"
#include "io/csv_table.hpp"
#include "io/dimacs.hpp"
#include "io/edge_list_file.hpp"
#include "io/matrix_market.hpp"
#include "io/text_file.hpp"
#include "mutator.hpp"
#include "tests/support/runtime_folder.hpp"
#include "warpheap/adaptor/trace/file.hpp"
#include "warpheap/heap/gauge_page.hpp"
#include "workloads/replay/plan.hpp"
#include "workloads/replay/summary.hpp"

namespace warpheap::fuzz { namespace {

using clock = std::chrono::steady_clock;

/// A reader. `read` throws the exceptions of bad input alone.
struct target {
  char const* name;
  std::vector<std::string> texts;  ///< that it accepts
  void (*read)(std::string const& bytes);
};

char const* target_name = "";
std::string current;

/// Keeps the input that a fault came of. A signal handler too.
void keep_input() {
  auto const path = fmt::format("fuzz-{}.input", target_name);
  std::ofstream{path, std::ios::binary} << current;
  fmt::print(stderr, "readers: {}: a fault; its input is in {}\n", target_name, path);
}

void check(bool holds, char const* what) {
  if (holds) return;
  fmt::print(stderr, "readers: {}: not true: {}\n", target_name, what);
  keep_input();
  std::_Exit(1);
}

template <auto Parse>
void read_graph(std::string const& bytes) {
  auto const graph = Parse("f", tool::plain_text("f", bytes, "graph --input -"), {});
  for (auto const& each : graph.edges)
    check(each.from < graph.vertices && each.to < graph.vertices, "an edge joins two vertices");
}

void read_table(std::string const& bytes) {
  auto const table = tool::parse_csv_table("f", tool::plain_text("f", bytes, "join"));
  check(table.keys.size() == table.payloads.size(), "a key has a payload");
}

void read_trace(std::string const& bytes) {
  auto const trace = trace_of(bytes);
  check(file_of(trace) == bytes, "a trace that is read and written is the file that it was");
  auto const summary = tool::summary_of(trace, tool::plan_of(trace));
  check(summary.most_live_bytes <= summary.asked_bytes, "what lives was asked for");
}

/// As the page of a running program.
void read_gauge_page(std::string const& bytes) {
  static test::runtime_folder const folder;
  static shared_page const page{gauge_page::prefix, sizeof(gauge_page)};
  std::ofstream{folder.page(page.name()), std::ios::binary} << bytes;
  auto const found = read_published_heaps();
  check(found.heaps.size() + found.of_other_versions <= 1, "a page is of one heap");
  for (auto const& heap : found.heaps)
    check(heap.name.size() <= gauge_page::text_bytes && heap.age_seconds >= 0, "a heap is what a page can say");
  if (found.heaps.empty())
    throw std::invalid_argument{found.of_other_versions != 0 ? "a page of another version" : "no page"};
}

std::string whole_gauge_page() {
  gauge_page page{.process = 1, .program = "program", .heap = "heap", .allocator = "allocator", .device = "device"};
  for (u64 i = 1; i < 3; ++i) page.publish({});
  page.show();
  return {reinterpret_cast<char const*>(&page), sizeof page};
}

/// Traces of some calls.
std::vector<std::string> traces() {
  auto const call = [](call_kind kind, u64 bytes, u64 block) {
    return traced_call{.kind = kind, .thread = 3, .thread_block = 1, .bytes = bytes, .block = block};
  };
  traced_call const kernel{.kind = call_kind::kernel}, reset{.kind = call_kind::reset};
  auto together = call(call_kind::calloc, 100, 0);
  together.first = false;
  together.thread = 9;
  return {file_of({}),
          file_of({.machine = "host",
                   .pool_bytes = 1 << 20,
                   .calls = {kernel, call(call_kind::malloc, 64, 0), together, call(call_kind::realloc, 4096, 1),
                             call(call_kind::free, 0, 3), kernel, call(call_kind::free, 0, 2), reset}})};
}

std::vector<target> targets() {
  std::string const banner = "%%MatrixMarket matrix coordinate ";
  return {{"mtx",
           {banner + "pattern general\n3 3 2\n1 2\n3 1\n", banner + "real symmetric\r\n% c\r\n2 2 1\r\n2 1 1.5\r\n"},
           read_graph<tool::parse_matrix_market>},
          {"edges",
           {"# Undirected graph: g\n0\t1\n1\t2\n", "% asym positive\n% 2 3 3\n1 2 1 5\n2 3 1 7\n", "0,1,0.5\n4,2\n"},
           read_graph<tool::parse_edge_list>},
          {"dimacs",
           {"c g\np sp 3 2\na 1 2 5\na 2 3 7\n", "p edge 3 2\nn 1 4\ne 1 2\ne 2 3\n"},
           read_graph<tool::parse_dimacs>},
          {"csv", {"key,payload\n1,2\n3,4\n", "\"the \"\"key\"\"\n\",\"b\"\r\n\"1\",\"2\"\r\n"}, read_table},
          {"trace", traces(), read_trace},
          {"gauge", {whole_gauge_page()}, read_gauge_page}};
}

/// What the reader said, without what it quotes and with letters alone: messages about other values
/// are the same answer.
std::string answer_of(target const& to, std::string const& bytes) {
  current = bytes;
  std::string said;
  try {
    to.read(bytes);
    return "accepted";
  } catch (tool::usage_error const& fault) {
    said = fault.what();
  } catch (std::invalid_argument const& fault) {
    said = fault.what();
  }
  check(!said.empty() && tool::printable(said) == said, "a message is one printable line");
  if (auto const quote = said.find('\''); quote != said.npos) said.erase(quote, said.rfind('\'') - quote);
  said.erase(std::remove_if(said.begin(), said.end(), [](char c) { return (c < 'a' || c > 'z') && c != ' '; }),
             said.end());
  return said;
}

std::string contents(char const* path) {
  std::ifstream file{path, std::ios::binary};
  if (!file) throw std::runtime_error{fmt::format("{}: cannot be read", path)};
  return {std::istreambuf_iterator<char>{file}, {}};
}

void fuzz(target to, u64 seed, double seconds, std::vector<std::string> const& more) {
  target_name = to.name;
  std::set<std::string> answers;
  for (auto const& text : to.texts) check(answer_of(to, text) == "accepted", "a reader accepts its own texts");
  to.texts.insert(to.texts.end(), more.begin(), more.end());
  mutator inputs{seed, to.texts};
  u64 runs = 0;
  for (auto const end = clock::now() + std::chrono::duration<double>{seconds}; clock::now() < end; ++runs) {
    alarm(20);  // a reader that does not end
    auto const input = inputs.draw();
    if (answers.insert(answer_of(to, input)).second) inputs.keep(input);
  }
  alarm(0);
  check(runs > 0 && answers.contains("accepted") && answers.size() > 1, "inputs are accepted and refused");
  fmt::print("{}: {} inputs, {} answers, no fault\n", to.name, runs, answers.size());
  std::fflush(stdout);
}

void on_alarm(int) {
  keep_input();
  std::_Exit(1);
}

int run(std::vector<char*> const& arguments) {
  auto const known = targets();
  for (auto const& each : known)
    if (arguments.size() == 2 && arguments[0] == std::string_view{each.name}) {
      target_name = each.name;
      fmt::print("{}\n", answer_of(each, contents(arguments[1])));
      return 0;
    }
  if (arguments.size() < 2) throw std::runtime_error{"readers SECONDS SEED [FILE…], or readers TARGET FILE"};
  double const seconds = std::atof(arguments[0]) / static_cast<double>(known.size());
  u64 const seed = std::strtoull(arguments[1], nullptr, 10);
  std::vector<std::string> more;
  for (size_t i = 2; i < arguments.size(); ++i) more.push_back(contents(arguments[i]));
  for (auto const& each : known) fuzz(each, seed, seconds, more);
  return 0;
}

}}  // namespace warpheap::fuzz

int main(int count, char** arguments) {
  __sanitizer_set_death_callback(warpheap::fuzz::keep_input);
  std::signal(SIGALRM, warpheap::fuzz::on_alarm);
  try {
    return warpheap::fuzz::run({arguments + 1, arguments + count});
  } catch (std::runtime_error const& fault) {
    fmt::print(stderr, "readers: {}\n", fault.what());
    return 2;
  }
}
