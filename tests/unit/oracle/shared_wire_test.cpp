// Exchanges of a pass, and parameters gathered for it, beside gradients of its replicas or what its stage sends: on
// which wires they are, and what that costs the step.
#include <gtest/gtest.h>

#include "oracle/cost/price.h"
#include "oracle/interval.h"
#include "oracle/simulate/step.h"
#include "tests/support/clusters.h"
#include "tests/support/graphs.h"

namespace sibyl {
namespace {

// Filters in pairs, replicas of those; each layer's gradients are sent as soon as they are there.
Plan pairs_of_filters() {
  Strategy strategy;
  strategy.global_batch = 128;
  strategy.data = strategy.filter = 2;
  strategy.first_bucket = strategy.bucket = Bytes{1};
  return *make_plan(test::mlp({512, 512, 512, 512, 512}, 64), strategy);
}

struct Priced {
  Plan plan;
  PricedStage stage;
  [[nodiscard]] Seconds step() const { return simulate_step(plan.stages[0], stage, {}).total; }
};

Priced priced_on(const Cluster& cluster) {
  Plan plan = pairs_of_filters();
  PricedStage stage = price(plan, plan.stages[0], cluster);
  return {std::move(plan), std::move(stage)};
}

Priced as_if_alone(Priced priced) {
  for (PricedExchange& exchange : priced.stage.exchanges) exchange.forward_wire = exchange.backward_wire = {};
  return priced;
}

TEST(SharedWireInAPlan, BothCrossNodes) {
  const Priced priced = priced_on(test::cluster(4, 1, BytesPerSecond{1e8}));
  int exchanges = 0;
  for (const PricedExchange& exchange : priced.stage.exchanges) {
    if (!exchange.backward) continue;
    ++exchanges;
    EXPECT_TRUE(exchange.backward_wire.between_nodes);
    EXPECT_GT(exchange.backward_wire.busy, 0.5);
    EXPECT_LE(exchange.backward_wire.busy, 1.0);
  }
  EXPECT_GT(exchanges, 0);
  for (const PricedMessage& message : priced.stage.messages) EXPECT_TRUE(message.wire.between_nodes);
  EXPECT_GT(priced.step(), as_if_alone(priced).step() * 1.01);
}

// Filters lie inside nodes, replicas on two of them.
TEST(SharedWireInAPlan, EachHasItsOwn) {
  const Priced priced = priced_on(test::cluster(2, 2, BytesPerSecond{1e8}));
  for (const PricedExchange& exchange : priced.stage.exchanges) EXPECT_FALSE(exchange.backward_wire.between_nodes);
  for (const PricedMessage& message : priced.stage.messages) EXPECT_TRUE(message.wire.between_nodes);
  EXPECT_EQ(priced.step(), as_if_alone(priced).step());
}

// All that is sent takes the wire at least as long as it takes by itself, and the step no longer than all in a row.
TEST(SharedWireInAPlan, NothingIsLostOrWonOnTheWire) {
  const Priced priced = priced_on(test::cluster(4, 1, BytesPerSecond{1e7}));
  Seconds sent, all;
  for (const PricedMessage& message : priced.stage.messages) sent += message.estimate.time.time * message.wire.busy;
  for (const PricedMessage& message : priced.stage.messages) all += message.estimate.time.time;
  for (const PricedExchange& exchange : priced.stage.exchanges) {
    if (exchange.forward) all += exchange.wait.forward + exchange.forward->time.time;
    if (exchange.backward) all += exchange.wait.backward + exchange.backward->time.time;
    if (exchange.forward) sent += exchange.forward->time.time * exchange.forward_wire.busy;
    if (exchange.backward) sent += exchange.backward->time.time * exchange.backward_wire.busy;
  }
  const SimulatedStep step = simulate_step(priced.plan.stages[0], priced.stage, {});
  EXPECT_GE(step.total, sent);
  EXPECT_LE(step.total, all + step.breakdown.forward + step.breakdown.backward + step.breakdown.optimizer);
  EXPECT_LE(step.breakdown.communication_exposed, step.total);
  // What is sent is the same whoever shares the wire.
  EXPECT_EQ(step.breakdown.communication_total,
            simulate_step(priced.plan.stages[0], as_if_alone(priced).stage, {}).breakdown.communication_total);
  EXPECT_GE(step.breakdown.communication_total, step.breakdown.communication_exposed);
}

// What is sent errs by what it is off, each message once: exchanges, which are all waited for, do not make gradients'
// error count for more than all of theirs.
TEST(SharedWireInAPlan, EachMessageErrsOnce) {
  const Priced priced = priced_on(test::cluster(4, 1, BytesPerSecond{1e7}));
  double exchanges = 0, gradients = 0, waited = 0;
  for (const PricedExchange& exchange : priced.stage.exchanges)
    for (const auto& transfer : {exchange.forward, exchange.backward}) {
      if (!transfer) continue;
      exchanges += transfer->time.time.value() * transfer->time.relative_error;
      waited += transfer->time.time.value();
    }
  for (const PricedMessage& message : priced.stage.messages)
    gradients += message.estimate.time.time.value() * message.estimate.time.relative_error;
  const SimulatedStep step = simulate_step(priced.plan.stages[0], priced.stage, {});
  ASSERT_GT(waited, 0);
  const auto all_causes = [&](const PricedStage& stage) {
    double sum = 0;
    for (const StepError::Part& part : uncertainty(priced.plan.stages[0], stage, step.breakdown, 4).error.shared)
      sum += part.size.value();
    return sum;
  };
  PricedStage sure = priced.stage;
  for (PricedMessage& message : sure.messages) message.estimate.time.relative_error = 0;
  for (PricedExchange& exchange : sure.exchanges)
    for (auto* transfer : {&exchange.forward, &exchange.backward})
      if (*transfer) (*transfer)->time.relative_error = 0;
  const double messages = all_causes(priced.stage) - all_causes(sure);
  EXPECT_GE(messages, exchanges * (1 - 1e-9));
  EXPECT_LE(messages, (exchanges + gradients) * (1 + 1e-9));
}

// Of a stage whose parameters are gathered before use. What its pass asks of the wire is what the gathers take; it is
// held up by what it would take longer with each of them as long again as it keeps the wire busy.
TEST(SharedWireInAPlan, PassesWaitForWhatTheyGather) {
  Strategy strategy;
  strategy.global_batch = 1 << 14;
  strategy.data = strategy.pipeline = strategy.accumulation = 2;
  strategy.zero = 3;
  const Plan plan = *make_plan(test::mlp({512, 512, 512, 512, 512}, 64), strategy);
  const Turn forward{Turn::Kind::forward, 0, 0};
  double hidden = 0, waited_for = 0;  // shares of the gathers
  for (const double rate : {1e9, 1e6}) {
    const PricedStage priced = price(plan, plan.stages[0], test::cluster(4, 1, BytesPerSecond{rate}));
    ASSERT_GE(priced.unit_gathers.size(), 2U);
    double busy = 0;
    PricedStage slower = priced;
    for (PricedMessage& gather : slower.unit_gathers) {
      ASSERT_TRUE(gather.wire.between_nodes);
      busy += gather.estimate.time.time.value() * gather.wire.busy;
      gather.estimate.time.time *= 1 + gather.wire.busy;
    }
    const TurnTimes turn = simulate_turn(plan.stages[0], priced, {}, forward, {});
    EXPECT_NEAR(turn.wires.busy.on[1].seconds, busy, 1e-9 * busy);
    EXPECT_EQ(turn.wires.busy.on[0].seconds, 0);
    const Seconds longer = simulate_turn(plan.stages[0], slower, {}, forward, {}).total - turn.total;
    EXPECT_NEAR(turn.wires.held_up[1], longer.value(), 1e-9 * busy);
    (rate > 1e7 ? hidden : waited_for) = turn.wires.held_up[1] / busy;
  }
  EXPECT_LT(hidden, 0.9) << "the first one alone is never hidden";
  EXPECT_NEAR(waited_for, 1, 0.05);
}

}  // namespace
}  // namespace sibyl
