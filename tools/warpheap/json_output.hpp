// Where `--json` goes: a file, or standard output, which then has nothing else on it. A file that cannot be written is
// found out before the work is done, not after.
#pragma once

#include <fstream>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "backend/backend.hpp"

namespace warpheap::tool {

class json_output {
 public:
  /// `path` empty: no JSON is wanted. Throws usage_error if the file cannot be opened for writing.
  explicit json_output(std::string const& path);
  json_output(json_output const&) = delete;
  json_output& operator=(json_output const&) = delete;
  /// An empty file that was made here and never written goes.
  ~json_output();

  /// Standard output is the document's alone.
  bool owns_standard_output() const { return path_ == "-"; }

  /// Writes the document, if one is wanted. Throws usage_error if that fails.
  void write(nlohmann::ordered_json const& document);

 private:
  std::string path_;
  bool existed_ = false;
  bool written_ = false;
};

/// A document with `schema` and `machine`, to be filled in.
nlohmann::ordered_json new_document(backend const& on);

}  // namespace warpheap::tool
