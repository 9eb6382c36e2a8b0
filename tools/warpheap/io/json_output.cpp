// SPDX-License-Identifier: Apache-2.0
#include "json_output.hpp"

#include <nlohmann/json.hpp>

#include "machine.hpp"
#include "standard_output.hpp"

namespace warpheap::tool {

json_output::json_output(std::string const& path) : owns_standard_output_{is_standard_output(path)} {
  if (!path.empty() && !owns_standard_output_) file_.emplace("--json", path);
}

void json_output::write(nlohmann::ordered_json const& document) const {
  if (!owns_standard_output_ && !file_) return;
  // Standard output may be a terminal, so nothing but ASCII goes there.
  auto const text = document.dump(2, ' ', !file_, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  if (file_) file_->write(text);
  else write_output(text);
}

nlohmann::ordered_json new_document(backend const& on) {
  nlohmann::ordered_json document;
  document["schema"] = 1;
  document["machine"] = machine_of(on);
  return document;
}

}  // namespace warpheap::tool
