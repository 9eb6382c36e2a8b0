// SPDX-License-Identifier: Apache-2.0
// Memory with a name that other programs of this user can read: a file that its maker writes and
// removes. It lies in a folder that no other user can enter, so a page says what a program of this
// user wrote. A lock tells pages of programs that were killed.
//
//   shared_page.H1  The maker holds a lock on the file from before it writes until it has removed
//       it. The kernel takes the lock away when the program ends, however it ends. So a page
//       without a lock is abandoned, also one that was never finished.
//   shared_page.H2  A maker whose file a reader has removed before the maker had the lock makes
//       another one.
//   shared_page.H3  A child that forks from the maker keeps the lock. So a page is abandoned, too,
//       when the process in its name has ended. That process can be looked for only by a program of
//       the same namespace of process ids, which is why the name has that as well.
//
// Cost: a few system calls a page. A reader copies by system calls: a mapping would end the reader
// by SIGBUS if a page became shorter.
#pragma once

#if !defined(__CUDACC_RTC__)

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "types.hpp"

namespace warpheap {

namespace page_parts {

/// An open file or folder, closed with the object. Movable.
class open_file {
 public:
  explicit open_file(int descriptor) : descriptor_{descriptor} {}
  open_file(open_file&& other) noexcept : descriptor_{std::exchange(other.descriptor_, -1)} {}
  open_file& operator=(open_file&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~open_file() {
    if (descriptor_ >= 0) close(descriptor_);
  }

  explicit operator bool() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  /// What fstat() says; all zero if it fails.
  struct stat status() const {
    struct stat is = {};
    if (fstat(descriptor_, &is) != 0) is = {};
    return is;
  }

 private:
  int descriptor_;
};

/// The namespace that this process's id is of; 0 if the system has none.
inline u64 process_namespace() {
  struct stat is = {};
  return stat("/proc/self/ns/pid", &is) == 0 ? is.st_ino : 0;
}

}  // namespace page_parts

/// A folder for pages that this user alone can enter. Movable.
class page_folder {
 public:
  /// Where pages may be: $XDG_RUNTIME_DIR/warpheap and /tmp/warpheap-UID. Programs of one user may
  /// differ in the variable, so readers look at both.
  static std::vector<std::string> places() {
    std::vector<std::string> paths;
    if (char const* const runtime = std::getenv("XDG_RUNTIME_DIR"); runtime && *runtime == '/')
      paths.push_back(std::string{runtime} + "/warpheap");
    paths.push_back("/tmp/warpheap-" + std::to_string(geteuid()));
    return paths;
  }

  /// The folder at `path`; nullopt if there is none, or if another user owns it or may enter it. A
  /// link is no folder.
  static std::optional<page_folder> open(std::string const& path) {
    page_parts::open_file folder{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
    auto const is = folder.status();
    if (!S_ISDIR(is.st_mode) || is.st_uid != geteuid() || (is.st_mode & (S_IRWXG | S_IRWXO)) != 0) return std::nullopt;
    return page_folder{std::move(folder)};
  }

  /// The first of `paths` where there is a folder or one can be made. Throws std::system_error.
  static page_folder make(std::vector<std::string> const& paths = places()) {
    for (auto const& path : paths) {
      mkdir(path.c_str(), S_IRWXU);
      if (auto made = open(path)) return std::move(*made);
    }
    throw std::system_error{EACCES, std::generic_category(),
                            paths.back() + " is no folder that this user alone may enter: remove what is there, or " +
                                "set XDG_RUNTIME_DIR to a folder of this user's own"};
  }

  /// Names of all files that begin with `prefix` and a dot.
  std::vector<std::string> names(std::string const& prefix) const {
    std::vector<std::string> found;
    int const again = openat(descriptor(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    std::unique_ptr<DIR, int (*)(DIR*)> const listed{again < 0 ? nullptr : fdopendir(again), &closedir};
    if (!listed) return found;
    while (dirent const* const entry = readdir(listed.get()))
      if (std::string{entry->d_name}.starts_with(prefix + ".")) found.emplace_back(entry->d_name);
    return found;
  }

  int descriptor() const { return folder_.descriptor(); }

 private:
  explicit page_folder(page_parts::open_file folder) : folder_{std::move(folder)} {}

  page_parts::open_file folder_;
};

/// A page that this program makes, and removes at the object's end.
class shared_page {
 public:
  /// A page of `bytes` zero bytes, called `prefix`, the namespace of this process's id, that id,
  /// and the first number that no page has: "prefix.4026531836.4711.0". Throws std::system_error.
  shared_page(std::string const& prefix, size_t bytes) : bytes_{bytes} {
    auto const stem =
        prefix + "." + std::to_string(page_parts::process_namespace()) + "." + std::to_string(maker_) + ".";
    for (u64 number = 0; !try_make(stem + std::to_string(number)); ++number) continue;
    // Allocated now: a full file system would else end the program when it writes the page.
    if (int const error = posix_fallocate(file_.descriptor(), 0, static_cast<off_t>(bytes)); error != 0)
      fail("posix_fallocate", error);
    data_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.descriptor(), 0);
    if (data_ == MAP_FAILED) fail("mmap", errno);
  }
  shared_page(shared_page const&) = delete;
  shared_page& operator=(shared_page const&) = delete;
  ~shared_page() {
    munmap(data_, bytes_);
    if (getpid() == maker_) remove();  // shared_page.H3: a child has a copy of the object
  }

  std::string const& name() const { return name_; }
  void* data() const { return data_; }

 private:
  /// Returns whether a file of this name is now ours. Throws std::system_error.
  bool try_make(std::string name) {
    name_ = std::move(name);
    constexpr int access = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    file_ = page_parts::open_file{openat(folder_.descriptor(), name_.c_str(), access, S_IRUSR | S_IWUSR)};
    if (!file_ && errno == EEXIST) return false;
    if (!file_) fail("open", errno);
    while (flock(file_.descriptor(), LOCK_EX) != 0)  // shared_page.H1
      if (errno != EINTR) fail("flock", errno);
    return file_.status().st_nlink != 0;  // shared_page.H2
  }

  void remove() const { unlinkat(folder_.descriptor(), name_.c_str(), 0); }

  [[noreturn]] void fail(char const* call, int error) const {
    if (file_) remove();
    throw std::system_error{error, std::generic_category(), std::string{call} + " of shared page " + name_};
  }

  page_folder folder_ = page_folder::make();
  pid_t maker_ = getpid();
  std::string name_;
  page_parts::open_file file_{-1};
  size_t bytes_;
  void* data_ = nullptr;
};

/// A page that any program of this user made, for reading. The folder must outlive it.
class shared_page_view {
 public:
  /// nullopt if there is no such page, or no regular file of this user. Waits for nothing, as an
  /// open FIFO would.
  static std::optional<shared_page_view> open(page_folder const& folder, std::string const& name) {
    constexpr int access = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    page_parts::open_file file{openat(folder.descriptor(), name.c_str(), access)};
    auto const is = file.status();
    if (!S_ISREG(is.st_mode) || is.st_uid != geteuid()) return std::nullopt;
    return shared_page_view{folder, name, std::move(file)};
  }

  /// Copies the page's first `bytes` bytes. Returns whether it has this many. A copy is not of one
  /// moment, but comes after all copies before it.
  bool read(void* to, size_t bytes) const {
    return pread(file_.descriptor(), to, bytes, 0) == static_cast<ssize_t>(bytes);
  }

  /// Whether the page's maker has ended (shared_page.H1, shared_page.H3).
  bool is_abandoned() const {
    if (flock(file_.descriptor(), LOCK_SH | LOCK_NB) != 0) return maker_has_ended();
    flock(file_.descriptor(), LOCK_UN);
    return true;
  }

  /// Removes an abandoned page. Of several readers one removes it: a name that is free again may
  /// already be another page's.
  void remove() const {
    if (flock(file_.descriptor(), LOCK_EX | LOCK_NB) != 0) return;
    if (file_.status().st_nlink != 0) unlinkat(folder_.descriptor(), name_.c_str(), 0);
    flock(file_.descriptor(), LOCK_UN);
  }

 private:
  shared_page_view(page_folder const& folder, std::string name, page_parts::open_file file)
      : folder_{folder}, name_{std::move(name)}, file_{std::move(file)} {}

  /// Whether the name says a process that this one could see, and does not.
  bool maker_has_ended() const {
    unsigned long long space = 0;
    int process = 0;
    if (std::sscanf(name_.c_str(), "%*[^.].%llu.%d.", &space, &process) != 2) return false;
    return space == page_parts::process_namespace() && process > 0 && kill(process, 0) != 0 && errno == ESRCH;
  }

  page_folder const& folder_;
  std::string name_;
  page_parts::open_file file_;
};

}  // namespace warpheap

#endif
