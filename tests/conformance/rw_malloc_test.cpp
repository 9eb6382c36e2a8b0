// Runs of units, of 16 bytes, and of 64 where requests differ in few units.
#include "suite.hpp"
#include "warpheap/warpheap.hpp"

namespace {

using namespace warpheap;

constexpr creation::rw_malloc_config tight_units{.epoch_counters = 4};
constexpr creation::rw_malloc_config wide_units{.unit_bytes = 64, .aggregated_units = 2, .walk_windows = 3, .epoch_counters = 2};

using rw_malloc_of_16 = plain_allocator<creation::rw_malloc<tight_units>>;
using rw_malloc_of_64 = plain_allocator<creation::rw_malloc<wide_units>>;

WARPHEAP_CONFORMANCE(rw_malloc, rw_malloc_of_16, conformance::crowd::full, 50);
WARPHEAP_CONFORMANCE(rw_malloc_64, rw_malloc_of_64, conformance::crowd::full, 50);

}  // namespace
