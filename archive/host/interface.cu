// SPDX-License-Identifier: Apache-2.0
// The functions of warpheap.h: exceptions become a status and a sentence.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <thread>
#include <utility>

#include "heap.hpp"

struct warpheap_heap : warpheap::archive::heap {
  using heap::heap;
};

namespace {

using namespace warpheap;

/// Not a string: what is destroyed with its thread is gone in functions that run at exit.
thread_local char last_error[1024];

warpheap_status failed(warpheap_status status, char const* sentence) noexcept {
  std::snprintf(last_error, sizeof last_error, "%s", sentence);
  return status;
}

/// What a machine without a usable GPU answers.
bool means_no_device(int code) {
  constexpr int codes[] = {cudaErrorNoDevice,
                           cudaErrorInsufficientDriver,
                           cudaErrorInitializationError,
                           cudaErrorDevicesUnavailable,
                           cudaErrorStubLibrary,
                           cudaErrorSystemDriverMismatch,
                           cudaErrorSystemNotReady,
                           cudaErrorCompatNotSupportedOnDevice};
  return std::find(std::begin(codes), std::end(codes), code) != std::end(codes);
}

/// Runs `body`, and makes a status of what it throws.
template <class Body>
warpheap_status guarded(Body body) noexcept {
  try {
    body();
    return WARPHEAP_OK;
  } catch (std::invalid_argument const& error) {
    return failed(WARPHEAP_BAD_ARGUMENT, error.what());
  } catch (out_of_memory const& error) {
    return failed(WARPHEAP_OUT_OF_MEMORY, error.what());
  } catch (std::bad_alloc const&) {
    return failed(WARPHEAP_OUT_OF_MEMORY, "the host has no memory");
  } catch (archive::context_gone const& error) {
    return failed(WARPHEAP_CONTEXT_GONE, error.what());
  } catch (archive::no_archive const& error) {
    return failed(WARPHEAP_NOT_FOUND, error.what());
  } catch (archive::other_version const& error) {
    return failed(WARPHEAP_WRONG_VERSION, error.what());
  } catch (cuda_error const& error) {
    return failed(means_no_device(error.code) ? WARPHEAP_NO_DEVICE : WARPHEAP_CUDA_ERROR, error.what());
  } catch (std::exception const& error) {
    return failed(WARPHEAP_CUDA_ERROR, error.what());
  }
}

/// Runs `body` in the heap's context.
template <class Body>
warpheap_status in_context_of(warpheap_heap* heap, Body body) noexcept {
  return guarded([&] {
    if (!heap) throw std::invalid_argument{"the heap is NULL"};
    archive::context::scope const there{heap->where()};
    body();
  });
}

void expect(bool is_there, char const* what) {
  if (!is_there) throw std::invalid_argument{std::string{what} + " is NULL"};
}

/// Copies of the archive that nvcc has linked into the program and its libraries.
struct unit_list {
  std::mutex mutex;
  warpheap_unit* first = nullptr;

  static unit_list& instance() {
    static unit_list* const list = new unit_list;  // outlives every library
    return *list;
  }
};

/// Heaps that report when the program ends without destroying them.
struct reporting_heaps {
  std::mutex mutex;
  std::set<warpheap_heap*> all;
  pid_t process = getpid();

  static reporting_heaps& instance() {
    static reporting_heaps* const heaps = new reporting_heaps;
    return *heaps;
  }

  void add(warpheap_heap* heap) {
    static bool const at_exit = std::atexit([] { instance().report(); }) == 0;
    (void)at_exit;
    std::lock_guard const lock{mutex};
    all.insert(heap);
  }
  /// Whether it had been added.
  bool remove(warpheap_heap* heap) {
    std::lock_guard const lock{mutex};
    return all.erase(heap) != 0;
  }

  /// At the end of the process. A child that a fork has made says nothing: the heaps are its
  /// parent's.
  void report() {
    if (getpid() != process) return;
    std::lock_guard const lock{mutex};
    for (auto* const heap : all) report_within(heap, std::chrono::seconds{2});
    all.clear();
  }

  /// A reading waits for room on the GPU, which a kernel may never leave.
  static void report_within(warpheap_heap* heap, std::chrono::seconds limit) {
    auto const ended = std::make_shared<std::promise<void>>();
    auto const waiting = ended->get_future();
    std::thread{[heap, ended] {
      print(heap);
      heap->stop_sampling();
      ended->set_value();
    }}.detach();
    if (waiting.wait_for(limit) == std::future_status::ready) return;
    std::fprintf(stderr, "%s (as last seen: the GPU does not answer)\n", heap->last_report().c_str());
  }

  static void print(warpheap_heap* heap) {
    char line[512];
    auto const status = warpheap_report(heap, line, sizeof line);
    if (status == WARPHEAP_OK) std::fprintf(stderr, "%s\n", line);
    else std::fprintf(stderr, "%s (as last seen: %s)\n", heap->last_report().c_str(), last_error);
  }
};

}  // namespace

extern "C" {

char const* warpheap_last_error(void) { return last_error; }

int warpheap_version(void) { return WARPHEAP_VERSION; }

int warpheap_oldest_driver(void) { return CUDART_VERSION / 1000 * 1000; }

warpheap_status warpheap_settings_from_environment(warpheap_settings* settings) {
  return guarded([&] {
    expect(settings, "settings");
    *settings = archive::settings_of_environment();
  });
}

warpheap_status warpheap_create_for(int interface_number, warpheap_heap** heap, warpheap_settings const* settings) {
  return guarded([&] {
    expect(heap, "heap");
    *heap = nullptr;
    if (interface_number != WARPHEAP_INTERFACE)
      throw archive::other_version{"the program was compiled for interface " + std::to_string(interface_number) +
                                   " of warpheap.h, and this library has " + std::to_string(WARPHEAP_INTERFACE)};
    auto const wanted = archive::wishes::read(settings ? *settings : archive::settings_of_environment());
    auto made = std::make_unique<warpheap_heap>(wanted);
    if (made->reports()) reporting_heaps::instance().add(made.get());
    *heap = made.release();
  });
}

warpheap_status warpheap_bind_program(warpheap_heap* heap) {
  return in_context_of(heap, [&] {
    auto& units = unit_list::instance();
    std::lock_guard const lock{units.mutex};
    if (!units.first)
      throw archive::no_archive{"neither the program nor a library of its own was linked with libwarpheap_device.a"};
    for (auto const* unit = units.first; unit; unit = unit->next) {
      void* address = nullptr;
      size_t bytes = 0;
      auto const status = static_cast<cudaError_t>(unit->find(&address, &bytes));
      // The entry of a copy is a global name, of which the process's first serves all.
      if (status == cudaErrorInvalidSymbol)
        throw archive::no_archive{
            "CUDA does not know a copy of the archive: a shared library that is linked with one needs -Wl,-Bsymbolic"};
      backend::throw_on_error(status, "cudaGetSymbolAddress");
      heap->bound_code().add(reinterpret_cast<u64>(address), bytes);
    }
  });
}

warpheap_status warpheap_bind_module(warpheap_heap* heap, void* module) {
  return in_context_of(heap, [&] {
    expect(module, "module");
    heap->bound_code().add_of(archive::driver::instance().of_module, static_cast<CUmodule>(module), "module");
  });
}

warpheap_status warpheap_bind_library(warpheap_heap* heap, void* library) {
  return in_context_of(heap, [&] {
    expect(library, "library");
    heap->bound_code().add_of(archive::driver::instance().of_library, static_cast<CUlibrary>(library), "library");
  });
}

warpheap_status warpheap_bind_variable(warpheap_heap* heap, unsigned long long address, size_t bytes) {
  return in_context_of(heap, [&] {
    expect(address != 0, "address");
    heap->bound_code().add(address, bytes);
  });
}

warpheap_status warpheap_unbind(warpheap_heap* heap) {
  return in_context_of(heap, [&] { heap->bound_code().clear(); });
}

unsigned long long warpheap_handle(warpheap_heap const* heap) { return heap ? heap->handle() : 0; }

warpheap_status warpheap_grow(warpheap_heap* heap, size_t bytes, size_t* mapped) {
  return in_context_of(heap, [&] {
    size_t const more = heap->grow(bytes);
    if (mapped) *mapped = more;
  });
}

warpheap_status warpheap_read_statistics(warpheap_heap* heap, warpheap_statistics* statistics) {
  return in_context_of(heap, [&] {
    expect(statistics, "statistics");
    auto const asked = statistics->struct_bytes;
    if (asked < sizeof statistics->struct_bytes)
      throw std::invalid_argument{"statistics: struct_bytes is " + std::to_string(asked) +
                                  ", and not sizeof(warpheap_statistics)"};
    auto told = heap->statistics();
    told.struct_bytes = (std::min<unsigned long long>)(asked, sizeof told);
    std::memcpy(statistics, &told, told.struct_bytes);
  });
}

warpheap_status warpheap_reset(warpheap_heap* heap, void* stream) {
  return in_context_of(heap, [&] { heap->reset(static_cast<cudaStream_t>(stream)); });
}

warpheap_status warpheap_report(warpheap_heap* heap, char* line, size_t bytes) {
  return in_context_of(heap, [&] {
    expect(line && bytes, "line");
    std::snprintf(line, bytes, "%s", heap->report().c_str());
  });
}

warpheap_status warpheap_destroy(warpheap_heap* heap) {
  if (!heap) return WARPHEAP_OK;
  if (reporting_heaps::instance().remove(heap)) reporting_heaps::print(heap);
  auto const status = guarded([&] {
    if (!heap->where().is_alive()) {
      heap->abandon();
      throw archive::context_gone{};
    }
    archive::context::scope const there{heap->where()};
    std::unique_ptr<warpheap_heap> const owned{std::exchange(heap, nullptr)};
    owned->retire();
  });
  delete heap;
  return status;
}

void warpheap_enter_unit(warpheap_unit* unit) {
  auto& units = unit_list::instance();
  std::lock_guard const lock{units.mutex};
  unit->next = units.first;
  units.first = unit;
}

void warpheap_leave_unit(warpheap_unit* unit) {
  auto& units = unit_list::instance();
  std::lock_guard const lock{units.mutex};
  for (auto** link = &units.first; *link; link = &(*link)->next) {
    if (*link != unit) continue;
    *link = unit->next;
    return;
  }
}

}  // extern "C"
