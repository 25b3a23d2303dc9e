// What messages of a pipeline lose to one another between nodes, by itself and in the walks over a schedule.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "oracle/closed/schedule_form.h"
#include "oracle/simulate/node_wires.h"
#include "oracle/simulate/schedule_walk.h"
#include "tests/support/any_plan.h"
#include "tests/support/clusters.h"

namespace sibyl {
namespace {

using closed::ScheduleForm, closed::ScheduleShape, closed::StageForm, closed::StageInPipeline;
using test::any, test::one_of;
using testing::DoubleNear, testing::ElementsAre;
using Kind = Turn::Kind;

Turns all_turns(const ScheduleShape& shape) {
  return make_schedule(shape.schedule, {shape.coordinates, shape.chunks, shape.micro_batches}).value();
}

// Three stages on three nodes, three micro-batches by 1F1B; forward takes 2, backward 3, a message 4, all of it on the
// wire. As long as nothing meets:
//
//   coordinate 0   goes forward until 2, 4 and 6; its messages are there at 6, 10 and 14
//   coordinate 1   forward from 6 to 8 and from 10 to 12; there at 12 and 16
//   coordinate 2   forward from 12 to 14, backward until 17, there at 21; forward 17 to 19, backward until 22, there at
//   26 coordinate 1   backward 21 to 24, sent back from 24 on; forward 24 to 26, sent forward from 26 on
//
// What it sends back still needs 2 of the wire then, which take 4, until 30, and so it has lost 2. The next that it
// sends back is ready at 29 (26 to 29 backward) and sets out at 30. What it sends forward needs 2 more at 30, which
// take 4: there at 34, 4 later than alone. The one sent back has 2 left then, and is there at 36 instead of 34.
//
//   coordinate 2   forward 34 to 36, backward until 39, there at 43
//   coordinate 1   backward 43 to 46, there at 50
//   coordinate 0   backward 30 to 33, 36 to 39 and 50 to 53
//
// With the last message forward there at 30, the last of all would be there at 46, and the end be 49.
struct ThreeNodes {
  ScheduleShape shape{PipelineSchedule::one_forward_one_backward, 3, 1, 3};
  StageForm form;
  std::vector<StageTimes> times{3};
  std::vector<StageInPipeline> stages;

  explicit ThreeNodes(bool meet, double busy = 1.0) {
    form.forward.time = 2;
    for (closed::StageForm::Turns& backward : form.backward) backward.time = 3;
    for (int s = 0; s < 3; ++s) {
      StageInPipeline stage{.form = &form};
      StageTimes& one = times[static_cast<std::size_t>(s)];
      one.turns[StageTimes::slot(Kind::forward, {})].total = Seconds{2};
      for (const bool first : {true, false})
        for (const bool last : {true, false})
          one.turns[StageTimes::slot(Kind::backward, {first, last})].total = Seconds{3};
      stage.forward_wire = stage.backward_wire = one.forward_wire = one.backward_wire = {true, busy};
      if (s < 2) {
        stage.send_forward = 4;
        if (meet) stage.forward_passage = {s, s + 1};
      }
      if (s > 0) {
        stage.send_backward = 4;
        if (meet) stage.backward_passage = {s, s - 1};
      }
      one.send_forward = Seconds{stage.send_forward}, one.send_backward = Seconds{stage.send_backward};
      one.forward_passage = stage.forward_passage, one.backward_passage = stage.backward_passage;
      stages.push_back(stage);
    }
  }

  [[nodiscard]] double walked() const { return walk_schedule(all_turns(shape), times, 3).step.total.value(); }
  [[nodiscard]] double formula() const { return ScheduleForm{}.ends(shape, stages, {}).time; }
};

TEST(NodeWires, MessagesThatMeetShareTheWire) {
  const StageSends::Message none, there{4, 0, {0, 1}}, on{4, 0, {1, 2}}, back{4, 0, {1, 0}}, home{4, 0, {2, 1}};
  const std::vector<StageSends> sends{{there, none, 5}, {on, back, 5}, {none, home, 5}};
  const ThreeNodes example(true);
  const LostToOthers lost = lost_to_others(all_turns(example.shape), sends, 3,
                                           [](const Turn& turn) { return turn.kind == Kind::forward ? 2.0 : 3.0; });
  const auto are = [](double a, double b, double c) {
    return ElementsAre(DoubleNear(a, 1e-12), DoubleNear(b, 1e-12), DoubleNear(c, 1e-12));
  };
  EXPECT_THAT(lost.of[0][0], are(0, 0, 0));
  EXPECT_THAT(lost.of[1][0], are(0, 0, 4));
  EXPECT_THAT(lost.of[1][1], are(2, 2, 0));
  EXPECT_THAT(lost.of[2][1], are(0, 0, 0));
  EXPECT_TRUE(lost.of[0][1].empty());
  EXPECT_TRUE(lost.of[2][0].empty());
}

// The same, but coordinate 0 takes until 18 for its last pass forward, whose message then meets, on the wire that
// reaches coordinate 1, what coordinate 2 has sent back from 17 on. That has 3 left, is there at 24 and has lost 3. The
// next one sent back sets out at 24, when the one forward has 1 left: there at 26, 4 later, and the other at 29, 1
// later.
//
//   coordinate 1   backward 24 to 27, sent back from 27 on; forward 27 to 29, sent forward from 29 on; backward until
//   32
//
// There, as above, the one sent back has 2 left at 29, and each loses what it lost there.
TEST(NodeWires, MessagesThatArriveTogetherShareTheWire) {
  const StageSends::Message none, there{4, 0, {0, 1}}, on{4, 0, {1, 2}}, back{4, 0, {1, 0}}, home{4, 0, {2, 1}};
  const std::vector<StageSends> sends{{there, none, 5}, {on, back, 5}, {none, home, 5}};
  const LostToOthers lost = lost_to_others(all_turns(ThreeNodes(true).shape), sends, 3, [](const Turn& turn) {
    if (turn.kind != Kind::forward) return 3.0;
    return turn.stage == 0 && turn.micro_batch == 2 ? 14.0 : 2.0;
  });
  const auto are = [](double a, double b, double c) {
    return ElementsAre(DoubleNear(a, 1e-12), DoubleNear(b, 1e-12), DoubleNear(c, 1e-12));
  };
  EXPECT_THAT(lost.of[0][0], are(0, 0, 4));
  EXPECT_THAT(lost.of[2][1], are(3, 1, 0));
  EXPECT_THAT(lost.of[1][0], are(0, 0, 4));
  EXPECT_THAT(lost.of[1][1], are(2, 2, 0));
}

TEST(NodeWires, AStepGrowsByIt) {
  const ThreeNodes meet(true), alone(false);
  EXPECT_NEAR(meet.walked(), 53, 1e-12);
  EXPECT_NEAR(meet.formula(), 53, 1e-12);
  EXPECT_NEAR(alone.walked(), 49, 1e-12);
  EXPECT_NEAR(alone.formula(), 49, 1e-12);
  // What sets out and arrives for half of its time is on the wire from 24 to 26: gone when the other sets out.
  const ThreeNodes latency(true, 0.5);
  EXPECT_NEAR(latency.walked(), 49, 1e-12);
  EXPECT_NEAR(latency.formula(), 49, 1e-12);
}

// A step that would take 49 if nothing met is not followed where that is too long already.
TEST(NodeWires, AreNotFollowedWhereAStepIsTooLongWithout) {
  const ThreeNodes meet(true), alone(false);
  for (const bool wanted : {true, false}) {
    std::vector<double> asked;
    const auto told = [&](double least) {
      asked.push_back(least);
      return wanted;
    };
    const ScheduleForm::Ends end = ScheduleForm{}.ends(meet.shape, meet.stages, {}, told);
    EXPECT_THAT(asked, ElementsAre(DoubleNear(49 * (1 - 2 * ScheduleForm::not_walked), 1e-9)));
    EXPECT_EQ(end.walked, wanted);
    EXPECT_NEAR(end.time, wanted ? 53 : asked.front(), 1e-9);
    EXPECT_NEAR(ScheduleForm{}.ends(alone.shape, alone.stages, {}, told).time, 49, 1e-12);
    EXPECT_EQ(asked.size(), 1U);
  }
}

TEST(NodeWires, AreCrowdedWhereLongMessagesCanMeet) {
  const StageSends::Message none, forward{1, 0, {0, 1}}, on{1, 0, {1, 2}}, back{1, 0, {1, 0}}, inside{1, 0, {}};
  EXPECT_TRUE(crowded({{forward, none, 9}, {on, back, 15.9}, {none, none, 9}}, 3));
  EXPECT_FALSE(crowded({{forward, none, 9}, {on, back, 16.1}, {none, none, 9}}, 3));
  const StageSends::Message home{1, 0, {2, 1}};  // meets the first one's where they arrive
  EXPECT_TRUE(crowded({{forward, none, 9}, {none, none, 9}, {none, home, 7.9}}, 3));
  EXPECT_FALSE(crowded({{forward, none, 1}, {none, back, 1}}, 2)) << "each has wires of its own, both ways";
  EXPECT_FALSE(crowded({{inside, none, 1}, {inside, inside, 1}, {none, inside, 1}}, 3));
}

Passage passage(int devices_per_node, int nics, const Strategy& strategy, int from, int to) {
  TopologySpec spec;
  spec.nodes = strategy.devices() / devices_per_node;
  spec.devices_per_node = devices_per_node;
  spec.nics_per_node = nics;
  spec.nic_bandwidth = BytesPerSecond{1e9};
  Cluster cluster = test::cluster(spec.nodes, devices_per_node);
  cluster.network = Network(*Topology::make(spec), {}, {});
  const Mesh mesh = mesh_of(strategy);
  return passage_of(mesh, from, to, pairs_of(mesh, from, to, devices_per_node), cluster);
}

TEST(NodeWires, BelongToANodeOrToItsRanks) {
  Strategy eight;
  eight.pipeline = 8;
  const auto is = [](int out, int in) {
    return testing::AllOf(testing::Field(&Passage::out, out), testing::Field(&Passage::in, in));
  };
  EXPECT_THAT(passage(2, 1, eight, 2, 3), is(-1, -1));  // both on the second node
  EXPECT_THAT(passage(2, 1, eight, 3, 4), is(2, 4));
  EXPECT_THAT(passage(2, 1, eight, 2, 1), is(2, 0));
  EXPECT_THAT(passage(2, 2, eight, 3, 4), is(3, 4));  // an adapter for each rank
  EXPECT_THAT(passage(2, 2, eight, 2, 1), is(2, 1));
  EXPECT_THAT(passage(1, 1, eight, 3, 4), is(3, 4));
  // Two ranks a coordinate, which take up a node, or half of one.
  Strategy wide = eight;
  wide.pipeline = 4, wide.tensor = 2;
  EXPECT_THAT(passage(2, 1, wide, 1, 2), is(1, 2));
  EXPECT_THAT(passage(4, 1, wide, 1, 2), is(0, 2));
  EXPECT_THAT(passage(4, 1, wide, 2, 1), is(2, 0));
  EXPECT_THAT(passage(4, 4, wide, 2, 1), is(2, 1));
}

// Nothing is there sooner than alone, and no wire carries more than it can: of what is on it between any two moments.
RC_GTEST_PROP(NodeWires, CarryAllThatIsSentAndNoFaster, ()) {
  ScheduleShape shape;
  shape.schedule = one_of(PipelineSchedule::gpipe, PipelineSchedule::one_forward_one_backward,
                          PipelineSchedule::interleaved, PipelineSchedule::zero_bubble);
  shape.coordinates = any(2, 5);
  if (shape.schedule == PipelineSchedule::interleaved) shape.chunks = 2;
  shape.micro_batches = shape.coordinates * any(1, 2);
  const int count = shape.coordinates * shape.chunks, each = any(1, 2);
  std::vector<StageSends> sends(static_cast<std::size_t>(count));
  for (int s = 0; s < count; ++s)
    for (const int to : {s + 1, s - 1}) {
      if (to < 0 || to == count) continue;
      const int out = s % shape.coordinates / each, in = to % shape.coordinates / each;
      StageSends& own = sends[static_cast<std::size_t>(s)];
      (to > s ? own.forward : own.backward) = {0.3 * any(0, 12), 0.25 * any(0, 2),
                                               out == in ? Passage{} : Passage{out, in}};
    }
  const Turns turns = all_turns(shape);
  const int uneven = any(0, 6);
  const auto length = [&](const Turn& turn) {
    return 0.5 + 0.7 * ((turn.stage * uneven + turn.micro_batch * 5 + (turn.kind == Kind::forward ? 3 : 0)) % 7);
  };
  const LostToOthers lost = lost_to_others(turns, sends, shape.micro_batches, length);

  // The same schedule with what was lost added: the messages of each wire, from when they set out until they left it.
  struct OnWire {
    double begin, end, length;
  };
  std::map<std::pair<bool, int>, std::vector<OnWire>> wires;
  std::map<std::tuple<bool, int, int>, double> there;
  std::vector<double> free(turns.size(), 0.0);
  std::vector<std::array<double, 2>> before(turns.size());
  std::vector<std::array<std::size_t, 2>> sent(turns.size());
  in_order(turns, count, [&](const Turn& turn) {
    const bool forward = turn.kind == Kind::forward;
    const auto c = static_cast<std::size_t>(turn.stage % shape.coordinates);
    const int from = turn.stage + (forward ? -1 : 1), to = turn.stage + (forward ? 1 : -1);
    const bool waits = turn.kind != Kind::backward_weight && from >= 0 && from < count;
    free[c] = std::max(free[c], waits ? there.at({forward, from, turn.micro_batch}) : 0.0) + length(turn);
    if (turn.kind == Kind::backward_weight || to < 0 || to == count) return;
    const StageSends::Message& message = forward ? sends[static_cast<std::size_t>(turn.stage)].forward
                                                 : sends[static_cast<std::size_t>(turn.stage)].backward;
    double& is_there = there[{forward, turn.stage, turn.micro_batch}];
    is_there = free[c];
    if (message.alone() == 0) return;
    const std::size_t way = forward ? 0 : 1;
    const double own = lost.at(c, forward, sent[c][way]++), begin = std::max(free[c], before[c][way]);
    RC_ASSERT(own >= 0);
    if (!message.passage.between_nodes()) RC_ASSERT(own < 1e-12);
    const OnWire on{begin, begin + message.wire + own, message.wire};
    before[c][way] = is_there = on.end + message.rest;
    if (message.passage.between_nodes())
      for (const auto& wire : {std::pair{true, message.passage.out}, std::pair{false, message.passage.in}})
        wires[wire].push_back(on);
  });
  for (std::size_t c = 0; c < turns.size(); ++c)
    for (const bool forward : {true, false}) RC_ASSERT(lost.of[c][forward ? 0 : 1].size() == sent[c][forward ? 0 : 1]);
  for (const auto& [wire, messages] : wires)
    for (const OnWire& first : messages)
      for (const OnWire& last : messages) {
        double carried = 0;
        for (const OnWire& one : messages)
          if (one.begin >= first.begin && one.end <= last.end) carried += one.length;
        RC_ASSERT(carried <= std::max(0.0, last.end - first.begin) + 1e-9);
      }
}

}  // namespace
}  // namespace sibyl
