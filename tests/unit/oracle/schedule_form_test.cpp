// Schedules in time without their turns beside the walk that has them all.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cmath>

#include "oracle/closed/schedule_form.h"
#include "oracle/plan/pipeline/balance.h"
#include "oracle/simulate/schedule_walk.h"
#include "tests/support/any_plan.h"

namespace sibyl {
namespace {

using closed::ScheduleForm, closed::ScheduleShape, closed::StageForm, closed::StageInPipeline;
using test::any, test::one_of;
using Kind = Turn::Kind;

ScheduleShape any_shape(int most_rounds) {
  ScheduleShape shape;
  shape.schedule = one_of(PipelineSchedule::gpipe, PipelineSchedule::one_forward_one_backward,
                          PipelineSchedule::interleaved, PipelineSchedule::zero_bubble);
  shape.coordinates = any(1, 11);
  const bool interleaved = shape.schedule == PipelineSchedule::interleaved;
  if (interleaved) shape.chunks = any(2, 4);
  shape.micro_batches = interleaved ? shape.coordinates * any(1, most_rounds) : any(1, shape.coordinates * most_rounds);
  return shape;
}

WireTime on_nodes_wire(double seconds) { return {{{{0, 1}, {seconds, 1}}}}; }

Turns turns_of(const ScheduleShape& shape) {
  return make_schedule(shape.schedule, {shape.coordinates, shape.chunks, shape.micro_batches}).value();
}

// Stages about as long as each other, or not at all; links free, short or long; exchanges that want no wire, or one or
// both for some of a pass; gradients that take one of them, or neither.
struct AnyStages {
  explicit AnyStages(const ScheduleShape& shape) {
    const double uneven = one_of(0.0, 0.1, 2.0), link = one_of(0.0, 0.2, 3.0);
    const bool split = shape.schedule == PipelineSchedule::zero_bubble, sharing = any(0, 1) == 1;
    const auto wires = [&](double pass) {
      if (!sharing) return TurnWires{};
      TurnWires both;
      for (const double most : {0.3, 0.2}) {
        const std::size_t one = most == 0.3 ? 0 : 1;
        both.busy.on[one] = {one_of(0.0, most, 2 * most) * pass, one_of(1.0, 2.0, 8.0)};
        // Of parameters that are gathered some is hidden, and some of that is not where the wire is shared.
        both.held_up[one] = both.busy.on[one].seconds * one_of(0.0, 0.5, 1.0);
      }
      return both;
    };
    const auto any_wire = [] { return WireUse{any(0, 1) == 1, 0.1 * any(0, 10), one_of(1.0, 2.0, 8.0)}; };
    // A coordinate's stages mostly send over one wire each way, as the same flows, and both ways so.
    std::vector<std::array<WireUse, 2>> own_wires;
    const bool as_many_flows = any(0, 3) > 0;
    for (int c = 0; c < shape.coordinates; ++c) {
      own_wires.push_back({any_wire(), any_wire()});
      if (as_many_flows) own_wires.back()[1].flows = own_wires.back()[0].flows;
    }
    const bool one_wire = any(0, 3) > 0;
    const auto wire = [&](int stage, std::size_t way) {
      WireUse use = any_wire();
      const WireUse& own = own_wires[static_cast<std::size_t>(stage % shape.coordinates)][way];
      if (one_wire) use.between_nodes = own.between_nodes, use.flows = own.flows;
      return use;
    };
    const auto around = [&](double middle) { return middle * (1 + uneven * 0.01 * any(0, 100)); };
    // So many coordinates lie on a node, and share its wires or have each their own.
    const int each = any(1, 3), same = any(0, 1) == 1 ? each : 1;
    const auto passage = [&](int from, int to) {
      from %= shape.coordinates, to %= shape.coordinates;
      return from / each == to / each ? Passage{} : Passage{from / same * same, to / same * same};
    };
    const int count = shape.coordinates * shape.chunks;
    if (any(0, 1) == 1) at_end.clip_norm = one_of(0.0, 0.4);
    forms.resize(static_cast<std::size_t>(count));
    for (int s = 0; s < count; ++s) {
      StageForm& form = forms[static_cast<std::size_t>(s)];
      StageTimes& one = times.emplace_back();
      form.forward.time = around(1);
      form.input.time = around(1);
      form.tail = around(0.5);
      form.messages = one_of(0.0, around(2), around(12));
      form.wires_messages.on[static_cast<std::size_t>(any(0, 1))] = {one_of(0.0, 0.9) * form.messages,
                                                                     one_of(1.0, 4.0)};
      one.own_messages = Seconds{form.messages};
      one.own_wires = form.wires_messages;
      one.turns[StageTimes::slot(Kind::forward, {})].total = Seconds{form.forward.time};
      one.turns[StageTimes::slot(Kind::backward_input, {})].total = Seconds{form.input.time};
      form.wires_forward = wires(1), form.wires_backward = wires(1);
      one.turns[StageTimes::slot(Kind::forward, {})].wires = form.wires_forward;
      one.turns[StageTimes::slot(Kind::backward_input, {})].wires = form.wires_backward;
      one.tail.total = Seconds{form.tail};
      if (at_end.clip_norm) {
        form.norm = one_of(0.0, 0.3, 1.0) * form.tail;
        one.tail.norm = Seconds{form.norm};
        if (s < shape.coordinates)
          one.tail.total += Seconds{*at_end.clip_norm};  // one of a coordinate's stages sends it
      }
      for (const bool first : {true, false})
        for (const bool last : {true, false}) {
          StageForm::Turns& backward = form.backward[closed::slot_of(first, last)];
          backward.time = around(split ? 1 : 2);
          if (last) backward.messages = around(3) + form.messages;
          TurnTimes& turn = one.turns[StageTimes::slot(split ? Kind::backward_weight : Kind::backward, {first, last})];
          turn.total = Seconds{backward.time};
          turn.messages = Seconds{backward.messages};
          if (!split) turn.wires = form.wires_backward;
        }
      StageInPipeline stage{&form, 0, 0, wire(s, 0), wire(s, 1)};
      one.forward_wire = stage.forward_wire;
      one.backward_wire = stage.backward_wire;
      if (s + 1 < count) stage.forward_passage = one.forward_passage = passage(s, s + 1);
      if (s > 0) stage.backward_passage = one.backward_passage = passage(s, s - 1);
      if (s + 1 < count) stage.send_forward = link * around(1);
      if (s > 0) stage.send_backward = link * around(1);
      one.send_forward = Seconds{stage.send_forward};
      one.send_backward = Seconds{stage.send_backward};
      stages.push_back(stage);
    }
    if (shape.coordinates == 1) return;
    at_end.tied.push_back({{count - 1, 0}, 0.7});
    for (const int s : at_end.tied.front().stages)
      times[static_cast<std::size_t>(s)].tied.push_back(
          {at_end.tied.front().stages, Seconds{at_end.tied.front().seconds}});
  }

  std::vector<StageForm> forms;
  std::vector<StageInPipeline> stages;
  closed::LastMessages at_end;
  std::vector<StageTimes> times;
};

RC_GTEST_PROP(ScheduleForm, OfFewMicroBatchesIsTheWalkOfAllTurns, ()) {
  const ScheduleShape shape = any_shape(3);
  const AnyStages drawn(shape);
  const ScheduleForm::Ends found = ScheduleForm{}.ends(shape, drawn.stages, drawn.at_end);
  const SimulatedPipeline walked = walk_schedule(turns_of(shape), drawn.times, shape.micro_batches);
  RC_ASSERT(std::abs(found.time / walked.step.total.value() - 1) < 1e-9);
  RC_ASSERT(std::abs(walked.coordinates[found.slowest].step.total / walked.step.total - 1) < 1e-9);
}

RC_GTEST_PROP(ScheduleForm, OfManyMicroBatchesIsNearIt, ()) {
  const ScheduleShape shape = any_shape(40);
  const AnyStages drawn(shape);
  const double found = ScheduleForm{}.ends(shape, drawn.stages, drawn.at_end).time;
  const double walked = walk_schedule(turns_of(shape), drawn.times, shape.micro_batches).step.total.value();
  RC_ASSERT(std::abs(found / walked - 1) <= 0.001);  // half of what the two bounds may differ by
}

// What it asks for, where messages are crowded, before it follows them.
RC_GTEST_PROP(ScheduleForm, TakesNoLessThanItSaysAtFirst, ()) {
  const ScheduleShape shape = any_shape(6);
  const AnyStages drawn(shape);
  double least = 0;
  const auto told = [&](double seconds) { return least = seconds, true; };
  RC_ASSERT(ScheduleForm{}.ends(shape, drawn.stages, drawn.at_end, told).time >= least);
}

RC_GTEST_PROP(ScheduleForm, CountsWhatIsInFlightAsTheTurnsDo, ()) {
  const ScheduleShape shape = any_shape(8);
  const int stages = shape.coordinates * shape.chunks;
  const Turns turns = turns_of(shape);
  const InFlight found = closed::in_flight(shape), counted = in_flight(turns, stages);
  RC_ASSERT(found.all == counted.all);
  RC_ASSERT(found.later == counted.later);
}

// A stage on each of two, alike; a message between them takes 2, all of it on the wire.
struct TwoDevices {
  TwoDevices(const StageForm& form, const StageTimes& alike, bool between_nodes)
      : times(2, alike), stages(2, {.form = &form}) {
    times[0].forward_wire = times[1].backward_wire = {between_nodes, 1.0};
    times[0].send_forward = times[1].send_backward = Seconds{2};
    stages[0].forward_wire = stages[1].backward_wire = {between_nodes, 1.0};
    stages[0].send_forward = stages[1].send_backward = 2;
  }

  std::vector<StageTimes> times;
  std::vector<StageInPipeline> stages;
};

// Two stages, two micro-batches; forward takes 4 and backward 8, and exchanges keep the wire between nodes busy for
// half of either; a message takes 2, all of it on the wire. Each that has a pass beside it loses 2 x 1/2 and takes 3,
// and so much of the pass, 1, waits for it.
//
// The first device goes forward until 4, sends until 7, goes forward until 9, sends until 12. The second goes forward
// from 7 to 11 and backward until 19, sends until 22, goes forward until 24 and backward until 32, and sends, with
// nothing beside it, until 34. The first goes backward from 22 to 30 and from 34 to 42.
//
// With messages inside the node its last pass is from 32 to 40.
//
// If it is parameters that are gathered, and half of that is hidden however long it takes, a message takes 3 as before,
// but a pass beside it goes on at 4/5 of its speed and loses 0.6: the first device's second pass forward ends at 8.6,
// and its result is there at 11.6; the second's ends at 23.6, its last one backward at 31.6 and its message at 33.6.
// The first ends at 41.6.
TEST(ScheduleForm, SendsShareAWireWithExchanges) {
  const ScheduleShape shape{PipelineSchedule::one_forward_one_backward, 2, 1, 2};
  struct Case {
    bool between_nodes;
    double held_up, lost, ends;
  };
  for (const auto& [between_nodes, held_up, lost, ends] :
       {Case{true, 1, 1, 42}, Case{true, 0.5, 0.6, 41.6}, Case{false, 1, 0, 40}}) {
    StageForm form;
    form.forward.time = 4;
    form.wires_forward = {on_nodes_wire(2), {0, 2 * held_up}};
    form.wires_backward = {on_nodes_wire(4), {0, 4 * held_up}};
    StageTimes times;
    times.turns[StageTimes::slot(Kind::forward, {})].total = Seconds{4};
    times.turns[StageTimes::slot(Kind::forward, {})].wires = form.wires_forward;
    for (const bool first : {true, false})
      for (const bool last : {true, false}) {
        form.backward[closed::slot_of(first, last)].time = 8;
        TurnTimes& turn = times.turns[StageTimes::slot(Kind::backward, {first, last})];
        turn.total = Seconds{8};
        turn.wires = form.wires_backward;
      }
    const TwoDevices both(form, times, between_nodes);
    const SimulatedPipeline walked = walk_schedule(turns_of(shape), both.times, 2);
    EXPECT_NEAR(walked.step.total.value(), ends, 1e-9);
    EXPECT_NEAR(ScheduleForm{}.ends(shape, both.stages, {}).time, ends, 1e-9);
    EXPECT_NEAR(walked.coordinates[0].turns[1].delay.value(), lost, 1e-9);
    EXPECT_NEAR(walked.coordinates[0].turns[1].sent.end.value(), 10 + lost + (between_nodes ? 1 : 0), 1e-9);
    // Where the turn's own kernels lie, drawn out by its delay.
    NamedSpan all;
    all.span = {Seconds{0}, Seconds{4}};
    EXPECT_NEAR(in_step(walked.coordinates[0].turns[1], all).end.value(), 8 + lost, 1e-9);
  }
}

// Two stages, two micro-batches; forward takes 1, backward 2, messages nothing; the first device's update takes 1, the
// second one's 5. By itself a step ends at 12: the second device goes forward and backward from 1 to 7 and updates
// until then; the first has done its last pass at 9 and updates until 10. So it begins the next step 2 before the
// second one does: that goes forward and backward from 2 to 8 of the first one's clock, which goes backward until 10
// and updates until 11. There the second one is 2 later again, and each comes round after 11.
//
// With an update of 2 the second device ends at 9, before the first, and no step is shorter than the first one.
TEST(ScheduleForm, TheNextStepBeginsWhileLaterDevicesUpdate) {
  const ScheduleShape shape{PipelineSchedule::one_forward_one_backward, 2, 1, 2};
  struct Case {
    double update, begin, step;
  };
  for (const auto& [update, begin, step] : {Case{5, 2, 11}, Case{2, 0, 10}}) {
    std::vector<StageForm> forms(2);
    std::vector<StageTimes> times(2);
    for (std::size_t s = 0; s < 2; ++s) {
      forms[s].forward.time = 1;
      forms[s].tail = s == 0 ? 1 : update;
      times[s].turns[StageTimes::slot(Kind::forward, {})].total = Seconds{1};
      times[s].tail.total = Seconds{forms[s].tail};
      for (const bool first : {true, false})
        for (const bool last : {true, false}) {
          forms[s].backward[closed::slot_of(first, last)].time = 2;
          times[s].turns[StageTimes::slot(Kind::backward, {first, last})].total = Seconds{2};
        }
    }
    const SimulatedPipeline walked = walk_schedule(turns_of(shape), times, 2);
    EXPECT_NEAR(walked.step.total.value(), step, 1e-9);
    EXPECT_NEAR(ScheduleForm{}.ends(shape, {{.form = &forms[0]}, {.form = &forms[1]}}, {}).time, step, 1e-9);
    EXPECT_NEAR(walked.coordinates[1].begin.value(), begin, 1e-9);
    for (const CoordinateTimes& c : walked.coordinates) {
      const TimeBreakdown& parts = c.step.breakdown;
      const Seconds sum = parts.forward + parts.backward + parts.bubble + parts.optimizer;
      EXPECT_NEAR(sum.value(), c.step.total.value(), 1e-9);
    }
  }
}

// Two stages, one micro-batch, all over one wire: forward takes 1 and gathers parameters until 0.5, what it hands on
// takes 1, gradients take 10 once backward has made them. They are no reason for what is handed on forward to be there
// later than at 2; what is handed on backward has half of the wire from 5 on, and takes 2.
TEST(ScheduleForm, WhatIsGatheredForwardIsNoGradientOnItsWay) {
  const WireUse wire{true, 1, 1};
  StageTimes times;
  times.own_messages = Seconds{10};
  times.own_wires.add(10, wire);
  times.send_forward = times.send_backward = Seconds{1};
  times.forward_wire = times.backward_wire = wire;
  times.turns[StageTimes::slot(Kind::forward, {})].total = Seconds{1};
  times.turns[StageTimes::slot(Kind::forward, {})].messages = Seconds{0.5};
  times.turns[StageTimes::slot(Kind::backward, {})].total = Seconds{2};
  times.turns[StageTimes::slot(Kind::backward, {})].messages = Seconds{12};
  const ScheduleShape shape{PipelineSchedule::one_forward_one_backward, 2, 1, 1};
  const SimulatedPipeline walked = walk_schedule(turns_of(shape), std::vector<StageTimes>(2, times), 1);
  EXPECT_NEAR(walked.coordinates[1].turns[0].span.start.value(), 2, 1e-9);
  EXPECT_NEAR(walked.coordinates[1].turns[1].span.end.value(), 5, 1e-9);
  EXPECT_NEAR(walked.coordinates[0].turns[1].span.start.value(), 7, 1e-9);
}

// Two stages on each of two devices. The last pass of each takes 2, and its messages 10 more; the two stages' go over
// one wire, so that the second one's are there 10 after the first one's, though its pass ends 4 later or less.
TEST(ScheduleForm, StagesOfOneDeviceShareItsWire) {
  const ScheduleShape shape{PipelineSchedule::interleaved, 2, 2, 2};
  StageForm form;
  form.forward.time = 1;
  form.messages = 10;
  StageTimes times;
  times.own_messages = Seconds{form.messages};
  times.turns[StageTimes::slot(Kind::forward, {})].total = Seconds{form.forward.time};
  for (const bool first : {true, false})
    for (const bool last : {true, false}) {
      form.backward[closed::slot_of(first, last)] = {2.0, last ? 12.0 : 0.0};
      TurnTimes& turn = times.turns[StageTimes::slot(Kind::backward, {first, last})];
      turn.total = Seconds{2};
      turn.messages = Seconds{last ? 12.0 : 0.0};
    }
  const SimulatedPipeline walked = walk_schedule(turns_of(shape), std::vector<StageTimes>(4, times), 2);
  for (const CoordinateTimes& c : walked.coordinates) {
    std::vector<Seconds> begun;  // the last pass of each stage
    for (const TimedTurn& turn : c.turns)
      if (turn.place.last && turn.turn.kind == Kind::backward) begun.push_back(turn.span.start);
    ASSERT_EQ(begun.size(), 2U);
    ASSERT_LE(begun[1] - begun[0], Seconds{4});
    EXPECT_NEAR(c.messages_end.value(), begun[0].value() + 12 + 10, 1e-12);
    EXPECT_NEAR(c.turns.back().behind.value(), (begun[0] - begun[1]).value() + 10, 1e-12);
    EXPECT_EQ(c.turns.back().stretch, 1);  // nothing is sent beside them
  }
  const std::vector<StageInPipeline> stages(4, StageInPipeline{&form, 0, 0});
  EXPECT_NEAR(ScheduleForm{}.ends(shape, stages, {}).time, walked.step.total.value(), 1e-12);
}

// Two stages of two devices, one micro-batch: forward takes 1, a message 2, backward 4, and its gradients M more, over
// the wire between nodes. The second device goes forward from 3 to 4 and backward until 8. What it sends back then has
// half the wire until it is there, if its gradients need it so long, at 12, and else is held up by M; and its gradients
// are there later by as much. The first device goes backward until 4 later, and has its own gradients M after that.
TEST(ScheduleForm, SendsShareAWireWithGradients) {
  const ScheduleShape shape{PipelineSchedule::one_forward_one_backward, 2, 1, 1};
  for (const bool between_nodes : {true, false})
    for (const double gradients : {5.0, 1.0}) {
      StageForm form;
      form.forward.time = 1;
      form.messages = gradients;
      form.wires_messages = on_nodes_wire(gradients);
      form.backward[closed::slot_of(true, true)] = {4, 4 + gradients};
      StageTimes times;
      times.own_messages = Seconds{form.messages};
      times.own_wires = form.wires_messages;
      times.turns[StageTimes::slot(Kind::forward, {})].total = Seconds{1};
      TurnTimes& backward = times.turns[StageTimes::slot(Kind::backward, {true, true})];
      backward.total = Seconds{4};
      backward.messages = Seconds{4 + gradients};
      const TwoDevices both(form, times, between_nodes);
      const double lost = between_nodes ? std::min(2.0, gradients) : 0.0;
      const SimulatedPipeline walked = walk_schedule(turns_of(shape), both.times, 1);
      EXPECT_NEAR(walked.coordinates[1].turns[1].sent.end.value(), 8 + 2 + lost, 1e-9);
      EXPECT_NEAR(walked.coordinates[1].messages_end.value(), 8 + gradients + lost, 1e-9);
      // Where they are drawn: until the turn ends as they are alone, and what is left then longer.
      NamedSpan message;
      message.kind = NamedSpan::Kind::message;
      message.span = {Seconds{3}, Seconds{4 + gradients}};
      const Span drawn = in_step(walked.coordinates[1].turns[1], message);
      EXPECT_NEAR(drawn.start.value(), 7, 1e-9);
      EXPECT_NEAR(drawn.end.value(), 8 + gradients + lost, 1e-9);
      EXPECT_NEAR(walked.coordinates[0].turns[1].span.start.value(), 8 + 2 + lost, 1e-9);
      EXPECT_NEAR(walked.step.total.value(), 8 + 2 + lost + 4 + gradients, 1e-9);
      EXPECT_NEAR(ScheduleForm{}.ends(shape, both.stages, {}).time, 8 + 2 + lost + 4 + gradients, 1e-9);
    }
}

// Gradients of an earlier stage beside a turn that takes 4, of which exchanges keep the wire busy for 1: for as long as
// these gradients take alone the turn goes on at 4/5 of its speed.
TEST(ScheduleForm, TurnsShareAWireWithGradients) {
  GradientsUnderWay gradients;
  gradients.add(40, 40, on_nodes_wire(40));
  const TurnWires exchanges = of_exchanges(on_nodes_wire(1)), others = of_exchanges(WireTime{{{{1, 1}, {0, 1}}}});
  EXPECT_NEAR(gradients.delay_turn(0, exchanges, 4), 1, 1e-12);  // no more than the exchanges themselves
  EXPECT_NEAR(gradients.end(), 41, 1e-12);
  EXPECT_EQ(gradients.delay_turn(0, others, 4), 0);      // the other wire
  EXPECT_EQ(gradients.delay_turn(50, exchanges, 4), 0);  // behind them
  // 2.5 more of them: half of what the turn could lose.
  EXPECT_NEAR(gradients.delay_turn(38.5, exchanges, 4), 0.5, 1e-12);
}

// Flows, not messages, have equal parts of a wire. Two ranks of a node send to the next stage beside a ring's one flow:
// they have two thirds of the wire. What takes them 6 by themselves takes 9, and the ring, which had a third of it for
// 9, is 6 later. Where it needs no more than 2 it is done after 6, and 4 later; they lose what it took, 2.
TEST(ScheduleForm, WhatSharesAWireHasAsMuchOfItAsItHasFlows) {
  const WireUse pairs{true, 1.0, 2.0};
  GradientsUnderWay long_ones, short_ones;
  long_ones.add(40, 40, on_nodes_wire(40));
  EXPECT_NEAR(long_ones.delay_send(0, 6, pairs), 3, 1e-12);
  EXPECT_NEAR(long_ones.end(), 46, 1e-12);
  short_ones.add(2, 2, on_nodes_wire(2));
  EXPECT_NEAR(short_ones.delay_send(0, 6, pairs), 2, 1e-12);
  EXPECT_NEAR(short_ones.end(), 6, 1e-12);

  // A turn of 4 that exchanges for 2, in the middle: beside the pairs these take three times as long, in which the turn
  // does half of what it does alone: 8 in all. A message of 2.25 is through after 3: 0.75 of the turn's kernels, and
  // 0.75 of its exchanges, which take 2.25 then, of which two thirds are the message's.
  const TurnWires turn = of_exchanges(on_nodes_wire(2));
  EXPECT_NEAR(turn_delay(0, OnWires{{{}, {100, 2}}}, turn, 4), 4, 1e-12);
  EXPECT_NEAR(turn_delay(0, OnWires{{{}, {4, 2}}}, turn, 4), 2, 1e-12);
  EXPECT_NEAR(send_delay(2.25, 2, turn.busy.on[1], 4), 0.75, 1e-12);
}

// Two coordinates and three micro-batches; forward takes 1, backward 2, a message 1/2.
//
// 1F1B: the first goes forward until 1 and 2. The second goes forward from 1.5 to 2.5, backward until 4.5, forward
// until 5.5 and backward until 7.5; what it sends back is there at 5 and 8. The first goes backward from 5 to 7,
// forward until 8 and backward until 10. The second goes forward from 8.5 to 9.5 and backward until 11.5, and the first
// backward from 12 to 14.
//
// GPipe: the first goes forward until 3, the second from 1.5 to 4.5 and then backward until 10.5. What it sends is
// there at 7, 9 and 11, and the first goes backward from 7 to 13.
TEST(LockStep, GoesThroughBothOrders) {
  struct Case {
    bool forward_first;
    double first, second;
  };
  for (const auto& [forward_first, first, second] : {Case{false, 14, 11.5}, Case{true, 13, 10.5}}) {
    closed::LockStep walk;
    walk.begin(2, {.micro_batches = 3, .forward_first = forward_first});
    for (const std::size_t c : {0U, 1U}) {
      walk.set_times(c, {.forward = 1, .backward = 2, .first_backward = 2, .sent_forward = 0.5, .sent_backward = 0.5});
      walk.set_state(c, {});
    }
    std::size_t singles = 0;
    for (int tick = 0; tick < walk.ticks();) {
      const closed::Reached reached = walk.go(tick, walk.ticks() - 1);
      for (const closed::SinglePass& one : reached.singles) {
        closed::CoordinateState state = walk.state(one.coordinate);
        state.ready = std::max(state.ready, one.arrived) + 2;
        state.backward = std::max(state.backward, state.ready) + 0.5;
        walk.set_state(one.coordinate, state);
        ++singles;
      }
      ASSERT_GE(reached.tick, tick);
      tick = reached.tick + 1;
    }
    EXPECT_EQ(singles, 2U);  // the last micro-batch on each, behind which gradients are exchanged
    EXPECT_DOUBLE_EQ(walk.state(0).ready, first);
    EXPECT_DOUBLE_EQ(walk.state(1).ready, second);
  }
}

// 64 stages and a million micro-batches: 128 million turns, of which none is kept.
TEST(ScheduleForm, NeedsNoMemoryForMicroBatches) {
  const ScheduleShape shape{PipelineSchedule::one_forward_one_backward, 64, 1, 1'000'000};
  StageForm even;
  even.forward.time = 1;
  for (StageForm::Turns& backward : even.backward) backward.time = 2;
  const std::vector<StageInPipeline> stages(64, StageInPipeline{&even, 0, 0});
  ScheduleForm form;
  EXPECT_NEAR(form.ends(shape, stages, {}).time, (1'000'000 + 63) * 3.0, 1e-3);
  EXPECT_LE(form.passes_kept(), 4U * 64);
  EXPECT_EQ(closed::in_flight(shape).all.front(), 64);
}

}  // namespace
}  // namespace sibyl
