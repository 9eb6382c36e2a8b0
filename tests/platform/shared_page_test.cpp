// Pages of shared memory with a name: which program has one, when it is abandoned, and that one
// reader removes it.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>
#include <string>
#include <vector>

#include "support/child_process.hpp"
#include "warpheap/platform/shared_page.hpp"

namespace shared_page_test {

using namespace warpheap;

constexpr char const* prefix = "warpheap_test";
constexpr size_t bytes = 512;

/// The permissions of a page that is there; 0 if it is not.
mode_t mode_of(std::string const& name) {
  struct stat is = {};
  return stat(("/dev/shm/" + name).c_str(), &is) == 0 ? is.st_mode & 0777 : 0;
}
bool is_there(std::string const& name) { return mode_of(name) != 0; }

/// A child that has a page and does nothing.
struct child_with_page : test::child_process {
  child_with_page()
      : child_process{[] {
          shared_page const mine{prefix, bytes};
          std::memcpy(mine.data(), "made", 4);
          wait_for_kill();
        }} {}
  std::string page() const { return std::string{prefix} + "." + std::to_string(id()) + ".0"; }
};

TEST(SharedPage, IsThereAsLongAsItsObject) {
  std::string name;
  {
    shared_page const made{prefix, bytes};
    name = made.name();
    std::memcpy(made.data(), "hello", 6);
    EXPECT_THAT(shared_page_names(prefix), testing::Contains(name));
    auto const seen = shared_page_view::open(name, bytes);
    ASSERT_TRUE(seen);
    EXPECT_STREQ(static_cast<char const*>(seen->data()), "hello");
    EXPECT_FALSE(seen->is_abandoned()) << "another open file of this program is no maker either";
  }
  EXPECT_FALSE(is_there(name));
  EXPECT_THAT(shared_page_names(prefix), testing::Not(testing::Contains(name)));
  EXPECT_FALSE(shared_page_view::open(name, bytes));
}

TEST(SharedPage, TakesTheFirstNumberThatIsFree) {
  auto const numbered = [](int number) {
    return std::string{prefix} + "." + std::to_string(getpid()) + "." + std::to_string(number);
  };
  int const stranger = shm_open(("/" + numbered(0)).c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  ASSERT_GE(stranger, 0);
  shared_page const first{prefix, bytes}, second{prefix, bytes};
  EXPECT_EQ(first.name(), numbered(1));
  EXPECT_EQ(second.name(), numbered(2));
  EXPECT_FALSE(shared_page_view::open(numbered(0), bytes)) << "it is too short";
  close(stranger);
  shm_unlink(("/" + numbered(0)).c_str());
}

TEST(SharedPage, IsForItsUserAloneUntilItIsShown) {
  shared_page const made{prefix, bytes};
  EXPECT_EQ(mode_of(made.name()), 0600u);
  made.show();
  EXPECT_EQ(mode_of(made.name()), 0644u);
}

TEST(SharedPage, SaysWhichPageCouldNotBeMade) {
  try {
    shared_page const made{"no/such/folder", bytes};
    FAIL();
  } catch (std::system_error const& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("no/such/folder." + std::to_string(getpid()) + ".0"));
  }
}

TEST(SharedPage, IsAbandonedFromItsMakersEndOn) {
  child_with_page child;
  auto const seen = child.wait_until([&] { return shared_page_view::open(child.page(), bytes); });
  ASSERT_TRUE(seen);
  EXPECT_TRUE(child.wait_until([&] { return std::memcmp(seen->data(), "made", 4) == 0; }));
  EXPECT_FALSE(seen->is_abandoned());
  seen->remove();
  EXPECT_TRUE(is_there(child.page())) << "nobody removes a page that is in use";
  child.kill();
  EXPECT_TRUE(seen->is_abandoned());
  EXPECT_TRUE(is_there(child.page()));
  seen->remove();
  EXPECT_FALSE(is_there(child.page()));
}

TEST(SharedPage, IsRemovedByOneReaderAndNotTakenForItsSuccessor) {
  child_with_page child;
  auto const first = child.wait_until([&] { return shared_page_view::open(child.page(), bytes); });
  auto const second = shared_page_view::open(child.page(), bytes);
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(child.wait_until([&] { return std::memcmp(first->data(), "made", 4) == 0; }));
  child.kill();
  first->remove();
  int const successor = shm_open(("/" + child.page()).c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  ASSERT_GE(successor, 0);
  second->remove();
  EXPECT_TRUE(is_there(child.page()));
  close(successor);
  shm_unlink(("/" + child.page()).c_str());
}

}  // namespace shared_page_test
