// Schedules of pipelines, by hand and by the rules that all obey.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "oracle/plan/pipeline/balance.h"
#include "oracle/plan/pipeline/schedules.h"
#include "oracle/plan/plan.h"

namespace sibyl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// "F0 F1 B0 …"; I and W are a backward's two parts. With chunks the stage's number follows: "F0.2".
std::string spelt(const std::vector<Turn>& turns, bool with_stage = false) {
  constexpr char letters[] = {'F', 'B', 'I', 'W'};
  std::string text;
  for (const Turn& turn : turns) {
    if (!text.empty()) text += ' ';
    text += letters[static_cast<std::size_t>(turn.kind)];
    text += std::to_string(turn.micro_batch);
    if (with_stage) text += "." + std::to_string(turn.stage);
  }
  return text;
}

TEST(Schedules, GPipeRunsAllForwardsFirst) {
  const Turns turns = gpipe({2, 1, 3});
  EXPECT_EQ(spelt(turns[0]), "F0 F1 F2 B0 B1 B2");
  EXPECT_EQ(spelt(turns[1]), "F0 F1 F2 B0 B1 B2");
  EXPECT_THAT(in_flight(turns, 2).all, ElementsAre(3, 3));
}

// Stage i of S begins its first backward when S - i micro-batches are in flight.
TEST(Schedules, OneForwardOneBackwardKeepsAsManyInFlightAsStagesFollow) {
  const Turns turns = one_forward_one_backward({3, 1, 5});
  EXPECT_EQ(spelt(turns[0]), "F0 F1 F2 B0 F3 B1 F4 B2 B3 B4");
  EXPECT_EQ(spelt(turns[1]), "F0 F1 B0 F2 B1 F3 B2 F4 B3 B4");
  EXPECT_EQ(spelt(turns[2]), "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4");
  EXPECT_THAT(in_flight(turns, 3).all, ElementsAre(3, 2, 1));
}

// Two coordinates of two stages, four micro-batches. Coordinate 0 warms up with 2 (2 - 0 - 1) + (2 - 1) 2 = 4 passes: micro-
// batches 0 and 1 through stage 0, then through stage 2; backwards begin with its last stage, 2.
TEST(Schedules, InterleavedGoesRoundItsChunks) {
  const Turns turns = interleaved({2, 2, 4});
  EXPECT_EQ(spelt(turns[0], true),
            "F0.0 F1.0 F0.2 F1.2 F2.0 B0.2 F3.0 B1.2 F2.2 B0.0 F3.2 B1.0 B2.2 B3.2 B2.0 B3.0");
  EXPECT_EQ(spelt(turns[1], true),
            "F0.1 F1.1 F0.3 B0.3 F1.3 B1.3 F2.1 B0.1 F3.1 B1.1 F2.3 B2.3 F3.3 B3.3 B2.1 B3.1");
}

// Coordinate i puts the gradients of weights off by i micro-batches, so that all hold S in flight at most.
TEST(Schedules, ZeroBubblePutsWeightsOff) {
  const Turns turns = zero_bubble({3, 1, 4});
  EXPECT_EQ(spelt(turns[0]), "F0 F1 F2 I0 W0 F3 I1 W1 I2 W2 I3 W3");
  EXPECT_EQ(spelt(turns[1]), "F0 F1 I0 F2 I1 W0 F3 I2 W1 I3 W2 W3");
  EXPECT_EQ(spelt(turns[2]), "F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3");
  EXPECT_THAT(in_flight(turns, 3).all, ElementsAre(3, 3, 3));
}

RC_GTEST_PROP(Schedules, AllObeyTheRules, ()) {
  PipelineShape shape{*rc::gen::inRange(1, 9), 1, *rc::gen::inRange(1, 33)};
  const auto schedule = *rc::gen::element(PipelineSchedule::gpipe, PipelineSchedule::one_forward_one_backward,
                                          PipelineSchedule::interleaved, PipelineSchedule::zero_bubble);
  if (schedule == PipelineSchedule::interleaved) {
    shape.chunks = *rc::gen::inRange(2, 5);
    shape.micro_batches = shape.coordinates * *rc::gen::inRange(1, 5);
  }
  const auto turns = make_schedule(schedule, shape);
  RC_ASSERT(turns.has_value());
  const auto checked = check_schedule(*turns, shape);
  RC_ASSERT(checked.has_value());
}

std::string why(Turns turns) {
  const auto checked = check_schedule(turns, {2, 1, 2});
  return checked ? "" : checked.error().message;
}

TEST(Schedules, EachBrokenRuleIsFound) {
  using enum Turn::Kind;
  const Turns good = one_forward_one_backward({2, 1, 2});  // F0 F1 B0 B1 | F0 B0 F1 B1
  EXPECT_EQ(why(good), "");
  Turns turns = good;
  turns[1].pop_back();
  EXPECT_THAT(why(turns), HasSubstr("missing"));
  turns = good;
  turns[0].push_back({forward, 1, 0});
  EXPECT_THAT(why(turns), HasSubstr("twice"));
  turns = good;
  turns[0].push_back({backward_weight, 1, 0});
  EXPECT_THAT(why(turns), HasSubstr("twice"));
  turns = good;
  turns[0][3].kind = backward_input;
  EXPECT_THAT(why(turns), HasSubstr("missing"));
  turns = good;
  turns[0][0].stage = 1;
  EXPECT_THAT(why(turns), HasSubstr("coordinate"));
  turns = good;
  turns[0][0].micro_batch = 2;
  EXPECT_THAT(why(turns), HasSubstr("exist"));
  turns = good;
  std::swap(turns[1][0], turns[1][1]);  // backward before forward
  EXPECT_THAT(why(turns), HasSubstr("wait"));
  turns = good;
  std::swap(turns[1][0], turns[1][2]);  // stage 1: F1 B0 F0 B1
  EXPECT_THAT(why(turns), HasSubstr("wait"));
  // Stage 0 wants B0 before it gives F1; stage 1 wants F1 before it gives B0: a cycle over both.
  turns = {{{forward, 0, 0}, {backward, 0, 0}, {forward, 1, 0}, {backward, 1, 0}},
           {{forward, 0, 1}, {forward, 1, 1}, {backward, 0, 1}, {backward, 1, 1}}};
  EXPECT_THAT(why(turns), HasSubstr("wait"));
}

TEST(Schedules, InterleavedNamesTheNearestMicroBatches) {
  const auto turns = make_schedule(PipelineSchedule::interleaved, {4, 2, 6});
  ASSERT_FALSE(turns.has_value());
  EXPECT_EQ(turns.error().code, ErrorCode::infeasible);
  EXPECT_THAT(turns.error().hint, HasSubstr("4 or 8"));
}

TEST(Strategy, ReadsSchedules) {
  Strategy strategy;
  for (const std::string_view text : {"gpipe", "1f1b", "interleaved:3", "zero-bubble"}) {
    ASSERT_TRUE(parse_schedule(text, strategy).has_value());
    EXPECT_EQ(schedule_text(strategy), text);
  }
  EXPECT_TRUE(parse_schedule("interleaved:3", strategy).has_value());
  EXPECT_EQ(strategy.chunks, 3);
  for (const std::string_view text : {"", "interleaved", "interleaved:1", "interleaved:x", "1f1b:2", "2f2b"})
    EXPECT_FALSE(parse_schedule(text, strategy).has_value()) << text;
  EXPECT_TRUE(parse_parallel("data=2,pipeline=4", strategy).has_value());
  EXPECT_EQ(parallel_text(strategy), "data=2,pipeline=4");
}

}  // namespace
}  // namespace sibyl
