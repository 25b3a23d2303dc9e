#include "oracle/step_error.h"

#include <gtest/gtest.h>

#include "oracle/interval.h"

namespace sibyl {
namespace {

// 3-4-5.
TEST(StepError, CausesAreIndependent) {
  EXPECT_DOUBLE_EQ(standard_deviation({{{1, Seconds{3}}, {7, Seconds{4}}}, Seconds{}}).value(), 5);
  EXPECT_DOUBLE_EQ(standard_deviation({{{1, Seconds{3}}}, Seconds{4}}).value(), 5);
  EXPECT_DOUBLE_EQ(standard_deviation({}).value(), 0);
}

TEST(StepError, WhatTwoStepsAreWrongAboutAlikeDoesNotTellThemApart) {
  const StepError one{{{1, Seconds{30}}, {2, Seconds{40}}}, Seconds{}};
  EXPECT_DOUBLE_EQ(deviation_of_difference(one, one).value(), 0);
  // Causes 1: 30 - 27 = 3; 2: 40 - 36 = 4.
  StepError less = one;
  less *= 0.9;
  EXPECT_NEAR(deviation_of_difference(one, less).value(), 5, 1e-12);
}

// Cause 1 is the first's alone, cause 3 the second's; their own errors add up: 1 + 4 + 16 + 4 = 25.
TEST(StepError, OtherCausesAndOwnErrorsCountInFull) {
  const StepError a{{{1, Seconds{1}}, {2, Seconds{8}}}, Seconds{2}}, b{{{2, Seconds{8}}, {3, Seconds{4}}}, Seconds{2}};
  EXPECT_DOUBLE_EQ(deviation_of_difference(a, b).value(), 5);
  EXPECT_DOUBLE_EQ(deviation_of_difference(b, a).value(), 5);
}

// Of 10 ms each by themselves the difference is known to sqrt(200) = 14.1 ms, 23.3 ms for 90 %; of what both have it
// does not matter, until half a percent of the shorter one: 5 ms of a second.
TEST(StepError, TellsApartBeyondTheIntervalOfTheDifference) {
  const StepError own{{}, Seconds{0.010}}, common{{{7, Seconds{0.1}}}, Seconds{}};
  EXPECT_FALSE(told_apart(Seconds{1}, own, Seconds{1.023}, own));
  EXPECT_TRUE(told_apart(Seconds{1}, own, Seconds{1.024}, own));
  EXPECT_TRUE(told_apart(Seconds{1.024}, own, Seconds{1}, own));
  EXPECT_FALSE(told_apart(Seconds{1}, common, Seconds{1.0049}, common));
  EXPECT_TRUE(told_apart(Seconds{1}, common, Seconds{1.0051}, common));
}

TEST(Interval, NeverBeginsAtNothing) {
  EXPECT_DOUBLE_EQ(lower_end(0.1), 0.9);
  EXPECT_DOUBLE_EQ(lower_end(0.5), 0.5);
  EXPECT_DOUBLE_EQ(lower_end(1), 0.25);
  EXPECT_NEAR(lower_end(0.5 + 1e-6), 0.5 - 1e-6, 1e-11) << "as it comes there";
}

}  // namespace
}  // namespace sibyl
