// SPDX-License-Identifier: Apache-2.0
#include "child_run.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <thread>

#include "usage_error.hpp"

extern char** environ;

namespace warpheap::tool {

namespace {

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> all;
  all.reserve(texts.size() + 1);
  for (auto& each : texts) all.push_back(each.data());
  all.push_back(nullptr);
  return all;
}

/// Whether one of these NAME=VALUE has the name of `other`.
bool has_name_of(std::vector<std::string> const& settings, std::string_view other) {
  auto const name = other.substr(0, other.find('=') + 1);
  return std::ranges::any_of(settings, [&](auto const& each) { return each.starts_with(name); });
}

/// Starts the program with both streams in `file`.
pid_t start(std::vector<std::string> arguments, std::vector<std::string> const& environment, int file) {
  auto settings = environment;
  for (char** each = environ; *each != nullptr; ++each)
    if (!has_name_of(environment, *each)) settings.emplace_back(*each);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, file, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, file, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setpgroup(&attributes, 0);  // what it starts ends with it
  sigset_t defaults;
  sigemptyset(&defaults);
  for (int const each : {SIGPIPE, SIGXFSZ}) sigaddset(&defaults, each);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  auto const typed = pointers_to(arguments), settings_typed = pointers_to(settings);
  pid_t child = 0;
  int const error = posix_spawnp(&child, typed[0], &actions, &attributes, typed.data(), settings_typed.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw usage_error{fmt::format("{} could not be started: {}", arguments[0], std::strerror(error))};
  return child;
}

std::string contents_of(std::FILE* file) {
  std::string text;
  std::rewind(file);
  char part[4096];
  for (size_t got = 0; (got = std::fread(part, 1, sizeof(part), file)) > 0;) text.append(part, got);
  return text;
}

}  // namespace

std::string ending_after(std::chrono::milliseconds limit) {
  return fmt::format("did not end within {:.0f} s", std::chrono::duration<double>(limit).count());
}

child_outcome run_child(std::vector<std::string> const& arguments, std::vector<std::string> const& environment,
                        std::chrono::milliseconds limit, std::atomic<bool> const& is_wanted) {
  using clock = std::chrono::steady_clock;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> const file{std::tmpfile(), std::fclose};
  if (!file) throw usage_error{fmt::format("no file for the output of {}: {}", arguments[0], std::strerror(errno))};
  fcntl(fileno(file.get()), F_SETFD, FD_CLOEXEC);
  pid_t const child = start(arguments, environment, fileno(file.get()));
  auto const end = clock::now() + limit;
  child_outcome made;
  int status = 0;
  auto nap = std::chrono::microseconds{200};
  while (waitpid(child, &status, WNOHANG) == 0) {
    made.was_stopped = clock::now() >= end || !is_wanted.load(std::memory_order_relaxed);
    if (made.was_stopped) {
      kill(-child, SIGKILL);
      waitpid(child, &status, 0);
      break;
    }
    std::this_thread::sleep_for(nap);
    if (nap < std::chrono::milliseconds{10}) nap *= 2;
  }
  made.succeeded = !made.was_stopped && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (made.was_stopped) made.ending = ending_after(limit);
  else if (WIFEXITED(status)) made.ending = fmt::format("ended with exit status {}", WEXITSTATUS(status));
  else made.ending = fmt::format("was ended by a signal: {}", strsignal(WTERMSIG(status)));
  made.output = contents_of(file.get());
  return made;
}

}  // namespace warpheap::tool
