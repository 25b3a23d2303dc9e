#include "calibration/meetings.h"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

namespace sibyl {
namespace {

MeetingSample series(int ranks, double longer, const std::vector<std::pair<double, double>>& windows) {
  MeetingSample sample{ranks, Seconds{longer}, {}};
  for (const auto& [computing, late] : windows) sample.windows.push_back({Seconds{computing}, Seconds{late}});
  return sample;
}

double late(const Meetings& meetings, double computing) { return meetings.late(Seconds{computing}).value(); }
double longer(const Meetings& meetings, double computing) { return meetings.longer(Seconds{computing}).value(); }

// Whole steps, of 8 here, drift by a tenth, which is counted already.
TEST(Meetings, CostWhatShortWindowsDriftBeyondLongOnes) {
  const Meetings meetings({series(2, 0.3, {{1, 0.2}, {2, 0.3}, {4, 0.45}, {8, 0.8}})});
  EXPECT_TRUE(meetings.known());
  EXPECT_EQ(meetings.ranks(), 2);
  EXPECT_NEAR(late(meetings, 1), 0.2 - 0.1, 1e-12);
  EXPECT_NEAR(late(meetings, 2), 0.3 - 0.2, 1e-12);
  EXPECT_NEAR(late(meetings, 4), 0.45 - 0.4, 1e-12);
  EXPECT_NEAR(late(meetings, 8), 0, 1e-12);
  EXPECT_NEAR(late(meetings, 100), 0, 1e-12);
  EXPECT_NEAR(late(meetings, std::sqrt(8.0)), std::sqrt(0.3 * 0.45) - 0.1 * std::sqrt(8.0), 1e-12);
  // Before the first as over the first octave: half as long, 2/3 as late.
  EXPECT_NEAR(late(meetings, 0.5), 0.2 * 2 / 3 - 0.05, 1e-12);
  EXPECT_NEAR(late(meetings, 0), 0, 1e-12);
}

TEST(Meetings, TakeLongerByHowFarRanksHaveDrifted) {
  const Meetings meetings({series(2, 0.3, {{1, 0.2}, {2, 0.3}, {4, 0.45}, {8, 0.8}})});
  EXPECT_NEAR(longer(meetings, 1), 0.3, 1e-12);
  EXPECT_NEAR(longer(meetings, 0.5), 0.3 * 2 / 3, 1e-12);
  EXPECT_NEAR(longer(meetings, 4), 0.3, 1e-12);
  EXPECT_NEAR(longer(meetings, 100), 0.3, 1e-12);
  EXPECT_NEAR(longer(meetings, 0), 0, 1e-12);
}

// Neither slower than independent kernels nor faster than one delay now and then.
TEST(Meetings, GrowBetweenTheRootAndTheProportion) {
  EXPECT_NEAR(longer(Meetings({series(2, 0.3, {{1, 0.2}, {2, 0.2}, {4, 0.2}})}), 0.25), 0.3 * 0.5, 1e-12);
  EXPECT_NEAR(longer(Meetings({series(2, 0.3, {{1, 0.1}, {2, 0.4}, {4, 0.9}})}), 0.25), 0.3 * 0.25, 1e-12);
}

TEST(Meetings, AreTheMeanOfSeriesOfTheMostRanks) {
  const Meetings meetings({series(2, 0.9, {{1, 0.9}, {2, 0.9}}), series(4, 0.1, {{1, 0.1}, {2, 0.2}, {4, 0.2}}),
                           series(4, 0.3, {{3, 0.5}, {6, 0.6}})});
  EXPECT_EQ(meetings.ranks(), 4);
  EXPECT_NEAR(longer(meetings, 2), 0.2, 1e-12);
  EXPECT_NEAR(late(meetings, 2), 0.3 - 0.4 * 2 / 4, 1e-12);  // windows of 2 and 4, late by 0.3 and 0.4
}

TEST(Meetings, NobodyDriftsWhoNeverDid) {
  const Meetings meetings({series(2, 0.3, {{1, 0}, {2, 0}})});
  EXPECT_EQ(late(meetings, 1), 0);
  EXPECT_EQ(longer(meetings, 0.5), 0.3);
  EXPECT_FALSE(Meetings().known());
  EXPECT_FALSE(Meetings(std::vector<MeetingSample>{}).known());
  EXPECT_FALSE(Meetings({series(2, 0.3, {})}).known());
}

}  // namespace
}  // namespace sibyl
