// SPDX-License-Identifier: Apache-2.0
// A heap of the archive: what is behind warpheap_heap. Its functions throw, and expect its context
// to be current.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "bindings.hpp"
#include "observer.hpp"
#include "repeated_call.hpp"
#include "report.hpp"
#include "settings.hpp"

namespace warpheap::archive {

class heap {
 public:
  explicit heap(wishes const& wanted)
      : heap{wanted, sizes_for(wanted, {free_memory(), reserve_pool::growing::granularity(), pool_that_fits})} {}

  /// Ends everything that runs for the heap, and leaves the device's memory alone: it is gone.
  void abandon() noexcept {
    sampler_.reset();
    service_.reset();
    (void)bindings_.release();
    (void)observer_.release();
    (void)no_growth_.release();
    (void)owner_.release();
  }

  /// Unbinds, and waits for the context's kernels.
  void retire() {
    sampler_.reset();
    service_.reset();
    bindings_->clear();
    synchronize();
  }

  /// Before CUDA's runtime ends with the program.
  void stop_sampling() { sampler_.reset(); }

  context const& where() const { return where_; }
  bool reports() const { return reports_; }
  bindings& bound_code() { return *bindings_; }
  u64 handle() const { return owner_->handle(); }
  size_t grow(size_t bytes) { return owner_->grow(bytes); }
  void reset(stream_view on) { owner_->reset(on); }
  warpheap_statistics statistics() { return observer_->read(); }

  /// statistics() in one line.
  std::string report() { return report_of(statistics(), observer_->rows() != nullptr); }
  /// The last statistics that were read, in one line; also when the context is gone.
  std::string last_report() { return report_of(observer_->last(), observer_->rows() != nullptr); }

 private:
  heap(wishes const& wanted, pool_sizes const& sizes)
      : reports_{wanted.reports},
        owner_{std::make_unique<owner>(
            pool{{.initial = sizes.initial, .limit = sizes.limit, .chunk = sizes.chunk}, wanted.forgiving})},
        no_growth_{std::make_unique<device_buffer<growth_state>>(1)},
        observer_{std::make_unique<observer>(*owner_, wanted.counts)} {
    bool const grows = sizes.initial < sizes.limit;
    auto const mine = owner_->ref().with(
        {.counts = observer_->rows(), .rows = observer_->row_count(), .forgiving = wanted.forgiving});
    bindings_ = std::make_unique<bindings>(bound{grows ? mine : mine.without_growth(no_growth_->data())});
    if (grows) service_ = std::make_unique<repeated_call>(where_, [served = owner_.get()] { return serve(*served); });
    if (reports_) sampler_ = std::make_unique<repeated_call>(where_, [this] { return sample(); });
  }

  static std::chrono::microseconds serve(owner& served) {
    return std::chrono::microseconds{served.serve() == 0 ? 20 : 0};
  }
  std::chrono::milliseconds sample() {
    if (!where_.is_alive()) throw context_gone{};
    observer_->read();
    return std::chrono::milliseconds{20};
  }

  static u64 free_memory() {
    size_t free = 0, total = 0;
    backend::throw_on_error(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    return free;
  }
  static u64 pool_that_fits(u64 whole) {
    using placement = detail::placement<allocator>;
    return whole > 2 * placement::minimum_bytes ? placement::pool_that_fits(whole) : 0;
  }

  context where_;
  bool reports_;
  std::unique_ptr<owner> owner_;
  std::unique_ptr<device_buffer<growth_state>> no_growth_;  ///< one, zero (archive.A1)
  std::unique_ptr<observer> observer_;
  std::unique_ptr<bindings> bindings_;
  std::unique_ptr<repeated_call> service_, sampler_;  ///< destroyed first
};

}  // namespace warpheap::archive
