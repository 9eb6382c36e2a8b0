#include "../../../bench/rcu_delegation.hpp"

#include "work.hpp"

namespace warpheap::tool {
inline namespace WARPHEAP_BACKEND {

std::vector<bench::result> run_rcu_delegation(bench::request const& asked) { return bench::rcu_delegation(asked); }

}  // namespace WARPHEAP_BACKEND
}  // namespace warpheap::tool
