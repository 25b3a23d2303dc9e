#include "oracle/validate/ranking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sibyl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Validated ran(const std::string& work, const std::string& way, double predicted, double measured, double spread = 0.0) {
  Validated v;
  v.work = work;
  v.way = way;
  v.prediction.step_time = Seconds{predicted};
  v.measurement.step_time = Seconds{measured};
  v.measurement.spread = spread;
  v.measurement.steps = 25;
  return v;
}

// Of three strategies of one work there are three pairs, of two of another one; a work alone is compared with nothing.
TEST(Ranking, ComparesStrategiesOfTheSameWork) {
  const auto found =
      rankings({ran("cnn", "data=2", 1.0, 1.1), ran("cnn", "filter=2", 2.0, 2.2), ran("bert", "data=2", 9, 9),
                ran("cnn", "tensor=2", 0.5, 0.6), ran("bert", "tensor=2", 8, 10), ran("gpt", "data=2", 1, 1)});
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].work, "cnn");
  EXPECT_THAT(found[0].measured, ElementsAre("tensor=2", "data=2", "filter=2"));
  EXPECT_EQ(found[0].predicted, found[0].measured);
  EXPECT_EQ(found[0].pairs, 3);
  EXPECT_EQ(found[0].right, 3);
  EXPECT_THAT(found[0].wrong, IsEmpty());
  EXPECT_EQ(found[1].pairs, 1);
  EXPECT_EQ(found[1].right, 0);
  EXPECT_THAT(found[1].wrong, ElementsAre("tensor=2 before data=2"));
  EXPECT_THAT(summary_sentence(found), HasSubstr("right for 1 of 2 models; of 4 pairs"));
}

// Medians of 25 steps with 8 % spread: each standard error is 1.25 x 0.08 / 5 = 2 %, of the difference at 1 s 28 ms;
// twice that is 57 ms. So 1.00 and 1.05 s are the same, 1.00 and 1.07 are not.
TEST(Ranking, TakesNoiseForNoOrder) {
  const auto same = rankings({ran("cnn", "a", 2, 1.00, 0.08), ran("cnn", "b", 1, 1.05, 0.08)});
  EXPECT_EQ(same[0].pairs, 0);
  EXPECT_THAT(summary_sentence(same), HasSubstr("right for 0 of 0 models"));
  EXPECT_EQ(rankings({ran("cnn", "a", 2, 1.00, 0.08), ran("cnn", "b", 1, 1.07, 0.08)})[0].pairs, 1);
  // Runs at different times that drifted by 5 % say no more.
  Validated drifted = ran("cnn", "b", 1, 1.07);
  drifted.measurement.drift = 0.05;
  EXPECT_EQ(rankings({ran("cnn", "a", 2, 1.00), drifted})[0].pairs, 0);
  // The mean of four of them is known to 2.5 %.
  drifted.measurement.rounds = 4;
  EXPECT_EQ(rankings({ran("cnn", "a", 2, 1.00), drifted})[0].pairs, 1);
}

// The same time predicted for two that differ puts neither first.
TEST(Ranking, ATieIsNoOrder) {
  EXPECT_THAT(rankings({ran("cnn", "a", 1, 1), ran("cnn", "b", 1, 2)})[0].wrong,
              ElementsAre("b before a (called equal)"));
}

// Each is off by 3 ms of its own and by 100 ms that both have: of the difference sqrt(9 + 9) = 4.2 ms, 7.0 for 90 %. So
// 1.000 and 1.008 s are told apart, 1.000 and 1.006 are not, whichever is measured to be the faster.
TEST(Ranking, PairsWithinTheIntervalOfTheirDifferenceAreCalledEqual) {
  const auto unsure = [](const std::string& way, double predicted, double measured) {
    Validated v = ran("cnn", way, predicted, measured);
    v.prediction.error = {{{7, Seconds{0.100}}}, Seconds{0.003}};
    return v;
  };
  const auto apart = rankings({unsure("a", 1.000, 1), unsure("b", 1.008, 2)})[0];
  EXPECT_EQ(apart.told, 1);
  EXPECT_EQ(apart.told_right, 1);
  const auto equal = rankings({unsure("a", 1.000, 2), unsure("b", 1.006, 1)});
  EXPECT_EQ(equal[0].told, 0);
  EXPECT_THAT(equal[0].wrong, ElementsAre("a before b (called equal)"));
  EXPECT_THAT(summary_sentence(equal), HasSubstr("of 1 pairs"));
  const auto wrong = rankings({unsure("a", 1.000, 2), unsure("b", 1.008, 1), unsure("c", 2, 4)});
  EXPECT_EQ(wrong[0].told, 3);
  EXPECT_EQ(wrong[0].told_right, 2);
  EXPECT_THAT(summary_sentence(wrong), HasSubstr("3 of them are told apart, 2 of these rightly"));
}

// However sure: to half a percent steps hardly repeat.
TEST(Ranking, PairsThatAreNearlyTheSameAreCalledEqual) {
  EXPECT_EQ(rankings({ran("cnn", "a", 1.000, 2), ran("cnn", "b", 1.004, 1)})[0].told, 0);
  EXPECT_EQ(rankings({ran("cnn", "a", 1.000, 2), ran("cnn", "b", 1.006, 1)})[0].told, 1);
}

TEST(Ranking, TableShowsOrdersOnce) {
  const std::string table = markdown(to_table(rankings({ran("cnn", "a", 1, 1), ran("cnn", "b", 2, 2)})));
  EXPECT_THAT(table, HasSubstr("| cnn | a; b | the same |"));
}

}  // namespace
}  // namespace sibyl
