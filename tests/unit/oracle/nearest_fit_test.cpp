// What is named where a plan does not fit: it fits, nothing nearer does, and its words ask for it.
#include "oracle/nearest_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calibration/cluster_change.h"
#include "oracle/predict.h"
#include "oracle/smaller_plans.h"
#include "tests/support/zoo.h"

namespace sibyl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Graph& gpt2_xl() {
  static const Graph graph = test::zoo("gpt2-xl", 1);
  return graph;
}
const Graph& resnet50() {
  static const Graph graph = test::zoo("resnet50", 1);
  return graph;
}

Strategy adam_on(int devices, std::int64_t per_device) {
  Strategy s;
  s.data = devices;
  s.global_batch = per_device * devices;
  s.optimizer = OptimizerKind::adam;
  return s;
}

Cluster v100() { return load_cluster("abci-v100").value(); }

bool fits(const Graph& graph, const Strategy& strategy, const Cluster& cluster) {
  const auto p = predict(graph, strategy, cluster);
  return p && p->fits;
}

std::string told(const Strategy& s) {
  return parallel_text(s) + " m" + std::to_string(s.accumulation) + " z" + zero_text(s) + " " + recompute_text(s);
}

// Within the price of a plan, too: a step of 256 micro-batches, forward and backward, is asked about in each.
TEST(NearestFit, EndsWhenItIsCancelled) {
  const Cluster cluster = v100();
  Strategy strategy = adam_on(4, 256);
  strategy.accumulation = 256;
  const auto asked_until = [&](std::size_t last) {
    std::size_t asked = 0;
    const NearestFit fit = nearest_fit(gpt2_xl(), strategy, cluster, [&] { return ++asked >= last; });
    EXPECT_TRUE(fit.settings.empty());
    return asked;
  };
  for (const std::size_t last : {1, 100, 500}) {
    EXPECT_GE(asked_until(last), last);
    EXPECT_LE(asked_until(last), last + 30) << "it went on";
  }
}

// 1.56 G parameters of 16 bytes (weight, gradient, two of Adam's) are 24.9 GB on each of four devices of 17.2 GB.
// Shared by four, ZeRO 1 leaves 12.5 + 3.1 GB and no room for a sample, ZeRO 2 9.3 GB and two buffers for what is on
// its way; recomputing saves none of it. ZeRO 3 is the first that does.
TEST(NearestFit, NamesWhatFitsAndTheLeastChangeFirst) {
  const Cluster cluster = v100();
  const Strategy asked = adam_on(4, 1);
  const NearestFit fit = nearest_fit(gpt2_xl(), asked, cluster);
  ASSERT_EQ(fit.settings.size(), 1U);
  EXPECT_EQ(fit.settings[0].words, "--zero 3");
  EXPECT_FALSE(fit.micro_batches || fit.global_batch);
  const auto p = predict(gpt2_xl(), fit.settings[0].strategy, cluster);
  ASSERT_TRUE(p && p->fits);
  EXPECT_EQ(fit.settings[0].memory, p->memory.needed());
  EXPECT_LE(fit.settings[0].memory, p->memory_capacity);
  ASSERT_TRUE(fit.least);
  EXPECT_EQ(*fit.least, predict(gpt2_xl(), asked, cluster)->memory.needed());
  EXPECT_THAT(to_text(fit), HasSubstr("even single samples need 30.7 GiB; --zero 3 fits: 13.5 GiB"));
}

// Whatever comes before it in the order of changes was not passed by.
TEST(NearestFit, NothingNearerFits) {
  const Cluster cluster = v100();
  for (const auto& [devices, per_device] : {std::pair{4, 1}, std::pair{2, 8}}) {
    const Strategy asked = adam_on(devices, per_device);
    const NearestFit fit = nearest_fit(gpt2_xl(), asked, cluster);
    ASSERT_EQ(fit.settings.size(), 1U);
    bool found = false;
    for (const Strategy& nearer : smaller_plans(asked, true)) {
      found = fits(gpt2_xl(), nearer, cluster);
      if (!found) continue;
      EXPECT_EQ(told(nearer), told(fit.settings[0].strategy));
      break;
    }
    EXPECT_TRUE(found);
  }
}

// On one device nothing shares: twice as many are named, with the batch of each, and how they share.
TEST(NearestFit, NamesMoreDevicesWhereNothingElseHelps) {
  const NearestFit fit = nearest_fit(gpt2_xl(), adam_on(1, 1), v100());
  ASSERT_EQ(fit.settings.size(), 1U);
  EXPECT_EQ(fit.settings[0].words, "--devices 2 --parallel data=2 --batch 1/device --zero 3 --recompute full");
  EXPECT_TRUE(fits(gpt2_xl(), fit.settings[0].strategy, v100()));
  // Of a cluster that has no more, as many nodes as it takes.
  const NearestFit grown = nearest_fit(gpt2_xl(), adam_on(1, 1), *resized(v100(), 1, 1));
  ASSERT_EQ(grown.settings.size(), 1U);
  EXPECT_THAT(grown.settings[0].words, testing::StartsWith("--nodes 2 --devices 2 "));
  // Where no more may be named there is nothing.
  const NearestFit none = nearest_fit(gpt2_xl(), adam_on(1, 1), v100(), {}, {.split = false});
  EXPECT_TRUE(none.settings.empty());
  EXPECT_THAT(to_text(none), HasSubstr("no smaller batch, recomputing, ZeRO, pipeline or tensor ranks that were tried "
                                       "fit, on up to 1 device"));
}

// Without other splits only what `sibyl scale` has options for.
TEST(NearestFit, LeavesTheSplitAsItIsIfTold) {
  for (const Strategy& plan : smaller_plans(adam_on(8, 2), false)) {
    EXPECT_EQ(plan.data, 8);
    EXPECT_EQ(plan.devices_per_replica(), 1);
  }
}

// One thing that differs before two. Two replicas of two samples: recomputing, ZeRO, a pipeline, which keeps
// micro-batches of two, tensor ranks, which take all four at once; then single samples beside one of them...
TEST(SmallerPlans, ComeInTheOrderOfChanges) {
  Strategy s;
  s.data = 2, s.global_batch = 4;
  std::vector<std::string> plans;
  for (const Strategy& plan : smaller_plans(s, true)) plans.push_back(told(plan));
  ASSERT_GE(plans.size(), 10U);
  plans.resize(10);
  EXPECT_THAT(plans,
              ElementsAre("data=2 m2 z0 none", "data=2 m1 z0 selective", "data=2 m1 z0 full", "data=2 m1 z1 none",
                          "data=2 m1 z2 none", "data=2 m1 z3 none", "data=1,pipeline=2 m2 z0 none",
                          "data=1,tensor=2 m1 z0 none", "data=2 m2 z0 selective", "data=2 m2 z0 full"));
  for (const Strategy& plan : smaller_plans(s, true)) {
    EXPECT_EQ(plan.devices(), 2);
    EXPECT_EQ(plan.global_batch, 4);
    EXPECT_EQ(plan.global_batch % (plan.data * plan.accumulation), 0);
  }
}

TEST(SmallerPlans, GoOnFromWhatIsAskedForAlready) {
  Strategy s;
  s.data = 2, s.global_batch = 2, s.zero = 2, s.recompute = Recompute::selective;
  std::vector<std::string> plans;
  for (const Strategy& plan : smaller_plans(s, false)) plans.push_back(told(plan));
  EXPECT_THAT(plans, ElementsAre("data=2 m1 z2 full", "data=2 m1 z3 selective", "data=2 m1 z3 full"));
}

// Four samples on each of two: only several micro-batches have gradients to reduce earlier, and no pipeline does.
TEST(SmallerPlans, ReduceEachMicroBatchsGradients) {
  Strategy s;
  s.data = 2, s.global_batch = 4, s.accumulation = 2, s.zero = 2, s.recompute = Recompute::full;
  const std::vector<Strategy> plans = smaller_plans(s, true);
  EXPECT_TRUE(plans.front().reduce_each || plans[1].reduce_each) << "one change of its own";
  for (const Strategy& plan : plans)
    EXPECT_FALSE(plan.reduce_each && (plan.stages() > 1 || plan.accumulation == 1)) << told(plan);
  s.reduce_each = true;  // what is asked for stays
  for (const Strategy& plan : smaller_plans(s, true)) EXPECT_TRUE(plan.reduce_each && plan.stages() == 1) << told(plan);
  s.reduce_each = false, s.zero = 1;
  EXPECT_TRUE(
      std::ranges::any_of(smaller_plans(s, false), [](const Strategy& p) { return p.zero == 3 && p.reduce_each; }));
}

// 512 samples of ResNet-50 on a device: the same batch in parts comes first, then the largest batch.
TEST(NearestFit, NamesMicroBatchesAndTheLargestBatch) {
  Strategy asked;
  asked.data = 4, asked.global_batch = 2048;
  const Cluster cluster = v100();
  const NearestFit fit = nearest_fit(resnet50(), asked, cluster);
  ASSERT_EQ(fit.settings.size(), 2U);
  EXPECT_EQ(fit.settings[0].words, "--micro-batches 4");
  EXPECT_EQ(fit.settings[0].strategy.global_batch, 2048);
  ASSERT_TRUE(fit.global_batch);
  EXPECT_EQ(fit.settings[1].words, "--batch " + batch_text(asked, *fit.global_batch));
  for (const FittingSetting& s : fit.settings) EXPECT_TRUE(fits(resnet50(), s.strategy, cluster)) << s.words;
  for (std::int64_t more = *fit.global_batch + 4; more < *fit.global_batch + 40; more += 4) {
    asked.global_batch = more;
    EXPECT_FALSE(fits(resnet50(), asked, cluster)) << more;
  }
  const NearestFit whole = nearest_fit(resnet50(), asked, cluster, {}, {.whole_batch = true});
  EXPECT_EQ(whole.settings.back().words, "--batch " + std::to_string(*fit.global_batch));
}

// On a device of 1.3625 GiB 38 samples of ResNet-18 do not fit and 39 do: what is reserved does not grow with every
// sample. Asked for 40, halving tries 20, 30, 35, 37 and 38, and would say 37.
TEST(NearestFit, LooksBeyondABatchThatDoesNotFit) {
  const Graph graph = test::zoo("resnet18", 1);
  const Cluster cluster = changed(v100(), std::vector<std::string>{"device.memory=1.3625GiB"}, DType::f32).value();
  Strategy s;
  const auto with = [&](std::int64_t batch) {
    s.global_batch = batch;
    return s;
  };
  ASSERT_TRUE(fits(graph, with(37), cluster));
  ASSERT_FALSE(fits(graph, with(38), cluster));
  ASSERT_TRUE(fits(graph, with(39), cluster));
  for (const std::int64_t asked : {40, 41, 42, 44, 48, 50, 64, 76, 100, 512}) {
    ASSERT_FALSE(fits(graph, with(asked), cluster)) << asked;
    EXPECT_EQ(nearest_fit(graph, with(asked), cluster).global_batch, 39) << asked;
  }
}

}  // namespace
}  // namespace sibyl
