// SPDX-License-Identifier: Apache-2.0
// Finding errors of kernels: a kernel makes the error of a given name, and the checked heap reports
// it with the lines that allocated and freed.
//
//   example_08_checked_kernels               exit status 0 if each is reported as it should be
//   example_08_checked_kernels double_free   that one alone: 1 if something was found
#include <warpheap/adaptor/checked.hpp>
#include <warpheap/warpheap.hpp>

#include <cstdio>
#include <cstring>

namespace {

using namespace warpheap::literals;

// The one line to change: warpheap::heap is the heap without checks.
using heap_type = warpheap::checked<warpheap::heap>;

struct name_of_error {
  char const* name;
  char const* reported_as;  // how the report's text begins; nullptr: no error
};
constexpr name_of_error errors[] = {
    {"overrun", "overrun by 1 byte behind a block of 24 bytes"},
    {"underrun", "underrun by 4 bytes before a block of 24 bytes"},
    {"use_after_free", "use after free: 4 bytes from byte 0 on were written of a block of 24 bytes"},
    {"double_free", "double free of a block of 24 bytes"},
    {"inner_free", "free of an address 8 bytes into a block of 24 bytes"},
    {"foreign_free", "free of 0x"},
    {"leak", "24 bytes leaked in 1 block of 24 bytes"},
    {"none", nullptr},
};
constexpr unsigned error_count = sizeof errors / sizeof *errors;

// Every thread makes and frees a node of six words, and thread 3 makes the error.
struct err {
  WARPHEAP_DEVICE void operator()(heap_type::ref_type heap, unsigned which, unsigned* outside) const {
    auto* const node = static_cast<unsigned*>(heap.malloc(24));
    if (!node) return;
    for (unsigned i = 0; i < 6; ++i) node[i] = i;
    bool const errs = warpheap::global_thread_index() == 3;
    // overrun: one byte past the end
    if (errs && which == 0) reinterpret_cast<unsigned char*>(node)[24] = 7;
    // underrun: the word before the start
    if (errs && which == 1) node[-1] = 7;
    // inner_free: not the address that malloc returned
    if (errs && which == 4) heap.free(node + 2);
    // foreign_free: memory from cudaMalloc
    if (errs && which == 5) heap.free(outside);
    // leak
    if (errs && which == 6) return;
    heap.free(node);
    // use_after_free, double_free
    if (errs && which == 2) node[0] = 7;
    if (errs && which == 3) heap.free(node);
  }
};

/// Runs one kernel and prints the errors. Returns their first line.
std::string run(unsigned which) {
  heap_type const heap{16_MiB};
  warpheap::device_buffer<unsigned> const outside{6};
  warpheap::launch({2, 32}, err{}, heap.ref(), which, outside.data());
  warpheap::synchronize();
  heap.check_blocks();  // finds errors that no free has found yet
  heap.print(stdout);
  auto const reports = heap.reports();
  auto const leaks = heap.leaks();
  if (!reports.empty()) return reports[0].describe();
  return leaks.empty() ? std::string{} : leaks[0].describe();
}

bool is_right(unsigned which, std::string const& found) {
  char const* const expected = errors[which].reported_as;
  return expected ? found.rfind(expected, 0) == 0 : found.empty();
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 1) {
    for (unsigned which = 0; which < error_count; ++which)
      if (std::strcmp(arguments[1], errors[which].name) == 0) return run(which).empty() ? 0 : 1;
    std::printf("no such error; there are");
    for (auto const& error : errors) std::printf(" %s", error.name);
    std::printf("\n");
    return 2;
  }
  bool right = true;
  for (unsigned which = 0; which < error_count; ++which) {
    std::printf("%s:\n", errors[which].name);
    right = is_right(which, run(which)) && right;
  }
  std::printf("%s\n", right ? "right" : "wrong");
  return right ? 0 : 1;
}
