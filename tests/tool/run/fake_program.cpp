// SPDX-License-Identifier: Apache-2.0
// A CUDA program: `program WAY STEP...` finds the driver's functions in that way, and does these
// steps one by one. It writes down where its images are, and which calls fail.
//
//   ways   address (cuGetProcAddress), old (that of CUDA 11), dlsym, default (dlsym without a
//          library's handle), linked; thread, dlsym_thread and linked_thread for functions that
//          launch into the thread's stream
//   steps  library=FILE module=FILE module_ex=FILE module_fat=FILE   the file's contents
//          library_wrapped=FILE   the same in a wrapper, as the runtime does
//          library_file=FILE module_file=FILE   by the file's name
//          unload=INDEX   of the libraries that were loaded
//          launch launch_ex launch_cooperative launch_graph
//          threads=COUNT   that launch at once
//          recording=1     launches are recorded from now on; 0: they run
//          create   a context, and makes it current
//          context=INDEX (0 is the device's own), no_context   makes it current
//          destroy=INDEX   a context
//          reset   the device
//          stack=BYTES other_limit=BYTES
//          parent   calls getppid
//          preloaded_launch   by a function that fake_preloaded.cpp has
//          say=TEXT status=NUMBER   on standard output, and for the program's end
#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <barrier>
#include <cstring>
#include <deque>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/tool/relink/written_down.hpp"

// NOLINTBEGIN(readability-identifier-naming): the driver's names

#if defined(FAKE_PROGRAM_LINKED)
extern "C" {
int cuCtxCreate_v2(void**, unsigned, int);
int cuCtxSetCurrent(void*);
int cuCtxGetCurrent(void**);
int cuCtxSetLimit(int, size_t);
int cuCtxDestroy_v2(void*);
int cuDevicePrimaryCtxReset_v2(int);
int cuLibraryLoadData(void**, void const*, int*, void**, unsigned, int*, void**, unsigned);
int cuLibraryLoadFromFile(void**, char const*, int*, void**, unsigned, int*, void**, unsigned);
int cuLibraryUnload(void*);
int cuModuleLoad(void**, char const*);
int cuModuleLoadData(void**, void const*);
int cuModuleLoadDataEx(void**, void const*, unsigned, int*, void**);
int cuModuleLoadFatBinary(void**, void const*);
#define LAUNCH_FUNCTIONS(name, ...) \
  int name(__VA_ARGS__);            \
  int name##_ptsz(__VA_ARGS__);
LAUNCH_FUNCTIONS(cuLaunchKernel, void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                 void**, void**)
LAUNCH_FUNCTIONS(cuLaunchKernelEx, void const*, void*, void**, void**)
LAUNCH_FUNCTIONS(cuLaunchCooperativeKernel, void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                 void*, void**)
LAUNCH_FUNCTIONS(cuGraphLaunch, void*, void*)
}
#define LINKED(symbol) reinterpret_cast<void*>(symbol)
#else
#define LINKED(symbol) nullptr
#endif

namespace {

std::string way;

void* driver() {
  static void* const found = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  return found;
}

void* by_address(char const* name) {
  void* function = nullptr;
  constexpr int cuda_11 = 11030, cuda_12 = 12000;
  if (way == "old") {
    auto* const get =
        reinterpret_cast<int (*)(char const*, void**, int, unsigned long)>(dlsym(driver(), "cuGetProcAddress"));
    return get(name, &function, cuda_11, 0) == 0 ? function : nullptr;
  }
  // The function is asked for itself first, as the runtime does.
  using get_address = int (*)(char const*, void**, int, unsigned long, void*);
  auto* const first = reinterpret_cast<get_address>(dlsym(driver(), "cuGetProcAddress_v2"));
  void* get = nullptr;
  int status = -1;
  if (first("cuGetProcAddress", &get, cuda_12, 0, &status) != 0 || status != 0) return nullptr;
  unsigned long const flags = way == "thread" ? 2 : 1;
  status = -1;
  bool const found = reinterpret_cast<get_address>(get)(name, &function, cuda_12, flags, &status) == 0 && status == 0;
  return found ? function : nullptr;
}

void* found_by_dlsym(void* library, std::string const& symbol) {
  // Launches have a second function, which takes 0 for the thread's stream.
  void* const of_thread = way == "dlsym_thread" ? dlsym(library, (symbol + "_ptsz").c_str()) : nullptr;
  return of_thread != nullptr ? of_thread : dlsym(library, symbol.c_str());
}

/// `name` without a version, `symbol` as the driver exports it.
void* find(char const* name, char const* symbol, void* linked) {
  void* const library = driver();
  void* found = linked;
  if (way == "default") found = found_by_dlsym(RTLD_DEFAULT, symbol);
  else if (way.starts_with("dlsym")) found = found_by_dlsym(library, symbol);
  else if (!way.starts_with("linked")) found = by_address(name);
  if (found == nullptr) {
    std::fprintf(stderr, "no function %s\n", name);
    std::exit(3);
  }
  return found;
}

template <class... Arguments>
void call(char const* name, void* function, Arguments... arguments) {
  if (int const result = reinterpret_cast<int (*)(Arguments...)>(function)(arguments...); result != 0)
    write_down("program: %s fails with error %d", name, result);
}
#define CALL(name, symbol, ...) call(#name, find(#name, #symbol, LINKED(symbol)), __VA_ARGS__)
#define CALL_LAUNCH(name, ...) \
  call(#name, find(#name, #name, way == "linked_thread" ? LINKED(name##_ptsz) : LINKED(name)), __VA_ARGS__)

void* const none = nullptr;
std::vector<void*> contexts, libraries;
int status = 0;

/// What a file holds, for as long as the program lives, and a zero.
void const* image_in(std::string const& path) {
  static std::deque<std::string> images;
  std::ifstream file{path, std::ios::binary};
  images.emplace_back(std::istreambuf_iterator<char>{file}, std::istreambuf_iterator<char>{});
  write_down("program: image at %p", static_cast<void const*>(images.back().data()));
  return images.back().data();
}

struct wrapper {
  unsigned magic = 0x4662'43b1, version = 1;
  void const* fat_binary = nullptr;
};

void launch() { CALL_LAUNCH(cuLaunchKernel, none, 1u, 1u, 1u, 1u, 1u, 1u, 0u, none, none, none); }

void load(std::string_view step, std::string const& path) {
  void* made = nullptr;
  if (step == "library")
    CALL(cuLibraryLoadData, cuLibraryLoadData, &made, image_in(path), none, none, 0u, none, none, 0u);
  if (step == "library_wrapped") {
    static wrapper around;
    around.fat_binary = image_in(path);
    void const* const image = &around;
    CALL(cuLibraryLoadData, cuLibraryLoadData, &made, image, none, none, 0u, none, none, 0u);
  }
  if (step == "library_file")
    CALL(cuLibraryLoadFromFile, cuLibraryLoadFromFile, &made, path.c_str(), none, none, 0u, none, none, 0u);
  if (step == "module") CALL(cuModuleLoadData, cuModuleLoadData, &made, image_in(path));
  if (step == "module_ex") CALL(cuModuleLoadDataEx, cuModuleLoadDataEx, &made, image_in(path), 0u, none, none);
  if (step == "module_fat") CALL(cuModuleLoadFatBinary, cuModuleLoadFatBinary, &made, image_in(path));
  if (step == "module_file") CALL(cuModuleLoad, cuModuleLoad, &made, path.c_str());
  if (step.starts_with("library")) libraries.push_back(made);
}

bool launches(std::string_view step) {
  if (step == "launch") launch();
  else if (step == "launch_ex") CALL_LAUNCH(cuLaunchKernelEx, none, none, none, none);
  else if (step == "launch_cooperative")
    CALL_LAUNCH(cuLaunchCooperativeKernel, none, 1u, 1u, 1u, 1u, 1u, 1u, 0u, none, none);
  else if (step == "launch_graph") CALL_LAUNCH(cuGraphLaunch, none, none);
  else return false;
  return true;
}

void launch_at_once(int count) {
  std::barrier begin{count};
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&begin] {
      begin.arrive_and_wait();
      launch();
    });
  for (auto& each : threads) each.join();
}

bool handles_context(std::string_view step, std::string const& value) {
  void* made = nullptr;
  if (step == "create") {
    CALL(cuCtxCreate, cuCtxCreate_v2, &made, 0u, 0);
    contexts.push_back(made);
    CALL(cuCtxSetCurrent, cuCtxSetCurrent, made);
  } else if (step == "context") {
    CALL(cuCtxSetCurrent, cuCtxSetCurrent, contexts.at(std::stoul(value)));
  } else if (step == "no_context") {
    CALL(cuCtxSetCurrent, cuCtxSetCurrent, none);
  } else if (step == "destroy") {
    CALL(cuCtxDestroy, cuCtxDestroy_v2, contexts.at(std::stoul(value)));
  } else if (step == "reset") {
    CALL(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2, 0);
  } else if (step == "stack") {
    CALL(cuCtxSetLimit, cuCtxSetLimit, 0, static_cast<size_t>(std::stoul(value)));
  } else if (step == "other_limit") {
    CALL(cuCtxSetLimit, cuCtxSetLimit, 1, static_cast<size_t>(std::stoul(value)));
  } else {
    return false;
  }
  return true;
}

void take(std::string_view step, std::string const& value) {
  if (launches(step) || handles_context(step, value)) return;
  if (step == "threads") launch_at_once(std::stoi(value));
  else if (step == "recording")
    call("fakeRecord", dlsym(dlopen("libcuda.so.1", RTLD_NOW), "fakeRecord"), std::stoi(value));
  else if (step == "unload") CALL(cuLibraryUnload, cuLibraryUnload, libraries.at(std::stoul(value)));
  else if (step == "parent")
    write_down("program: its parent is %s", getppid() == syscall(SYS_getppid) ? "right" : "wrong");
  else if (step == "preloaded_launch") call("preloaded_launch", dlsym(RTLD_DEFAULT, "preloaded_launch"), none, none);
  else if (step == "say") std::printf("%s\n", value.c_str());
  else if (step == "status") status = std::stoi(value);
  else load(step, value);
}

}  // namespace

int main(int count, char** arguments) {
  way = count > 1 ? arguments[1] : "none";
  if (way != "none") {
    void* own = nullptr;
#if defined(FAKE_PROGRAM_LINKED)
    cuCtxGetCurrent(&own);
#else
    reinterpret_cast<int (*)(void**)>(dlsym(driver(), "cuCtxGetCurrent"))(&own);
#endif
    contexts.push_back(own);
  }
  for (int i = 2; i < count; ++i) {
    std::string_view const step{arguments[i]};
    auto const equals = step.find('=');
    take(step.substr(0, equals), equals == step.npos ? "" : std::string{step.substr(equals + 1)});
  }
  return status;
}

// NOLINTEND(readability-identifier-naming)
