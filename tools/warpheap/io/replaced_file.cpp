// SPDX-License-Identifier: Apache-2.0
#include "replaced_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>

#include "cli/interruption.hpp"
#include "cli/usage_error.hpp"
#include "text_file.hpp"

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

/// What a path leads to: a regular file, or the place of one that is not there yet.
struct file_identity {
  dev_t device = 0;
  ino_t inode = 0;
  std::filesystem::path place = {};

  bool operator==(file_identity const&) const = default;
};

/// The file behind a descriptor or at a path. None if nothing is lost there: for no path, a
/// terminal, a pipe, or /dev/null.
std::optional<file_identity> identity_of(int standard) {
  struct stat found = {};
  if (fstat(standard, &found) != 0 || !S_ISREG(found.st_mode)) return std::nullopt;
  return file_identity{found.st_dev, found.st_ino};
}
std::optional<file_identity> identity_of(std::string const& path) {
  struct stat found = {};
  if (path.empty()) return std::nullopt;
  if (stat(path.c_str(), &found) == 0)
    return S_ISREG(found.st_mode) ? std::optional{file_identity{found.st_dev, found.st_ino}} : std::nullopt;
  std::error_code ignored;
  auto const absolute = std::filesystem::absolute(follow_links(path), ignored);
  return file_identity{.place = std::filesystem::weakly_canonical(absolute, ignored)};
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

  /// False if another process has locked the file.
  bool lock() const { return number_ >= 0 && flock(number_, LOCK_EX | LOCK_NB) == 0; }

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

/// A new file that is locked while it is open. One at `path` that no process has locked was left by
/// a process that is dead, and is replaced.
class fresh_file : public descriptor {
 public:
  explicit fresh_file(std::string const& path) : descriptor{without_left_over(path), O_WRONLY | O_CREAT | O_EXCL} {
    lock();
  }

 private:
  static std::string const& without_left_over(std::string const& path) {
    if (descriptor const left{path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK}; left.lock()) unlink(path.c_str());
    return path;
  }
};

}  // namespace

bool is_standard_output(std::string const& path) {
  auto const identity = identity_of(STDOUT_FILENO);
  return path == standard_output || (identity && identity == identity_of(path));
}

replaced_file::replaced_file(std::string what, std::string const& path)
    : what_{std::move(what)}, path_{path}, target_{path} {
  if (is_standard_output(path))
    throw usage_error{what_ + ": " + path + " is standard output, which has other text; name another file"};
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
  fresh_file const made{trial};
  if (made.error()) fail(made.error());
  unlink(trial.c_str());
}

void refuse_shared_files(std::vector<named_path> const& outputs, std::vector<named_path> const& inputs) {
  // What each option names, and the file.
  std::vector<std::pair<named_path, std::optional<file_identity>>> known;
  known.reserve(inputs.size() + outputs.size());
  for (auto const& each : inputs)
    known.emplace_back(each, each.second == standard_input ? identity_of(STDIN_FILENO) : identity_of(each.second));
  for (auto const& output : outputs) {
    bool const is_standard = is_standard_output(output.second);
    auto const identity = is_standard ? file_identity{.place = standard_output} : identity_of(output.second);
    for (auto const& [other, its_identity] : known)
      if (identity && identity == its_identity)
        throw usage_error{output.first + ": " + (is_standard ? "standard output" : output.second) + " is " +
                          other.first + "'s already; name another file"};
    known.emplace_back(output, identity);
  }
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
  fresh_file file{fresh};
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
