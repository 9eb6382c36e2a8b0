// SPDX-License-Identifier: Apache-2.0
// Pages of shared memory with a name: which program has one, when it is abandoned, that one reader
// removes it, and that nothing but this user's own files is taken for one.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/child_process.hpp"
#include "support/message_of.hpp"
#include "support/runtime_folder.hpp"
#include "warpheap/platform/shared_page.hpp"

namespace shared_page_test {

using namespace warpheap;
using testing::HasSubstr;

constexpr char const* prefix = "test";
constexpr size_t bytes = 512;

/// The name of a process's page.
std::string page_of(pid_t process, int number = 0) {
  return std::string{prefix} + "." + std::to_string(page_parts::process_namespace()) + "." + std::to_string(process) +
         "." + std::to_string(number);
}

class SharedPage : public testing::Test {
 protected:
  test::runtime_folder runtime;
  page_folder const folder = page_folder::make();

  auto view(std::string const& name) const { return shared_page_view::open(folder, name); }
  /// Whether the page of `name` begins with `text`.
  bool begins(std::string const& name, std::string const& text) const {
    auto const seen = view(name);
    std::string copy(text.size(), ' ');
    return seen && seen->read(copy.data(), copy.size()) && copy == text;
  }
  /// A program that has a page and does nothing.
  static test::child_process child_with_page() {
    return test::child_process{[] {
      shared_page const mine{prefix, bytes};
      std::memcpy(mine.data(), "made", 4);
      test::child_process::wait_for_kill();
    }};
  }
  /// Makes a file that no program holds.
  void leave(std::string const& name) const {
    int const file = open(runtime.page(name).c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
    ASSERT_GE(file, 0);
    close(file);
  }
};

TEST_F(SharedPage, IsThereAsLongAsItsObject) {
  std::string name;
  {
    shared_page const made{prefix, bytes};
    name = made.name();
    std::memcpy(made.data(), "hello", 6);
    EXPECT_THAT(folder.names(prefix), testing::ElementsAre(name));
    EXPECT_TRUE(begins(name, "hello"));
    EXPECT_FALSE(view(name)->is_abandoned()) << "another open file of this program is no maker either";
  }
  EXPECT_FALSE(runtime.has(name));
  EXPECT_THAT(folder.names(prefix), testing::IsEmpty());
  EXPECT_FALSE(view(name));
}

TEST_F(SharedPage, TakesTheFirstNumberThatIsFree) {
  leave(page_of(getpid(), 0));
  shared_page const first{prefix, bytes}, second{prefix, bytes};
  EXPECT_EQ(first.name(), page_of(getpid(), 1));
  EXPECT_EQ(second.name(), page_of(getpid(), 2));
}

TEST_F(SharedPage, IsForItsUserAlone) {
  shared_page const made{prefix, bytes};
  EXPECT_EQ(runtime.mode_of(made.name()), 0600u);
  EXPECT_EQ(runtime.mode_of("."), 0700u);
}

TEST_F(SharedPage, SaysWhichPageCouldNotBeMade) {
  EXPECT_THAT(test::message_of<std::system_error>([] {
                shared_page{"no/such/folder", bytes};
              }),
              HasSubstr("no/such/folder." + std::to_string(page_parts::process_namespace()) + "." +
                        std::to_string(getpid()) + ".0"));
}

// shared_page.H1
TEST_F(SharedPage, IsAbandonedFromItsMakersEndOn) {
  auto child = child_with_page();
  auto const name = page_of(child.id());
  EXPECT_TRUE(child.wait_until([&] { return begins(name, "made"); }));
  auto const seen = view(name);
  ASSERT_TRUE(seen);
  EXPECT_FALSE(seen->is_abandoned());
  seen->remove();
  EXPECT_TRUE(runtime.has(name)) << "nobody removes a page that is in use";
  child.kill();
  EXPECT_TRUE(seen->is_abandoned());
  EXPECT_TRUE(runtime.has(name));
  seen->remove();
  EXPECT_FALSE(runtime.has(name));
}

TEST_F(SharedPage, IsAbandonedHoweverLittleOfItWasMade) {
  leave(page_of(1));
  auto const seen = view(page_of(1));
  ASSERT_TRUE(seen);
  EXPECT_TRUE(seen->is_abandoned());
  seen->remove();
  EXPECT_FALSE(runtime.has(page_of(1)));
}

TEST_F(SharedPage, IsRemovedByOneReaderAndNotTakenForItsSuccessor) {
  auto child = child_with_page();
  auto const name = page_of(child.id());
  EXPECT_TRUE(child.wait_until([&] { return begins(name, "made"); }));
  auto const first = view(name), second = view(name);
  ASSERT_TRUE(first && second);
  child.kill();
  first->remove();
  leave(name);
  second->remove();
  EXPECT_TRUE(runtime.has(name));
}

// A reader takes a page that is not locked yet for an abandoned one (shared_page.H2).
TEST_F(SharedPage, OfWhichAReaderRemovedTheBeginningsIsMadeAgain) {
  std::atomic<bool> stops{false};
  std::atomic<u64> removed{0};
  std::thread reader{[&] {
    while (!stops)
      for (auto const& name : folder.names(prefix))
        if (auto const seen = view(name); seen && seen->is_abandoned()) {
          seen->remove();
          ++removed;
        }
  }};
  bool all_there = true;
  for (u32 round = 0; round < 100'000 && removed < 20 && all_there; ++round) {
    shared_page const made{prefix, bytes};
    all_there = runtime.has(made.name());
  }
  EXPECT_TRUE(all_there);
  stops = true;
  reader.join();
}

// shared_page.H3
TEST_F(SharedPage, EndsWithItsMakerAndNotWithAChildOfThat) {
  auto made = std::make_unique<shared_page>(prefix, bytes);
  auto const name = made->name();
  {
    int status = -1;
    pid_t const child = fork();
    if (child == 0) {
      made.reset();
      _exit(0);
    }
    waitpid(child, &status, 0);
  }
  EXPECT_TRUE(runtime.has(name)) << "a child has a copy of the object";
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  test::child_process maker{[&] {
    shared_page const mine{prefix, bytes};
    pid_t const grandchild = fork();
    if (grandchild != 0 && write(pipe_ends[1], &grandchild, sizeof grandchild) != sizeof grandchild) _exit(1);
    test::child_process::wait_for_kill();
  }};
  pid_t grandchild = 0;
  ASSERT_EQ(read(pipe_ends[0], &grandchild, sizeof grandchild), static_cast<ssize_t>(sizeof grandchild));
  auto const seen = view(page_of(maker.id()));
  ASSERT_TRUE(seen);
  EXPECT_FALSE(seen->is_abandoned());
  maker.kill();
  EXPECT_TRUE(seen->is_abandoned()) << "though a child of the maker holds the lock";
  kill(grandchild, SIGKILL);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

TEST_F(SharedPage, OfAnotherNamespaceIsJudgedByItsLockAlone) {
  auto const name = std::string{prefix} + ".1.999999999.0";
  leave(name);
  int const holder = open(runtime.page(name).c_str(), O_RDWR);
  ASSERT_EQ(flock(holder, LOCK_EX), 0);
  EXPECT_FALSE(view(name)->is_abandoned()) << "its process cannot be seen from here";
  close(holder);
  EXPECT_TRUE(view(name)->is_abandoned());
}

TEST_F(SharedPage, IsARegularFileOfThisUser) {
  shared_page const made{prefix, bytes};
  ASSERT_EQ(mkfifo(runtime.page("test.fifo").c_str(), 0600), 0);
  ASSERT_EQ(mkdir(runtime.page("test.folder").c_str(), 0700), 0);
  ASSERT_EQ(symlink(made.name().c_str(), runtime.page("test.link").c_str()), 0);
  ASSERT_EQ(symlink("/dev/zero", runtime.page("test.device").c_str()), 0);
  leave("test.strangers");
  if (test::may_give_files_away()) {
    ASSERT_EQ(chown(runtime.page("test.strangers").c_str(), test::another_user, test::another_user), 0);
  }
  for (auto const* const name : {"test.fifo", "test.folder", "test.link", "test.device"})
    EXPECT_FALSE(view(name)) << name;
  EXPECT_EQ(view("test.strangers").has_value(), !test::may_give_files_away());
  EXPECT_TRUE(view(made.name()));
}

TEST_F(SharedPage, ThatBecomesShorterIsNotWhole) {
  shared_page const made{prefix, bytes};
  auto const seen = view(made.name());
  char copy[bytes];
  EXPECT_TRUE(seen->read(copy, bytes));
  ASSERT_EQ(truncate(runtime.page(made.name()).c_str(), bytes - 1), 0);
  EXPECT_FALSE(seen->read(copy, bytes));
  std::atomic<bool> stops{false};
  std::thread other{[&] {
    for (off_t length = 0; !stops; length = length ? 0 : bytes)
      if (truncate(runtime.page(made.name()).c_str(), length) != 0) break;
  }};
  u64 whole = 0, cut = 0;
  for (u32 i = 0; i < 10'000'000 && (whole < 100 || cut < 100); ++i) ++(seen->read(copy, bytes) ? whole : cut);
  stops = true;
  other.join();
  EXPECT_GE(cut, 100u);
}

using PageFolder = SharedPage;

TEST_F(PageFolder, IsOneThatNoOtherUserCanEnter) {
  auto const good = runtime.path() / "good";
  std::filesystem::create_directory(good);
  for (mode_t const mode : {0755, 0750, 0710, 0701, 0777, 01777}) {
    chmod(good.c_str(), mode);
    EXPECT_FALSE(page_folder::open(good)) << std::oct << mode;
  }
  chmod(good.c_str(), 0700);
  EXPECT_TRUE(page_folder::open(good));
  std::filesystem::create_directory_symlink(good, runtime.path() / "link");
  EXPECT_FALSE(page_folder::open(runtime.path() / "link"));
  ASSERT_EQ(mkfifo((runtime.path() / "fifo").c_str(), 0700), 0);
  EXPECT_FALSE(page_folder::open(runtime.path() / "fifo"));
  EXPECT_FALSE(page_folder::open(runtime.path() / "nothing"));
  if (!test::may_give_files_away()) return;
  ASSERT_EQ(chown(good.c_str(), test::another_user, test::another_user), 0);
  EXPECT_FALSE(page_folder::open(good)) << "another user's";
}

TEST_F(PageFolder, IsMadeInTheFirstPlaceThatAllowsIt) {
  auto const places = page_folder::places();
  EXPECT_THAT(places, testing::ElementsAre(runtime.pages(), "/tmp/warpheap-" + std::to_string(geteuid())));
  std::filesystem::path const missing = runtime.path() / "a" / "b", open_to_all = runtime.path() / "open",
                              second = runtime.path() / "second", third = runtime.path() / "third";
  std::filesystem::create_directory(open_to_all);
  chmod(open_to_all.c_str(), 0777);
  page_folder::make({missing, open_to_all, second, third});
  EXPECT_TRUE(page_folder::open(second));
  EXPECT_FALSE(page_folder::open(third));
  EXPECT_THAT(test::message_of<std::system_error>([&] {
                page_folder::make({missing, open_to_all});
              }),
              testing::AllOf(HasSubstr(open_to_all.string()), HasSubstr("set XDG_RUNTIME_DIR")));
  for (auto const* const value : {"", "relative"}) {
    setenv("XDG_RUNTIME_DIR", value, 1);
    EXPECT_THAT(page_folder::places(), testing::ElementsAre(places[1]));
  }
}

}  // namespace shared_page_test
