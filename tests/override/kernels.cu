// SPDX-License-Identifier: Apache-2.0
#include "kernels.hpp"

#include <cstdlib>
#include <new>

namespace override_test {

namespace {

__device__ unsigned rank_in_grid() { return blockIdx.x * blockDim.x + threadIdx.x; }

template <class... Parameters, class... Arguments>
cudaError_t run(unsigned threads, void (*kernel)(Parameters...), Arguments... arguments) {
  kernel<<<(threads + 127) / 128, 128>>>(arguments...);
  return cudaDeviceSynchronize();
}

__global__ void build(unsigned threads, node** lists, unsigned length) {
  unsigned const me = rank_in_grid();
  if (me >= threads) return;
  node* list = nullptr;
  for (unsigned value = 0; value < length; ++value) {
    auto* const made = static_cast<node*>(std::malloc(sizeof(node)));
    if (!made) break;
    made->value = value;
    made->next = list;
    list = made;
  }
  lists[me] = list;
}

class shape {
 public:
  __device__ explicit shape(tally* counts) : counts_{counts} { atomicAdd(&counts_->made, 1); }
  __device__ virtual ~shape() { atomicAdd(&counts_->destroyed, 1); }
  __device__ virtual unsigned area() const = 0;

 protected:
  tally* counts_;
};

class square : public shape {
 public:
  __device__ square(tally* counts, unsigned side) : shape{counts}, side_{side} {}
  __device__ unsigned area() const override { return side_ * side_; }

 private:
  unsigned side_;
};

/// Owns an array of its own.
class polygon : public shape {
 public:
  __device__ polygon(tally* counts, unsigned corners) : shape{counts}, corners_{corners}, x_{new unsigned[corners]} {
    for (unsigned i = 0; i < corners_; ++i) x_[i] = i;
  }
  __device__ ~polygon() override { delete[] x_; }
  __device__ unsigned area() const override {
    unsigned sum = 0;
    for (unsigned i = 0; i < corners_; ++i) sum += x_[i];
    return sum;
  }

 private:
  unsigned corners_;
  unsigned* x_;
};

/// Counts its objects; an array of them has the number of elements before the first.
struct counted {
  __device__ counted() : number{7} {}
  __device__ ~counted() { atomicAdd(&counts->destroyed, 1); }
  unsigned number;
  tally* counts;
};

__global__ void use_shapes(unsigned threads, tally* counts) {
  unsigned const me = rank_in_grid();
  if (me >= threads) return;
  // Neighbours take different branches, so the lanes of a warp diverge.
  shape* const made = me % 2 ? static_cast<shape*>(new square{counts, me % 10}) : new polygon{counts, me % 10};
  unsigned const side = me % 10, area = me % 2 ? side * side : side * (side - 1) / 2;
  if (made->area() != area) atomicAdd(&counts->wrong, 1);
  delete made;

  unsigned const length = 1 + me % 5;
  auto* const row = new counted[length];
  for (unsigned i = 0; i < length; ++i) {
    if (row[i].number != 7) atomicAdd(&counts->wrong, 1);
    row[i].counts = counts;
  }
  atomicAdd(&counts->made, length);
  delete[] row;

  // No object, and yet an address.
  auto* const none = new char[me % 2];
  if (!none) atomicAdd(&counts->wrong, 1);
  delete[] none;
}

__global__ void use_null() {
  delete static_cast<node*>(nullptr);
  delete[] static_cast<counted*>(nullptr);
  free(nullptr);
}

__global__ void take_all(unsigned threads, std::size_t bytes, tally* counts) {
  unsigned const me = rank_in_grid();
  if (me >= threads) return;
  node* mine = nullptr;
  for (bool by_new = me % 2;; by_new = !by_new) {
    void* const memory = by_new ? ::operator new(bytes) : malloc(bytes);
    if (!memory) break;
    atomicAdd(&counts->made, 1);
    mine = ::new (memory) node{by_new, mine};
  }
  atomicAdd(&counts->failed, 1);
  while (mine) {
    node* const next = mine->next;
    if (mine->value) ::operator delete(static_cast<void*>(mine));
    else free(mine);
    mine = next;
  }
}

/// The sum of the numbers below `numbers`, by way of memory.
__host__ __device__ unsigned sum_below(unsigned numbers) {
  auto* const list = new unsigned[numbers];
  for (unsigned i = 0; i < numbers; ++i) list[i] = i;
  unsigned sum = 0;
  for (unsigned i = 0; i < numbers; ++i) sum += list[i];
  delete[] list;
  return sum;
}

__global__ void sum_all(unsigned threads, unsigned numbers, unsigned* sums) {
  if (rank_in_grid() < threads) sums[rank_in_grid()] = sum_below(numbers);
}

}  // namespace

cudaError_t build_lists(unsigned threads, node** lists, unsigned length) {
  return run(threads, build, threads, lists, length);
}
cudaError_t make_shapes(unsigned threads, tally* counts) { return run(threads, use_shapes, threads, counts); }
cudaError_t delete_null(unsigned threads) { return run(threads, use_null); }
cudaError_t exhaust(unsigned threads, std::size_t bytes, tally* counts) {
  return run(threads, take_all, threads, bytes, counts);
}
cudaError_t sum_on_device(unsigned threads, unsigned numbers, unsigned* sums) {
  return run(threads, sum_all, threads, numbers, sums);
}
unsigned sum_on_host(unsigned numbers) { return sum_below(numbers); }
void* host_malloc(std::size_t bytes) { return malloc(bytes); }
char* host_new(std::size_t bytes) { return new char[bytes]; }

}  // namespace override_test
