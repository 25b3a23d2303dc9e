// What limits a plan, each number from the model's extents or from kernels of 1 ms.
#include "oracle/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "oracle/predict.h"
#include "tests/support/clusters.h"
#include "tests/support/graphs.h"
#include "tests/support/zoo.h"

namespace sibyl {
namespace {

using test::zoo;

struct Limits : testing::Test {
  Prediction prediction;
  Strategy strategy;

  void predict_for(const Graph& graph, std::string_view parallel, bool timed = false) {
    ASSERT_TRUE(parse_parallel(parallel, strategy).has_value());
    strategy.global_batch = graph.batch() * strategy.data;
    std::vector<KernelSample> samples;
    if (timed)
      for (KernelKey& key : kernels_of(*make_plan(graph, strategy), Backend::cpu))
        samples.push_back({std::move(key), Seconds{1e-3}, 0.0, 100, {}, {}, {}});
    const auto p = predict(graph, strategy, test::cluster(8, 1, BytesPerSecond{1e9}, std::move(samples)));
    ASSERT_TRUE(p.has_value()) << to_string(p.error());
    prediction = *p;
  }
  const Limit* find(std::string_view name) const {
    for (const Limit& limit : prediction.limits)
      if (limit.name == name) return &limit;
    return nullptr;
  }
  Limit at(std::string_view name) const {
    const Limit* limit = find(name);
    EXPECT_NE(limit, nullptr) << name;
    return limit ? *limit : Limit{};
  }
};

// fc1 has 8 filters, 4 for each of two; the 3 of fc2 do not divide, so fc2 and the loss run whole on both: two passes of
// 1 ms each, 4 ms in all.
TEST_F(Limits, FiltersAndWhatIsRepeated) {
  predict_for(test::mlp({4, 8, 3}, 2), "filter=2", true);
  EXPECT_EQ(at("number of filters").where, "fc1.weight");
  EXPECT_EQ(at("number of filters").value, 8);
  EXPECT_EQ(at("number of filters").unit, "filters");
  EXPECT_DOUBLE_EQ(at("number of filters").share, 2.0 / 8);
  EXPECT_NEAR(at("redundant work").value, 4e-3, 1e-9);
  EXPECT_EQ(at("redundant work").where, "filter, longest fc2");
  EXPECT_DOUBLE_EQ(at("layer-wise collectives").value, prediction.breakdown.communication_exposed.value());
  EXPECT_EQ(find("gradient exchange"), nullptr);
  EXPECT_EQ(find("batch"), nullptr);
}

// Two replicas of two samples. All weights, with their state, are on both.
TEST_F(Limits, ReplicasShareABatchAndRepeatMemory) {
  predict_for(test::mlp({4, 8, 3}, 2), "data=2", true);
  EXPECT_EQ(at("batch").value, 4);
  EXPECT_DOUBLE_EQ(at("batch").share, 0.5);
  EXPECT_DOUBLE_EQ(at("gradient exchange").value, prediction.breakdown.communication_exposed.value());
  EXPECT_DOUBLE_EQ(at("weight update").value, prediction.breakdown.optimizer.value());
  const MemoryBreakdown& m = prediction.memory;
  EXPECT_DOUBLE_EQ(at("redundant memory").value, (m.weights + m.gradients + m.optimizer).value());
  EXPECT_THAT(at("redundant memory").where, testing::StartsWith("2 copies"));
  EXPECT_DOUBLE_EQ(at("memory").share, m.total / prediction.memory_capacity);
  EXPECT_EQ(find("redundant work"), nullptr);
}

// 12 heads; q, k and v of 768 features each are joined in one weight, and every one of them is cut.
TEST_F(Limits, HeadsAndFeaturesOfATransformer) {
  predict_for(zoo("gpt2", 1), "tensor=4");
  EXPECT_EQ(at("number of heads").value, 12);
  EXPECT_DOUBLE_EQ(at("number of heads").share, 4.0 / 12);
  EXPECT_EQ(at("number of features").value, 768);
  EXPECT_EQ(find("sequence length"), nullptr);
  strategy = {};
  predict_for(zoo("gpt2", 1), "sequence=4");
  EXPECT_EQ(at("sequence length").value, 1024);
}

// 12 heads and 1024 tokens over 4 ranks, which all keep the weights. With tensor beside it each of the two shares the heads that
// the other leaves.
TEST_F(Limits, HeadsAndTokensOfAContext) {
  predict_for(zoo("gpt2", 1), "context=4");
  EXPECT_EQ(at("number of heads").value, 12);
  EXPECT_DOUBLE_EQ(at("number of heads").share, 4.0 / 12);
  EXPECT_EQ(at("sequence length").value, 1024);
  EXPECT_DOUBLE_EQ(at("sequence length").share, 4.0 / 1024);
  EXPECT_THAT(at("redundant memory").where, testing::StartsWith("4 copies"));
  EXPECT_GT(at("layer-wise collectives").value, 0);
  EXPECT_EQ(at("gradient exchange").where, "context");
  strategy = {};
  predict_for(zoo("gpt2", 1), "context=2,tensor=3");
  EXPECT_EQ(at("number of heads").value, 12 / 2);
  EXPECT_DOUBLE_EQ(at("number of heads").share, 6.0 / 12);
}

// 8 x 8 images, 4 x 4 after pooling; then they are flattened, whole.
TEST_F(Limits, RowsOfImages) {
  predict_for(zoo("small-cnn", 2), "spatial=2x1");
  EXPECT_EQ(at("spatial extent").value, 4);
  EXPECT_EQ(at("spatial extent").unit, "rows");
  EXPECT_DOUBLE_EQ(at("spatial extent").share, 0.5);
  EXPECT_GT(at("halo exchange").value, 0);
  EXPECT_GT(at("layer-wise collectives").value, 0);  // the gather before flattening
  EXPECT_NEAR(at("halo exchange").value + at("layer-wise collectives").value + at("gradient exchange").value,
              prediction.breakdown.communication_exposed.value(), 1e-9);
}

// ZeRO 1 gives each of two replicas half of the optimizer's state, and leaves them both with all weights and gradients.
TEST_F(Limits, ShardedStateIsNotRepeated) {
  strategy.zero = 1;
  strategy.optimizer = OptimizerKind::adam;
  predict_for(test::mlp({4, 8, 3}, 2), "data=2");
  const MemoryBreakdown& m = prediction.memory;
  EXPECT_DOUBLE_EQ(at("redundant memory").value, (m.weights + m.gradients).value());
}

// Compute grows by what runs again.
TEST_F(Limits, RecomputationCosts) {
  const Graph graph = zoo("gpt2", 1);
  predict_for(graph, "data=1");
  const Seconds kept = prediction.breakdown.forward + prediction.breakdown.backward;
  EXPECT_EQ(find("recomputation"), nullptr);
  strategy.recompute = Recompute::full;
  predict_for(graph, "data=1");
  const Seconds recomputed = prediction.breakdown.forward + prediction.breakdown.backward;
  EXPECT_GT(at("recomputation").value, 0);
  EXPECT_NEAR(at("recomputation").value, (recomputed - kept).value(), 1e-6 * kept.value());
}

// Two stages of one micro-batch of two samples: fc1 to fc3 with their ReLUs, six kernels of 1 ms each way; fc4 and the
// loss, two. A stage of three layers updates six parameters, the other two. The first device works 6 ms, idles 2 + 2 ms,
// works 6 ms and updates for 6 ms: 22 ms. Even stages would take 4 + 4 + 4 + 4 and 4 ms: the imbalance is 2 ms, and 2 ms
// of the first device's idle time are left for the bubble. Eight operations train.
TEST_F(Limits, StagesOfAPipeline) {
  strategy.stage_starts = {"fc4"};
  predict_for(test::mlp({8, 8, 8, 8, 8}, 2), "pipeline=2", true);
  const Seconds links = prediction.breakdown.communication_exposed;
  EXPECT_NEAR(prediction.step_time.value(), 22e-3 + 2 * links.value(), 1e-6);
  EXPECT_NEAR(at("pipeline imbalance").value, 2e-3, 1e-6);
  EXPECT_EQ(at("pipeline imbalance").where, "longest stage, from fc1");
  EXPECT_NEAR(at("pipeline bubble").value, 2e-3, 1e-3);
  EXPECT_NEAR(at("pipeline bubble").value + at("pipeline imbalance").value, prediction.breakdown.bubble.value(), 1e-9);
  EXPECT_DOUBLE_EQ(at("pipeline links").value, links.value());
  EXPECT_EQ(find("gradient exchange"), nullptr);
  EXPECT_EQ(at("number of layers").value, 8);
  EXPECT_DOUBLE_EQ(at("number of layers").share, 2.0 / 8);
  EXPECT_EQ(at("number of micro-batches").value, 2);
  EXPECT_DOUBLE_EQ(at("number of micro-batches").share, 0.5);
  EXPECT_DOUBLE_EQ(at("weight update").value, 6e-3);
}

// Extents are those of all stages: fc1 has 8 filters, fc2 4; here they lie on different devices.
TEST_F(Limits, ExtentsOfAllStages) {
  strategy.stage_starts = {"fc2"};
  predict_for(test::mlp({8, 8, 4, 3}, 2), "pipeline=2,filter=2");
  EXPECT_EQ(at("number of filters").where, "fc2.weight");
  EXPECT_EQ(at("number of filters").value, 4);
}

TEST_F(Limits, OneDeviceRepeatsNothing) {
  predict_for(test::mlp({4, 8, 3}, 2), "data=1");
  ASSERT_EQ(prediction.limits.size(), 2U);
  EXPECT_EQ(prediction.limits[0].name, "memory");
  EXPECT_EQ(prediction.limits[1].name, "weight update");
}

}  // namespace
}  // namespace sibyl
