// SPDX-License-Identifier: Apache-2.0
// An ordinary CUDA file: a hash map of chained entries, which its threads make with new, with keys
// that they malloc. Nothing here refers to Warpheap.
#include "hash_map.hpp"

#include <cstdio>
#include <cstdlib>

namespace {

constexpr unsigned buckets = 1u << 16;
constexpr unsigned vocabulary = 1u << 18;

void check(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "hash map: %s\n", cudaGetErrorString(status));
  std::exit(1);
}

__device__ unsigned scatter(unsigned x) {
  x = (x ^ (x >> 16)) * 0x45d9f3bu;
  x = (x ^ (x >> 16)) * 0x45d9f3bu;
  return x ^ (x >> 16);
}

/// A text of 4 to 67 letters that its holder owns.
class word {
 public:
  __device__ explicit word(unsigned number) : length_{4 + scatter(number) % 64} {
    letters_ = static_cast<char*>(malloc(length_));
    if (!letters_) length_ = 0;
    for (unsigned i = 0; i < length_; ++i) letters_[i] = static_cast<char>('a' + scatter(number + i) % 26);
  }
  __device__ ~word() { free(letters_); }
  word(word const&) = delete;
  word& operator=(word const&) = delete;

  __device__ bool is_there() const { return letters_ != nullptr; }
  __device__ bool operator==(word const& other) const {
    bool same = length_ == other.length_;
    for (unsigned i = 0; same && i < length_; ++i) same = letters_[i] == other.letters_[i];
    return same;
  }
  __device__ unsigned hash() const {
    unsigned hash = length_;
    for (unsigned i = 0; i < length_; ++i) hash = scatter(hash + static_cast<unsigned char>(letters_[i]));
    return hash;
  }

 private:
  unsigned length_;
  char* letters_;
};

struct entry {
  __device__ explicit entry(unsigned number) : key{number} {}

  word key;
  unsigned count = 1;
  entry* next = nullptr;
};

/// The entry of `chain` with that key, before `end`.
__device__ entry* find(entry* chain, entry const* end, word const& key) {
  while (chain != end && !(chain->key == key)) chain = chain->next;
  return chain == end ? nullptr : chain;
}

/// Puts `made` in front of the chain, unless another thread has inserted the same key: then that
/// entry counts for both.
__device__ void insert(entry** bucket, entry* made) {
  entry* seen = *static_cast<entry* volatile*>(bucket);
  entry const* searched = nullptr;
  for (;;) {
    __threadfence();  // what others wrote to their entries, before we read it
    if (entry* const there = find(seen, searched, made->key)) {
      atomicAdd(&there->count, 1);
      delete made;
      return;
    }
    searched = seen;
    made->next = seen;
    __threadfence();  // what we wrote to ours, before others see it
    auto* const word_of = reinterpret_cast<unsigned long long*>(bucket);
    auto const expected = reinterpret_cast<unsigned long long>(seen);
    auto const found = atomicCAS(word_of, expected, reinterpret_cast<unsigned long long>(made));
    if (found == expected) return;
    seen = reinterpret_cast<entry*>(found);
  }
}

__global__ void count_words(entry** map, unsigned words, unsigned long long* missing) {
  unsigned const i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= words) return;
  entry* const made = new entry{scatter(i) % vocabulary};
  if (!made->key.is_there()) {
    atomicAdd(missing, 1);
    delete made;
    return;
  }
  insert(&map[made->key.hash() % buckets], made);
}

__global__ void empty_map(entry** map, unsigned long long* checksum) {
  unsigned const bucket = blockIdx.x * blockDim.x + threadIdx.x;
  if (bucket >= buckets) return;
  unsigned long long sum = 0;
  for (entry* chain = map[bucket]; chain;) {
    entry* const next = chain->next;
    sum += static_cast<unsigned long long>(chain->key.hash()) * chain->count;
    delete chain;
    chain = next;
  }
  map[bucket] = nullptr;
  atomicAdd(checksum, sum);
}

/// Milliseconds that `launch` keeps the device busy.
template <class Launch>
float time(Launch launch) {
  cudaEvent_t start, stop;
  check(cudaEventCreate(&start));
  check(cudaEventCreate(&stop));
  check(cudaEventRecord(start));
  launch();
  check(cudaGetLastError());
  check(cudaEventRecord(stop));
  check(cudaDeviceSynchronize());
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, start, stop));
  check(cudaEventDestroy(start));
  check(cudaEventDestroy(stop));
  return milliseconds;
}

}  // namespace

map_result build_map(unsigned words) {
  entry** map = nullptr;
  unsigned long long* sums = nullptr;
  check(cudaMalloc(&map, buckets * sizeof *map));
  check(cudaMalloc(&sums, 2 * sizeof *sums));
  check(cudaMemset(map, 0, buckets * sizeof *map));
  check(cudaMemset(sums, 0, 2 * sizeof *sums));

  map_result result;
  result.build_ms = time([&] { count_words<<<(words + 255) / 256, 256>>>(map, words, &sums[1]); });
  result.empty_ms = time([&] { empty_map<<<buckets / 256, 256>>>(map, &sums[0]); });
  check(cudaMemcpy(&result.checksum, &sums[0], sizeof *sums, cudaMemcpyDeviceToHost));
  check(cudaMemcpy(&result.missing, &sums[1], sizeof *sums, cudaMemcpyDeviceToHost));
  check(cudaFree(map));
  check(cudaFree(sums));
  return result;
}
