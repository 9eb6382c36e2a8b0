#include "command_line.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <new>
#include <sstream>
#include <stdexcept>

#include "bench_options.hpp"
#include "choices.hpp"
#include "command_outline.hpp"
#include "commands.hpp"
#include "interruption.hpp"
#include "machine.hpp"
#include "man_page.hpp"
#include "parser_text.hpp"
#include "shell_completion.hpp"
#include "standard_output.hpp"
#include "warpheap/platform/errors.hpp"

namespace warpheap::tool {

namespace {

constexpr int bad_result = 1;
constexpr int bad_usage = 2;

/// An option whose value is text of at least one character: an empty value is a script's unset
/// variable.
CLI::Option* add_text(CLI::App& to, char const* name, std::string& value, std::string const& help, char const* type) {
  auto const is_there = [](std::string const& text) { return std::string{text.empty() ? "the value is empty" : ""}; };
  return to.add_option(name, value, help)->type_name(type)->check(CLI::Validator{is_there, ""});
}

/// An option without a value.
void add_switch(CLI::App& to, char const* name, bool& value, char const* help) {
  to.add_flag(name, value, help)->disable_flag_override();
}

void add_output_flags(CLI::App& to, common_flags& flags) {
  add_text(to, "--backend", flags.backend,
           "Where kernels run (default cuda where this program can use a GPU, else host)", "cuda|host");
  add_text(to, "--json", flags.json, "Write the results as JSON; '-' is standard output, which then has nothing else",
           "FILE");
}

/// What differs between commands in the common flags' help.
struct common_defaults {
  std::string host_pool;
  std::string gpu_pool = "8GiB on a GPU, or half of its free memory if that is less";
  std::string allocators = "as `warpheap info` lists them (default slab_bitmap)";
  std::string random = "Seed of everything random";
};

void add_common_flags(CLI::App& to, common_flags& flags, common_defaults const& defaults) {
  add_output_flags(to, flags);
  add_text(to, "--allocator", flags.allocators, fmt::format("Allocators, {}", defaults.allocators), "NAME[,NAME...]");
  add_text(to, "--pool", flags.pool,
           fmt::format("Bytes that the heap has for blocks, like 512MiB (default {}; on the host {})",
                       defaults.gpu_pool, defaults.host_pool),
           "SIZE");
  add_text(to, "--seed", flags.seed, defaults.random, "N")->default_str("1");
  add_switch(to, "--deterministic", flags.deterministic,
             "Host backend alone: one lane at a time, in an order that depends on --seed alone; slow");
}

void add_sizes(CLI::App& to, std::string& sizes, std::string& ranges, char const* of_sizes, char const* of_ranges) {
  add_text(to, "--sizes", sizes,
           std::string{of_sizes} + "; LEAST-MOST:STEP stands for all sizes of these steps, as in 8-3072:8",
           "SIZE[,SIZE...]");
  add_text(to, "--ranges", ranges, of_ranges, "SIZE-SIZE[,SIZE-SIZE...]");
}

void add_info(CLI::App& to, common_flags& flags) { add_output_flags(to, flags); }

void add_graph(CLI::App& to, graph_flags& flags) {
  to.footer(
      "Edges: every entry of the matrix is one, its value ignored. A general matrix is a directed graph; a symmetric, "
      "skew-symmetric or hermitian one is undirected: each edge is in the adjacency of both its ends. Duplicates are "
      "ignored. A self loop (an entry on the diagonal) stays, once in its vertex's own adjacency, unless dropped.\n"
      "Reported: edges = adjacency entries at the end; mallocs and frees = blocks that came and went (a realloc in "
      "place is neither); failures = calls that returned nullptr; live bytes = usable bytes of the graph's blocks at "
      "the end, peak bytes = the most of that after any batch; seconds = time of the kernels that built and changed "
      "the graph.");
  add_common_flags(to, flags.common, {.host_pool = "1GiB"});
  add_text(to, "--input", flags.input,
           "Matrix Market file in coordinate format, '-' for standard input; without it an R-MAT graph is made, and "
           "the options marked 'R-MAT' are of that alone",
           "FILE");
  add_text(to, "--scale", flags.scale, "R-MAT: 2^N vertices (default 14)", "N");
  add_text(to, "--edge-factor", flags.edge_factor, "R-MAT: N edges a vertex (default 16)", "N");
  add_text(to, "--batches", flags.rounds, "After loading, N times: erase a random batch of edges, and insert it again",
           "N")
      ->capture_default_str();
  add_text(to, "--batch-size", flags.batch_size, "Edges of a batch (default an eighth of all)", "N");
  add_switch(to, "--replace", flags.replace, "After a deletion, insert new random edges instead of those erased");
  add_switch(to, "--undirected", flags.undirected, "Take a general matrix as undirected");
  add_switch(to, "--drop-self-loops", flags.drop_self_loops, "Leave out edges from a vertex to itself");
}

void add_bench(CLI::App& to, bench_flags& flags) {
  auto const scenarios = make_host_backend()->scenarios();  // every backend has the same
  to.footer(
      scenarios_help(scenarios) +
      "\n"
      "An option is refused if none of the scenarios that are asked for uses it.\n"
      "Operations a second count calls that were served; failures are the calls that returned nullptr. Allocator "
      "'null' is the floor: a kernel that stores one pointer a thread, and for burst's free the chain of memory "
      "operations that no free can avoid. CUDA's own allocator ('toolkit') has one pool size a process, that of the "
      "first kernel that uses it.");
  to.add_option("scenarios", flags.scenarios, "What to measure, as named below (default all of them)")
      ->type_name("SCENARIO");
  auto const host_pools = pools_help("256MiB", scenarios, &bench::default_pools::host);
  auto const gpu_pools = pools_help(common_defaults{}.gpu_pool, scenarios, &bench::default_pools::gpu);
  add_common_flags(to, flags.common, {.host_pool = host_pools, .gpu_pool = gpu_pools});
  for (auto const& option : bench_options())
    if (!option.text.empty())
      add_text(to, option.name, option.typed(flags), option.help(), option.type)->default_str(option.initial);
}

void add_verify(CLI::App& to, verify_flags& flags) {
  to.footer(
      "The heap is filled until every thread got nullptr, every block is stamped by worker and counter and looked at, "
      "all are freed by other workers, and the slots must be what they were at the start.");
  add_common_flags(to, flags.common, {.host_pool = "8MiB"});
  add_sizes(to, flags.sizes, flags.ranges, "Sizes of blocks (default 16,64,1000,4096 where no --ranges are given)",
            "Ranges of random sizes (default 16-1024 where no --sizes are given)");
  add_text(to, "--threads", flags.threads, "Threads that fill (default 65536 on a GPU, 1024 on the host)", "N");
  add_text(to, "--repeat", flags.repeat, "Times that each size is filled and emptied", "N")->capture_default_str();
}

void add_pic(CLI::App& to, pic_flags& flags) {
  to.footer(
      "Streams of electrons through each other on a periodic plane. Particles live in frames, each a block of the "
      "heap, in a list for each species and super cell of 8x4 cells; every step particles move to other super cells, "
      "and frames come and go. Operations: step (all of a step), move (the kernels that allocate; its operations are "
      "mallocs and frees). Checked: every particle is there at the end, energy and momentum are what they were, no "
      "frame is lost, and all allocators end in the same state. ring_buffer has a ring for each species, with an equal "
      "part of the pool.");
  add_common_flags(to, flags.common, {.host_pool = "64MiB"});
  add_text(to, "--cells", flags.cells,
           "Cells of the plane, powers of two (default 512x512 on a GPU, 32x32 on the host)", "WxH");
  add_text(to, "--particles-per-cell", flags.particles_per_cell,
           "Particles of each species in a cell at the start (default 25 on a GPU, 8 on the host)", "N");
  add_text(to, "--species", flags.species, "Species (default 2); with --find-capacity the most (default 16)", "N");
  add_text(to, "--steps", flags.steps, "Steps of a run (default 100 on a GPU, 20 on the host)", "N");
  add_text(to, "--frame-bytes", flags.frame_bytes, "Bytes of a frame", "SIZE")->capture_default_str();
  add_text(to, "--repeat", flags.repeat, "Runs, each from the start", "N")->default_str("1");
  add_switch(to, "--find-capacity", flags.find_capacity,
             "No simulation: how many particles one species can have, for 1, 2, ... species");
}

void add_join(CLI::App& to, join_flags& flags) {
  to.footer(
      "An equi-join of two tables of keys and payloads, 32 bits each: both are cut into partitions by a hash of the "
      "key, a hash table is built for each partition of the first, and every tuple of the second is looked up. A warp "
      "or lane that finds partners writes the pairs to pages from malloc, and takes another page when one is full.\n"
      "Tables: from --build and --probe, which come together, or made of --seed by the options marked 'Made tables'; "
      "the two kinds exclude each other. A file has a line key,payload for each tuple, both whole numbers below 2^32; "
      "values may be quoted, and the first line may be a header of two names.\n"
      "Operations: join (all of it), probe (the part that allocates), free (of the pages). Checked: the result has as "
      "many tuples as it must have, and the same checksum, and no page is lost. A result whose tuples alone are larger "
      "than the pool is refused with exit status 2. If the pool runs out on the way, the join ends without a result, "
      "its pages are freed, and the exit status is 1.");
  add_common_flags(
      to, flags.common,
      {.host_pool = "256MiB",
       .allocators =
           "as `warpheap info` lists them, or 'direct', which is none: pages come from an array of "
           "the pool's size, in its order, by one counter; or 'direct_warp', the same by one addition for the lanes "
           "of a warp; or 'rw_256', 'rw_bitmap_256' and 'corw_256', the walks with pages of 256 bytes "
           "(default direct,slab_bitmap)",
       .random = "Seed of made tables, and of --deterministic"});
  add_text(to, "--build", flags.build, "First table, a file or '-' for standard input; needs --probe", "FILE");
  add_text(to, "--probe", flags.probe, "Second table, likewise; needs --build", "FILE");
  add_text(
      to, "--output", flags.output,
      "Write the rows of the result, in no order, as lines key,build_payload,probe_payload behind a header; '-' is "
      "standard output, which then has nothing else",
      "FILE");
  add_text(to, "--tuples", flags.tuples,
           "Made tables: tuples of each, a join for each number (default 1048576 on a GPU, 16384 on the host)",
           "N[,N...]");
  add_text(to, "--probe-tuples", flags.probe_tuples,
           "Made tables: tuples of the second, in every join (default as many as the first has)", "N");
  add_text(to, "--match", flags.match, "Made tables: share of the second's tuples that have a partner (default 1)",
           "SHARE");
  add_text(to, "--skew", flags.skew,
           "Made tables: exponent of Zipf's law by which partners are chosen (default 0: all are as likely)",
           "EXPONENT");
  add_text(to, "--page-bytes", flags.page_bytes, "Bytes of an output page", "SIZE")->capture_default_str();
  add_text(to, "--chains", flags.chains,
           "Whose the pages are: each warp has its own, or each lane; a join for each of them", "warp|lane[,...]")
      ->capture_default_str();
  add_text(to, "--partition-bits", flags.partition_bits,
           "Cut the tables into 2^N partitions (default: some 4096 tuples of the first a partition, and N at most 12)",
           "N");
  add_text(to, "--repeat", flags.repeat, "Times that each join is measured, after one that is not", "N")
      ->capture_default_str();
}

/// Names that a shell completes: the allocators and scenarios of every backend.
known_names names_to_complete() {
  auto const on = choose_backend("host");
  known_names known;
  for (auto const& allocator : on->allocators()) known["--allocator"].push_back(allocator.name);
  known["join --allocator"] = known["--allocator"];
  known["join --allocator"].insert(known["join --allocator"].end(), {direct_output, direct_output_by_warp});
  for (auto const* const name : join_walks) known["join --allocator"].emplace_back(name);
  known["scenarios"] = names_of(on->scenarios());
  return known;
}

/// Commands that write files of an installation, and that help does not list.
void add_files_of_installation(CLI::App& app, std::string& shell) {
  auto const outline = [&app] { return outline_of(app, version(), names_to_complete()); };
  auto* const completion = app.add_subcommand("completion", "The script that completes this command line in a shell");
  completion->group("");
  completion->add_option("shell", shell, "The shell")->type_name("bash|zsh|fish")->required();
  completion->callback([&shell, outline] { print_output("{}", completion_for(shell, outline())); });
  auto* const manual = app.add_subcommand("man", "The manual page");
  manual->group("");
  manual->callback([outline] { print_output("{}", man_page(outline())); });
}

/// Runs the command that was typed. `command_name` becomes its name, for messages.
int dispatch(int count, char const* const* arguments, std::string& command_name) {
  CLI::App app{"Dynamic memory for GPU threads: programs that run on it, allocators measured and verified", "warpheap"};
  app.formatter(std::make_shared<help_formatter>());
  app.set_version_flag("--version", "warpheap " + version() + " (commit " + commit() + ")",
                       "Print the version and exit");
  app.require_subcommand(1);
  common_flags info;
  graph_flags graph;
  bench_flags bench;
  verify_flags verify;
  pic_flags pic;
  join_flags join;
  int status = 0;
  auto const add = [&](char const* name, char const* text, auto fill, auto& flags, auto run) {
    auto* const command = app.add_subcommand(name, text)->group("Commands");
    fill(*command, flags);
    command->callback([&status, &flags, run] { status = run(flags); });
  };
  add("info", "Backends, allocators and devices", add_info, info, run_info);
  add("graph", "Build a dynamic graph in the heap, change it, and check it", add_graph, graph, run_graph);
  add("bench", "Measure allocators", add_bench, bench, run_bench);
  add("verify", "Fill the heap, check every block, free all", add_verify, verify, run_verify);
  add("pic", "Simulate a plasma whose particles live in frames of the heap, and check it", add_pic, pic, run_pic);
  add("join", "Join two tables whose result goes to pages of the heap, and check it", add_join, join, run_join);
  // Set after the commands are added, or their help would end with it as well.
  app.footer(
      "The exit status is 0 when all is well, 1 when a check of results failed, and 2 for bad usage, bad input, or "
      "output "
      "that could not be written.");
  std::string shell;
  add_files_of_installation(app, shell);
  auto const is_command = [&](CLI::App* command) { return command->check_name(arguments[1]); };
  if (count > 1 && !app.get_subcommands(is_command).empty()) command_name = arguments[1];
  else if (count > 1 && arguments[1][0] != '-')
    throw usage_error{fmt::format("there is no command '{}'; there are: {}", arguments[1], command_names(app))};
  try {
    app.parse(count, arguments);
  } catch (CLI::Success const& help) {
    std::ostringstream text;
    int const shown = app.exit(help, text, text);
    write_output(text.str());
    return shown;
  } catch (CLI::ParseError const& error) {
    throw usage_error{sentence_of(error, app, command_name)};
  }
  return status;
}

/// Runs what was typed and returns the exit status; `command` becomes the command's name. Every
/// error is one line on standard error.
int run_typed(int count, char const* const* arguments, std::string& command) {
  try {
    return dispatch(count, arguments, command);
  } catch (usage_error const& error) {
    complain(command, error.what());
  } catch (out_of_memory const& error) {
    complain(command, error.what());
  } catch (std::invalid_argument const& error) {
    complain(command, error.what());
  } catch (std::bad_alloc const&) {
    complain(command, "out of memory on the host");
  } catch (std::exception const& error) {
    complain(command, error.what());
    return bad_result;
  }
  return bad_usage;
}

/// Opens descriptors 0, 1 and 2 if the parent closed them: a file that is opened later must not be
/// taken for standard output.
void reserve_standard_descriptors() {
  int made = 0;
  while (made >= 0 && made <= STDERR_FILENO) made = open("/dev/null", O_RDONLY);
  if (made >= 0) close(made);
}

}  // namespace

int run(int count, char const* const* arguments) {
  reserve_standard_descriptors();
  handle_signals();
  std::string command;
  int const status = run_typed(count, arguments, command);
  auto const fault = output_fault();
  if (fault.empty()) return status;
  complain(command, fault);
  return status ? status : bad_usage;
}

}  // namespace warpheap::tool
