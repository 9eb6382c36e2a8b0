// SPDX-License-Identifier: Apache-2.0
// Heaps of index queues with few pages in a chunk and few chunks, so that a few lanes can fill one,
// empty it, and make chunks change their class.
#pragma once

#include <string>

#include "policy/creation/quiet_pool_fixture.hpp"

namespace warpheap::test {

using creation::queue_config;
using creation::queue_element;
using creation::queue_form;

/// Chunks of one word: 16 pages of 16 bytes to one of 256.
constexpr queue_config tiny_queues(queue_element element, queue_form form = queue_form::fixed) {
  return {.element = element, .form = form, .chunk_bytes = 256, .least_bytes = 16};
}
/// Chunks of up to four words.
constexpr queue_config wordy_queues(queue_element element, queue_form form = queue_form::fixed) {
  return {.element = element, .form = form, .chunk_bytes = 2048, .least_bytes = 16};
}

/// The forms that every test runs with.
#define WARPHEAP_QUEUE_FORMS(shape)                                                          \
  creation::queue<shape(queue_element::page)>, creation::queue<shape(queue_element::chunk)>, \
      creation::queue<shape(queue_element::page, queue_form::virtual_array)>,                \
      creation::queue<shape(queue_element::chunk, queue_form::virtual_array)>

/// Owns the memory of a heap of `chunks` chunks.
template <class Queue>
class queue_pool : public quiet_pool<Queue> {
 public:
  static constexpr u64 chunk_bytes = Queue::config.chunk_bytes;
  explicit queue_pool(u32 chunks) : quiet_pool<Queue>{chunks * chunk_bytes} {}
};

/// The forms' names in the names of tests.
struct queue_names {
  template <class Queue>
  static std::string GetName(int) {  // NOLINT(readability-identifier-naming): GoogleTest calls it
    return std::string{Queue::name} + "_" + std::to_string(Queue::config.chunk_bytes);
  }
};

}  // namespace warpheap::test
