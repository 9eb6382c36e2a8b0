// SPDX-License-Identifier: Apache-2.0
// A file that is replaced as a whole or not at all: the text is written to a new file beside it,
// which is then renamed to it. So a full disk, an error or a signal leaves the old contents as they
// were, and nothing else in the folder. A target that is no regular file (a terminal, /dev/null, a
// FIFO) has no contents to lose and is written to directly.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace warpheap::tool {

/// The path that means standard output.
inline constexpr char const* standard_output = "-";

/// Recognises other names of its file too, like /dev/stdout: it must not be replaced under it.
bool is_standard_output(std::string const& path);

/// A file by the option that names it; the path is empty if it was not given.
using named_path = std::pair<std::string, std::string>;

/// Throws usage_error if an output is the file of an input or of another output, by whatever path.
/// Call it before any of them is opened.
void refuse_shared_files(std::vector<named_path> const& outputs, std::vector<named_path> const& inputs);

class replaced_file {
 public:
  /// Throws usage_error, naming `what`, if the file could not be written, or is standard output's.
  /// Touches no existing file.
  replaced_file(std::string what, std::string const& path);

  /// Replaces the contents by `text`. Links lead to the same file as before, and its permissions
  /// stay; a new file has the process's default permissions. Throws usage_error likewise.
  void write(std::string_view text) const;

 private:
  void write_directly(std::string_view text) const;
  void write_beside(std::string_view text) const;
  std::string name_beside() const;
  [[noreturn]] void fail(int error) const;

  std::string what_;
  std::string path_;    ///< as typed
  std::string target_;  ///< where its links lead
  bool is_regular_ = true;
};

}  // namespace warpheap::tool
