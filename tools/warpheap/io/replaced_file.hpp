// A file that is replaced as a whole or not at all: the text is written to a new file beside it,
// which is then renamed to it. So a full disk, an error or a signal leaves the old contents as they
// were, and nothing else in the folder. A target that is no regular file (a terminal, /dev/null, a
// FIFO) has no contents to lose and is written to directly.
#pragma once

#include <string>
#include <string_view>

namespace warpheap::tool {

class replaced_file {
 public:
  /// Throws usage_error, naming `what`, if the file could not be written. Touches no existing file.
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
