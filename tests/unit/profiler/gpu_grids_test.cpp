// The grids of a GPU's sweep: all kernels are well-formed, and every family of every type is there.
#include "profiler/sweep/gpu_grids.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace sibyl {
namespace {

Sweep quick(std::vector<DType> types) {
  GpuSweepOptions options;
  options.dtypes = std::move(types);
  options.optimizers = {OptimizerKind::adam, OptimizerKind::momentum};
  return plan_sweep(gpu_grids(options), [](const KernelKey& key) { return fits(key, Bytes{8e9}); });
}

std::set<std::string> operations(const Sweep& sweep, DType type) {
  std::set<std::string> names;
  for (const KernelKey& key : sweep.keys())
    if (key.signature.dtype == type) names.emplace(name_of(key.signature.attributes));
  return names;
}

TEST(GpuGrids, CoverWhatTrainingRuns) {
  const Sweep sweep = quick({DType::f32, DType::bf16});
  for (const char* name : {"linear", "matmul", "convolution", "normalization", "softmax", "cross_entropy", "embedding",
                           "transpose", "reduce", "pool", "unary", "binary", "dropout", "copy"}) {
    EXPECT_TRUE(operations(sweep, DType::f32).contains(name)) << name;
    EXPECT_TRUE(operations(sweep, DType::bf16).contains(name)) << name;
  }
  EXPECT_TRUE(operations(sweep, DType::bf16).contains("attention"));
  EXPECT_TRUE(operations(sweep, DType::bf16).contains("cast"));
  EXPECT_FALSE(operations(sweep, DType::f32).contains("attention"));  // cuDNN fuses it in 16 bits only
  EXPECT_TRUE(operations(sweep, DType::f32).contains("optimizer_update"));
}

TEST(GpuGrids, SomeTypesAreOfMatricesOnly) {
  const Sweep sweep = quick({DType::tf32, DType::f8e4m3});
  EXPECT_THAT(operations(sweep, DType::tf32), testing::UnorderedElementsAre("linear", "matmul", "convolution"));
  EXPECT_THAT(operations(sweep, DType::f8e4m3), testing::UnorderedElementsAre("linear"));
}

TEST(GpuGrids, EveryKernelCanBeWrittenReadAndPriced) {
  const SweepKeys keys = quick({DType::f32, DType::tf32, DType::f16, DType::bf16, DType::f8e4m3}).keys();
  EXPECT_GT(keys.size(), 1000u);
  for (const KernelKey& key : keys) {
    const auto again = parse_kernel_key(to_string(key));
    ASSERT_TRUE(again) << to_string(key);
    ASSERT_EQ(*again, key) << to_string(key);
    const Work work = work_of(key, Backend::cuda);
    EXPECT_GT((work.read + work.written).value(), 0) << to_string(key);
  }
}

TEST(GpuGrids, EachFamilyHasPointsAndChecks) {
  const Sweep sweep = quick({DType::f32, DType::bf16});
  std::vector<std::size_t> checks(sweep.grids.size(), 0);
  for (const SweepCheck& check : sweep.checks) ++checks[check.grid];
  for (std::size_t i = 0; i < sweep.grids.size(); ++i) {
    EXPECT_GE(sweep.points[i].size(), 4u) << sweep.grids[i].family;
    EXPECT_GE(checks[i], 1u) << sweep.grids[i].family;
  }
}

TEST(GpuGrids, ConvolutionsShrinkAsTheirStridesSay) {
  for (const KernelKey& key : quick({DType::f32}).keys()) {
    const auto* op = std::get_if<Convolution>(&key.signature.attributes);
    if (!op) continue;
    const Shape &x = key.signature.inputs[0], &y = key.signature.outputs[0];
    for (std::size_t d = 0; d < op->kernel.size(); ++d) {
      const std::int64_t reach = op->dilation[d] * (op->kernel[d] - 1) + 1;
      EXPECT_EQ(y[d + 2], (x[d + 2] + op->pad_begin[d] + op->pad_end[d] - reach) / op->stride[d] + 1) << to_string(key);
    }
    EXPECT_EQ(key.signature.inputs[1][1] * op->groups, x[1]) << to_string(key);
  }
}

TEST(GpuGrids, FullIsDenser) {
  GpuSweepOptions options;
  const std::size_t few = plan_sweep(gpu_grids(options), {}).keys().size();
  options.density = GridDensity::full;
  EXPECT_GT(plan_sweep(gpu_grids(options), {}).keys().size(), 3 * few);
}

TEST(Fits, CountsOperandsResultsAndGradients) {
  const Signature s{Unary{}, {{1000}}, {{1000}}, DType::f32};
  EXPECT_TRUE(fits({s, Pass::forward, 0}, Bytes{8000}));  // 2 tensors of 4,000 bytes
  EXPECT_FALSE(fits({s, Pass::forward, 0}, Bytes{7999}));
  EXPECT_TRUE(fits({s, Pass::backward, 1}, Bytes{16000}));  // and their gradients
  EXPECT_FALSE(fits({s, Pass::backward, 1}, Bytes{15999}));
}

}  // namespace
}  // namespace sibyl
