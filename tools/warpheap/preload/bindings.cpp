// SPDX-License-Identifier: Apache-2.0
#include "bindings.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "driver.hpp"
#include "relink/relink.hpp"
#include "warpheap.h"

namespace warpheap::preload {

namespace {

/// The archive's host library, which is loaded with the first heap: it brings a CUDA runtime.
struct heap_functions {
  decltype(&warpheap_last_error) last_error;
  decltype(&warpheap_create_for) create;
  decltype(&warpheap_bind_module) bind_module;
  decltype(&warpheap_bind_library) bind_library;
  decltype(&warpheap_destroy) destroy;
};

template <class Function>
void find(void* library, char const* name, Function& function) {
  function = reinterpret_cast<Function>(true_dlsym(library, name));
  if (function == nullptr) throw std::runtime_error{std::string{"libwarpheap_host.so has no function "} + name};
}

/// Opened without a lock: the loader has one of its own, under which constructors of other
/// libraries load device code.
heap_functions const& functions() {
  static std::atomic<heap_functions const*> found{nullptr};
  if (auto const* const made = found.load(std::memory_order_acquire)) return *made;
  auto const path = archive_folder() + "/libwarpheap_host.so.1";
  auto* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error{dlerror()};
  auto* const made = new heap_functions;
  find(library, "warpheap_last_error", made->last_error);
  find(library, "warpheap_create_for", made->create);
  find(library, "warpheap_bind_module", made->bind_module);
  find(library, "warpheap_bind_library", made->bind_library);
  find(library, "warpheap_destroy", made->destroy);
  found.store(made, std::memory_order_release);
  return *made;
}

/// A context, and what its kernels take memory of.
struct bound_context {
  unsigned long long number;  ///< of the context: its handle may become another's
  warpheap_heap* heap;        ///< nullptr if it could not be made
  std::string fault;          ///< then why
  size_t libraries;           ///< that are bound, of those that were loaded, in their order
  bool is_said = false;       ///< that a launch found no heap
};

/// Never destroyed: the program's threads may launch kernels until the process is gone.
struct state {
  std::timed_mutex making;
  std::mutex mutex;  ///< of what follows
  std::map<void*, bound_context> contexts;
  std::vector<void*> libraries;
  std::atomic<unsigned long> changes{0};
};
state& all() {
  static auto& made = *new state;
  return made;
}

/// Kernels need it for the heap's functions if they recurse: their stack is what the context has.
void raise_stack_limit() {
  size_t bytes = 0;
  if (call_driver("cuCtxGetLimit", &bytes, stack_limit) == success)
    call_driver("cuCtxSetLimit", stack_limit, bytes + relink::most_heap_stack);
}

void destroy(warpheap_heap* heap) {
  if (heap != nullptr && functions().destroy(heap) != WARPHEAP_OK)
    say_more(std::string{"a heap is destroyed: "} + functions().last_error());
}

/// With the lock. Whether there is an entry for the context of this number; one of a context that
/// is gone becomes `stale`.
bool has_entry(void* context, unsigned long long number, warpheap_heap*& stale) {
  auto const found = all().contexts.find(context);
  if (found == all().contexts.end()) return false;
  if (found->second.number == number) return true;
  stale = found->second.heap;
  all().contexts.erase(found);
  return false;
}

/// Makes an entry for the current context, if it has none. A heap is not made with the lock, under
/// which no launch may wait for long. One thread makes it, and others wait, but not for ever: it
/// may need the loader's lock, which one of them may hold. Then each makes one, and one is kept.
void ensure_entry(void* context) {
  constexpr std::chrono::seconds patience{5};
  auto const number = number_of(context);
  warpheap_heap* stale = nullptr;
  bound_context made{number, nullptr, {}, 0, false};
  {
    std::lock_guard const lock{all().mutex};
    if (has_entry(context, number, stale)) return;
  }
  destroy(std::exchange(stale, nullptr));
  {
    std::unique_lock const alone{all().making, patience};
    {
      std::lock_guard const lock{all().mutex};
      if (has_entry(context, number, stale)) return;
    }
    own_captures const relaxed;
    if (functions().create(WARPHEAP_INTERFACE, &made.heap, nullptr) != WARPHEAP_OK)
      made.fault = functions().last_error();
    std::lock_guard const lock{all().mutex};
    auto& entry = all().contexts[context];
    if (entry.heap == nullptr) {
      if (made.heap != nullptr) raise_stack_limit();
      std::swap(entry, made);
    }
  }
  destroy(stale);
  destroy(made.heap);
}

/// With the lock. The entry of a context that has a heap. Throws std::runtime_error if it has none.
bound_context& entry_of(void* context) {
  auto const found = all().contexts.find(context);
  if (found == all().contexts.end()) throw std::runtime_error{"the context is gone"};
  if (found->second.heap == nullptr) throw std::runtime_error{found->second.fault};
  return found->second;
}

/// With the lock. Binds those that are not bound yet, each once; returns why the last library
/// could not be bound now.
std::string bind_libraries(bound_context& entry) {
  std::string fault;
  while (entry.libraries < all().libraries.size()) {
    if (!fault.empty()) say("kernels get no memory: " + fault);
    bool const bound = functions().bind_library(entry.heap, all().libraries[entry.libraries++]) == WARPHEAP_OK;
    fault = bound ? "" : functions().last_error();
  }
  return fault;
}

/// Makes the context's heap, if libraries were loaded, and binds them. Why one has none, said to
/// one launch.
std::string bind_before_launch(void* context) {
  {
    std::lock_guard const lock{all().mutex};
    if (all().libraries.empty()) return {};
  }
  ensure_entry(context);
  std::lock_guard const lock{all().mutex};
  auto const found = all().contexts.find(context);
  if (found == all().contexts.end()) return {};
  auto& entry = found->second;
  if (entry.heap != nullptr) return bind_libraries(entry);
  return std::exchange(entry.is_said, true) ? "" : entry.fault;
}

/// Whether heaps may be made and libraries bound now. A first launch may be recorded, and a
/// recorded kernel runs only later.
bool may_bind(void* context) { return context != nullptr && !is_captured(nullptr); }

/// Runs `bind`, and says what fails. Whether nothing failed.
template <class Bind>
bool is_bound(Bind bind) noexcept {
  own_calls const mine;
  own_captures const relaxed;
  ++all().changes;
  try {
    bind();
    return true;
  } catch (std::exception const& fault) {
    say(std::string{"kernels keep CUDA's heap: "} + fault.what());
    return false;
  }
}

}  // namespace

void make_heap() {
  auto* const context = current_context();
  if (!may_bind(context)) return;
  ensure_entry(context);
  std::lock_guard const lock{all().mutex};
  entry_of(context);
}

bool has_heap() {
  auto* const context = current_context();
  std::lock_guard const lock{all().mutex};
  auto const found = all().contexts.find(context);
  return found != all().contexts.end() && found->second.heap != nullptr;
}

bool module_loaded(void* module) {
  return is_bound([module] {
    auto* const context = current_context();
    if (!may_bind(context)) throw std::runtime_error{"a module is loaded while a stream is captured"};
    ensure_entry(context);
    std::lock_guard const lock{all().mutex};
    if (functions().bind_module(entry_of(context).heap, module) != WARPHEAP_OK)
      throw std::runtime_error{functions().last_error()};
  });
}

bool library_loaded(void* library) {
  bool const bound = is_bound([library] {
    auto* const context = current_context();
    bool const now = may_bind(context);
    if (now) ensure_entry(context);
    std::lock_guard const lock{all().mutex};
    all().libraries.push_back(library);
    if (!now) return;
    if (auto const fault = bind_libraries(entry_of(context)); !fault.empty()) throw std::runtime_error{fault};
  });
  if (!bound) library_unloaded(library);
  return bound;
}

void library_unloaded(void* library) {
  std::lock_guard const lock{all().mutex};
  ++all().changes;
  auto& libraries = all().libraries;
  auto const found = std::ranges::find(libraries, library);
  if (found == libraries.end()) return;
  auto const index = static_cast<size_t>(found - libraries.begin());
  libraries.erase(found);
  for (auto& [handle, context] : all().contexts)
    if (context.libraries > index) --context.libraries;
}

void contexts_changed() { ++all().changes; }

void before_launch(void* stream) noexcept {
  thread_local void* seen_context = nullptr;
  thread_local unsigned long seen_changes = 0;
  auto const changes = all().changes.load(std::memory_order_acquire);
  if (changes == 0 || own_calls::are_made()) return;
  auto* const context = current_context();
  if (context == seen_context && changes == seen_changes) return;
  own_calls const mine;
  if (!may_bind(context) || is_captured(stream)) return;
  own_captures const relaxed;
  try {
    if (auto const fault = bind_before_launch(context); !fault.empty()) say("kernels get no memory: " + fault);
  } catch (std::exception const& fault) {
    say(std::string{"kernels get no memory: "} + fault.what());
  }
  seen_context = context;
  seen_changes = changes;
}

void before_destruction(void* context) noexcept {
  own_calls const mine;
  warpheap_heap* heap = nullptr;
  {
    std::lock_guard const lock{all().mutex};
    ++all().changes;
    auto const found = all().contexts.find(context);
    if (found == all().contexts.end()) return;
    heap = found->second.heap;
    all().contexts.erase(found);
  }
  try {
    destroy(heap);
  } catch (std::exception const& fault) {
    say(fault.what());
  }
}

}  // namespace warpheap::preload
