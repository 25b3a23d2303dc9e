// Parameters that lie outside the device: what moves when, what it takes, and what the device is spared.
#include "oracle/plan/offload_parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "oracle/cost/offload.h"
#include "oracle/memory/footprint.h"
#include "oracle/plan/names.h"
#include "oracle/plan/offload.h"
#include "oracle/predict.h"
#include "oracle/simulate/step.h"
#include "tests/support/clusters.h"
#include "tests/support/graphs.h"
#include "tests/support/networks.h"

namespace sibyl {
namespace {

Strategy parameters_outside(Tier tier = Tier::host) {
  Strategy strategy;
  strategy.data = 2;
  strategy.global_batch = 4;
  strategy.zero = 3;
  strategy.optimizer = OptimizerKind::adam;
  strategy.parameter_tier = tier;
  strategy.bucket = strategy.first_bucket = Bytes{100};
  return strategy;
}

TEST(OffloadParameters, CanBeSaidBesideOthers) {
  Strategy strategy;
  ASSERT_TRUE(parse_offload("parameters:nvme,optimizer", strategy));
  EXPECT_EQ(strategy.parameter_tier, Tier::nvme);
  EXPECT_EQ(offload_text(strategy), "optimizer,parameters:nvme");
  EXPECT_FALSE(parse_offload("parameters,parameters:nvme", strategy));
}

// A unit for each linear layer: of 32 weights and 8 shifts, 160 bytes, and of 24 and 3, 108. Rank 0's parts are of 20
// and 14 elements, rank 1's of 20 and 13. They come for forward, for backward, and with their block for the update.
TEST(OffloadParameters, MovesTheRanksPartForEachPass) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  const Plan plan = make_plan(graph, parameters_outside()).value();
  const Stage& stage = plan.stages[0];
  ASSERT_EQ(stage.units.size(), 2U);
  EXPECT_EQ(part_bytes(stage, stage.units[0].sync, stage.units[0].bucket), 20 * 4);
  EXPECT_EQ(part_bytes(stage, stage.units[1].sync, stage.units[1].bucket), 14 * 4);
  EXPECT_EQ(bytes_offloaded(plan, 0), (OffloadedBytes{3 * 34 * 4, 34 * 4}));
  EXPECT_EQ(bytes_offloaded(plan, 1), (OffloadedBytes{3 * 33 * 4, 33 * 4}));

  Strategy with_state = parameters_outside(Tier::nvme);
  with_state.optimizer_tier = Tier::host;
  with_state.accumulation = 2;
  EXPECT_EQ(bytes_offloaded(make_plan(graph, with_state).value(), 0),
            (OffloadedBytes{(2 * 2 + 1) * 34 * 4 + 34 * 8, 34 * 4 + 34 * 8}));
  EXPECT_EQ(bytes_offloaded(make_plan(graph, parameters_outside(Tier::device)).value(), 0), OffloadedBytes{});
}

// What the first step and the last one read is gathered once for a pass there and back, and comes once.
TEST(OffloadParameters, OfATiedUnitComeOnce) {
  const Plan plan = make_plan(test::transformer(2, 32, 4, 16, 2, true), parameters_outside()).value();
  const Stage& stage = plan.stages[0];
  std::int64_t in = 0, out = 0;
  int once = 0;
  for (const ParameterUnit& unit : stage.units) {
    const std::int64_t part = part_bytes(stage, unit.sync, unit.bucket);
    const bool spans_all = unit.begin == 0 && unit.end == stage.steps.size();
    EXPECT_EQ(times_gathered(stage, unit), spans_all ? 1 : 2);
    once += spans_all ? 1 : 0;
    in += (spans_all ? 2 : 3) * part;
    out += part;
  }
  EXPECT_EQ(once, 1);
  EXPECT_EQ(bytes_offloaded(plan, 0), (OffloadedBytes{in, out}));
}

TEST(OffloadParameters, AreRefusedWhereNobodySharesThem) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  const auto refused = [&](auto&& change, const char* said) {
    Strategy strategy = parameters_outside();
    change(strategy);
    const auto plan = make_plan(graph, strategy);
    ASSERT_FALSE(plan) << said;
    EXPECT_EQ(plan.error().code, ErrorCode::infeasible);
    EXPECT_EQ(plan.error().where, "--offload parameters");
    EXPECT_THAT(to_string(plan.error()), testing::HasSubstr(said));
  };
  refused([](Strategy& s) { s.zero = 2; }, "--zero 3");
  refused([](Strategy& s) { s.data = 1, s.global_batch = 2; }, "no replica shares");
  refused([](Strategy& s) { s.zero_ranks = 1; }, "no replica shares");
  refused([](Strategy& s) { s.optimizer = OptimizerKind::lamb; }, "norms");
  Strategy plain = parameters_outside();
  plain.optimizer = OptimizerKind::sgd;  // has no state: parameters can lie outside all the same
  EXPECT_TRUE(make_plan(graph, plain));
}

struct TimedUnits {
  Plan plan;
  PricedStage priced;
};

// Four layers, a unit each; every kernel takes a second, copies beside none, and messages nothing.
TimedUnits four_layers(Seconds copy) {
  Strategy strategy = parameters_outside();
  TimedUnits timed{make_plan(test::mlp({8, 8, 8, 8, 8}, 2), strategy).value(), {}};
  const Stage& stage = timed.plan.stages[0];
  timed.priced = price(timed.plan, stage, test::cluster(1, 2));
  for (PricedKernel& kernel : timed.priced.prices) kernel.estimate.time.time = Seconds{1};
  for (const auto key : timed.priced.kernels.unit_copies) timed.priced.prices[key].estimate.time.time = Seconds{};
  for (PricedMessage& gather : timed.priced.unit_gathers) gather.estimate.time.time = Seconds{1e-12};
  for (PricedMessage& message : timed.priced.messages) message.estimate.time.time = Seconds{1e-12};
  for (PricedCopy& one : timed.priced.copies) one.estimate.time = Seconds{};
  for (PricedCopy& one : timed.priced.brought) one.estimate.time = copy;
  timed.priced.composition = {};
  timed.priced.beside_copies = 1;
  timed.priced.overhead = timed.priced.dispatch = Seconds{};
  return timed;
}

// Of eight copies of half a second, four of them forward, those of the first two units of each pass are waited for: the
// first layer computes when the second one is being gathered. The others come beside a layer that takes longer.
TEST(OffloadParameters, HideBehindTheLayerBefore) {
  const TimedUnits timed = four_layers(Seconds{0.5});
  ASSERT_EQ(timed.plan.stages[0].units.size(), 4U);
  const SimulatedStep step = simulate_step(timed.plan.stages[0], timed.priced, {});
  EXPECT_NEAR(step.breakdown.offload_total.value(), 8 * 0.5, 1e-9);
  EXPECT_NEAR(step.breakdown.offload_exposed.value(), 4 * 0.5, 1e-9);
  const SimulatedStep at_once = simulate_step(timed.plan.stages[0], four_layers(Seconds{}).priced, {});
  EXPECT_NEAR((step.total - at_once.total).value(), 4 * 0.5, 1e-9);
}

TEST(OffloadParameters, AreDrawnInTheOrderInWhichTheyCome) {
  const TimedUnits timed = four_layers(Seconds{0.5});
  const Graph graph = test::mlp({8, 8, 8, 8, 8}, 2);
  std::vector<std::string> names;
  Seconds end;
  for (const NamedSpan& span : timeline(graph, timed.plan.stages[0], timed.priced, {})) {
    end = std::max(end, span.span.end);
    if (span.kind == NamedSpan::Kind::bring_part) names.push_back(span.name);
  }
  const auto part = [](std::size_t unit) { return part_name(unit); };
  EXPECT_THAT(names, testing::ElementsAre(part(0), part(1), part(2), part(3), part(3), part(2), part(1), part(0)));
  EXPECT_NEAR(end.value(), simulate_step(timed.plan.stages[0], timed.priced, {}).total.value(), 1e-9);
}

// Eight layers of 256 x 256 and shifts of 256 among two ranks. With parts on the device half of all lies there, and two
// layers are gathered; without, two layers and the part of a third.
TEST(OffloadParameters, LeaveTheDeviceTwoUnitsAndAPart) {
  const Graph graph = test::mlp(std::vector<std::int64_t>(9, 256), 2);
  constexpr double layer = (256 * 256 + 256) * 4;
  const auto peak = [&](Tier tier, OptimizerKind optimizer) {
    Strategy strategy = parameters_outside(tier);
    strategy.optimizer = optimizer;
    strategy.bucket = strategy.first_bucket = Bytes{layer};
    const Plan plan = make_plan(graph, strategy).value();
    PricedStage priced = price(plan, plan.stages[0], test::cluster(1, 2));
    for (PricedKernel& kernel : priced.prices) kernel.estimate.workspace = Bytes{};
    return footprint(plan.stages[0], priced, strategy, test::cpu_device());
  };
  const Footprint here = peak(Tier::device, OptimizerKind::sgd), away = peak(Tier::host, OptimizerKind::sgd);
  EXPECT_NEAR(here.peak.weights.value(), 8 * layer / 2 + 2 * layer, 1);
  EXPECT_NEAR(away.peak.weights.value(), 2 * layer + layer / 2, 1);
  EXPECT_NEAR((here.peak.total - away.peak.total).value(), 8 * layer / 2 - layer / 2, 1);
  // With state that stays, the update has three blocks of half a layer.
  const Footprint updated = peak(Tier::host, OptimizerKind::adam);
  EXPECT_GE(updated.peak.optimizer.value(), 8 * layer);
}

// On processors a copy reads and writes 1e10 B/s; rank 0's part of 80 bytes, and one of 56.
TEST(OffloadParameters, ArePricedAsCopies) {
  const Plan plan = make_plan(test::mlp({4, 8, 3}, 2), parameters_outside()).value();
  const Cluster cluster = test::cluster(1, 2);
  const std::vector<PricedCopy> brought = price_brought(plan, plan.stages[0], cluster);
  ASSERT_EQ(brought.size(), 2U);
  EXPECT_NEAR(brought[0].estimate.time.value(), 10e-6 + 80 / 5e9, 1e-15);
  EXPECT_NEAR(brought[1].estimate.time.value(), 10e-6 + 56 / 5e9, 1e-15);
  const Plan here = make_plan(test::mlp({4, 8, 3}, 2), parameters_outside(Tier::device)).value();
  EXPECT_TRUE(price_brought(here, here.stages[0], cluster).empty());
  // State in one place and parameters in another are two copies of a block, one after the other.
  Strategy apart = parameters_outside(Tier::nvme);
  apart.optimizer_tier = Tier::host;
  const Plan both = make_plan(test::mlp({4, 8, 3}, 2), apart).value();
  const BlockBytes block = block_bytes(both.stages[0], both.stages[0].blocks[0]);
  const PricedCopy copy = price_copies(both, both.stages[0], cluster)[0];
  EXPECT_EQ(copy.bytes, Bytes{static_cast<double>(block.total())});
  EXPECT_NEAR(
      copy.estimate.time.value(),
      10e-6 + static_cast<double>(block.state) / 5e9 + 100e-6 + 2.0 * static_cast<double>(block.parameters) / 3.2e9,
      1e-12);
}

// What a node's two ranks keep outside; storage of GPUs passes through the host.
TEST(OffloadParameters, SayWhatANodeNeeds) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  const auto of_a_node = [&](Tier tier) {
    return outside_bytes(make_plan(graph, parameters_outside(tier)).value(), test::cluster(1, 2));
  };
  EXPECT_EQ(of_a_node(Tier::host).host, Bytes{2 * 34 * 4});
  EXPECT_EQ(of_a_node(Tier::nvme).storage, Bytes{2 * 34 * 4});
  EXPECT_EQ(of_a_node(Tier::nvme).host, Bytes{});
  const Prediction p = predict(graph, parameters_outside(), test::cluster(1, 2)).value();
  EXPECT_EQ(p.offload, "parameters");
  EXPECT_GT(p.breakdown.offload_exposed.value(), 0);
}

}  // namespace
}  // namespace sibyl
