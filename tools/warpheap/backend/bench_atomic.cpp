#include "../../../bench/atomic.hpp"

#include "work.hpp"

namespace warpheap::tool {
inline namespace WARPHEAP_BACKEND {

std::vector<bench::result> run_atomic(bench::request const& asked) { return bench::atomics(asked); }

}  // namespace WARPHEAP_BACKEND
}  // namespace warpheap::tool
