// SPDX-License-Identifier: Apache-2.0
// A folder of the test's own in place of $XDG_RUNTIME_DIR, so that pages of other programs are not
// seen, and strange files can be put beside pages.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>

namespace warpheap::test {

class runtime_folder {
 public:
  runtime_folder() {
    // In memory, as $XDG_RUNTIME_DIR is, where there is a file system for that.
    std::filesystem::path const shared{"/dev/shm"};
    auto const place = std::filesystem::is_directory(shared) ? shared : std::filesystem::temp_directory_path();
    std::string made = (place / "warpheap_test_XXXXXX").string();
    if (!mkdtemp(made.data())) throw std::runtime_error{"mkdtemp failed"};
    path_ = made;
    if (char const* const before = std::getenv(variable)) before_ = before;
    setenv(variable, made.c_str(), 1);
  }
  runtime_folder(runtime_folder const&) = delete;
  runtime_folder& operator=(runtime_folder const&) = delete;
  ~runtime_folder() {
    if (before_) setenv(variable, before_->c_str(), 1);
    else unsetenv(variable);
    std::filesystem::remove_all(path_);
  }

  /// Where pages are.
  std::filesystem::path pages() const { return path_ / "warpheap"; }
  std::filesystem::path page(std::string const& name) const { return pages() / name; }
  std::filesystem::path const& path() const { return path_; }

  /// The permissions of a page that is there; 0 if it is not.
  mode_t mode_of(std::string const& name) const {
    struct stat is = {};
    return lstat(page(name).c_str(), &is) == 0 ? is.st_mode & 0777 : 0;
  }
  bool has(std::string const& name) const { return mode_of(name) != 0; }

 private:
  static constexpr char const* variable = "XDG_RUNTIME_DIR";
  std::filesystem::path path_;
  std::optional<std::string> before_;
};

/// Whether files can be given to another user.
inline bool may_give_files_away() { return geteuid() == 0; }
inline constexpr uid_t another_user = 65534;

}  // namespace warpheap::test
