// SPDX-License-Identifier: Apache-2.0
#include "heap_list.hpp"

#include <fmt/format.h>

#include "cli/numbers.hpp"
#include "cli/printable.hpp"
#include "io/text_table.hpp"

namespace warpheap::tool {

namespace {

/// A reading that is older is told to be.
constexpr double old_seconds = 5;

}  // namespace

double live_share(gauge_figures const& figures) {
  if (figures.committed_bytes == 0) return 0;
  return static_cast<double>(figures.live_bytes) / static_cast<double>(figures.committed_bytes);
}

std::string short_bytes(u64 bytes) {
  constexpr char const* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1023.5; value /= 1024) ++unit;  // which would be printed as 1024
  return fmt::format("{:.{}f} {}", value, unit == 0 ? 0 : decimals_of(value), units[unit]);
}

std::string heap_list(published_heaps const& seen, size_t line_columns) {
  text_table table{{">pid", "program", "heap", "allocator", "device", ">pool", ">committed", ">live", ">%", ">blocks",
                    ">highest", ">failures", ">largest failed"},
                   3};
  for (auto const& heap : seen.heaps) {
    auto const& now = heap.figures;
    table.add({fmt::format("{}", heap.process), heap.program, heap.name, heap.allocator, heap.device,
               short_bytes(now.pool_bytes), short_bytes(now.committed_bytes), short_bytes(now.live_bytes),
               fmt::format("{:.0f}", 100 * live_share(now)), fmt::format("{}", now.live_blocks),
               short_bytes(now.highest_live_bytes), fmt::format("{}", now.failures),
               now.failures ? short_bytes(now.largest_failed_bytes) : ""});
    if (heap.age_seconds > old_seconds)
      table.note(fmt::format("{} of {}: as of {:.0f} s ago", printable(heap.name), heap.process, heap.age_seconds));
  }
  if (seen.of_other_versions != 0)
    table.note(fmt::format("not shown: {} of programs with another version of Warpheap", seen.of_other_versions));
  if (seen.heaps.empty() && seen.of_other_versions == 0) return "no running program publishes a heap\n";
  return table.text(fmt::format("{} heap{}", seen.heaps.size(), seen.heaps.size() == 1 ? "" : "s"),
                    {.columns = line_columns, .says_shared_values_once = false});
}

}  // namespace warpheap::tool
