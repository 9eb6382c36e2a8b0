#include "json_output.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "machine.hpp"

namespace warpheap::tool {

namespace {

[[noreturn]] void fail(std::string const& path) {
  throw usage_error{"--json: cannot write " + path + ": " + std::strerror(errno)};
}

}  // namespace

json_output::json_output(std::string const& path) : path_{path} {
  if (path_.empty() || owns_standard_output()) return;
  std::error_code ignored;
  existed_ = std::filesystem::exists(path_, ignored);
  if (!std::ofstream{path_, std::ios::app}) fail(path_);
}

json_output::~json_output() {
  if (path_.empty() || owns_standard_output() || existed_ || written_) return;
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

void json_output::write(nlohmann::ordered_json const& document) {
  if (path_.empty()) return;
  auto const text = document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  if (owns_standard_output()) {
    if (!(std::cout << text << std::flush)) fail("standard output");
    return;
  }
  std::ofstream file{path_};
  if (!(file << text << std::flush)) fail(path_);
  written_ = true;
}

nlohmann::ordered_json new_document(backend const& on) {
  nlohmann::ordered_json document;
  document["schema"] = 1;
  document["machine"] = machine_of(on);
  return document;
}

}  // namespace warpheap::tool
