#include "profiler/interpolation/nearest.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace sibyl::interpolation {
namespace {

// The tree must agree with looking at every point, ties included.
TEST(NearestSites, AgreeWithLookingAtEveryPoint) {
  std::vector<Site> sites;
  std::uint64_t state = 1;
  auto next = [&state] { return state = state * 6364136223846793005ULL + 1442695040888963407ULL; };
  for (int i = 0; i < 500; ++i) {
    Site site;
    for (std::size_t a = 0; a < 4; ++a) site.at[a] = static_cast<double>(next() >> 60U);  // 0…15: many ties
    site.variant = static_cast<std::uint32_t>(next() >> 63U);
    sites.push_back(site);
  }
  constexpr double gap = 1.5;
  const NearestSites tree(sites, gap);
  for (std::uint32_t q = 0; q < 50; ++q) {
    std::vector<Neighbour> all;
    for (std::uint32_t i = 0; i < sites.size(); ++i) {
      if (i == q) continue;
      double d = sites[i].variant == sites[q].variant ? 0 : gap * gap;
      for (std::size_t a = 0; a < max_features; ++a)
        d += (sites[i].at[a] - sites[q].at[a]) * (sites[i].at[a] - sites[q].at[a]);
      all.push_back({d, i});
    }
    std::sort(all.begin(), all.end());
    all.resize(9);
    EXPECT_EQ(tree.nearest(sites[q], 9, q), all) << q;
  }
}

TEST(NearestSites, GiveAllWhenFewerThanAskedFor) {
  EXPECT_TRUE(NearestSites({}, 1.0).nearest({}, 5).empty());
  EXPECT_EQ(NearestSites({Site{}, Site{}}, 1.0).nearest({}, 5).size(), 2U);
}

}  // namespace
}  // namespace sibyl::interpolation
