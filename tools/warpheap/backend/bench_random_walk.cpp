#include "../../../bench/random_walk.hpp"

#include "work.hpp"

namespace warpheap::tool {
inline namespace WARPHEAP_BACKEND {

std::vector<bench::result> run_random_walk(bench::request const& asked) { return bench::random_walk(asked); }

}  // namespace WARPHEAP_BACKEND
}  // namespace warpheap::tool
