#include "replaced_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "cli/interruption.hpp"
#include "cli/usage_error.hpp"

namespace warpheap::tool {

namespace {

/// As many links as the kernel follows.
constexpr int most_links = 40;

std::string follow_links(std::filesystem::path path) {
  std::error_code error;
  for (int i = 0; i < most_links && std::filesystem::is_symlink(path, error); ++i)
    path = path.parent_path() / std::filesystem::read_symlink(path, error);
  return path;
}

/// A descriptor that its destructor closes. Every call returns the error number, 0 if all is well.
class descriptor {
 public:
  descriptor(std::string const& path, int flags) : number_{open(path.c_str(), flags | O_CLOEXEC, 0666)} {
    if (number_ < 0) error_ = errno;
  }
  descriptor(descriptor const&) = delete;
  descriptor& operator=(descriptor const&) = delete;
  ~descriptor() { finish(); }

  int number() const { return number_; }
  int error() const { return error_; }

  void write(std::string_view text) {
    while (!error_ && !text.empty()) {
      auto const written = ::write(number_, text.data(), text.size());
      if (written >= 0) text.remove_prefix(static_cast<size_t>(written));
      else if (errno != EINTR) error_ = errno;
    }
  }

  /// Waits until the contents are on the disk, where the file system can say so.
  void settle() {
    if (!error_ && fsync(number_) != 0 && errno != EINVAL && errno != ENOTSUP) error_ = errno;
  }

  /// Closes the file; some file systems report a full disk only then.
  void finish() {
    if (number_ >= 0 && close(number_) != 0 && !error_) error_ = errno;
    number_ = -1;
  }

 private:
  int number_;
  int error_ = 0;
};

}  // namespace

replaced_file::replaced_file(std::string what, std::string const& path)
    : what_{std::move(what)}, path_{path}, target_{path} {
  struct stat found = {};
  bool const exists = stat(path.c_str(), &found) == 0;
  if (!exists && errno != ENOENT) fail(errno);
  if (exists && S_ISDIR(found.st_mode)) fail(EISDIR);
  if (exists && access(path.c_str(), W_OK) != 0) fail(errno);
  is_regular_ = !exists || S_ISREG(found.st_mode);
  if (!is_regular_) return;
  target_ = follow_links(path);
  // Whether the folder takes a new file is found by making one.
  auto const trial = name_beside();
  unfinished_file const guard{trial};
  descriptor const made{trial, O_WRONLY | O_CREAT | O_EXCL};
  if (made.error()) fail(made.error());
  unlink(trial.c_str());
}

void replaced_file::write(std::string_view text) const {
  if (is_regular_) write_beside(text);
  else write_directly(text);
}

void replaced_file::write_directly(std::string_view text) const {
  descriptor file{target_, O_WRONLY | O_NOCTTY};
  file.write(text);
  file.finish();
  if (file.error()) fail(file.error());
}

void replaced_file::write_beside(std::string_view text) const {
  auto const fresh = name_beside();
  unfinished_file const guard{fresh};
  descriptor file{fresh, O_WRONLY | O_CREAT | O_EXCL};
  struct stat old = {};
  if (!file.error() && stat(target_.c_str(), &old) == 0) {
    // Only root can give a file to another owner. Otherwise the file is ours now, and if its group
    // is another too, that group gets no access.
    bool const same_owner = fchown(file.number(), old.st_uid, old.st_gid) == 0;
    bool const same_group = same_owner || fchown(file.number(), static_cast<uid_t>(-1), old.st_gid) == 0;
    fchmod(file.number(), old.st_mode & (same_group ? 0777 : 0707));
  }
  file.write(text);
  file.settle();
  file.finish();
  int error = file.error();
  if (!error && std::rename(fresh.c_str(), target_.c_str()) != 0) error = errno;
  if (!error) return;
  unlink(fresh.c_str());
  fail(error);
}

/// One name for each process, so two that write the same file do not collide.
std::string replaced_file::name_beside() const {
  auto const folder = std::filesystem::path{target_}.parent_path();
  return folder / (".warpheap-" + std::to_string(getpid()) + ".part");
}

void replaced_file::fail(int error) const {
  throw usage_error{what_ + ": cannot write " + path_ + ": " + std::strerror(error)};
}

}  // namespace warpheap::tool
