# SPDX-License-Identifier: Apache-2.0
"""The tool's own test: a header with one mutant or two of each operator, a program that judges it, and what should come of each.

The header also has an operator's text where none may be injected: in comments, constants, assertions, and host code.
"""

import json
import pathlib
import tempfile

from .judge import Judge, judge_mutant
from .mutants import draw_sample, mutants_of
from .operators import OPERATORS
from .project import Project
from .results import Explanations, Results, table

HEADER = r"""// A turn that lanes take: order::acquire, a && b, draw();
#pragma once
#include "../toy.hpp"

inline constexpr u32 size = 1 + 1;
static_assert(size == 2 && size != 3, "order::release");

struct turn {
  atomic_ref word;
  WARPHEAP_DEVICE void open(u32 n) {
    WARPHEAP_ASSERT(n > 0 && n < 100);
    full_fence();
    sync_warp(n);
    tell(n);
    word.store(n, order::release);
  }
  WARPHEAP_DEVICE u32 draw() { return word.fetch_add(2, order::relaxed); }
  WARPHEAP_DEVICE bool swap(u32 seen) { return word.compare_exchange(seen, 9, order::relaxed, order::relaxed); }
  WARPHEAP_DEVICE u32 count(u32 n) {
    u32 turns = 0;
    while (turns < n) ++turns;
    return turns;
  }
  WARPHEAP_DEVICE u32 down(u32 n) {
    for (; opaque(n);) n = n - 1;
    return n;
  }
  WARPHEAP_DEVICE bool both(bool a, bool b) { return a && b; }
  WARPHEAP_DEVICE u32 low(u32 bits) { return bits & 3; }
  WARPHEAP_DEVICE bool is_last(u32 n) { return n >= size; }
  WARPHEAP_DEVICE static constexpr bool is_small(u32 n) { return n <= size; }
  WARPHEAP_DEVICE bool is_wide() { return holds<(size == 2)>::value; }
  template <class T>
  WARPHEAP_DEVICE bool is_never(T n) { return n > 0; }
  WARPHEAP_DEVICE bool check_empty() { return word.load(order::acquire) == 0; }
  bool is_on_host() { return size > 1; }
#if !defined(__CUDACC_RTC__)
  WARPHEAP_DEVICE bool is_quiet() { return size > 1; }
#endif
};
"""

TOY = r"""#pragma once
#define WARPHEAP_DEVICE
#define WARPHEAP_ASSERT(condition) static_cast<void>(0)
using u32 = unsigned;
enum class order { relaxed, acquire, release };
inline u32 fences, barriers, told;
inline void full_fence() { ++fences; }
inline void sync_warp(u32) { ++barriers; }
inline void tell(u32 n) { told += n; }
inline u32 opaque(u32 n) { asm volatile("" : "+r"(n)); return n; }
template <bool> struct holds;
template <> struct holds<true> { static constexpr bool value = true; };
// Another lane adds 10: before an addition, and after a load.
struct atomic_ref {
  u32* word;
  order* last;
  u32 load(order) const { u32 const seen = *word; *word += 10; return seen; }
  void store(u32 value, order how) const { *word = value; *last = how; }
  u32 fetch_add(u32 by, order) const { u32 const old = *word + 10; *word = old + by; return old; }
  bool compare_exchange(u32& expected, u32 desired, order, order) const {
    bool const is_equal = *word == expected;
    if (is_equal) *word = desired;
    return is_equal;
  }
};
"""

TEST = r"""#include "planted/sync/turn.hpp"
extern "C" int printf(char const*, ...);
#define EXPECT(name, condition) \
  if (!(condition)) return printf("[ RUN      ] Turn.%s\n[  FAILED  ] Turn.%s\n", name, name), 1
static_assert(turn::is_small(size) && !turn::is_small(3));
int main() {
  u32 memory = 0;
  order last = order::relaxed;
  turn it{{&memory, &last}};
  it.open(5);
  EXPECT("Fences", fences == 1);
  EXPECT("Meets", barriers == 1);
  EXPECT("Tells", told == 5);
  EXPECT("Releases", memory == 5 && last == order::release);
  memory = 1;
  it.swap(2);
  EXPECT("Swaps", memory == 1);
  it.draw();
  EXPECT("Draws", memory == 13);
  EXPECT("Counts", it.count(3) == 3);
  printf("[ RUN      ] Turn.EndsAtNone\n");
  EXPECT("EndsAtNone", it.down(3) == 0);
  EXPECT("NeedsBoth", it.both(opaque(1), opaque(1)) && !it.both(opaque(1), opaque(0)));
  EXPECT("KeepsLowBits", it.low(6) == 2);
  EXPECT("KnowsTheLast", it.is_last(opaque(5)) && !it.is_last(opaque(1)));
  it.is_wide();
}
"""

# {(operator, what is replaced): what comes of it, or None where that is not tried}; a name is that of the test that rejects it
EXPECTED = {
    ("weaken-order", "release"): "Turn.Releases",
    ("drop-fence", "full_fence();"): "Turn.Fences",
    ("drop-barrier", "sync_warp(n);"): "Turn.Meets",
    ("drop-call", "tell(n);"): "Turn.Tells",
    ("drop-call", "word.store(n, order::release);"): None,
    ("split-update", "word.fetch_add(2, order::relaxed)"): "Turn.Draws",
    ("split-update", "word.compare_exchange(seen, 9, order::relaxed, order::relaxed)"): "Turn.Swaps",
    ("off-by-one", "<"): "Turn.Counts",
    ("off-by-one", " - 1"): "hung",
    ("off-by-one", ">="): "explained",
    ("off-by-one", "<="): "killed",
    ("off-by-one", "=="): "invalid",
    ("off-by-one", ">"): "same code",
    ("while-to-if", "while"): "Turn.Counts",
    ("while-to-if", "for (; opaque(n);)"): None,
    ("negate-condition", "turns < n"): "Turn.Counts",
    ("negate-condition", "opaque(n)"): None,
    ("drop-operand", "a && "): "survived",
    ("drop-operand", " && b"): "Turn.NeedsBoth",
    ("drop-mask", "bits & "): None,
    ("drop-mask", " & 3"): "Turn.KeepsLowBits",
}  # fmt: skip
ARGUED = {
    "file": "sync/turn.hpp", "function": "is_last", "operator": "off-by-one", "argument": "no caller has a turn of that size",
    "line": "WARPHEAP_DEVICE bool is_last(u32 n) { return n >= size; }",
    "becomes": "WARPHEAP_DEVICE bool is_last(u32 n) { return n > size; }",
}  # fmt: skip


def self_test(split):
    wrong = []
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        for name, text in {"include/planted/sync/turn.hpp": HEADER, "include/planted/toy.hpp": TOY, "tests/sync/turn_test.cpp": TEST}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        project = Project(root, "planted", root / "cache", ["-std=c++20", "-O1", "-w", "-include", str(split)], [])
        judge = Judge(project, least_seconds=0.2)
        explained = Explanations(None)
        explained.entries.append(ARGUED)
        results = Results(root, root / "results.json", "planted")
        made = list(mutants_of("sync/turn.hpp", HEADER))
        found = {(mutant.operator, HEADER[mutant.start : mutant.end]): mutant for mutant in made}
        wrong += [f"not made: {place}" for place in EXPECTED.keys() - found.keys()]
        wrong += [f"made: {place}" for place in found.keys() - EXPECTED.keys()]
        wrong += [f"no mutant of {name}" for name in OPERATORS.keys() - {name for name, _ in EXPECTED}]
        if draw_sample(made, 9, 3) != draw_sample(made, 9, 3) or len({m.operator for m in draw_sample(made, 10, 3)}) != 10:
            wrong.append("a sample depends on more than its seed, or leaves operators out")
        for place, expected in EXPECTED.items():
            if expected and place in found:
                result = judge_mutant(judge, found[place], ["tests/sync/turn_test.cpp"], 60, wrong.append)
                explained.apply(found[place], result)
                results.add(found[place], result)
                if expected not in (result["by"], result["outcome"]):
                    wrong.append(f"{place}: {result['outcome']} {result['by']}, and not {expected}")
        if "| sync |" not in table(json.loads((root / "results.json").read_text())):
            wrong.append("the results are not kept")
    judged = sum(1 for expected in EXPECTED.values() if expected)
    print("\n".join(wrong) or f"made all {len(EXPECTED)} planted mutants, and judged {judged} of them rightly")
    return 1 if wrong else 0
