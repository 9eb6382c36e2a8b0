#include "../../../bench/collective_mutex.hpp"

#include "work.hpp"

namespace warpheap::tool {
inline namespace WARPHEAP_BACKEND {

std::vector<bench::result> run_collective_mutex(bench::request const& asked) { return bench::mutexes(asked); }

}  // namespace WARPHEAP_BACKEND
}  // namespace warpheap::tool
