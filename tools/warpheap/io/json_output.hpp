// SPDX-License-Identifier: Apache-2.0
// Where `--json` goes: a file, or standard output, which then has nothing else on it. A file that
// cannot be written is detected before the work is done, not after. Until the document is complete,
// the file is as it was.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "backend/backend.hpp"
#include "replaced_file.hpp"

namespace warpheap::tool {

class json_output {
 public:
  /// `path` empty: no JSON is wanted. Throws usage_error if the file cannot be written.
  explicit json_output(std::string const& path);

  /// Standard output is the document's alone.
  bool owns_standard_output() const { return owns_standard_output_; }

  /// Writes the document, if one is wanted. Throws usage_error if the file could not be written.
  void write(nlohmann::ordered_json const& document) const;

 private:
  bool owns_standard_output_;
  std::optional<replaced_file> file_;
};

/// The document as text that a version control system shows well: a row of a table has one line.
std::string text_of(nlohmann::ordered_json const& document, bool as_ascii);

/// A document with `schema` and `machine`, to be filled in.
nlohmann::ordered_json new_document(backend const& on);

}  // namespace warpheap::tool
