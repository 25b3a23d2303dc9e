// How ranks that compute meet.
#include "netmodel/probe/meetings.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace sibyl {
namespace {

// 17 meetings of two ranks that take turns at being late: between two of them one computes for 3 and the other for 1.
// Who comes first waits for 2; the exchange itself takes 0.5, every fourth one `more` than that. Clocks are 1,000 apart.
std::vector<MeetingTimes> in_turns(double more) {
  std::vector<MeetingTimes> ranks(2);
  for (int rank = 0; rank < 2; ++rank) {
    double now = rank * 1000.0;
    for (int i = 0; i < 17; ++i) {
      const bool late = i % 2 == rank;
      ranks[static_cast<std::size_t>(rank)].begin.push_back(now += late ? 3 : 1);
      ranks[static_cast<std::size_t>(rank)].end.push_back(now += (late ? 0.5 : 2.5) + (i % 4 == 0 ? more : 0));
    }
  }
  return ranks;
}

// One meeting on, both have computed for 2 in the mean and the last one for 3; two on, both for 4. Of 16 there are 16
// and 8 windows, and of 4 meetings only 4, fewer than 8. An exchange takes 0.5 beside waiting, as in the median.
TEST(Meetings, AreLateByWhatTheLastRankComputesMore) {
  const MeetingMeasurement measured = meetings_of(in_turns(0));
  ASSERT_EQ(measured.windows.size(), 2U);
  EXPECT_NEAR(measured.windows[0].computing.value(), 2, 1e-9);
  EXPECT_NEAR(measured.windows[0].late.value(), 1, 1e-9);
  EXPECT_NEAR(measured.windows[1].computing.value(), 4, 1e-9);
  EXPECT_NEAR(measured.windows[1].late.value(), 0, 1e-9);
  EXPECT_NEAR(measured.longer.value(), 0, 1e-9);
}

// Of the 16 that follow another every fourth: a quarter of 1 in the mean, of which the median knows nothing.
TEST(Meetings, TakeLongerInTheMeanThanInTheMedian) {
  const MeetingMeasurement measured = meetings_of(in_turns(1));
  EXPECT_NEAR(measured.longer.value(), 0.25, 1e-9);
  EXPECT_NEAR(measured.windows[0].late.value(), 1, 1e-9);
}

TEST(Meetings, AreMeasuredByAllRanks) {
  Communicator world = Communicator::world();
  if (world.size() == 1) GTEST_SKIP() << "one rank meets nobody";
  std::vector<float> values(1000, 1.0F);
  int exchanges = 0;
  const MeetingMeasurement measured = probe_meetings(
      world, [&] { values[0] = 0.5F * values[1]; },
      [&] {
        ++exchanges;
        world.all_reduce(values, Algorithm::automatic);
      },
      Seconds{0.0});
  EXPECT_EQ(exchanges, 3 + 8 + 64);
  ASSERT_EQ(measured.windows.size(), 3U);  // of 63: 1, 2 and 4 meetings
  for (std::size_t i = 0; i < measured.windows.size(); ++i) {
    EXPECT_GT(measured.windows[i].computing.value(), 0);
    EXPECT_GE(measured.windows[i].late.value(), 0);
  }
  EXPECT_GE(measured.longer.value(), 0);
  const std::vector<double> all = world.gather_doubles(measured.windows[0].late.value());
  for (const double one : all) EXPECT_EQ(one, measured.windows[0].late.value());
}

}  // namespace
}  // namespace sibyl
