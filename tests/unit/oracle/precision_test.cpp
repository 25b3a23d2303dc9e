// What lower precisions keep in full: autocast's masters, gradients and state, and fp16's loss scaler.
#include <gtest/gtest.h>

#include "oracle/memory/footprint.h"
#include "oracle/plan/precision.h"
#include "oracle/predict.h"
#include "tests/support/clusters.h"
#include "tests/support/graphs.h"
#include "tests/support/zoo.h"

namespace sibyl {
namespace {

Strategy adam_in(Precision precision, int replicas = 1) {
  Strategy strategy;
  strategy.data = replicas;
  strategy.global_batch = 2 * replicas;
  strategy.precision = precision;
  strategy.optimizer = OptimizerKind::adam;
  return strategy;
}

MemoryBreakdown peak(const Graph& graph, const Strategy& strategy) {
  const Cluster cluster = test::cluster(strategy.data, 1);
  const auto plan = make_plan(graph, strategy);
  const Stage& stage = plan->stages.at(0);
  PricedStage priced = price(*plan, stage, cluster);
  for (PricedKernel& kernel : priced.prices) kernel.estimate.workspace = Bytes{};
  return footprint(stage, priced, strategy, cluster.kernels.device()).peak;
}

// The same layer (2112 parameters) held in two bytes: weights and gradients, which lie in the bucket, of 2 B each; Adam's
// two tensors and the master of 4 B each.
TEST(Precision, HalfWeightsLieBesideTheirMasters) {
  const Graph graph = test::mlp({32, 64}, 2);
  for (const Precision precision : {Precision::fp16, Precision::bf16}) {
    Strategy strategy = adam_in(precision, 2);
    strategy.half_weights = true;
    const MemoryBreakdown memory = peak(graph, strategy);
    EXPECT_DOUBLE_EQ(memory.weights.value(), 2 * 2112) << to_string(precision);
    EXPECT_DOUBLE_EQ(memory.optimizer.value(), 3 * 4 * 2112);
    EXPECT_DOUBLE_EQ(memory.gradients.value(), 2 * 2112);
    EXPECT_DOUBLE_EQ(memory.communication.value(), 0);
  }
}

// Gradients are 4 B each where they are summed so, whoever exchanges them, and travel so.
TEST(Precision, GradientsOfFourBytesBesideWeightsOfTwo) {
  const Graph graph = test::mlp({32, 64}, 2);
  Strategy strategy = adam_in(Precision::bf16, 2);
  strategy.half_weights = strategy.fp32_gradients = true;
  const MemoryBreakdown memory = peak(graph, strategy);
  EXPECT_DOUBLE_EQ(memory.weights.value(), 2 * 2112);
  EXPECT_DOUBLE_EQ(memory.optimizer.value(), 3 * 4 * 2112);
  EXPECT_DOUBLE_EQ(memory.gradients.value(), 4 * 2112);
  EXPECT_DOUBLE_EQ(memory.communication.value(), 0);
  // Of two ranks each sends half of 2112 twice in a ring.
  const auto sent = [&] { return bytes_by_kind(make_plan(graph, strategy).value(), 0, Algorithm::ring); };
  EXPECT_EQ(sent().gradients, 4 * 2112);
  // With ZeRO 1 halves of gradients are scattered, and halves of weights gathered.
  strategy.zero = 1;
  EXPECT_EQ(sent().gradients, 4 * 1056);
  EXPECT_EQ(sent().parameters, 2 * 1056);
}

// Every micro-batch's gradients are cast to what they are summed in, none is added in two bytes; once a step masters
// become weights again, and that is all.
TEST(Precision, GradientsOfFourBytesAreCastAsTheyAreMade) {
  const Graph graph = test::mlp({32, 64}, 2);
  Strategy strategy = adam_in(Precision::bf16);
  strategy.half_weights = strategy.fp32_gradients = true;
  strategy.accumulation = 2;
  const auto plan = make_plan(graph, strategy);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  const StageKernels kernels = kernels_of(plan->stages.at(0), Backend::cuda);
  std::vector<std::pair<Shape, DType>> casts;
  for (const StageKernels::OfStep& step : kernels.steps) {
    EXPECT_TRUE(step.parameter_sums.empty());
    for (const StageKernels::Index key : step.parameter_casts) {
      const Signature& s = kernels.keys[key].signature;
      EXPECT_EQ(std::get<Cast>(s.attributes).to, DType::f32);
      casts.emplace_back(s.inputs.at(0), s.dtype);
    }
  }
  EXPECT_THAT(casts,
              testing::UnorderedElementsAre(std::pair(Shape{64, 32}, DType::bf16), std::pair(Shape{64}, DType::bf16)));
  ASSERT_EQ(kernels.masters.size(), 1U);
  const Signature& back = kernels.keys[kernels.masters[0]].signature;
  EXPECT_EQ(std::pair(back.dtype, std::get<Cast>(back.attributes).to), std::pair(DType::f32, DType::bf16));
}

// Gradients of two bytes are cast to their masters' type and masters to two bytes, also in a stage whose first
// parameter is a batch normalisation's, which has four. A stage of such parameters alone casts nothing.
TEST(Precision, MastersAreCastWhateverAStageBeginsWith) {
  const Graph graph = test::residual_network(2, 12, 16, 4);
  std::vector<std::string> norms;
  for (const Operation& operation : graph.operations())
    if (std::holds_alternative<Normalization>(operation.attributes)) norms.push_back(operation.name);
  ASSERT_GE(norms.size(), 2U);
  Strategy strategy = adam_in(Precision::bf16);
  strategy.half_weights = true;
  strategy.pipeline = 2;
  strategy.accumulation = 2;
  strategy.stage_starts = {norms[norms.size() / 2]};
  const auto plan = make_plan(graph, strategy);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  const Stage& later = plan->stages.at(1);
  ASSERT_EQ(later[later.updates.front().parameter].dtype, DType::f32);
  const StageKernels kernels = kernels_of(later, Backend::cuda);
  ASSERT_EQ(kernels.masters.size(), 2U);
  const auto cast = [&](std::size_t i) {
    const Signature& s = kernels.keys[kernels.masters[i]].signature;
    return std::pair(s.dtype, std::get<Cast>(s.attributes).to);
  };
  EXPECT_EQ(cast(0), std::pair(DType::bf16, DType::f32));
  EXPECT_EQ(cast(1), std::pair(DType::f32, DType::bf16));

  Stage norms_alone = later;
  std::erase_if(norms_alone.updates, [&](const Update& update) { return later[update.parameter].dtype != DType::f32; });
  EXPECT_TRUE(kernels_of(norms_alone, Backend::cuda).masters.empty());
}

// One layer of 64 x 32 weights and 64 shifts: 8192 + 256 B of masters, twice that of Adam's state, and f32 gradients in the
// bucket. Whatever is computed in.
TEST(Precision, MastersStateAndBucketsStayInFull) {
  const Graph graph = test::mlp({32, 64}, 2);
  for (const Precision precision : {Precision::fp32, Precision::fp16, Precision::bf16}) {
    const MemoryBreakdown memory = peak(graph, adam_in(precision, 2));
    EXPECT_DOUBLE_EQ(memory.weights.value(), 8448) << to_string(precision);
    EXPECT_DOUBLE_EQ(memory.optimizer.value(), 16896);
    EXPECT_DOUBLE_EQ(memory.communication.value(), 8448);
  }
}

// Beside the masters lies a copy in two bytes of each, made in forward: 4096 B of weights and 128 B of shifts.
TEST(Precision, TheCopyOfAWeightIsAnActivation) {
  const Graph graph = test::mlp({32, 64}, 2);
  const auto plan = make_plan(graph, adam_in(Precision::bf16));
  const Stage& stage = plan->stages.at(0);
  double copies = 0;
  for (const Step& step : stage.steps) {
    const auto& compute = std::get<Compute>(step);
    if (!std::holds_alternative<Cast>(compute.attributes) || stage[compute.inputs[0]].kind != TensorKind::parameter)
      continue;
    const LocalTensor& copy = stage[compute.outputs[0]];
    EXPECT_EQ(copy.kind, TensorKind::activation);
    copies += static_cast<double>(element_count(copy.shape)) * size_in_bytes(copy.dtype);
  }
  EXPECT_DOUBLE_EQ(copies, 4096 + 128);
}

// A fused update reads p, g and two states of 4 bytes and writes p and the states: 28 B an element, in fp16 too.
TEST(Precision, UpdatesMoveFullWords) {
  const Graph graph = test::mlp({32, 64}, 2);
  Strategy fused = adam_in(Precision::fp16);
  fused.fused_update = true;
  const auto plan = make_plan(graph, fused);
  const StageKernels kernels = kernels_of(plan->stages.at(0), Backend::cuda);
  ASSERT_EQ(kernels.updates.size(), 1U);
  const Work work = work_of(kernels.keys[kernels.updates[0]], Backend::cuda);
  EXPECT_DOUBLE_EQ(work.read.value() + work.written.value(), 28.0 * (2048 + 64));
}

// Only f16's gradients are scaled: they are read and written once more, 2112 of 4 bytes (and the scale).
TEST(Precision, TheLossScalerPassesOverAllGradients) {
  const Graph graph = test::mlp({32, 64}, 2);
  for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::bf16})
    EXPECT_TRUE(kernels_of(make_plan(graph, adam_in(precision))->stages.at(0), Backend::cuda).unscale.empty());
  const auto plan = make_plan(graph, adam_in(Precision::fp16));
  EXPECT_EQ(kernels_of(plan->stages.at(0), Backend::cpu).unscale.size(), 2U);  // tensor by tensor
  const StageKernels kernels = kernels_of(plan->stages.at(0), Backend::cuda);
  ASSERT_EQ(kernels.unscale.size(), 1U);
  const Work work = work_of(kernels.keys[kernels.unscale[0]], Backend::cuda);
  EXPECT_NEAR(work.read.value(), 4 * 2112, 4);
  EXPECT_DOUBLE_EQ(work.written.value(), 4 * 2112);
}

Strategy llama_in(Precision precision) {
  Strategy strategy;
  strategy.global_batch = 2;
  strategy.precision = precision;
  strategy.half_weights = strategy.fused_pointwise = true;
  return strategy;
}

// Of llama-mini's four layers linear layers read two norms, 256 wide, and a product of 704, and the head reads the last
// norm: of 256 tokens they keep one byte an element, not two. What attention made, 256 wide, it keeps itself in two; so
// the layer behind it keeps one byte more where it would have shared them.
TEST(Precision, LinearLayersKeepWhatTheyReadInFp8) {
  const Graph graph = test::zoo("llama-mini", 2);
  const Cluster cluster = load_cluster("dgx-h100").value();
  const auto activations = [&](Precision precision) {
    return predict(graph, llama_in(precision), cluster)->memory.activations.value();
  };
  EXPECT_DOUBLE_EQ(activations(Precision::bf16) - activations(Precision::fp8),
                   256.0 * (4 * (2 * 256 + 704 - 256) + 256));
}

// Sequence parallelism gathers before linear layers and scatters sums behind them: parts are gathered of one byte,
// forward and backward, and sums taken of two.
TEST(Precision, GathersForLinearLayersAreOfFp8) {
  const Graph graph = test::zoo("llama-mini", 2);
  Strategy strategy = llama_in(Precision::fp8);
  strategy.tensor = 2, strategy.sequence = true;
  const Plan plan = make_plan(graph, strategy).value(), wide = [&] {
    strategy.precision = Precision::bf16;
    return make_plan(graph, strategy).value();
  }();
  const auto sent = [](const Plan& p, Motion motion) {
    std::int64_t bytes = 0, count = 0;
    const Stage& stage = p.stages.front();
    for (const Step& step : stage.steps)
      if (const auto* exchange = std::get_if<Exchange>(&step))
        for (const Pass pass : {Pass::forward, Pass::backward})
          if ((pass == Pass::forward ? exchange->forward : exchange->backward).motion == motion)
            bytes += bytes_sent(p, stage, *exchange, 0, pass, Algorithm::ring), ++count;
    return std::pair(bytes, count);
  };
  const auto [scattered, scatters] = sent(wide, Motion::reduce_scatter);
  const auto [gathered, gathers] = sent(wide, Motion::all_gather);
  EXPECT_EQ(sent(plan, Motion::reduce_scatter), std::pair(scattered, scatters));
  ASSERT_GE(gathers, 2 * (2 * 4 + 1));
  // But for what embeddings and the loss gather, half.
  const std::int64_t one = 2 * 128 * 256 / 2;  // elements of a rank's part of [2, 128, 256]
  EXPECT_EQ(gathered - sent(plan, Motion::all_gather).first, one * (2 * 4 + 1 + 2 * 4));
}

// torch.autocast's lists for CUDA: layer_norm and group_norm are taken to f32, batch_norm and instance_norm run in the
// type of their input. So do their parts on ranks that share an image of 16 channels: an instance norm has 16 groups.
TEST(Precision, NormsOfInstancesRunInTheTypeOfTheirInput) {
  Stage stage;
  stage.tensors.resize(1);
  stage.tensors[0].shape = {2, 16, 8, 8};
  stage.tensors[0].dtype = DType::bf16;
  const auto type_of = [&](const Attributes& attributes) {
    return operation_type(stage, Compute{{}, attributes, {LocalTensorId{0}}, {}}, {DType::bf16}, Precision::bf16);
  };
  EXPECT_EQ(type_of(Normalization{NormalizationKind::batch}), DType::bf16);
  EXPECT_EQ(type_of(Normalization{NormalizationKind::instance}), DType::bf16);
  EXPECT_EQ(type_of(Normalization{NormalizationKind::layer}), DType::f32);
  EXPECT_EQ(type_of(Normalization{NormalizationKind::group, 1, 4}), DType::f32);
  EXPECT_EQ(type_of(NormStatistics{0}), DType::bf16);
  EXPECT_EQ(type_of(NormStatistics{16}), DType::bf16);
  EXPECT_EQ(type_of(ApplyNorm{16}), DType::bf16);
  EXPECT_EQ(type_of(NormStatistics{4}), DType::f32);
  EXPECT_EQ(type_of(ApplyNorm{4}), DType::f32);
}

// Between the convolutions of a U-Net no number is cast: weights once each, the image, and the logits for the loss.
TEST(Precision, ImagesBetweenConvolutionsStayInTwoBytes) {
  const Graph graph = test::zoo("nnunet-2d", 2);
  const auto plan = make_plan(graph, adam_in(Precision::bf16));
  ASSERT_TRUE(plan.has_value());
  const Stage& stage = plan->stages.at(0);
  int to_full = 0;
  for (const Step& step : stage.steps)
    if (const auto* compute = std::get_if<Compute>(&step))
      if (const auto* cast = std::get_if<Cast>(&compute->attributes); cast && cast->to == DType::f32) ++to_full;
  EXPECT_EQ(to_full, 1);
}

}  // namespace
}  // namespace sibyl
