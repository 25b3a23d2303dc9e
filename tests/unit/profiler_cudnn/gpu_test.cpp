// Timing on a real device: every family gives a sample, and a sample is of what it says. Skipped where there is none.
#include "profiler/cudnn/gpu.h"

#include <cudnn.h>
#include <gtest/gtest.h>

#include "profiler/sweep/gpu_grids.h"
#include "tests/unit/profiler_cudnn/device.h"

namespace sibyl::cudnn {
namespace {

TimingOptions short_timing() {
  TimingOptions options;
  options.budget = Seconds{0.02};
  return options;
}

Gpu gpu(const Settings& settings = {}) { return std::move(*Gpu::open(settings)); }

double seconds(const Gpu& device, const KernelKey& key) {
  const auto timing = device.time(key, short_timing());
  EXPECT_TRUE(timing) << (timing ? "" : to_string(timing.error()));
  return timing ? timing->sample.time.value() : 0.0;
}

KernelKey product(std::int64_t n, DType type) {
  return {{Linear{}, {{n, n}, {n, n}}, {{n, n}}, type}, Pass::forward, 0};
}

TEST(Gpu, IsRefusedWithAReasonWhereThereIsNone) {
  const auto opened = Gpu::open({.device = 999});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::bad_input);
  EXPECT_NE(opened.error().message.find("there is no CUDA device"), std::string::npos) << opened.error().message;
}

TEST(Gpu, TimesEveryFamilyOfTheSweep) {
  SIBYL_NEEDS_A_GPU();
  const Gpu device = gpu();
  GpuSweepOptions options;
  options.dtypes = device.dtypes();
  const Sweep sweep = plan_sweep(gpu_grids(options), [](const KernelKey& key) { return fits(key, Bytes{1e8}); });
  int refused = 0, timed = 0;
  for (std::size_t i = 0; i < sweep.grids.size(); ++i) {
    if (sweep.points[i].empty()) continue;
    // Which docs/gpu.md says is refused.
    if (CUDNN_VERSION < 91900 && sweep.grids[i].family.starts_with("attention")) continue;
    const KernelKey& key = sweep.points[i][sweep.points[i].size() / 2];
    const auto timing = device.time(key, short_timing());
    ++(timing ? timed : refused);
    EXPECT_TRUE(timing) << to_string(key) << (timing ? "" : ": " + timing.error().message);
  }
  EXPECT_GT(timed, 50);
  EXPECT_EQ(refused, 0);
}

TEST(Gpu, ALargerProductTakesLonger) {
  SIBYL_NEEDS_A_GPU();
  const Gpu device = gpu();
  // 64 times the work: whatever the device, more than 8 times as long once it is full.
  EXPECT_GT(seconds(device, product(8192, DType::f16)), 8 * seconds(device, product(2048, DType::f16)));
}

TEST(Gpu, AViewTakesNoTime) {
  SIBYL_NEEDS_A_GPU();
  const KernelKey view{{Reshape{}, {{64, 64}}, {{4096}}, DType::f32}, Pass::forward, 0};
  EXPECT_LT(seconds(gpu(), view), 1e-6);
}

TEST(Gpu, TheBestEngineIsNoSlowerThanTheHeuristics) {
  SIBYL_NEEDS_A_GPU();
  const Gpu device = gpu({.best = true});
  Convolution op;
  op.kernel = {3, 3}, op.stride = op.dilation = op.pad_begin = op.pad_end = {1, 1};
  const KernelKey key{{op, {{32, 64, 56, 56}, {64, 64, 3, 3}}, {{32, 64, 56, 56}}, DType::f16}, Pass::forward, 0};
  const auto timing = device.time(key, short_timing());
  ASSERT_TRUE(timing) << to_string(timing.error());
  EXPECT_LE(timing->best, timing->sample.time);
  EXPECT_FALSE(timing->best_engine.empty());
}

TEST(Gpu, RefusesWhatItHasNoKernelForByItsKey) {
  SIBYL_NEEDS_A_GPU();
  const KernelKey key{
      {Resize{.kind = ResizeKind::cubic}, {{1, 1, 4, 4}}, {{1, 1, 8, 8}}, DType::f32}, Pass::forward, 0};
  const auto timing = gpu().time(key, short_timing());
  ASSERT_FALSE(timing);
  EXPECT_EQ(timing.error().where, to_string(key));
}

// No memory is as large: a refusal of this kernel alone.
TEST(Gpu, IsUsableAfterARefusal) {
  SIBYL_NEEDS_A_GPU();
  const Gpu device = gpu();
  const KernelKey key{{Unary{}, {{std::int64_t{1} << 40}}, {{std::int64_t{1} << 40}}, DType::f32}, Pass::forward, 0};
  EXPECT_FALSE(device.time(key, short_timing()));
  const auto usable = device.usable();
  EXPECT_TRUE(usable) << to_string(usable.error());
  EXPECT_GT(seconds(device, product(1024, DType::f16)), 0.0);
}

TEST(Gpu, KnowsItself) {
  SIBYL_NEEDS_A_GPU();
  const Gpu device = gpu();
  const auto facts = device.measure(short_timing());
  ASSERT_TRUE(facts) << to_string(facts.error());
  EXPECT_EQ(facts->backend, Backend::cuda);
  EXPECT_GT(facts->memory_bandwidth.value(), 1e10);
  EXPECT_GT(facts->peak.at(DType::f16).value(), 1e12);
  EXPECT_EQ(facts->dispatch.value(), 0.0);  // it knows launches, not operations
  EXPECT_GT(facts->framework_base.value(), 1e7);
  EXPECT_GT(facts->multiprocessors, 0);
  const auto launch = device.launch();
  ASSERT_TRUE(launch) << to_string(launch.error());
  EXPECT_GT(launch->value(), 1e-7);
  EXPECT_LT(launch->value(), 1e-4);
  const auto transfers = device.transfers(short_timing());
  ASSERT_TRUE(transfers);
  EXPECT_EQ(transfers->size(), 15u);  // 3 directions, 4 KiB to 256 MiB by factors of 16
  EXPECT_TRUE(device.libraries().contains("cudnn"));
}

}  // namespace
}  // namespace sibyl::cudnn
