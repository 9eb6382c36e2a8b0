// SPDX-License-Identifier: Apache-2.0
// Images of heaps on the host: blocks are read there, and files hold them for another process.
#include "warpheap/heap/heap_image.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "linked_lists.hpp"
#include "support/message_of.hpp"
#include "support/runtime_folder.hpp"
#include "warpheap/heap/persistent_heap.hpp"
#include "warpheap/warpheap.hpp"

namespace heap_image_test {

using namespace warpheap;
using namespace warpheap::literals;
using namespace warpheap::test;
using testing::HasSubstr;

/// The lists of an image, read on the host.
u64 spoilt_in(heap_image const& image) {
  auto const* const table = image.at(static_cast<list_table const*>(image.root()));
  u64 spoilt = 0;
  for (u32 list = 0; list < list_count; ++list) {
    u32 right = 0;
    auto const* node = image.at(table->first[list]);
    for (; node && right < list_length && node->value == list_value(list, right); node = image.at(node->next)) ++right;
    spoilt += node || right != list_length;
  }
  return spoilt;
}

TEST(HeapImage, IsReadOnTheHost) {
  heap const heap{1_MiB};
  auto* const table = build_lists(heap);
  auto const image = save(heap, table);
  spoil_lists(heap, table);
  EXPECT_EQ(spoilt_in(image), 0u) << "the copy is as the heap was";
  EXPECT_EQ(spoilt_in(save(heap, table)), list_count);
}

TEST(HeapImage, KnowsWhichAddressesAreInIt) {
  heap const heap{1_MiB};
  auto const image = save(heap);
  auto const* const begin = static_cast<u8 const*>(image.address());
  auto const end = begin + image.bytes();
  EXPECT_EQ(image.root(), nullptr);
  EXPECT_EQ(image.at(static_cast<u64 const*>(nullptr)), nullptr);
  EXPECT_EQ(image.at(end - 1) - image.at(begin), static_cast<i64>(image.bytes() - 1));
  EXPECT_EQ(image.at(static_cast<void const*>(end - 1)), image.at(end - 1));
  EXPECT_EQ(reinterpret_cast<u64>(image.at(begin)) % 4096, reinterpret_cast<u64>(begin) % 4096);
  auto const refusal = [&](auto const* memory) { return message_of<std::out_of_range>([&] { image.at(memory); }); };
  EXPECT_THAT(refusal(begin - 1), HasSubstr("1 bytes at 0x"));
  EXPECT_THAT(refusal(end), HasSubstr("are not in the image of the heap at 0x"));
  EXPECT_THAT(refusal(reinterpret_cast<u64 const*>(end - 7)), HasSubstr("8 bytes at 0x")) << "not all of it is there";
}

/// A heap's image in a file, whose bytes a test may change.
struct image_file {
  // Where numbers lie in the file.
  static constexpr size_t version = 8, text_bytes = 24, heaps = 32, text = 40;

  std::string path(char const* name = "heap.image") const { return (folder.path() / name).string(); }

  std::string contents() const {
    std::ifstream file{path(), std::ios::binary};
    return {std::istreambuf_iterator<char>{file}, {}};
  }
  static u64 number_at(std::string const& file, size_t offset) {
    u64 number = 0;
    std::memcpy(&number, file.data() + offset, sizeof number);
    return number;
  }
  static size_t record(std::string const& file) { return text + number_at(file, text_bytes); }

  /// What reading other contents throws.
  std::string refusal_of(std::string const& contents) const {
    std::ofstream{path(), std::ios::binary} << contents;
    return message_of<std::invalid_argument>([&] { heap_image::read(path()); });
  }
  /// With one number changed.
  std::string refusal_of(std::string file, size_t offset, u64 number) const {
    std::memcpy(file.data() + offset, &number, sizeof number);
    return refusal_of(file);
  }

  runtime_folder folder;
};

TEST(HeapImage, ComesBackFromAFile) {
  image_file const file;
  heap heap{1_MiB};
  auto* const table = build_lists(heap);
  save(heap, table).write(file.path());
  spoil_lists(heap, table);
  save(heap).write(file.path("other.image"));
  auto const image = heap_image::read(file.path());
  EXPECT_EQ(spoilt_in(image), 0u);
  restore(heap, image);
  EXPECT_EQ(spoilt_lists(table), 0u);
  EXPECT_THAT(heap.check_invariants(), testing::IsEmpty());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator{file.folder.path()}, {}), 2) << "no unfinished file";
}

TEST(HeapImage, SaysWhyAFileCannotBeWritten) {
  image_file const file;
  heap const heap{1_MiB};
  auto const image = save(heap);
  EXPECT_THAT(message_of<std::runtime_error>([&] { image.write(file.path("nowhere/heap.image")); }),
              HasSubstr("nowhere/heap.image: cannot be written: No such file"));
}

/// Files of this process end at some length, as if the disk were full.
class short_files {
 public:
  explicit short_files(rlim_t bytes) : handler_{signal(SIGXFSZ, SIG_IGN)} {
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit const now{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &now);
  }
  short_files(short_files const&) = delete;
  short_files& operator=(short_files const&) = delete;
  ~short_files() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  sighandler_t handler_;
};

TEST(HeapImage, LeavesAnOlderFileIfTheNewOneIsNotComplete) {
  image_file const file;
  heap const heap{1_MiB};
  auto* const table = build_lists(heap);
  auto const image = save(heap, table);
  image.write(file.path());
  {
    short_files const limited{image.bytes() / 2};
    EXPECT_THAT(message_of<std::runtime_error>([&] { save(heap).write(file.path()); }),
                HasSubstr("heap.image: cannot be written: File too large"));
  }
  EXPECT_EQ(spoilt_in(heap_image::read(file.path())), 0u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator{file.folder.path()}, {}), 1) << "no unfinished file";
}

TEST(HeapImage, RefusesFilesThatAreNone) {
  image_file const file;
  EXPECT_THAT(message_of<std::invalid_argument>([&] { heap_image::read(file.path()); }), HasSubstr("No such file"));
  for (auto const* const contents :
       {"", "WHIMAG", "WHTRACE", "a longer text that is no image of a heap whatever it is"})
    EXPECT_THAT(file.refusal_of(contents), HasSubstr("heap.image is no image of a heap")) << contents;
  EXPECT_THAT(message_of<std::invalid_argument>([&] { heap_image::read(file.folder.path().string()); }),
              HasSubstr(file.folder.path().string()))
      << "a folder";
}

TEST(HeapImage, RefusesFilesThatAreShortOrLong) {
  image_file const file;
  save(heap{1_MiB}).write(file.path());
  auto const whole = file.contents();
  size_t const memory = image_file::record(whole) + sizeof(warpheap::detail::heap_record);
  for (size_t const left : {size_t{8}, size_t{39}, size_t{40}, size_t{41}, memory - 1})
    EXPECT_THAT(file.refusal_of(whole.substr(0, left)), HasSubstr("ends within its header")) << left;
  for (size_t const left : {memory, memory + 1, whole.size() - 1})
    EXPECT_THAT(file.refusal_of(whole.substr(0, left)),
                HasSubstr(std::to_string(left - memory) + " bytes of memory, which"))
        << left;
  EXPECT_THAT(file.refusal_of(whole + "a"), HasSubstr("bytes of memory, which are not those of its heaps"));
  EXPECT_EQ(file.refusal_of(whole), "nothing thrown");
}

TEST(HeapImage, RefusesFilesThatDescribeNoHeap) {
  image_file const file;
  save(heap{1_MiB}).write(file.path());
  auto const whole = file.contents();
  auto const in_record = [&](size_t offset, u64 number) {
    return file.refusal_of(whole, image_file::record(whole) + offset, number);
  };
  u64 const bytes =
      image_file::number_at(whole, image_file::record(whole) + offsetof(warpheap::detail::heap_record, bytes));
  EXPECT_THAT(file.refusal_of(whole, image_file::version, 2),
              HasSubstr("is of version 2, and this program reads version 1"));
  for (u64 const number : {~u64{0}, u64{1} << 63, u64{1} << 60, u64{1} << 40}) {
    EXPECT_THAT(file.refusal_of(whole, image_file::text_bytes, number), HasSubstr("ends within its header"));
    EXPECT_THAT(file.refusal_of(whole, image_file::heaps, number), HasSubstr("ends within its header"));
    EXPECT_THAT(in_record(offsetof(warpheap::detail::heap_record, bytes), number), HasSubstr("heap.image "));
    EXPECT_THAT(in_record(offsetof(warpheap::detail::heap_record, committed), number),
                HasSubstr("describes what no heap can be"));
    EXPECT_THAT(in_record(offsetof(warpheap::detail::heap_record, stamp.pool_bytes), number),
                HasSubstr("describes what no heap can be"));
    EXPECT_THAT(in_record(offsetof(warpheap::detail::heap_record, behind), number),
                HasSubstr("describes what no heap can be"));
  }
  EXPECT_THAT(file.refusal_of(whole, image_file::heaps, 0), HasSubstr("describes what no heap can be"));
  EXPECT_THAT(in_record(offsetof(warpheap::detail::heap_record, begin), ~bytes + 1),
              HasSubstr("describes what no heap can be"));
  EXPECT_THAT(in_record(offsetof(warpheap::detail::heap_record, bytes), 0), HasSubstr("describes what no heap can be"));
  EXPECT_THAT(in_record(offsetof(warpheap::detail::heap_record, stamp.policy), 0x1b),
              HasSubstr("describes what no heap can be"))
      << "messages would print it";
  EXPECT_THAT(file.refusal_of(whole, image_file::text, 0x1b), HasSubstr("describes what no heap can be"));
}

TEST(HeapImage, OfAnotherVersionIsReadButNotRestored) {
  image_file const file;
  heap heap{1_MiB};
  save(heap).write(file.path());
  auto contents = file.contents();
  contents[image_file::record(contents) + offsetof(warpheap::detail::heap_record, stamp.version)] ^= 1;
  EXPECT_EQ(file.refusal_of(contents), "nothing thrown");
  EXPECT_THAT(message_of<std::invalid_argument>([&] { restore(heap, heap_image::read(file.path())); }),
              HasSubstr("restore: the image is of slab_bitmap of Warpheap"));
}

/// This program in another process, for one test that finds `path` in its environment. Returns its
/// exit status.
constexpr char const* variable = "WARPHEAP_TEST_IMAGE";
int status_of_another_process(char const* test, std::string const& path) {
  std::string program{"heap_image_test"}, filter = std::string{"--gtest_filter="} + test;
  char* const arguments[] = {program.data(), filter.data(), nullptr};
  setenv(variable, path.c_str(), 1);
  pid_t child = 0;
  int const failed = posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments, environ);
  unsetenv(variable);
  int status = 0;
  if (failed != 0 || waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void restore_lists_of(char const* path) {
  auto const image = heap_image::read(path);
  auto const heap = restore<persistent_heap>(image);
  auto* const table = static_cast<list_table*>(image.root());
  EXPECT_EQ(heap.memory()[0].begin, image.address());
  EXPECT_EQ(spoilt_lists(table), 0u);
  EXPECT_EQ(heap.statistics().live_blocks, blocks_of_lists);
  free_lists(heap, table);
  EXPECT_EQ(heap.statistics().live_blocks, 1u);
  EXPECT_THAT(heap.check_invariants(), testing::IsEmpty());
  save(heap).write(path);  // a sign that this ran
}

TEST(HeapImage, IsRestoredByAnotherProcess) {
  if (char const* const path = std::getenv(variable)) return restore_lists_of(path);
  image_file const file;
  // Not the usual address, which other tests may still have, nor one that the system chose, where
  // the other process may have something else.
  persistent_heap const heap{2_MiB, reserve_pool::at_address{reinterpret_cast<void*>(u64{33} << 40)}};
  auto* const table = build_lists(heap);
  save(heap, table).write(file.path());
  EXPECT_EQ(status_of_another_process("HeapImage.IsRestoredByAnotherProcess", file.path()), 0);
  EXPECT_EQ(heap_image::read(file.path()).root(), nullptr) << "the other process has written it";
  EXPECT_EQ(spoilt_lists(table), 0u) << "its memory is not ours";
}

}  // namespace heap_image_test
