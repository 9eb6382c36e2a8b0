// SPDX-License-Identifier: Apache-2.0
#include "loading.hpp"

#include <fstream>
#include <iterator>
#include <list>
#include <mutex>
#include <string>
#include <vector>

#include "bindings.hpp"
#include "driver.hpp"
#include "relink/cubin.hpp"
#include "relink/relink.hpp"

namespace warpheap::preload {

namespace {

using relink::code_kind;
using relink::device_code;

std::string name_of(device_code const& code) {
  return (code.kind == code_kind::cubin ? "machine code for sm_" : "PTX for compute_") + std::to_string(code.arch);
}

relink::heap_archive archive() { return relink::heap_archive{archive_folder() + "/warpheap"}; }

/// The code that the driver would take, relinked; of its machine code, if that cannot be, the PTX
/// beside it. Empty if the code calls no heap.
std::vector<u8> relinked_of(std::vector<device_code> const& codes, unsigned arch) {
  auto const* const taken = relink::code_for(codes, arch);
  if (taken == nullptr) return {};
  device_code code = *taken;
  code.unpack();
  if (!relink::calls_heap(code)) return {};
  try {
    auto made = relink::relinked(code, archive(), arch);
    say_more("relinked " + name_of(code));
    return made;
  } catch (relink::unusable_code const& fault) {
    auto const* const text = relink::text_for(codes, arch);
    if (code.kind == code_kind::ptx || text == nullptr)
      throw relink::unusable_code{name_of(code) + ": " + fault.what()};
    say_more(name_of(code) + ": " + fault.what() + "; its PTX is compiled");
    code = *text;
    code.unpack();
    return relink::relinked(code, archive(), arch);
  }
}

/// What `codes_of()` holds, relinked. Nothing that fails here may keep the program from running.
template <class Codes>
std::vector<u8> relinked_or_empty(Codes codes_of, loaded_as what) noexcept {
  if (own_calls::are_made()) return {};
  own_calls const mine;
  try {
    unsigned const arch = what == loaded_as::module ? architecture_of_current() : architecture_of_all();
    auto made = relinked_of(codes_of(), arch);
    if (!made.empty()) make_heap();
    return made;
  } catch (std::exception const& fault) {
    say(std::string{"kernels keep CUDA's heap: "} + fault.what());
    return {};
  }
}

}  // namespace

std::vector<u8> replacement(void const* image, loaded_as what) noexcept {
  return relinked_or_empty([image] { return relink::packed_codes_of_image(image); }, what);
}

std::vector<u8> replacement_of_file(char const* path, loaded_as what) noexcept {
  std::vector<u8> bytes;
  auto const codes_of = [&] {
    std::ifstream file{path, std::ios::binary};
    bytes.assign(std::istreambuf_iterator<char>{file}, {});
    // The driver says what is wrong with a file that is not there.
    return bytes.empty() ? std::vector<device_code>{} : relink::packed_codes_of_bytes(bytes);
  };
  return relinked_or_empty(codes_of, what);
}

void keep(std::vector<u8> image) {
  static std::mutex mutex;
  static auto& all = *new std::list<std::vector<u8>>;
  std::lock_guard const lock{mutex};
  all.push_back(std::move(image));
}

void replacement_refused(int result) {
  say("kernels keep CUDA's heap: the driver refuses the relinked code with error " + std::to_string(result));
}

}  // namespace warpheap::preload
