// SPDX-License-Identifier: Apache-2.0
// Read-modify-writes as a load and a store, between which other lanes may run. The tool injects
// these; every source that it compiles includes this file. A load takes an order with release for
// acquire, and a store takes one with acquire for release, so that the split alone is the fault.
#pragma once

#define SPLIT_FETCH(name, value)                         \
  template <class Ref, class By, class Order>            \
  auto split_fetch_##name(Ref ref, By by, Order order) { \
    auto const old = ref.load(order);                    \
    ref.store(value, order);                             \
    return old;                                          \
  }

SPLIT_FETCH(add, old + by)
SPLIT_FETCH(sub, old - by)
SPLIT_FETCH(or, old | by)
SPLIT_FETCH(and, old& by)
SPLIT_FETCH(xor, old ^ by)
SPLIT_FETCH(min, by < old ? by : old)
SPLIT_FETCH(max, by > old ? by : old)

template <class Ref, class Value, class Order>
auto split_exchange(Ref ref, Value value, Order order) {
  auto const old = ref.load(order);
  ref.store(value, order);
  return old;
}

template <class Ref, class Value, class Desired, class Order>
bool split_compare_exchange(Ref ref, Value& expected, Desired desired, Order success, Order) {
  auto const old = ref.load(success);
  bool const is_equal = old == expected;
  if (is_equal) ref.store(desired, success);
  else expected = old;
  return is_equal;
}
