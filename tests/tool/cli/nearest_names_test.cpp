// SPDX-License-Identifier: Apache-2.0
// Which names are offered for one that is mistyped.
#include "cli/nearest_names.hpp"

#include <gmock/gmock.h>

namespace warpheap::tool { namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> const allocators{"slab_bitmap", "scatter",   "scatter_coalesced",
                                          "rw_malloc",   "rw_bitmap", "corw"};

TEST(NearestNames, AreThoseOfTheFewestTypingErrors) {
  EXPECT_THAT(nearest_names("slab_bitmpa", allocators), ElementsAre("slab_bitmap")) << "exchanged";
  EXPECT_THAT(nearest_names("slabbitmap", allocators), ElementsAre("slab_bitmap")) << "missing";
  EXPECT_THAT(nearest_names("slab__bitmap", allocators), ElementsAre("slab_bitmap")) << "added";
  EXPECT_THAT(nearest_names("slab-bitmap", allocators), ElementsAre("slab_bitmap")) << "wrong";
  EXPECT_THAT(nearest_names("SCATER", allocators), ElementsAre("scatter"));
  EXPECT_THAT(nearest_names("bat", {"cat", "rat", "boat", "bath", "dog"}), ElementsAre("bath")) << "it begins so";
  EXPECT_THAT(nearest_names("hat", {"cat", "rat", "boat", "bat", "mat"}), ElementsAre("cat", "rat", "bat"))
      << "at most 3";
}

TEST(NearestNames, HaveWhatIsTyped) {
  EXPECT_THAT(nearest_names("bitmap", allocators), ElementsAre("slab_bitmap", "rw_bitmap"));
  EXPECT_THAT(nearest_names("rw", allocators), ElementsAre("rw_malloc", "rw_bitmap")) << "which begin so";
  EXPECT_THAT(nearest_names("orw", {"slow", "word"}), IsEmpty());
}

TEST(NearestNames, AreNoneThatDifferInMoreThanAThird) {
  EXPECT_THAT(nearest_names("skater", allocators), ElementsAre("scatter"));
  EXPECT_THAT(nearest_names("skaler", allocators), IsEmpty());
  EXPECT_THAT(nearest_names("", allocators), IsEmpty());
  EXPECT_THAT(nearest_names("x", {"y"}), IsEmpty());
  EXPECT_THAT(nearest_names("abc", {}), IsEmpty());
}

TEST(NearestNames, EndASentence) {
  EXPECT_EQ(names_instead_of("bitmap", allocators), "did you mean slab_bitmap or rw_bitmap?");
  EXPECT_EQ(did_you_mean("on", {"one", "only", "onto"}), "did you mean one, only or onto?");
  EXPECT_EQ(names_instead_of("metal", {"cuda", "host"}), "there are: cuda, host");
  EXPECT_EQ(did_you_mean("metal", {"cuda", "host"}), "");
}

}}  // namespace warpheap::tool
