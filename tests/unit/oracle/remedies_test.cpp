// What would relieve a bottleneck: what this plan does not do yet and its device can do; never a number.
#include "oracle/remedies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "oracle/bottleneck_kind.h"
#include "oracle/predict.h"
#include "tests/support/clusters.h"
#include "tests/support/graphs.h"

namespace sibyl {
namespace {

using testing::HasSubstr;
using testing::Not;

// A linear layer, and behind it a ReLU and a tanh, which can be one kernel.
Graph with_activations_in_a_row() {
  const auto tensor = [](std::string name, Shape shape, TensorKind kind) {
    return Tensor{std::move(name), std::move(shape), DType::f32, kind, 0, {}, 0};
  };
  Graph graph;
  const TensorId x = graph.add(tensor("x", {2, 4}, TensorKind::input));
  const TensorId weight = graph.add(Tensor{"fc.weight", {3, 4}, DType::f32, TensorKind::parameter, {}, {}, 0});
  const TensorId y = graph.add(tensor("y", {2, 3}, TensorKind::activation));
  const TensorId r = graph.add(tensor("r", {2, 3}, TensorKind::activation));
  const TensorId t = graph.add(tensor("t", {2, 3}, TensorKind::activation));
  const TensorId targets = graph.add(Tensor{"targets", {2}, DType::i64, TensorKind::input, 0, {}, 3});
  graph.loss = graph.add(Tensor{"loss", {}, DType::f32, TensorKind::activation, {}, {}, 0});
  graph.add(Operation{"fc", Linear{}, {x, weight}, {y}, {}});
  graph.add(Operation{"relu", Unary{UnaryKind::relu}, {y}, {r}, {}});
  graph.add(Operation{"tanh", Unary{UnaryKind::tanh}, {r}, {t}, {}});
  graph.add(Operation{"loss", CrossEntropy{1}, {t, targets}, {graph.loss}, {}});
  EXPECT_TRUE(graph.finish(2).has_value());
  return graph;
}

struct Remedies : testing::Test {
  Graph graph = test::mlp({4, 8, 3}, 2);
  Strategy strategy{.global_batch = 2};
  Device device = test::cpu_device();
  std::vector<Limit> limits;

  Remedies() {
    device.backend = Backend::cuda;
    device.peak = {{DType::f32, FlopsPerSecond{10e12}}, {DType::f16, FlopsPerSecond{80e12}}};
  }
  std::string of(const std::string& name) const {
    const Cluster cluster = test::cluster(8, 1, BytesPerSecond{1e9}, {}, device);
    const Plan plan = make_plan(graph, strategy).value();
    const std::vector<PricedStage> priced;
    const PipelineWaits waits;
    const Prediction prediction;
    return remedies({name, 0.5, 0.25}, {graph, cluster, plan, priced, 0, waits, Seconds{1}, prediction}, limits);
  }
};

TEST_F(Remedies, OfArithmetic) {
  const std::string name = "compute: linear";
  EXPECT_EQ(of(name), "fewer bits (--precision fp16); devices that compute faster; the same batch on more devices");
  device.peak[DType::tf32] = FlopsPerSecond{40e12};
  device.peak[DType::bf16] = FlopsPerSecond{80e12};
  device.peak[DType::f8e4m3] = FlopsPerSecond{160e12};
  EXPECT_THAT(of(name), HasSubstr("(--precision tf32, fp16, bf16)"));
  strategy.precision = Precision::bf16;  // fp16 is no faster, and of fp8 only linear layers have anything
  EXPECT_THAT(of(name), HasSubstr("(--precision fp8)"));
  EXPECT_THAT(of("compute: convolution"), Not(HasSubstr("--precision")));
  strategy.precision = Precision::fp8;
  EXPECT_THAT(of(name), Not(HasSubstr("--precision")));
  EXPECT_THAT(of(name), Not(HasSubstr("--recompute")));
  strategy.recompute = Recompute::full;
  EXPECT_THAT(of(name), HasSubstr("--recompute"));
  strategy.data = 2;  // a sample each: nobody else can take one
  EXPECT_THAT(of(name), HasSubstr("operations that more devices share"));
}

TEST_F(Remedies, OfMemoryBandwidth) {
  EXPECT_EQ(
      of("memory bandwidth: unary"),
      "values of two bytes (--precision fp16); devices with more memory bandwidth; the same batch on more devices");
  // autocast leaves it in f32
  EXPECT_EQ(of("memory bandwidth: cross_entropy"),
            "devices with more memory bandwidth; the same batch on more devices");
  strategy.precision = Precision::fp16;
  EXPECT_EQ(of("memory bandwidth: normalization"),
            "devices with more memory bandwidth; the same batch on more devices");
  strategy.optimizer = OptimizerKind::adam;
  strategy.data = 2;
  EXPECT_EQ(of("memory bandwidth: optimizer_update"),
            "one kernel for the update (--fused-update); state that replicas share (--zero 1); a lighter optimizer; "
            "devices with more memory bandwidth");
  strategy.framework = Framework::pytorch_ddp;  // which has none of it
  EXPECT_THAT(of("memory bandwidth: optimizer_update"), Not(HasSubstr("--zero")));
  strategy.framework = Framework::sibyl;
  strategy.fused_update = true;
  strategy.zero = 1;
  strategy.optimizer = OptimizerKind::sgd;
  EXPECT_EQ(of("memory bandwidth: optimizer_update"), "devices with more memory bandwidth");
}

// Of one elementwise operation between two layers nothing is fused.
TEST_F(Remedies, FusingIsForModelsWithSomethingToFuse) {
  EXPECT_THAT(of("host dispatch"), Not(HasSubstr("--fused-pointwise")));
  graph = with_activations_in_a_row();
  EXPECT_EQ(of("host dispatch"),
            "more samples a device for the same launches; fewer kernels (--fused-pointwise); a host that "
            "launches faster");
  EXPECT_EQ(of("memory bandwidth: unary"),
            "values of two bytes (--precision fp16); operations in one kernel (--fused-pointwise); devices with more "
            "memory bandwidth; the same batch on more devices");
  EXPECT_THAT(of("memory bandwidth: cross_entropy"), Not(HasSubstr("--fused-pointwise")));
  strategy.fused_pointwise = true;
  EXPECT_THAT(of("host dispatch"), Not(HasSubstr("--fused-pointwise")));
  EXPECT_THAT(of("memory bandwidth: unary"), Not(HasSubstr("--fused-pointwise")));
}

TEST_F(Remedies, OfDispatch) {
  EXPECT_EQ(of("host dispatch"), "more samples a device for the same launches; a host that launches faster");
  strategy.accumulation = 2;
  EXPECT_THAT(of("host dispatch"), HasSubstr("fewer, larger micro-batches; "));
}

// What is a limit, too, is relieved by the same; of two the larger.
TEST_F(Remedies, OfWhatLimitsSay) {
  limits = {{"layer-wise collectives", "", 0.2, "s", 0.2, "a lower degree"},
            {"halo exchange", "", 0.3, "s", 0.3, "squarer parts"},
            {"gradient exchange", "", 0.1, "s", 0.1, "more samples"},
            {"pipeline bubble", "", 0.1, "s", 0.1, "more micro-batches"}};
  EXPECT_EQ(of("network: exchanges between operations"), "squarer parts");
  EXPECT_EQ(of("network: data all-reduce"), "more samples");
  EXPECT_EQ(of("pipeline bubble: few micro-batches for as many stages"), "more micro-batches");
  EXPECT_EQ(of("network: between pipeline stages"), "a faster network");  // no limit of that name
  EXPECT_EQ(of("a name of another version"), "");
}

// Each kind's name is told from those that begin alike.
TEST(BottleneckKinds, AreReadFromTheirNames) {
  using enum BottleneckKind;
  for (const BottleneckKind kind : {compute, memory_bandwidth, dispatch, exchanges, stage_links, gradients, imbalance,
                                    bubble, reading, storage, host_link}) {
    const std::string name = bottleneck_name(kind, "what");
    const auto parts = parts_of_bottleneck(name);
    ASSERT_TRUE(parts.has_value()) << name;
    EXPECT_EQ(parts->kind, kind) << name;
    EXPECT_EQ(parts->what, "what");
  }
  EXPECT_EQ(bottleneck_name(gradients, "all-reduce"), "network: data all-reduce");
  EXPECT_FALSE(parts_of_bottleneck("compute").has_value());
}

// Every prediction says it.
TEST_F(Remedies, ArePartOfAPrediction) {
  const Cluster cluster = test::cluster(8, 1, BytesPerSecond{1e9}, {}, device);
  for (const char* parallel : {"data=1", "data=2", "filter=2", "pipeline=2"}) {
    strategy = {};
    ASSERT_TRUE(parse_parallel(parallel, strategy).has_value());
    strategy.global_batch = 2 * strategy.data;
    const auto p = predict(graph, strategy, cluster);
    ASSERT_TRUE(p.has_value()) << parallel;
    EXPECT_NE(p->bottleneck.relieved_by, "") << parallel << ", " << p->bottleneck.name;
  }
}

}  // namespace
}  // namespace sibyl
