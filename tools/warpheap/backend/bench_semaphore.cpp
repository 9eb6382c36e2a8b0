#include "../../../bench/semaphore.hpp"

#include "work.hpp"

namespace warpheap::tool {
inline namespace WARPHEAP_BACKEND {

std::vector<bench::result> run_semaphore(bench::request const& asked) { return bench::semaphore(asked); }

}  // namespace WARPHEAP_BACKEND
}  // namespace warpheap::tool
