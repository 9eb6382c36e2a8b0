// Memory with a name that other programs of this machine can read: a file in POSIX shared memory,
// which its maker writes and removes. Pages of programs that were killed are recognised by a lock.
//
//   H1  The maker holds a lock on the file until it has removed it. The kernel takes the lock away
//       when the program ends, however it ends. So a page that shows itself as made and is not
//       locked is abandoned. Process ids would say less: they are used again, and those of a
//       container mean nothing outside.
//   H2  Before show() nobody but the maker's user can open the file, so nobody else can take the
//       lock first.
//
// Cost: a few system calls a page. A child that forks from the maker and does not call exec keeps
// the lock as long as it runs.
#pragma once

#if !defined(__CUDACC_RTC__)

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "types.hpp"

namespace warpheap {

namespace detail {

/// An open file of shared memory, mapped. Movable.
class mapped_file {
 public:
  /// Maps the first `bytes` bytes of `file`, which is closed with the object. data() is nullptr if
  /// that failed; errno then says why.
  mapped_file(int file, size_t bytes, int access) : file_{file}, bytes_{bytes} {
    void* const memory = mmap(nullptr, bytes, access, MAP_SHARED, file, 0);
    if (memory != MAP_FAILED) data_ = memory;
  }
  mapped_file(mapped_file&& other) noexcept
      : file_{std::exchange(other.file_, -1)}, bytes_{other.bytes_}, data_{std::exchange(other.data_, nullptr)} {}
  mapped_file& operator=(mapped_file&&) = delete;
  ~mapped_file() {
    if (data_) munmap(data_, bytes_);
    if (file_ >= 0) close(file_);
  }

  int file() const { return file_; }
  void* data() const { return data_; }

 private:
  int file_;
  size_t bytes_;
  void* data_ = nullptr;
};

}  // namespace detail

/// A page that this program makes, and removes at the object's end.
class shared_page {
 public:
  /// A page of `bytes` zero bytes, called `prefix`, this process's id and the first number that no
  /// page has: "prefix.4711.0". Throws std::system_error.
  shared_page(std::string const& prefix, size_t bytes) {
    int file = -1;
    for (u64 number = 0; file < 0; ++number) {
      name_ = prefix + "." + std::to_string(getpid()) + "." + std::to_string(number);
      file = shm_open(("/" + name_).c_str(), O_RDWR | O_CREAT | O_EXCL, S_IRUSR | S_IWUSR);
      if (file < 0 && errno != EEXIST) fail("shm_open", errno);
    }
    map(file, bytes);
  }
  shared_page(shared_page const&) = delete;
  shared_page& operator=(shared_page const&) = delete;
  ~shared_page() { shm_unlink(("/" + name_).c_str()); }

  std::string const& name() const { return name_; }
  void* data() const { return mapped_->data(); }

  /// Lets other users read the page too. Throws std::system_error.
  void show() const {
    if (fchmod(mapped_->file(), S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH) != 0) fail("fchmod", errno);
  }

 private:
  void map(int file, size_t bytes) {
    // Allocated now: a full file system would else end the program when it writes the page.
    int error = posix_fallocate(file, 0, static_cast<off_t>(bytes));
    if (error == 0 && flock(file, LOCK_EX) != 0) error = errno;  // H1
    mapped_.emplace(file, bytes, PROT_READ | PROT_WRITE);
    if (error == 0 && !mapped_->data()) error = errno;
    if (error == 0) return;
    shm_unlink(("/" + name_).c_str());
    fail("making", error);
  }

  [[noreturn]] void fail(char const* call, int error) const {
    throw std::system_error{error, std::generic_category(), std::string{call} + " of shared memory " + name_};
  }

  std::string name_;
  std::optional<detail::mapped_file> mapped_;
};

/// A page that any program made, for reading.
class shared_page_view {
 public:
  /// nullopt if there is no such page, if this user may not read it, or if it is shorter.
  static std::optional<shared_page_view> open(std::string const& name, size_t bytes) {
    int const file = shm_open(("/" + name).c_str(), O_RDONLY, 0);
    if (file < 0) return std::nullopt;
    struct stat is = {};
    if (fstat(file, &is) != 0 || static_cast<u64>(is.st_size) < bytes) {
      close(file);
      return std::nullopt;
    }
    shared_page_view made{name, detail::mapped_file{file, bytes, PROT_READ}};
    if (!made.data()) return std::nullopt;
    return made;
  }

  void const* data() const { return mapped_.data(); }

  /// Whether the page's maker has ended (H1). Only of a page that shows itself as made.
  bool is_abandoned() const {
    if (flock(mapped_.file(), LOCK_SH | LOCK_NB) != 0) return false;
    flock(mapped_.file(), LOCK_UN);
    return true;
  }

  /// Removes an abandoned page if this user may. Of several readers one removes it: a name that is
  /// free again may already be another page's.
  void remove() const {
    struct stat is = {};
    if (flock(mapped_.file(), LOCK_EX | LOCK_NB) != 0) return;
    if (fstat(mapped_.file(), &is) == 0 && is.st_nlink != 0) shm_unlink(("/" + name_).c_str());
    flock(mapped_.file(), LOCK_UN);
  }

 private:
  shared_page_view(std::string name, detail::mapped_file mapped) : name_{std::move(name)}, mapped_{std::move(mapped)} {}

  std::string name_;
  detail::mapped_file mapped_;
};

/// Names of all pages that begin with `prefix` and a dot. Linux has them in a folder; elsewhere
/// none are found.
inline std::vector<std::string> shared_page_names(std::string const& prefix) {
  std::vector<std::string> names;
  std::unique_ptr<DIR, int (*)(DIR*)> const folder{opendir("/dev/shm"), &closedir};
  if (!folder) return names;
  while (dirent const* const entry = readdir(folder.get()))
    if (std::string{entry->d_name}.starts_with(prefix + ".")) names.emplace_back(entry->d_name);
  return names;
}

}  // namespace warpheap

#endif
