// SPDX-License-Identifier: Apache-2.0
// From what was typed to what is run: the backend, the allocators, the pool, the seed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.hpp"
#include "cli/numbers.hpp"
#include "cli/options.hpp"

namespace warpheap::tool {

/// Stands for all allocators of the backend in --allocator.
inline constexpr char const* every_allocator = "all";

/// What the common flags chose.
struct choices {
  std::unique_ptr<backend> on;
  std::vector<std::string> allocators;
  u64 pool_bytes = 0;
  u64 seed = 1;
  bool deterministic = false;
};

/// Throws usage_error for a backend that the program or the machine lacks, for an unknown
/// allocator, and for a pool that does not fit. `host_pool_bytes` is the default on the host
/// backend; on a GPU it is 8 GiB, or half of the free memory if that is less. `others` are names
/// that --allocator takes beside those of the backend's allocators.
choices choose(common_flags const& flags, u64 host_pool_bytes, std::vector<std::string> const& others = {});
/// As choose(), of a command whose --allocator takes the configurations of papers.
choices choose_with_variants(common_flags const& flags, u64 host_pool_bytes);

/// Leaves out the allocators that cannot do what was asked for, and returns why they cannot.
/// `why_not` has the reason for a name, empty for one that can. Throws usage_error with the first
/// reason if none can.
std::vector<std::string> leave_out(choices& chosen, std::function<std::string(std::string const&)> const& why_not);

/// Names of the configurations of papers.
std::vector<std::string> variant_names(backend const& on);
/// Throws usage_error if one of `allocators` is a configuration of a paper that is not `taken`.
void refuse_variants(backend const& on, std::vector<std::string> const& allocators,
                     std::vector<std::string> const& taken = {});

/// Makes a backend; null if the machine has no device that it can use.
using backend_maker = std::unique_ptr<backend> (*)();

/// Gives the program a CUDA backend; without this call it has none. Call it before choose().
void add_cuda_backend(backend_maker make);

/// The backend called `name`; if that is empty, CUDA if there is a device, else the host.
std::unique_ptr<backend> choose_backend(std::string const& name);

/// Names of the backends that this program has.
std::vector<std::string> backend_names();

/// An option by its name, and the text typed for it: empty if it was not given.
using typed_option = std::pair<char const*, std::string>;

/// Throws usage_error if one of the options was given; `reason` says why none may be.
void refuse_typed(std::vector<typed_option> const& options, std::string const& reason);

}  // namespace warpheap::tool
