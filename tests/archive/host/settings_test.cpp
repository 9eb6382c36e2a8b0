// SPDX-License-Identifier: Apache-2.0
#include "settings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>

namespace warpheap::archive { namespace {

using testing::HasSubstr;

constexpr u64 mib = u64{1} << 20, gib = u64{1} << 30;

/// What `run` throws as std::invalid_argument; "" if it throws nothing.
template <class Run>
std::string said(Run run) {
  try {
    run();
  } catch (std::invalid_argument const& error) {
    return error.what();
  }
  return "";
}

/// Sets an environment variable as long as it lives.
class variable {
 public:
  variable(char const* name, char const* value) : name_{name} { setenv(name, value, 1); }
  variable(variable const&) = delete;
  variable& operator=(variable const&) = delete;
  ~variable() { unsetenv(name_); }

 private:
  char const* name_;
};

/// A device with 10 GiB free, where metadata takes a hundredth.
constexpr device_limits device{10 * gib, 2 * mib, [](u64 whole) { return whole / 101 * 100; }};

pool_sizes sizes(char const* size, char const* grow = nullptr, bool forgiving = false) {
  warpheap_settings settings{};
  settings.size = size;
  settings.grow = grow;
  settings.forgiving = forgiving;
  return sizes_for(wishes::read(settings), device);
}

TEST(ArchiveSettings, ReadsTheThreeFormsOfASize) {
  EXPECT_EQ(pool_wish::read("x", "2GiB").of(10 * gib), 2 * gib);
  EXPECT_EQ(pool_wish::read("x", "1.5GiB").of(10 * gib), 3 * gib / 2);
  EXPECT_EQ(pool_wish::read("x", "100").of(10 * gib), 100u);
  EXPECT_EQ(pool_wish::read("x", "80%").of(100 * gib), 80 * gib);
  EXPECT_EQ(pool_wish::read("x", "free-1GiB").of(10 * gib), 9 * gib);
}

TEST(ArchiveSettings, NamesWhatIsWrongWithASize) {
  auto const of = [](char const* text) { return said([=] { pool_wish::read("WARPHEAP_SIZE", text); }); };
  EXPECT_EQ(of("2X"),
            "WARPHEAP_SIZE: '2X' is not a size; sizes are like 1.5GiB, 80% and free-1GiB; G and GiB are 2^30, GB is "
            "10^9; likewise K, M and T");
  EXPECT_THAT(of("0.3KiB"), HasSubstr("'0.3KiB' is not a whole number of bytes"));
  EXPECT_THAT(of("1.5%"), HasSubstr("is not a share"));
  EXPECT_THAT(of(""), HasSubstr("is not a size"));
  EXPECT_THAT(of("-1"), HasSubstr("is not a size"));
  EXPECT_THAT(of("free-"), HasSubstr("'free-' is not a size"));
  EXPECT_THAT(of("free-80%"), HasSubstr("is not a share"));
  EXPECT_THAT(of("0"), HasSubstr("is no memory"));
  EXPECT_THAT(of("99999999TiB"), HasSubstr("is more bytes than there can be"));
  EXPECT_THAT(of("99999999999999999999"), HasSubstr("is more bytes than there can be"));
  EXPECT_THAT(of("%"), HasSubstr("is not a share"));
  EXPECT_THAT(of("8 0%"), HasSubstr("is not a share"));
  EXPECT_THAT(of("0%"), HasSubstr("is not between 1% and 100%"));
  EXPECT_THAT(of("101%"), HasSubstr("is not between 1% and 100%"));
  EXPECT_THAT(said([] { pool_wish::read("x", "free-11GiB").of(10 * gib); }), HasSubstr("leaves nothing"));
}

TEST(ArchiveSettings, TakesTheEnvironment) {
  variable const size{"WARPHEAP_SIZE", "3GiB"}, grow{"WARPHEAP_GROW", "80%"}, report{"WARPHEAP_REPORT", "1"},
      forgiving{"WARPHEAP_FORGIVING", "0"};
  auto const found = settings_of_environment();
  EXPECT_STREQ(found.size, "3GiB");
  EXPECT_STREQ(found.grow, "80%");
  EXPECT_EQ(found.report, 1);
  EXPECT_EQ(found.forgiving, 0);
  auto const wanted = wishes::read(found);
  EXPECT_TRUE(wanted.reports && wanted.counts && wanted.grows && wanted.has_limit);
  EXPECT_FALSE(wanted.forgiving);
}

TEST(ArchiveSettings, TakesAnEmptyVariableForNone) {
  variable const size{"WARPHEAP_SIZE", ""}, report{"WARPHEAP_REPORT", ""};
  auto const found = settings_of_environment();
  EXPECT_EQ(found.size, nullptr);
  EXPECT_EQ(found.report, 0);
}

TEST(ArchiveSettings, NamesTheVariableThatIsWrong) {
  for (char const* const name : {"WARPHEAP_SIZE", "WARPHEAP_GROW", "WARPHEAP_REPORT", "WARPHEAP_FORGIVING"}) {
    variable const wrong{name, "yes"};
    EXPECT_THAT(said([] { settings_of_environment(); }), HasSubstr(std::string{name} + ": 'yes' is "));
  }
}

TEST(ArchiveSettings, KeepsItsSizeUnlessItGrows) {
  auto const made = sizes("1GiB");
  EXPECT_EQ(made.initial, gib);
  EXPECT_EQ(made.limit, gib);
  EXPECT_EQ(sizes("1GiB", "0").initial, gib);
}

TEST(ArchiveSettings, GrowsFromA32ndOrFromItsSize) {
  auto const from_little = sizes("1GiB", "1");
  EXPECT_EQ(from_little.initial, 32 * mib);
  EXPECT_EQ(from_little.limit, gib);
  auto const from_size = sizes("1GiB", "4GiB");
  EXPECT_EQ(from_size.initial, gib);
  EXPECT_EQ(from_size.limit, 4 * gib);
  EXPECT_EQ(from_size.chunk, 128 * mib);
  EXPECT_THAT(said([] { sizes("2GiB", "1GiB"); }), HasSubstr("2 GiB at first cannot grow to 1 GiB"));
}

TEST(ArchiveSettings, ZeroesNoMoreAtOnceThanCallsWaitFor) {
  EXPECT_EQ(sizes("1GiB", "64GiB").chunk, 2 * gib);
  EXPECT_EQ(sizes("1GiB", "64GiB", true).chunk, 128 * mib);
}

TEST(ArchiveSettings, RoundsToGranules) {
  EXPECT_EQ(sizes("1").limit, 2 * mib) << "what is said in bytes is there";
  EXPECT_EQ(sizes("3MiB").limit, 4 * mib);
  auto const share = sizes("50%").limit;
  EXPECT_EQ(share % (2 * mib), 0u);
  EXPECT_LE(share / 100 * 101, 5 * gib) << "with its metadata";
  EXPECT_GT(share, 4 * gib);
  EXPECT_EQ(sizes(nullptr).limit, share) << "the default";
  EXPECT_THAT(said([] { sizes("free-10485759KiB"); }), HasSubstr("the least is 2 MiB"));
}

}}  // namespace warpheap::archive
