// SPDX-License-Identifier: Apache-2.0
// Scenarios of the default allocator alone, and of primitives.
#include "append.hpp"
#include "atomic.hpp"
#include "collective_mutex.hpp"
#include "graph_scaling.hpp"
#include "growth.hpp"
#include "hash_map.hpp"
#include "instruction_latency.hpp"
#include "peers.hpp"
#include "random_walk.hpp"
#include "rcu_delegation.hpp"
#include "registry.hpp"
#include "semaphore.hpp"
#include "tracing.hpp"

namespace warpheap::bench { inline namespace WARPHEAP_BACKEND { namespace {

registration const scenarios_of_lone[]{
    registration{about_growth()},           registration{about_peers()},
    registration{about_graph_scaling()},    registration{about_tracing()},
    registration{about_semaphore()},        registration{about_rcu_delegation()},
    registration{about_collective_mutex()}, registration{about_atomic()},
    registration{about_random_walk()},      registration{about_instruction_latency()},
    registration{about_append()},           registration{about_hash_map()},
};

}}}  // namespace warpheap::bench::WARPHEAP_BACKEND
