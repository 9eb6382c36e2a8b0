// SPDX-License-Identifier: Apache-2.0
// The schedules of a whole program, which stays as it is: `warpheap test` compiles it with
// `-include` of this file.
//
//   WARPHEAP_SEARCH=FILE     a search, whose record is FILE (search_record.hpp)
//   WARPHEAP_SCHEDULE=12:1   one execution, by the deviations that a search has found
//
// Before the program's own globals are made the process forks, once for each schedule. The child
// goes on to main(), so each execution begins in the same memory at the same addresses, and may end
// by a status, a signal, or not at all. The search tree lies in memory that parent and children
// share. After the last schedule of a bound the next bound is one preemption more. The parent ends
// as the first child that fails. If standard output is a file, what other children wrote there is
// removed again. Lanes of launches of more than 64 run by turns.
#pragma once

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory_resource>
#include <new>

#include "schedule_search.hpp"
#include "search_record.hpp"

namespace warpheap::explore::detail {

/// Memory of a fixed size, handed out from its start and not taken back. An execution that needs
/// more ends, and the search with it.
class tree_memory final : public std::pmr::memory_resource {
 public:
  tree_memory(u8* begin, u8* end, search_record& record) : next_{begin}, end_{end}, record_{record} {}

 private:
  void* do_allocate(size_t bytes, size_t alignment) override {
    auto* const found = next_ + (0 - reinterpret_cast<u64>(next_)) % alignment;
    if (found > end_ || bytes > static_cast<size_t>(end_ - found)) {
      record_.end = search_end::no_memory;
      _exit(0);
    }
    next_ = found + bytes;
    return found;
  }
  void do_deallocate(void*, size_t, size_t) override {}
  bool do_is_equal(memory_resource const& other) const noexcept override { return this == &other; }

  u8* next_;
  u8* end_;
  search_record& record_;
};

/// A search tree in memory that the children of this process share.
struct shared_tree {
  static constexpr size_t bytes = size_t{1} << 28;
  /// Half of the memory, with the smaller sets that it grew from.
  static constexpr size_t most_states = size_t{1} << 22;

  /// Null if there is no memory.
  static search_tree* make(search_record& record) {
    void* const memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? nullptr : &(new (memory) shared_tree{record})->tree;
  }

  explicit shared_tree(search_record& record)
      : memory{reinterpret_cast<u8*>(this + 1), reinterpret_cast<u8*>(this) + bytes, record},
        tree{0, &memory, most_states} {}

  tree_memory memory;
  search_tree tree;
};

inline bool is_searched(u64 lanes) { return lanes <= directed_schedule::most_lanes; }

/// The schedule of one child: ends it where it leads nowhere new, and writes its deviations down
/// where the parent finds them.
class child_schedule final : public schedule_search {
 public:
  child_schedule(search_tree& tree, search_record& record) : schedule_search{tree}, record_{record} {}

  bool takes(u64 lanes) override {
    if (is_searched(lanes)) record_.launches += lanes > 1;
    else if (lanes > record_.large_launch) record_.large_launch = lanes;
    return is_searched(lanes);
  }

 private:
  u32 choose(u32 usual, u64 allowed, u64 state, bool preempts) override {
    u32 const chosen = schedule_search::choose(usual, allowed, state, preempts);
    if (chosen != usual) note({decisions() - 1, chosen});
    return chosen;
  }

  void note(deviation const& made) {
    if (record_.deviation_count == search_record::most_deviations) {
      record_.end = search_end::too_long;
      end_early();
    }
    record_.deviations[record_.deviation_count++] = made;
  }

  [[noreturn]] void end_early() override { _exit(0); }

  search_record& record_;
};

/// Follows the deviations of a search.
class program_replay final : public replayed_schedule {
 public:
  explicit program_replay(std::vector<deviation> const& wanted) : replayed_schedule{wanted, false} {}
  bool takes(u64 lanes) override { return is_searched(lanes); }
};

/// The parent.
class program_search {
 public:
  program_search(search_tree& tree, search_record& record) : tree_{tree}, record_{record}, schedule_{tree, record} {
    signal(SIGCHLD, SIG_DFL);
    sigemptyset(&wakes_);
    sigaddset(&wakes_, SIGCHLD);
  }

  directed_schedule& schedule() { return schedule_; }

  /// Executes one schedule after the other; comes back in the children alone.
  void run() {
    sigset_t before;
    sigprocmask(SIG_BLOCK, &wakes_, &before);
    do {
      schedule_.restart();
      record_.deviation_count = 0;
      pid_t const child = fork();
      if (child == 0) {
        sigprocmask(SIG_SETMASK, &before, nullptr);
        return;
      }
      if (child < 0) record_.end = search_end::no_process;
      else judge(ending_of(child));
    } while (goes_on());
    _exit(0);
  }

 private:
  /// The status of a child when it has ended.
  int ending_of(pid_t child) {
    timespec const limit{record_.timeout_seconds ? record_.timeout_seconds : 1 << 30, 0};
    int status = 0;
    // SIGCHLD is blocked, so that none comes between the two calls.
    while (waitpid(child, &status, WNOHANG) == 0) {
      if (sigtimedwait(&wakes_, nullptr, &limit) >= 0 || errno != EAGAIN) continue;
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      if (WIFSIGNALED(status)) record_.end = search_end::hung;
      break;
    }
    return status;
  }

  /// Ends as a child that failed; drops the output of others.
  void judge(int status) {
    record_.executions.fetch_add(1, std::memory_order_relaxed);
    if (status == 0) {
      // A terminal keeps it.
      if (output_ >= 0 && ftruncate(STDOUT_FILENO, output_) == 0) lseek(STDOUT_FILENO, output_, SEEK_SET);
      return;
    }
    if (record_.end != search_end::hung) record_.end = search_end::failed;
    if (WIFEXITED(status)) _exit(WEXITSTATUS(status));
    signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
    _exit(1);
  }

  bool goes_on() {
    bool const is_awaited = getppid() == asked_by_;
    if (record_.end != search_end::none || !is_awaited) return false;
    if (tree_.advance()) return true;
    if (tree_.strayed) {
      record_.end = search_end::strayed;
      return false;
    }
    record_.bounds_done = tree_.bound + 1;
    if (!tree_.leaves_some) record_.end = search_end::complete;
    return tree_.raise_bound();
  }

  search_tree& tree_;
  search_record& record_;
  child_schedule schedule_;
  pid_t asked_by_ = getppid();
  sigset_t wakes_;
  off_t output_ = lseek(STDOUT_FILENO, 0, SEEK_END);  // where that of children begins, in a file
};

/// Kernels run by `schedule`, unless the program says otherwise.
inline bool direct(directed_schedule& schedule) {
  host::detail::chosen_execution = {.mode = host::execution_mode::deterministic,
                                    .policy = host::schedule_policy::directed,
                                    .director = &schedule,
                                    .masks = host::mask_policy::maximal};
  return true;
}

[[noreturn]] inline void refuse(char const* name, char const* value, char const* why) {
  std::fprintf(stderr, "%s=%s: %s\n", name, value, why);
  std::exit(2);
}

inline bool search(char const* file) {
  auto* const record = map_search_record(file);
  auto* const tree = record ? shared_tree::make(*record) : nullptr;
  if (!tree) refuse("WARPHEAP_SEARCH", file, "no record can be kept there");
  unsetenv("WARPHEAP_SEARCH");  // programs that this one starts run as they are
  auto* const made = new program_search{*tree, *record};
  made->run();
  return direct(made->schedule());
}

inline bool replay(char const* text) {
  auto const deviations = deviations_in(text);
  if (!deviations) refuse("WARPHEAP_SCHEDULE", text, "a schedule is written like 12:1,40:2");
  return direct(*new program_replay{*deviations});
}

/// Whether the environment says which schedules this program runs under.
inline bool const is_directed = [] {
  char const* const file = std::getenv("WARPHEAP_SEARCH");
  if (file && *file != 0) return search(file);
  char const* const text = std::getenv("WARPHEAP_SCHEDULE");
  return text && *text != 0 && replay(text);
}();

}  // namespace warpheap::explore::detail
