// Operation graphs as cuDNN judges them, for a device that is only described: needs none. cuDNN chooses engines by a
// device's properties, which it can be given as text, so that what is asked of it can be checked anywhere.
#include "profiler/cudnn/graph.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "profiler/cudnn/program.h"
#include "profiler/sweep/gpu_grids.h"

namespace sibyl::cudnn {
namespace {

// An H100 SXM, in the words in which cuDNN 9.19 describes a device.
constexpr const char* h100 =
    R"({"cudaDeviceId":0,"deviceName":"NVIDIA H100 80GB HBM3","deviceVer":900,"driverVer":13000,"isTccDriver":0,)"
    R"("l2CacheSize":52428800,"maxBlockSize":[1024,1024,64],"maxCtasPerSM":32,"maxGridSize":[2147483647,65535,65535],)"
    R"("maxRegistersPerSM":65536,"maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":232448,)"
    R"("maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"memClockRateKHz":2619000,"multiProcessorCount":132,)"
    R"("pciDeviceId":9008,"regsPerBlock":65536,"reservedSharedMemoryPerBlock":1024,"smClockRateKHz":1980000,)"
    R"("supportCoopLaunch":1,"totalGlobalMem":85000000000,"warpSize":32})";

class GraphsOfAnH100 : public testing::Test {
 protected:
  void SetUp() override {
    try {
      target_.emplace(Target::described(h100));
    } catch (const Refusal& refusal) {
      GTEST_SKIP() << "this cuDNN does not read the description: " << refusal.what();
    }
  }
  Program plan(const KernelKey& key, const Settings& settings = {}) const {
    return make_program(*target_, nullptr, settings, key);
  }

  std::optional<Target> target_;
};

KernelKey convolution(const Convolution& op, Shape x, Shape w, Shape y, DType type, std::uint32_t gradients = 0) {
  return {
      {op, {std::move(x), std::move(w)}, {std::move(y)}, type}, gradients ? Pass::backward : Pass::forward, gradients};
}

Convolution three_by_three() {
  Convolution op;
  op.kernel = {3, 3}, op.stride = op.dilation = op.pad_begin = op.pad_end = {1, 1};
  return op;
}

TEST_F(GraphsOfAnH100, EveryFamilyOfConvolutionsHasAnEngineInEveryPass) {
  GpuSweepOptions options;
  options.dtypes = {DType::f32, DType::tf32, DType::bf16};
  const Sweep sweep = plan_sweep(gpu_grids(options), [](const KernelKey& key) { return fits(key, Bytes{2e8}); });
  int planned = 0;
  for (std::size_t i = 0; i < sweep.grids.size(); ++i) {
    if (!sweep.grids[i].family.starts_with("convolution")) continue;
    const SweepKeys& points = sweep.points[i];
    ASSERT_FALSE(points.empty()) << sweep.grids[i].family;
    const std::size_t first = points.size() / 3 / 2 * 3;  // each place: forward, and two gradients
    for (std::size_t k = first; k < first + 3; ++k) {
      try {
        const Program program = plan(points[k]);
        ASSERT_EQ(program.steps.size(), 1u);
        EXPECT_EQ(program.steps[0].choices.size(), 1u);  // the framework's alone
        ++planned;
      } catch (const Refusal& refusal) {
        ADD_FAILURE() << to_string(points[k]) << ": " << refusal.what();
      }
    }
  }
  EXPECT_EQ(planned, 3 * 3 * 12);  // types, passes, families
}

TEST_F(GraphsOfAnH100, ABiasAndItsGradientAreLaunchesOfTheirOwn) {
  const Convolution op = three_by_three();
  KernelKey key = convolution(op, {8, 64, 56, 56}, {64, 64, 3, 3}, {8, 64, 56, 56}, DType::bf16);
  key.signature.inputs.push_back({64});
  EXPECT_EQ(plan(key).steps.size(), 2u);  // the convolution, the addition
  key.pass = Pass::backward, key.gradients = 7;
  EXPECT_EQ(plan(key).steps.size(), 4u);  // data, filter, and the bias's sum over pixels, then over samples
  EXPECT_EQ(plan(key, {.layout = Layout::nhwc}).steps.size(), 3u);  // channels lie innermost: one sum
}

TEST_F(GraphsOfAnH100, ATransposedConvolutionIsTheOthersGradient) {
  Convolution op = three_by_three();
  op.stride = {2, 2}, op.transposed = true, op.output_pad = {1, 1};
  // From 16 x 16 to 32 x 32: (16 - 1) * 2 - 2 + 3 + 1.
  for (const std::uint32_t gradients : {0U, 1U, 2U})
    EXPECT_EQ(
        plan(convolution(op, {8, 64, 16, 16}, {64, 32, 3, 3}, {8, 32, 32, 32}, DType::bf16, gradients)).steps.size(),
        1u);
}

TEST_F(GraphsOfAnH100, OneSpatialDimensionIsTwoOfWhichOneIsFlat) {
  Convolution op;
  op.kernel = {5}, op.stride = {1}, op.dilation = {1}, op.pad_begin = op.pad_end = {2};
  EXPECT_EQ(plan(convolution(op, {8, 64, 128}, {64, 64, 5}, {8, 64, 128}, DType::f32)).steps.size(), 1u);
}

TEST_F(GraphsOfAnH100, TheBestOfAllChoosesAmongSeveral) {
  const KernelKey key = convolution(three_by_three(), {32, 64, 56, 56}, {64, 64, 3, 3}, {32, 64, 56, 56}, DType::bf16);
  EXPECT_GT(plan(key, {.best = true}).steps[0].choices.size(), 3u);
}

TEST_F(GraphsOfAnH100, ShapesThatDoNotFitAreRefusedWithAReason) {
  const KernelKey wrong = convolution(three_by_three(), {8, 64, 56, 56}, {64, 64, 3, 3}, {8, 64, 99, 99}, DType::bf16);
  try {
    plan(wrong);
    FAIL() << "a result of another size was taken";
  } catch (const Refusal& refusal) {
    EXPECT_NE(std::string(refusal.what()).find("cuDNN"), std::string::npos) << refusal.what();
  }
}

KernelKey attention(bool causal, DType type, std::uint32_t gradients) {
  Attention op;
  op.causal = causal, op.scale = 0.125;
  const Shape heads{2, 16, 1024, 64};
  return {{op, {heads, heads, heads}, {heads}, type}, gradients ? Pass::backward : Pass::forward, gradients};
}

// Fused attention is compiled when it is planned, and that needs the driver; without it, cuDNN still says whether its
// engines know the graph: one that they do not know is refused for its pattern.
void expect_known(const std::function<Program()>& plan) {
  try {
    EXPECT_GE(plan().steps.size(), 1u);
  } catch (const Refusal& refusal) {
    EXPECT_NE(std::string(refusal.what()).find("RUNTIME_PREREQUISITE_MISSING"), std::string::npos) << refusal.what();
  }
}

TEST_F(GraphsOfAnH100, AttentionIsFusedForward) {
  for (const bool causal : {false, true})
    for (const DType type : {DType::f16, DType::bf16}) expect_known([&] { return plan(attention(causal, type, 0)); });
}

TEST_F(GraphsOfAnH100, AttentionIsFusedBackwardWithoutAMask) {
  expect_known([&] { return plan(attention(false, DType::bf16, 7)); });
}

TEST_F(GraphsOfAnH100, CausalAttentionIsFusedBackward) {
  for (const DType type : {DType::f16, DType::bf16}) expect_known([&] { return plan(attention(true, type, 7)); });
}

TEST_F(GraphsOfAnH100, WhatIsNotTimedIsSaid) {
  KernelKey shared = attention(true, DType::bf16, 7);  // 4 heads of keys for 16 of queries
  shared.signature.inputs[1][1] = shared.signature.inputs[2][1] = 4;
  EXPECT_THROW(plan(shared), Refusal);
  EXPECT_THROW(plan(attention(false, DType::f32, 0)), Refusal);  // 16 bits only
}

// Why it is refused; nothing where it is not.
std::string why_refused(const std::function<Program()>& plan) {
  try {
    plan();
    return {};
  } catch (const Refusal& refused) {
    return refused.what();
  }
}

// As of a rank that has the last 256 of 1,024 queries: they see 768 to 1,024 keys, and of a mask that begins at the
// first key 1 to 256. Where that is what they see, as the keys' last 768 lie behind all of them, it is the same mask.
TEST_F(GraphsOfAnH100, CausalAttentionThatIsNotAlignedAtTheFirstKeyIsRefused) {
  for (const std::uint32_t gradients : {0U, 7U}) {
    KernelKey part = attention(true, DType::bf16, gradients);
    part.signature.inputs[0][2] = part.signature.outputs[0][2] = 256;
    EXPECT_NE(why_refused([&] { return plan(part); }).find("the first key"), std::string::npos);
    std::get<Attention>(part.signature.attributes).behind = 768;
    EXPECT_EQ(why_refused([&] { return plan(part); }).find("the first key"), std::string::npos);
  }
  KernelKey behind = attention(true, DType::bf16, 0);
  std::get<Attention>(behind.signature.attributes).behind = 512;
  EXPECT_NE(why_refused([&] { return plan(behind); }).find("the first key"), std::string::npos);
}

// Ids are bounded below, rows looked up, ids compared, rows zeroed; backward is a table of zeros and what is added.
TEST_F(GraphsOfAnH100, APartOfATableIsLookedUpWithWhatIsElsewhereZeroed) {
  KernelKey key{{Embedding{}, {{1000, 64}, {8, 128}}, {{8, 128, 64}}, DType::bf16}, Pass::forward, 0};
  EXPECT_EQ(plan(key).steps.size(), 1U);
  std::get<Embedding>(key.signature.attributes).partial = true;
  EXPECT_EQ(plan(key).steps.size(), 4U);
  key.pass = Pass::backward, key.gradients = 1;
  EXPECT_EQ(plan(key).steps.size(), 2U);
}

}  // namespace
}  // namespace sibyl::cudnn
