// SPDX-License-Identifier: Apache-2.0
#include "json_output.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/standard_output.hpp"
#include "machine.hpp"

namespace warpheap::tool {
namespace {

using json = nlohmann::ordered_json;

std::string on_one_line(json const& value, bool as_ascii) {
  auto const of = [&](json const& part) { return on_one_line(part, as_ascii); };
  if (!value.is_structured()) return value.dump(-1, ' ', as_ascii, json::error_handler_t::replace);
  std::string text;
  for (auto const& [key, part] : value.items()) {
    text += text.empty() ? "" : ", ";
    text += value.is_object() ? of(key) + ": " + of(part) : of(part);
  }
  return value.is_object() ? "{" + text + "}" : "[" + text + "]";
}

bool has_rows(json const& value, std::size_t depth) {
  if (value.is_object()) return depth < 2;
  return value.is_array() &&
         std::all_of(value.begin(), value.end(), [](json const& part) { return part.is_structured(); });
}

/// Members of the document and of its members have lines of their own, and so have rows of tables.
std::string on_lines(json const& value, bool as_ascii, std::size_t depth) {
  if (!has_rows(value, depth) || value.empty()) return on_one_line(value, as_ascii);
  std::string text;
  for (auto const& [key, part] : value.items()) {
    text += (text.empty() ? "\n" : ",\n") + std::string(depth + 1, ' ');
    if (value.is_object()) text += on_one_line(key, as_ascii) + ": " + on_lines(part, as_ascii, depth + 1);
    else text += on_one_line(part, as_ascii);
  }
  text += "\n" + std::string(depth, ' ');
  return value.is_object() ? "{" + text + "}" : "[" + text + "]";
}

}  // namespace

json_output::json_output(std::string const& path) : owns_standard_output_{is_standard_output(path)} {
  if (!path.empty() && !owns_standard_output_) file_.emplace("--json", path);
}

void json_output::write(json const& document) const {
  if (!owns_standard_output_ && !file_) return;
  // Standard output may be a terminal, so nothing but ASCII goes there.
  auto const text = text_of(document, !file_);
  if (file_) file_->write(text);
  else write_output(text);
}

std::string text_of(json const& document, bool as_ascii) { return on_lines(document, as_ascii, 0) + "\n"; }

json new_document(backend const& on) {
  json document;
  document["schema"] = 1;
  document["machine"] = machine_of(on);
  return document;
}

}  // namespace warpheap::tool
