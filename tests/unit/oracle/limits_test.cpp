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
    predict_on(graph, test::cluster(8, 1, BytesPerSecond{1e9}, std::move(samples)));
  }
  void predict_on(const Graph& graph, const Cluster& cluster) {
    const auto p = predict(graph, strategy, cluster);
    ASSERT_TRUE(p.has_value()) << to_string(p.error());
    prediction = *p;
  }
  [[nodiscard]] Bytes state() const {
    return prediction.memory.weights + prediction.memory.gradients + prediction.memory.optimizer;
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
  const double exposed = prediction.breakdown.communication_exposed.value();
  EXPECT_NEAR(at("layer-wise collectives").value, exposed, 1e-12 * exposed);
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
  EXPECT_EQ(at("spatial extent").relief, "larger images; another dimension split as well");
  EXPECT_GT(at("halo exchange").value, 0);
  EXPECT_GT(at("layer-wise collectives").value, 0);  // the gather before flattening
  EXPECT_EQ(at("gradient exchange").where, "height");
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

// Gradients of two micro-batches are whole until the last, unless parts alone are kept.
TEST_F(Limits, WholeGradientsCanBeParts) {
  strategy.zero = 2, strategy.accumulation = 2;
  predict_for(test::mlp({4, 512, 512, 3}, 2), "data=2");
  EXPECT_THAT(at("memory").relief, testing::HasSubstr("--reduce-each"));
  strategy.reduce_each = true;
  predict_for(test::mlp({4, 512, 512, 3}, 2), "data=2");
  EXPECT_THAT(at("memory").relief, testing::Not(testing::HasSubstr("--reduce-each")));
  EXPECT_THAT(at("gradient exchange").relief, testing::HasSubstr("no --reduce-each"));
  strategy = {};
  strategy.zero = 2, strategy.accumulation = 2;
  predict_for(test::mlp({4, 512, 512, 3}, 2), "tensor=2");  // there is nobody to share with
  EXPECT_THAT(at("memory").relief, testing::Not(testing::HasSubstr("--reduce-each")));
}

// small-cnn, a half of each image on each of two ranks, twice. Weights of the convolutions, 160 + 4640 of 38,282, have gradients of
// all four ranks: ZeRO 1 gives each a quarter of their Adam state, and nobody else has it. Those of what comes after the
// flattening, 32,832 + 650, are summed over replicas alone: a half each, which the other half of the image has, too.
TEST_F(Limits, StateIsShardedOverAllThatSumItsGradient) {
  const Graph graph = zoo("small-cnn", 2);
  constexpr double images = (160.0 + 4640.0) / 4, whole = (32832.0 + 650.0) / 2, again = whole / (images + whole);
  strategy.optimizer = OptimizerKind::adam;
  strategy.zero = 1;
  predict_for(graph, "data=2,spatial=2x1");
  const MemoryBreakdown& m = prediction.memory;
  EXPECT_NEAR(at("redundant memory").value, (m.weights + m.gradients + m.optimizer * again).value(), 1e-6);
  EXPECT_EQ(at("redundant memory").where, "2 to 4 copies of weights and state");
  EXPECT_EQ(at("redundant memory").relief, "split weights (tensor, filter); sharded state (--zero)");
  EXPECT_EQ(at("gradient exchange").where, "height, data");
  strategy.zero = 3;
  predict_for(graph, "data=2,spatial=2x1");
  EXPECT_NEAR(at("redundant memory").value, state().value() * again, 1e-6);
  EXPECT_EQ(at("redundant memory").where, "2 copies of weights and state");
  EXPECT_EQ(at("redundant memory").relief, "split weights (tensor, filter)");
}

// Parts of an image share no state: there are no replicas to do so.
TEST_F(Limits, PartsOfAnImageAloneRepeatAllState) {
  strategy.zero = 3;
  predict_for(zoo("small-cnn", 2), "spatial=2x1");
  EXPECT_NEAR(at("redundant memory").value, state().value(), 1e-6);
  EXPECT_EQ(at("redundant memory").where, "2 copies of weights and state");
  EXPECT_EQ(at("redundant memory").relief, "split weights (tensor, filter)");
}

// fc1 is cut by columns, fc2 by rows: its bias alone, 3 of 4 x 4 + 4 + 3 x 4 + 3 elements, is on both ranks.
TEST_F(Limits, WeightsThatAnAxisLeavesWholeAreRepeated) {
  predict_for(test::mlp({4, 8, 3}, 2), "tensor=2");
  EXPECT_NEAR(at("redundant memory").value, state().value() * 3 / 35, 1e-6);
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

TEST_F(Limits, RanksWithExpertsSumGradientsAmongThem) {
  predict_for(zoo("mixtral-mini", 4), "expert=2");
  EXPECT_EQ(at("gradient exchange").where, "expert");
  EXPECT_EQ(at("batch").where, "expert");
}

// Eight experts over 2 x 2 ranks; what tensor cuts beside them are attention's 256 features, and of sequences 128
// tokens, not slots.
TEST_F(Limits, WholeExpertsAreCountedOverTensorRanks) {
  strategy.whole_experts = true;
  predict_for(zoo("mixtral-mini", 4), "sequence=2,expert=2");
  EXPECT_EQ(at("number of experts").value, 8);
  EXPECT_DOUBLE_EQ(at("number of experts").share, 0.5);
  EXPECT_EQ(at("sequence length").value, 128);
  EXPECT_THAT(at("number of features").where, testing::HasSubstr("attn"));
}

// 128 slices, halved by each of five poolings: 4 are split last, 2 on each of two ranks.
TEST_F(Limits, SlicesOfVolumes) {
  predict_for(zoo("cosmoflow", 1), "spatial=2x1x1");
  EXPECT_EQ(at("spatial extent").value, 4);
  EXPECT_EQ(at("spatial extent").unit, "slices");
  EXPECT_DOUBLE_EQ(at("spatial extent").share, 0.5);
  EXPECT_EQ(at("spatial extent").relief, "larger images; another dimension split as well");
  EXPECT_EQ(at("gradient exchange").where, "depth");
}

// One bucket of four gradients: a cast and a division on their way, a cast back; then four copies out of the bucket and
// four updates.
TEST_F(Limits, DecompressionIsNoUpdate) {
  strategy.compression = {Compression::Kind::bf16};
  predict_for(test::mlp({4, 8, 3}, 2), "data=2", true);
  EXPECT_NEAR(at("gradient compression").value, 3e-3, 1e-9);
  EXPECT_EQ(at("gradient compression").relief, "a faster network, which needs none");
  EXPECT_NEAR(at("weight update").value, 8e-3, 1e-9);
  EXPECT_NEAR(prediction.breakdown.optimizer.value(), 9e-3, 1e-9);
}

// The squares of both ranks' gradients: one number, between two nodes. No gradient is exchanged.
TEST_F(Limits, NormsAreNoGradients) {
  strategy.clip = 1;
  predict_for(test::mlp({4, 8, 3}, 2), "tensor=2");
  const Network network = test::cluster(8, 1, BytesPerSecond{1e9}).network;
  EXPECT_NEAR(at("norms of gradients").value,
              network.collective(Collective::all_reduce, Bytes{4}, {1, 2, 1}).time.time.value(), 1e-12);
  EXPECT_EQ(at("norms of gradients").where, "tensor");
  EXPECT_EQ(at("norms of gradients").relief, "no --clip");
  EXPECT_EQ(find("gradient exchange"), nullptr);
}

// Two tensor ranks in each of two nodes: both exchange their gradients, (64 + 1) x 128 + (128 + 0) x 16 + 16 elements, through
// the NIC of their node at once.
TEST_F(Limits, GroupsShareNics) {
  const Graph graph = test::mlp({64, 256, 16}, 2);
  const Cluster cluster = test::cluster(2, 2);
  strategy.exchange = GradientExchange::at_end;
  strategy.global_batch = 4;
  ASSERT_TRUE(parse_parallel("data=2,tensor=2", strategy).has_value());
  predict_on(graph, cluster);
  const Bytes gradients{4.0 * (65 * 128 + 128 * 16 + 16)};
  const auto exchange = [&](int groups) {
    return cluster.network.collective(Collective::all_reduce, gradients, {1, 2, groups}).time.time.value();
  };
  EXPECT_GT(exchange(2), exchange(1));
  EXPECT_NEAR(at("network congestion").value, exchange(2) - exchange(1), 1e-12);
  EXPECT_EQ(at("network congestion").where, "2 groups of data on a node's NICs");
  EXPECT_EQ(at("network congestion").relief, "groups within a node (--order, other degrees); more NICs");
  strategy.tensor = 1;
  strategy.global_batch = 2;
  predict_on(graph, test::cluster(2, 1));
  EXPECT_EQ(find("network congestion"), nullptr);
}

TEST_F(Limits, OthersSlowAPlanDown) {
  TopologySpec spec = test::cluster(2, 1).network.topology().spec();
  Cluster quiet = test::cluster(2, 1), busy = quiet;
  spec.nic_background = 0.5;
  busy.network = Network(*Topology::make(spec), {}, {});
  strategy.exchange = GradientExchange::at_end;
  strategy.data = 2;
  strategy.global_batch = 4;
  const Graph graph = test::mlp({64, 256, 16}, 2);
  predict_on(graph, quiet);
  const Seconds alone = prediction.step_time;
  predict_on(graph, busy);
  EXPECT_NEAR(at("network congestion").value, (prediction.step_time - alone).value(), 1e-12);
  EXPECT_EQ(at("network congestion").where, "others use 50 % of each NIC");
  EXPECT_EQ(at("network congestion").relief, "more NICs; links that others use less");
}

// 2 x 4 features and 2 targets: 32 + 16 bytes at 48 B/s take a second, beside which the step runs.
TEST_F(Limits, SamplesAreWaitedFor) {
  Cluster cluster = test::cluster(1, 1);
  cluster.storage_read = BytesPerSecond{48};
  strategy.global_batch = 2;
  predict_on(test::mlp({4, 8, 3}, 2), cluster);
  const Seconds step = prediction.step_time;
  strategy.data_source = DataSource::storage;
  predict_on(test::mlp({4, 8, 3}, 2), cluster);
  EXPECT_NEAR(at("reading samples").value, 1.0 - step.value(), 1e-9);
  EXPECT_EQ(at("reading samples").relief, "faster storage; samples in memory (--data-from memory)");
}

TEST_F(Limits, StateThatLiesElsewhereIsWaitedFor) {
  strategy.optimizer = OptimizerKind::adam;
  strategy.optimizer_tier = Tier::host;
  predict_for(test::mlp({64, 256, 16}, 2), "data=1");
  EXPECT_GT(at("offloading").value, 0);
  EXPECT_DOUBLE_EQ(at("offloading").value, prediction.breakdown.offload_exposed.value());
  EXPECT_EQ(at("offloading").where, "optimizer");
  EXPECT_EQ(at("offloading").relief, "a faster link to the host; less that lies outside (--offload)");
}

// A few hundred bytes out of one segment of 2 MiB.
TEST_F(Limits, AnAllocatorHoldsMoreThanIsAlive) {
  Device device = test::cpu_device();
  device.backend = Backend::cuda;
  device.framework_base = Bytes{512e6};
  strategy.global_batch = 2;
  predict_on(test::mlp({4, 8, 3}, 2), test::cluster(1, 1, BytesPerSecond{1e9}, {}, device));
  const Bytes alive = prediction.memory.total - prediction.memory.framework, segment{2.0 * 1024 * 1024};
  EXPECT_LT(alive, Bytes{100e3});
  EXPECT_DOUBLE_EQ(at("memory fragmentation").value, (segment - alive).value());
  EXPECT_DOUBLE_EQ(at("memory fragmentation").share, (segment - alive) / (segment + prediction.memory.framework));
}

// Each of these would help, and says so in the words of the command line.
TEST_F(Limits, EachSaysWhatWouldRelieveIt) {
  const auto relief = [&](std::string_view name) { return at(name).relief; };
  predict_for(zoo("gpt2", 1), "data=2,tensor=4");
  EXPECT_EQ(relief("batch"), "a larger batch; replicas of more devices");
  EXPECT_EQ(relief("number of heads"), "more heads; another axis beside it");
  EXPECT_EQ(relief("redundant work"), "extents that 4 divides; sequence=; a lower degree");
  for (const Limit& limit : prediction.limits) EXPECT_NE(limit.relief, "") << limit.name;
  strategy = {};
  predict_for(test::mlp({4, 8, 3}, 2), "filter=2", true);
  EXPECT_EQ(relief("redundant work"), "extents that 2 divides; a lower degree");
  EXPECT_EQ(relief("memory"), "split weights");
  EXPECT_EQ(relief("weight update"), "split weights; larger batches");
  strategy.optimizer = OptimizerKind::adam;
  predict_for(test::mlp({4, 8, 3}, 2), "filter=2");
  EXPECT_EQ(relief("memory"), "split weights; a lighter optimizer");
  strategy = {};
  predict_for(test::mlp({4, 8, 3}, 1024), "data=1");
  EXPECT_EQ(relief("memory"), "smaller micro-batches; replicas of more devices");
  strategy = {};
  strategy.recompute = Recompute::full;
  strategy.accumulation = 2;
  predict_for(zoo("gpt2", 4), "pipeline=2");
  EXPECT_EQ(relief("pipeline bubble"),
            "more micro-batches; fewer stages; another order of passes (--schedule interleaved:2, zero-bubble)");
  EXPECT_EQ(relief("pipeline links"), "cuts where less crosses; stages nearer to each other; --schedule gpipe");
  EXPECT_THAT(relief("recomputation"), testing::HasSubstr("smaller micro-batches"));
  EXPECT_EQ(relief("number of micro-batches"), "a larger batch");
  for (const Limit& limit : prediction.limits) EXPECT_NE(limit.relief, "") << limit.name;
}

// Nobody has less than one sample at once, and what is done already, or has nothing to work on, is no remedy.
TEST_F(Limits, NothingIsSaidThatDoesNotSuit) {
  const auto relief = [&](std::string_view name) { return at(name).relief; };
  strategy.recompute = Recompute::full;
  predict_for(zoo("gpt2", 1), "pipeline=2");  // and one micro-batch, where interleaved stages take two
  EXPECT_EQ(relief("recomputation"), "replicas of more devices, which can keep more");
  EXPECT_EQ(relief("pipeline bubble"), "fewer stages; another order of passes (--schedule zero-bubble)");
  strategy = {.schedule = PipelineSchedule::zero_bubble};
  predict_for(zoo("gpt2", 1), "pipeline=2");
  EXPECT_EQ(relief("pipeline bubble"), "fewer stages");
  strategy = {.exchange = GradientExchange::at_end};
  predict_for(test::mlp({4, 8, 3}, 2), "data=2");
  EXPECT_EQ(relief("gradient exchange"), "an exchange beside backward (no --no-overlap); a faster network");
  strategy = {.optimizer = OptimizerKind::lamb};
  predict_for(test::mlp({4, 8, 3}, 2), "tensor=2");
  EXPECT_EQ(relief("norms of gradients"), "an optimizer that takes no norms of tensors");
  EXPECT_EQ(relief("layer-wise collectives"), "a lower degree; ranks nearer to each other");
  predict_on(test::mlp({4, 8, 3}, 2), test::cluster(1, 2));
  EXPECT_EQ(relief("layer-wise collectives"), "a lower degree");
  strategy = {};
  predict_for(zoo("gpt2", 1), "sequence=4");
  EXPECT_THAT(relief("layer-wise collectives"), testing::HasSubstr("--overlap-tensor"));
  strategy.overlap_tensor = true;
  predict_for(zoo("gpt2", 1), "sequence=4");
  EXPECT_THAT(relief("layer-wise collectives"), testing::Not(testing::HasSubstr("--overlap-tensor")));
  strategy = {};
  predict_for(zoo("small-cnn", 2), "spatial=2x2");
  EXPECT_EQ(relief("spatial extent"), "larger images");
  EXPECT_EQ(relief("halo exchange"), "a lower degree; larger images");
  strategy = {};
  predict_for(zoo("small-cnn", 2), "spatial=4x1");
  EXPECT_EQ(relief("halo exchange"), "a lower degree; squarer parts; larger images");
}

TEST_F(Limits, OneDeviceRepeatsNothing) {
  predict_for(test::mlp({4, 8, 3}, 2), "data=1");
  ASSERT_EQ(prediction.limits.size(), 2U);
  EXPECT_EQ(prediction.limits[0].name, "memory");
  EXPECT_EQ(prediction.limits[1].name, "weight update");
}

}  // namespace
}  // namespace sibyl
