// What fused norms, converted images and converted norms do to a plan, on graphs small enough to count by hand.
#include "oracle/plan/image_kernels.h"

#include <gtest/gtest.h>

#include "models/onnx/import.h"
#include "models/zoo/zoo.h"
#include "oracle/cost/conversions.h"
#include "oracle/cost/kernels.h"

namespace sibyl {
namespace {

Plan plan_of(const std::string& zoo, const Strategy& strategy) {
  ImportOptions options;
  options.batch = 8;
  const Import import = inspect_onnx_bytes(*zoo_model_bytes(zoo), zoo, options).value();
  return make_plan(import.graph, strategy).value();
}

Strategy strategy(bool fused) {
  Strategy s;
  s.global_batch = 8;
  s.fused_norms = fused;
  return s;
}

struct Fused {
  int relus = 0, additions = 0, others = 0, own_relus = 0;
  bool operator==(const Fused&) const = default;
};

Fused fused_in(const Stage& stage) {
  Fused counts;
  for (const Step& step : stage.steps) {
    const auto* compute = std::get_if<Compute>(&step);
    if (compute == nullptr) continue;
    const bool relu = std::holds_alternative<Unary>(compute->attributes);
    if (!compute->fused) {
      counts.own_relus += relu ? 1 : 0;
      continue;
    }
    if (relu)
      ++counts.relus;
    else
      ++(std::holds_alternative<Binary>(compute->attributes) ? counts.additions : counts.others);
  }
  return counts;
}

// 16 blocks of three ReLUs and the stem's: 49, all behind a batch-norm or behind the addition of a block's last one to
// its shortcut. A projected shortcut's batch-norm leads to an addition as well; each addition is fused once.
TEST(FusedNorms, TakeEveryReluAndAdditionOfResNet50) {
  EXPECT_EQ(fused_in(plan_of("resnet50", strategy(true)).stages[0]), (Fused{49, 16, 0, 0}));
  EXPECT_EQ(fused_in(plan_of("resnet50", strategy(false)).stages[0]), (Fused{0, 0, 0, 49}));
}

// Pre-activated: the last batch-norm of a unit lies before its convolution, so additions stay; the stem.s ReLU, 48 of
// units and the last follow a norm.
TEST(FusedNorms, LeaveAdditionsThatNoNormLeadsTo) {
  EXPECT_EQ(fused_in(plan_of("resnet50-v2", strategy(true)).stages[0]), (Fused{50, 0, 0, 0}));
}

// VGG has no norms.
TEST(FusedNorms, NeedNorms) { EXPECT_EQ(fused_in(plan_of("vgg16", strategy(true)).stages[0]).relus, 0); }

// A fused ReLU launches nothing; a fused addition moves half of what a copy of its result moves, in each pass: the
// first block's result is 8 x 256 x 56 x 56, 6422528 numbers.
TEST(FusedNorms, LaunchNothingButWhatTheyMove) {
  const Plan plan = plan_of("resnet50", strategy(true));
  const StageKernels kernels = kernels_of(plan.stages[0], Backend::cuda);
  bool seen = false;
  for (std::size_t i = 0; i < plan.stages[0].steps.size(); ++i) {
    const auto* compute = std::get_if<Compute>(&plan.stages[0].steps[i]);
    if (compute == nullptr || !compute->fused) continue;
    const auto& step = kernels.steps[i];
    if (std::holds_alternative<Unary>(compute->attributes)) {
      EXPECT_FALSE(step.forward || step.backward);
      continue;
    }
    ASSERT_TRUE(step.forward && step.backward);
    if (seen) continue;
    seen = true;
    EXPECT_EQ(to_string(kernels.keys[*step.forward]), "forward copy[3211264]->[3211264]:f32");
    EXPECT_EQ(*step.forward, *step.backward);
  }
  EXPECT_TRUE(seen);
}

Signature convolution(DType dtype, std::int64_t groups) {
  Convolution op;
  op.kernel = {3, 3};
  op.stride = op.dilation = op.pad_begin = op.pad_end = {1, 1};
  op.groups = groups;
  return {op, {{8, 64, 28, 28}, {128, 64 / groups, 3, 3}}, {{8, 128, 28, 28}}, dtype};
}

TEST(ConvertedImages, AreWhatTensorCoresReadAndWrite) {
  const Shape x = {8, 64, 28, 28}, y = {8, 128, 28, 28};
  EXPECT_EQ(converted_images(convolution(DType::f16, 1), Pass::forward, 0), (std::vector<Shape>{x, y}));
  EXPECT_EQ(converted_images(convolution(DType::f16, 32), Pass::backward, 1), (std::vector<Shape>{y, x}));
  EXPECT_EQ(converted_images(convolution(DType::bf16, 1), Pass::backward, 3), (std::vector<Shape>{y, x, x, y}));
  EXPECT_EQ(converted_images(convolution(DType::tf32, 1), Pass::forward, 0), (std::vector<Shape>{x, y}));
}

TEST(ConvertedImages, AreNotOfOtherCoresNorOfDepthwiseKernels) {
  EXPECT_TRUE(converted_images(convolution(DType::f32, 1), Pass::forward, 0).empty());
  EXPECT_TRUE(converted_images(convolution(DType::f16, 64), Pass::forward, 0).empty());
}

// A device of 1 TB/s without samples: a copy of n numbers of f16 takes (4 n bytes / 1e12 + 2 us) * 1.2, a transposition
// 1.2 times that. Forward of the convolution above converts x, 401408 numbers, and y, 802816: 1.44 * (1.605632 +
// 3.211264 + 4) us = 12.69633024 us.
TEST(ConvertedImages, AddTheTimeOfTheirTranspositions) {
  Device device;
  device.memory_bandwidth = BytesPerSecond{1e12};
  device.peak = {{DType::f16, FlopsPerSecond{1e14}}, {DType::f32, FlopsPerSecond{1e13}}};
  const KernelTable table(device, {});
  const KernelKey key{convolution(DType::f16, 1), Pass::forward, 0};
  Strategy plain, converted;
  converted.converted_images = true;
  const double added = (estimate(table, key, converted).time.time - estimate(table, key, plain).time.time).value();
  EXPECT_NEAR(added, 12.69633024e-6, 1e-12);
}

// The same convolution in tf32, FLOPs 2 * 8 * 28 * 28 * 128 * 64 * 9 = 924844032, on a device that nobody measured: 2.5
// times (FLOPs over peak, and 2 us). Where tf32 is computed 10 times as fast as f32, transpositions in f32, 8 bytes
// a number: 1.44 * (3.211264 + 6.422528 + 4) us = 19.63266048 us, are worth it: 2.5 * (9.24844032 + 2) us against 2.5
// * (92.4844032 + 2) us. Where it is computed no faster, f32 needs none.
TEST(ConvertedImages, AreNotMadeForTf32WhereF32IsQuicker) {
  Device device;
  device.backend = Backend::cuda;
  device.memory_bandwidth = BytesPerSecond{1e12};
  device.peak = {{DType::tf32, FlopsPerSecond{1e14}}, {DType::f32, FlopsPerSecond{1e13}}};
  const KernelKey key{convolution(DType::tf32, 1), Pass::forward, 0};
  Strategy converted;
  converted.converted_images = true;
  const auto seconds = [&] { return estimate(KernelTable(device, {}), key, converted).time.time.value(); };
  EXPECT_NEAR(seconds(), 2.5 * 11.24844032e-6 + 19.63266048e-6, 1e-11);
  device.peak[DType::tf32] = FlopsPerSecond{1e13};
  EXPECT_NEAR(seconds(), 2.5 * 94.4844032e-6, 1e-11);
}

Signature norm(NormalizationKind kind, DType dtype) {
  const Shape x = {8, 64, 28, 28};
  return {Normalization{kind}, {x, {64}, {64}}, {x}, dtype};
}

// Forward a batch-norm reads x and writes y, backward it reads x and dy and writes dx: all of one shape.
TEST(ConvertedNorms, AreWhatABatchNormReadsAndWrites) {
  const Shape x = {8, 64, 28, 28};
  const Signature batch = norm(NormalizationKind::batch, DType::f16);
  EXPECT_EQ(converted_for_norm(batch, Pass::forward), (std::vector<Shape>{x, x}));
  EXPECT_EQ(converted_for_norm(batch, Pass::backward), (std::vector<Shape>{x, x, x}));
  EXPECT_TRUE(converted_for_norm(norm(NormalizationKind::instance, DType::f16), Pass::forward).empty());
  EXPECT_TRUE(converted_for_norm(convolution(DType::f16, 1), Pass::backward).empty());
}

// 401408 numbers of f16, on the device without samples of above: each takes 1.44 * (1.605632 + 2) us = 5.19211008 us,
// backward has three. Convolutions are as they were.
TEST(ConvertedNorms, AddTheTimeOfTheirTranspositions) {
  Device device;
  device.memory_bandwidth = BytesPerSecond{1e12};
  device.peak = {{DType::f16, FlopsPerSecond{1e14}}, {DType::f32, FlopsPerSecond{1e13}}};
  const KernelTable table(device, {});
  Strategy plain, converted;
  converted.converted_norms = true;
  const auto added = [&](const KernelKey& key) {
    return (estimate(table, key, converted).time.time - estimate(table, key, plain).time.time).value();
  };
  const Signature batch = norm(NormalizationKind::batch, DType::f16);
  EXPECT_NEAR(added({batch, Pass::forward, 0}), 2 * 5.19211008e-6, 1e-12);
  EXPECT_NEAR(added({batch, Pass::backward, 7}), 3 * 5.19211008e-6, 1e-12);
  EXPECT_EQ(added({convolution(DType::f16, 1), Pass::backward, 3}), 0.0);
}

// Three colours become 8 channels, 81 scores 88; what is aligned, or on other cores, stays as it is.
TEST(PaddedChannels, AreMultiplesOfEight) {
  Convolution op;
  op.kernel = op.stride = op.dilation = {1, 1};
  op.pad_begin = op.pad_end = {0, 0};
  const Signature colours{op, {{2, 3, 9, 9}, {81, 3, 1, 1}, {81}}, {{2, 81, 9, 9}}, DType::f16};
  const auto padded = with_padded_channels(colours);
  ASSERT_TRUE(padded.has_value());
  EXPECT_EQ(padded->inputs, (std::vector<Shape>{{2, 8, 9, 9}, {88, 8, 1, 1}, {88}}));
  EXPECT_EQ(padded->outputs, (std::vector<Shape>{{2, 88, 9, 9}}));
  EXPECT_FALSE(with_padded_channels(convolution(DType::f16, 1)).has_value());
  Signature single = colours;
  single.dtype = DType::f32;
  EXPECT_FALSE(with_padded_channels(single).has_value());
}

}  // namespace
}  // namespace sibyl
