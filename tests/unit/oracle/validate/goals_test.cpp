#include "oracle/validate/goals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sibyl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Of 1 s and 100 bytes as measured.
Validated off_by(const std::string& kind, double time, double memory = 0) {
  Validated v;
  v.name = kind + " of cnn";
  v.work = "cnn";
  v.way = v.kind = kind;
  v.prediction.step_time = Seconds{1 + time};
  v.prediction.memory.total = Bytes{100 * (1 + memory)};
  v.measurement.step_time = Seconds{1};
  v.measurement.peak_memory = Bytes{100};
  v.measurement.steps = 10;
  return v;
}

// data: 10 and 2 %, tensor: 6 and 8 %; all of them 6.5 %.
std::vector<Validated> four() {
  return {off_by("data", 0.10, -0.01), off_by("tensor", -0.06), off_by("data", 0.02), off_by("tensor", 0.08, 0.03)};
}

TEST(Goals, StrategiesAreSummarizedByThemselves) {
  const auto strategies = by_strategy(four());
  ASSERT_THAT(strategies, SizeIs(2));
  EXPECT_EQ(strategies[0].kind, "data");
  EXPECT_EQ(strategies[0].cases, 2U);
  EXPECT_NEAR(strategies[0].mean_error, 0.06, 1e-12);
  EXPECT_NEAR(strategies[0].bias, 0.06, 1e-12);
  EXPECT_NEAR(strategies[0].max_error, 0.10, 1e-12);
  EXPECT_EQ(strategies[1].kind, "tensor");
  EXPECT_NEAR(strategies[1].mean_error, 0.07, 1e-12);
  EXPECT_NEAR(strategies[1].bias, 0.01, 1e-12);
  EXPECT_THAT(markdown(to_table(strategies)), HasSubstr("| tensor | 2 | 7.0 % | +1.0 % | 8.0 % |"));
  EXPECT_THAT(to_json(four()), HasSubstr("\"strategies\": [\n    {\n      \"kind\": \"data\",\n      \"cases\": 2,"));
}

TEST(Goals, WhatIsNoGoalIsNotMissed) {
  EXPECT_THAT(missed(four(), {}), IsEmpty());
  EXPECT_THAT(missed({}, {.most = 0, .mean = 0, .strategy_mean = 0, .memory = 0, .wrong_pairs = 0}), IsEmpty());
}

// Just above what each comes to, and just below.
TEST(Goals, EachIsMetOrMissedByItsOwnFigure) {
  EXPECT_THAT(missed(four(), {.most = 0.101, .mean = 0.066, .strategy_mean = 0.071, .memory = 0.031}), IsEmpty());
  EXPECT_THAT(missed(four(), {.most = 0.099}),
              ElementsAre("a step time is off by 10.0 %, more than 9.9 % (data of cnn)"));
  EXPECT_THAT(missed(four(), {.mean = 0.064}), ElementsAre("step times are off by 6.5 % in the mean, more than 6.4 %"));
  EXPECT_THAT(missed(four(), {.strategy_mean = 0.069}),
              ElementsAre("step times of tensor are off by 7.0 % in the mean, more than 6.9 %"));
  EXPECT_THAT(missed(four(), {.memory = 0.029}),
              ElementsAre("memory is off by 3.0 %, more than 2.9 % (tensor of cnn)"));
  EXPECT_THAT(missed(four(), {.most = 0, .mean = 0, .strategy_mean = 0, .memory = 0}), SizeIs(4)) << "all are named";
}

// Too much is as wrong as too little, in time and in memory.
TEST(Goals, ErrorsCountBySize) {
  EXPECT_THAT(missed({off_by("data", -0.2), off_by("data", 0.1)}, {.most = 0.15}), SizeIs(1));
  EXPECT_THAT(missed({off_by("data", 0, -0.05)}, {.memory = 0.02}), SizeIs(1));
}

TEST(Goals, MemoryThatIsNotToldMeetsAny) {
  Validated untold = off_by("data", 0, 0.5);
  untold.measurement.peak_memory = {};
  EXPECT_THAT(missed({untold}, {.memory = 0}), IsEmpty());
}

// Measured 1, 2 and 3 s, and predicted 1, 3 and 2: one of three pairs is wrong, and it is told apart unless errors that
// the two do not share hide it.
TEST(Goals, PairsThatAreToldApartMustBeInTheirOrder) {
  const auto ran = [](const std::string& way, double predicted, double measured, double own_error) {
    Validated v = off_by(way, 0);
    v.prediction.step_time = Seconds{predicted};
    v.prediction.error = {{}, Seconds{own_error}};
    v.measurement.step_time = Seconds{measured};
    return v;
  };
  const auto cases = [&](double own_error) {
    return std::vector{ran("a", 1, 1, own_error), ran("b", 3, 2, own_error), ran("c", 2, 3, own_error)};
  };
  EXPECT_THAT(missed(cases(0.01), {.wrong_pairs = 0}),
              ElementsAre("of 3 pairs of strategies that are told apart 1 is predicted in the wrong order"));
  EXPECT_THAT(missed(cases(0.01), {.wrong_pairs = 1}), IsEmpty());
  EXPECT_THAT(missed(cases(10), {.wrong_pairs = 0}), IsEmpty()) << "called equal";
}

TEST(Goals, BytesAreAlwaysOne) {
  Validated other = off_by("data", 0);
  other.prediction.bytes_sent = 100;
  other.measurement.bytes_sent = {101};
  EXPECT_THAT(missed({other}, {}), ElementsAre("bytes sent differ from bytes predicted"));
}

}  // namespace
}  // namespace sibyl
