// Optimizer state that lies outside the device: what is said of it, which copies the plan makes, and what they take.
#include "oracle/plan/offload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "oracle/cost/offload.h"
#include "oracle/memory/footprint.h"
#include "oracle/predict.h"
#include "oracle/simulate/offload.h"
#include "oracle/simulate/pipeline.h"
#include "tests/support/clusters.h"
#include "tests/support/graphs.h"

namespace sibyl {
namespace {

using Way = OffloadCopy::Way;

Strategy offloaded(Tier tier = Tier::host, int replicas = 1) {
  Strategy strategy;
  strategy.data = replicas;
  strategy.global_batch = 2 * replicas;
  strategy.optimizer = OptimizerKind::adam;
  strategy.optimizer_tier = tier;
  strategy.bucket = strategy.first_bucket = Bytes{200};
  return strategy;
}

Cluster with_device(Device device) { return test::cluster(1, 2, BytesPerSecond{1e9}, {}, std::move(device)); }

TEST(OffloadOption, SaysWhatLiesWhere) {
  using enum Tier;
  Strategy strategy;
  EXPECT_EQ(offload_text(strategy), "");
  struct Said {
    const char* text;
    Tier optimizer, activations;
    const char* back;
  };
  for (const Said& said :
       {Said{"optimizer", host, device, "optimizer"}, Said{"optimizer:host", host, device, "optimizer"},
        Said{"optimizer:nvme", nvme, device, "optimizer:nvme"}, Said{"activations", device, host, "activations"},
        Said{"activations:nvme,optimizer", host, nvme, "optimizer,activations:nvme"}}) {
    ASSERT_TRUE(parse_offload(said.text, strategy)) << said.text;
    EXPECT_EQ(strategy.optimizer_tier, said.optimizer) << said.text;
    EXPECT_EQ(strategy.activation_tier, said.activations) << said.text;
    EXPECT_EQ(offload_text(strategy), said.back);
  }
}

TEST(OffloadOption, RefusesWhatItCannotDo) {
  Strategy strategy;
  for (const char* text : {"", "weights", "optimizer:", "optimizer:device", "optimizer:tape", "optimizer,",
                           "optimizer,optimizer:nvme", "parameters:device"}) {
    const auto refused = parse_offload(text, strategy);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code, ErrorCode::usage) << text;
    EXPECT_THAT(refused.error().hint, testing::HasSubstr("activations")) << text;
  }
  EXPECT_FALSE(strategy.offloads());
}

TEST(Offload, IsRefusedWhereNothingLiesElsewhereOrNormsAreTaken) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::lamb, OptimizerKind::lars}) {
    Strategy strategy = offloaded();
    strategy.optimizer = kind;
    const auto plan = make_plan(graph, strategy);
    ASSERT_FALSE(plan) << to_string(kind);
    EXPECT_EQ(plan.error().code, ErrorCode::infeasible);
    EXPECT_EQ(plan.error().where, "--offload optimizer");
  }
  Strategy ddp = offloaded(Tier::host, 2);
  ddp.framework = Framework::pytorch_ddp;
  EXPECT_FALSE(make_plan(graph, ddp));
  // Masters are state, too.
  Strategy halves = offloaded();
  halves.optimizer = OptimizerKind::sgd;
  halves.precision = Precision::bf16;
  halves.half_weights = true;
  EXPECT_EQ(bytes_offloaded(make_plan(graph, halves).value(), 0), (OffloadedBytes{67 * 4, 67 * 4}));
}

// Weights of 32 and 24 elements, shifts of 8 and 3; two f32 of state each. 200 bytes close a block: the first has 256,
// the second 64 + 192, the last 24.
TEST(Offload, BringsBlocksInTurn) {
  const Plan plan = make_plan(test::mlp({4, 8, 3}, 2), offloaded()).value();
  const Stage& stage = plan.stages[0];
  ASSERT_EQ(stage.blocks.size(), 3U);
  EXPECT_EQ(block_bytes(stage, stage.blocks[0]).total(), 256);
  EXPECT_EQ(block_bytes(stage, stage.blocks[1]).total(), 64 + 192);
  EXPECT_EQ(block_bytes(stage, stage.blocks[2]).total(), 24);
  const std::vector<OffloadCopy> copies = {{Way::in, 0, 0}, {Way::in, 1, 0},  {Way::out, 0, 1},
                                           {Way::in, 2, 1}, {Way::out, 1, 2}, {Way::out, 2, 3}};
  EXPECT_EQ(stage.copies, copies);
  EXPECT_EQ(bytes_offloaded(plan, 0), (OffloadedBytes{67 * 8, 67 * 8}));
}

TEST(Offload, MovesNothingWhereStateIsHere) {
  const Plan plan = make_plan(test::mlp({4, 8, 3}, 2), offloaded(Tier::device)).value();
  EXPECT_TRUE(plan.stages[0].blocks.empty());
  EXPECT_TRUE(plan.stages[0].copies.empty());
  EXPECT_EQ(bytes_offloaded(plan, 0), OffloadedBytes{});
}

// One bucket of 67 elements, of which rank 0 has 34 and rank 1 has 33.
TEST(Offload, OfShardedStateMovesTheRanksPart) {
  Strategy strategy = offloaded(Tier::nvme, 2);
  strategy.bucket = strategy.first_bucket = Bytes{1e6};
  for (const int zero : {1, 2}) {
    strategy.zero = zero;
    const Plan plan = make_plan(test::mlp({4, 8, 3}, 2), strategy).value();
    EXPECT_EQ(bytes_offloaded(plan, 0), (OffloadedBytes{34 * 8, 34 * 8}));
    EXPECT_EQ(bytes_offloaded(plan, 1), (OffloadedBytes{33 * 8, 33 * 8}));
  }
}

// Each stage's ranks move what their stage updates.
TEST(Offload, OfAPipelineMovesTheStagesState) {
  Strategy strategy = offloaded();
  strategy.pipeline = 2;
  strategy.stage_starts = {"fc2"};
  const Plan plan = make_plan(test::mlp({4, 8, 3}, 2), strategy).value();
  EXPECT_EQ(bytes_offloaded(plan, 0).in, 40 * 8);
  EXPECT_EQ(bytes_offloaded(plan, 1).in, 27 * 8);
}

struct Timed {
  Plan plan;
  PricedStage priced;
};

// Three blocks, each updated in a second, each of whose copies takes `copy` and goes on beside updates.
Timed three_blocks(Seconds copy) {
  Timed timed{make_plan(test::mlp({4, 8, 3}, 2), offloaded()).value(), {}};
  timed.priced = price(timed.plan, timed.plan.stages[0], test::cluster(1, 1));
  for (std::size_t u = 0; u < timed.priced.kernels.updates.size(); ++u) {
    const double own = timed.priced.kernels.updated_blocks[u] == 1 ? 0.5 : 1.0;  // of two tensors
    timed.priced.prices[timed.priced.kernels.updates[u]].estimate.time.time = Seconds{own};
  }
  for (PricedCopy& one : timed.priced.copies) one.estimate.time = copy;
  timed.priced.beside_copies = 1;
  return timed;
}

// Copies of two seconds follow each other without a pause: in 0 until 2, in 1 until 4, out 0 until 6, in 2 until 8, out
// 1 until 10, out 2 until 12. Updates end at 3, 5 and 9.
TEST(OffloadedUpdates, WaitForCopiesThatTakeLonger) {
  const Timed timed = three_blocks(Seconds{2});
  const OffloadedUpdates run = offloaded_updates(timed.plan.stages[0], timed.priced, {});
  EXPECT_NEAR(run.end.value(), 12, 1e-9);
  EXPECT_NEAR(run.waited.value(), 9, 1e-9);
  EXPECT_NEAR(run.updates[0].end.value(), 3, 1e-9);
  EXPECT_NEAR(run.updates[1].end.value(), 5, 1e-9);
  EXPECT_NEAR(run.updates[2].end.value(), 9, 1e-9);
  EXPECT_NEAR(offloaded_updates(timed.plan.stages[0], timed.priced, {.offload = 0.5}).end.value(), 6, 1e-9);
}

// Then only the first reading and the last writing are waited for.
TEST(OffloadedUpdates, HideCopiesThatTakeLess) {
  const Timed timed = three_blocks(Seconds{0.1});
  const OffloadedUpdates run = offloaded_updates(timed.plan.stages[0], timed.priced, {});
  EXPECT_NEAR(run.waited.value(), 0.2, 1e-9);
  EXPECT_NEAR(run.end.value(), 3.2, 1e-9);
}

// On a processor, which copies and updates in turn, six copies and three updates take what they take one after the
// other, however they lie beside each other: 6 x 0.5 + 3, and 6 x 0.1 + 3.
TEST(OffloadedUpdates, HideNothingOnAProcessor) {
  for (const double copy : {0.5, 0.1}) {
    Timed timed = three_blocks(Seconds{copy});
    Cluster cluster = test::cluster(1, 1);
    timed.priced.beside_copies = copies_slowdown(timed.plan.strategy, cluster.kernels.device());
    const OffloadedUpdates run = offloaded_updates(timed.plan.stages[0], timed.priced, {});
    EXPECT_NEAR(run.end.value(), 6 * copy + 3, 1e-9);
    EXPECT_NEAR(run.waited.value(), 6 * copy, 1e-9);
  }
  Device gpu = test::cpu_device();
  gpu.backend = Backend::cuda;
  EXPECT_EQ(copies_slowdown(offloaded(), gpu), 1.0);
  EXPECT_EQ(copies_slowdown(Strategy{}, test::cpu_device()), 1.0);
}

TEST(Offload, IsPartOfTheStep) {
  const Timed timed = three_blocks(Seconds{2});
  Timed at_once = three_blocks(Seconds{});
  const SimulatedStep step = simulate_step(timed.plan.stages[0], timed.priced, {});
  const SimulatedStep without = simulate_step(timed.plan.stages[0], at_once.priced, {});
  EXPECT_NEAR((step.total - without.total).value(), 9, 1e-9);
  EXPECT_NEAR(step.breakdown.offload_exposed.value(), 9, 1e-9);
  EXPECT_NEAR(step.breakdown.offload_total.value(), 12, 1e-9);
  EXPECT_NEAR(step.breakdown.optimizer.value(), 3, 1e-9);
}

TEST(Offload, IsDrawnBesideTheUpdates) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  const Timed timed = three_blocks(Seconds{2});
  std::vector<std::string> names;
  Seconds last, end;
  for (const NamedSpan& span : timeline(graph, timed.plan.stages[0], timed.priced, {})) {
    end = std::max(end, span.span.end);
    if (span.track != "copies") continue;
    names.push_back(span.name);
    last = span.span.end;
  }
  EXPECT_THAT(names, testing::ElementsAre("read state 0", "read state 1", "write state 0", "read state 2",
                                          "write state 1", "write state 2"));
  EXPECT_NEAR(last.value(), end.value(), 1e-9);
  EXPECT_NEAR(end.value(), simulate_step(timed.plan.stages[0], timed.priced, {}).total.value(), 1e-9);
}

// Stages of a pipeline wait each for its own: in a step of two the slower tail counts.
TEST(Offload, IsPartOfAPipelinesTail) {
  Strategy strategy = offloaded();
  strategy.pipeline = 2;
  strategy.stage_starts = {"fc2"};
  const Plan plan = make_plan(test::mlp({4, 8, 3}, 2), strategy).value();
  std::vector<PricedStage> priced = price(plan, test::cluster(2, 1));
  for (PricedStage& stage : priced)
    for (PricedCopy& copy : stage.copies) copy.estimate.time = Seconds{1};
  const SimulatedPipeline pipeline = simulate_pipeline(plan, priced, {});
  for (std::size_t c = 0; c < 2; ++c) {
    const auto copies = static_cast<double>(plan.stages[c].copies.size());
    const TimeBreakdown& parts = pipeline.coordinates[c].step.breakdown;
    EXPECT_NEAR(parts.offload_total.value(), copies, 1e-9);
    EXPECT_NEAR(parts.offload_exposed.value(), copies, 1e-2) << "updates take microseconds";
    EXPECT_GT(pipeline.coordinates[c].step.total.value(), copies);
    EXPECT_LT(parts.optimizer.value(), 1e-2);
  }
}

// Eight layers of 256 x 256 and shifts of 256, Adam: with a block for each tensor there are a weight's state, its
// neighbour's and the shift's between them at most.
TEST(Offload, HoldsThreeBlocksOnTheDevice) {
  const Graph graph = test::mlp(std::vector<std::int64_t>(9, 256), 2);
  const auto peak = [&](Tier tier) {
    Strategy strategy = offloaded(tier);
    strategy.bucket = strategy.first_bucket = Bytes{1};
    const Plan plan = make_plan(graph, strategy).value();
    PricedStage priced = price(plan, plan.stages[0], test::cluster(1, 1));
    for (PricedKernel& kernel : priced.prices) kernel.estimate.workspace = Bytes{};
    return footprint(plan.stages[0], priced, strategy, test::cpu_device());
  };
  constexpr double weight = 256 * 256 * 8, shift = 256 * 8;
  EXPECT_EQ(peak(Tier::device).peak.optimizer, Bytes{8 * (weight + shift)});
  const Footprint outside = peak(Tier::host);
  EXPECT_EQ(outside.peak_step, "optimizer");
  EXPECT_EQ(outside.peak.optimizer, Bytes{2 * weight + shift});
  EXPECT_EQ(peak(Tier::nvme).peak.total, outside.peak.total);
  // The state of all layers is gone but for those blocks; nothing else has changed, but activations, gone by then.
  EXPECT_LT(outside.peak.total + Bytes{5 * weight}, peak(Tier::device).peak.total);
}

// 67 elements, two f32 each; two ranks of a node.
TEST(Offload, SaysWhatANodeNeeds) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  const auto outside = [&](Tier tier, const Cluster& cluster) {
    return outside_bytes(make_plan(graph, offloaded(tier, 2)).value(), cluster);
  };
  const Cluster cpu = test::cluster(1, 2);
  EXPECT_EQ(outside(Tier::host, cpu).host, Bytes{2 * 67 * 8});
  EXPECT_EQ(outside(Tier::host, cpu).storage, Bytes{});
  EXPECT_EQ(outside(Tier::nvme, cpu).host, Bytes{});
  EXPECT_EQ(outside(Tier::nvme, cpu).storage, Bytes{2 * 67 * 8});
  EXPECT_EQ(outside(Tier::host, test::cluster(2, 1)).host, Bytes{67 * 8}) << "of one node";
  Device gpu = test::cpu_device();
  gpu.backend = Backend::cuda;
  EXPECT_EQ(outside(Tier::nvme, with_device(gpu)).host, Bytes{2 * 67 * 8})
      << "three blocks, as many as there are, on their way";
  EXPECT_EQ(outside(Tier::device, cpu).host, Bytes{});
}

std::vector<PricedCopy> copies_on(const Cluster& cluster, Tier tier, int replicas = 1) {
  const Plan plan = make_plan(test::mlp({4, 8, 3}, 2), offloaded(tier, replicas)).value();
  return price_copies(plan, plan.stages[0], cluster);
}

// 256 bytes each way. The processor's memory moves 1e10 B/s, and a copy reads and writes.
TEST(CopyPrices, OfHostMemory) {
  constexpr double start = 10e-6;
  const auto first = [](const Cluster& cluster) { return copies_on(cluster, Tier::host)[0]; };
  EXPECT_EQ(first(test::cluster(1, 1)).bytes, Bytes{256});
  EXPECT_NEAR(first(test::cluster(1, 1)).estimate.time.value(), start + 256 / 5e9, 1e-15);
  EXPECT_EQ(first(test::cluster(1, 1)).estimate.provenance, Provenance::estimated);
  Device gpu = test::cpu_device();
  gpu.backend = Backend::cuda;
  for (const auto& [architecture, rate] :
       {std::pair{"volta", 12.6e9}, std::pair{"ampere", 25.2e9}, std::pair{"hopper", 50.4e9}, std::pair{"", 25.2e9}}) {
    gpu.architecture = architecture;
    EXPECT_NEAR(first(with_device(gpu)).estimate.time.value(), start + 256 / rate, 1e-15) << architecture;
  }
  Cluster said = with_device(gpu);
  said.host_link = BytesPerSecond{1e9};
  EXPECT_NEAR(first(said).estimate.time.value(), start + 256 / 1e9, 1e-15);
  EXPECT_EQ(first(said).estimate.provenance, Provenance::estimated);
  Cluster measured = said;
  measured.host_link_measured = true;
  EXPECT_EQ(first(measured).estimate.time, first(said).estimate.time);
  EXPECT_EQ(first(measured).estimate.provenance, Provenance::measured);
  EXPECT_LT(first(measured).estimate.relative_error, first(said).estimate.relative_error);
}

// Two ranks of a node share what it reads and writes.
TEST(CopyPrices, OfStorage) {
  constexpr double start = 100e-6;
  Cluster cluster = test::cluster(1, 2);
  cluster.storage_read = BytesPerSecond{1e6};
  cluster.storage_write = BytesPerSecond{5e5};
  cluster.storage_measured = true;
  const std::vector<PricedCopy> measured = copies_on(cluster, Tier::nvme, 2);
  EXPECT_NEAR(measured[0].estimate.time.value(), start + 2 * 256 / 1e6, 1e-12);
  EXPECT_NEAR(measured[2].estimate.time.value(), start + 2 * 256 / 5e5, 1e-12);
  EXPECT_EQ(measured[0].estimate.provenance, Provenance::measured);
  EXPECT_NEAR(copies_on(cluster, Tier::nvme, 1)[0].estimate.time.value(), start + 256 / 1e6, 1e-12);
  const std::vector<PricedCopy> unknown = copies_on(test::cluster(1, 2), Tier::nvme);
  EXPECT_NEAR(unknown[0].estimate.time.value(), start + 256 / 3.2e9, 1e-12);
  EXPECT_NEAR(unknown[2].estimate.time.value(), start + 256 / 2.0e9, 1e-12);
  EXPECT_EQ(unknown[0].estimate.provenance, Provenance::estimated);
  // On its way to a GPU it crosses the host's link, while it is read.
  Device gpu = test::cpu_device();
  gpu.backend = Backend::cuda;
  Cluster slow_link = with_device(gpu);
  slow_link.host_link = BytesPerSecond{1e3};
  EXPECT_NEAR(copies_on(slow_link, Tier::nvme)[0].estimate.time.value(), 10e-6 + 256 / 1e3, 1e-12);
}

TEST(Offload, IsToldByThePrediction) {
  const Graph graph = test::mlp(std::vector<std::int64_t>(9, 256), 2);
  Strategy strategy = offloaded(Tier::nvme);
  Cluster cluster = test::cluster(1, 1);
  cluster.storage_read = cluster.storage_write = BytesPerSecond{1e7};
  const Prediction p = predict(graph, strategy, cluster).value();
  const Prediction here = predict(graph, offloaded(Tier::device), cluster).value();
  EXPECT_EQ(p.offload, "optimizer:nvme");
  constexpr double state = 8 * (256 * 256 + 256) * 8;
  EXPECT_EQ(p.storage, Bytes{state});
  EXPECT_EQ(p.host_memory, Bytes{});
  EXPECT_GT(p.breakdown.offload_total.value(), 2 * state / 1e7);
  EXPECT_LT(p.breakdown.offload_exposed, p.breakdown.offload_total);
  EXPECT_GT((p.step_time - here.step_time) / p.breakdown.offload_exposed, 0.99);
  EXPECT_EQ(p.bottleneck.name, "storage: optimizer state");
  EXPECT_NEAR(p.bottleneck.relief, 0.5, 0.02);
  EXPECT_GT(p.interval_high - p.interval_low, here.interval_high - here.interval_low) << "rates are said, not measured";
  EXPECT_GT(p.provenance.estimated, 0.9);
  EXPECT_EQ(here.offload, "");
  EXPECT_EQ(here.breakdown.offload_total, Seconds{});
}

// A sentence for each rate that was used and is not known; none of what is known, or not used.
TEST(Offload, SaysWhichRatesItAssumes) {
  const auto sentences = [](Tier tier, const Cluster& cluster) { return assumed_outside(offloaded(tier), cluster); };
  Device device = test::cpu_device();
  device.backend = Backend::cuda;
  device.architecture = "volta";
  Cluster gpu = with_device(device);
  const std::string link =
      "the link of a device to its host's memory carries 12.6 GB/s each way, four fifths of 16 lanes of PCIe 3.0: not "
      "measured";
  EXPECT_THAT(sentences(Tier::device, gpu), testing::IsEmpty());
  EXPECT_THAT(sentences(Tier::host, gpu), testing::ElementsAre(link));
  EXPECT_THAT(sentences(Tier::nvme, gpu),
              testing::ElementsAre(link,
                                   "the storage of a node reads 3.20 GB/s and writes 2.00 GB/s, like a data-centre "
                                   "drive: not measured"));
  EXPECT_THAT(predict(test::mlp({4, 8, 3}, 2), offloaded(Tier::host), gpu).value().assumed, testing::Contains(link));
  gpu.host_link = BytesPerSecond{1e10};
  gpu.storage_read = BytesPerSecond{6.4e9};
  EXPECT_THAT(sentences(Tier::host, gpu), testing::IsEmpty());
  EXPECT_THAT(
      sentences(Tier::nvme, gpu),
      testing::ElementsAre("the storage of a node writes 4.00 GB/s, like a data-centre drive that reads as fast: "
                           "not measured"));
  gpu.storage_write = BytesPerSecond{1e9};
  EXPECT_THAT(sentences(Tier::nvme, gpu), testing::IsEmpty());
  const Cluster cpu = test::cluster(1, 1);
  EXPECT_THAT(
      sentences(Tier::host, cpu),
      testing::ElementsAre("what is offloaded is copied in memory at 5.00 GB/s, half of what its memory reads and "
                           "writes: not measured"));
  EXPECT_THAT(sentences(Tier::nvme, cpu), testing::SizeIs(1)) << "storage alone";
}

}  // namespace
}  // namespace sibyl
