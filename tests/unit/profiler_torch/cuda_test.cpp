// libtorch on a GPU: refused with a reason where there is none, and timed by the device's clock where there is one.
// Each test that takes the GPU does so in a process of its own, as ctest runs them: the choice is for good.
#include <gtest/gtest.h>

#include "aten/cuda.h"
#include "aten/device.h"
#include "profiler/torch/time_kernel.h"

namespace sibyl {
namespace {

#define SIBYL_NEEDS_TORCH_CUDA() \
  if (const auto taken = aten::use_cuda(0); !taken) GTEST_SKIP() << taken.error().message

KernelKey product(std::int64_t n) { return {{Linear{}, {{n, n}, {n, n}}, {{n, n}}, DType::f32}, Pass::forward, 0}; }

TEST(TorchCuda, IsRefusedWithAReason) {
  const auto taken = aten::use_cuda(999);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().where, "--device");
  if (!aten::cuda::compiled()) {
    EXPECT_EQ(taken.error().message, "this Sibyl was built with a libtorch that has no CUDA");
    EXPECT_NE(taken.error().hint.find("docs/gpu.md"), std::string::npos);
  }
  EXPECT_FALSE(aten::on_cuda());
  EXPECT_TRUE(aten::compute_device().is_cpu());
}

TEST(TorchCuda, TheCpuIsCountedByTheMeterAndHoldsNothingBesides) {
  aten::begin_counting();
  const std::int64_t before = aten::live_bytes();
  const at::Tensor tensor = at::empty({1000});  // 4,000 bytes, rounded up to 64: 4,032
  EXPECT_EQ(aten::live_bytes() - before, 4032);
  EXPECT_EQ(aten::held_memory().context.value(), 0);
  EXPECT_TRUE(aten::to_compute_device(tensor).is_same(tensor));
}

TEST(TorchCuda, TimesKernelsByTheDevicesClock) {
  SIBYL_NEEDS_TORCH_CUDA();
  TimingOptions options;
  options.budget = Seconds{0.05};
  const auto small = time_kernel(product(256), options), large = time_kernel(product(4096), options);
  ASSERT_TRUE(small) << to_string(small.error());
  ASSERT_TRUE(large) << to_string(large.error());
  // 4,096 times the work.
  EXPECT_GT(large->time.value(), 20 * small->time.value());
}

TEST(TorchCuda, CountsWhatTheAllocatorHolds) {
  SIBYL_NEEDS_TORCH_CUDA();
  const std::int64_t before = aten::live_bytes();
  const at::Tensor tensor = at::empty({1000}, at::TensorOptions(aten::compute_device()));
  EXPECT_EQ(aten::live_bytes() - before, 4096);  // 4,000 bytes, rounded up to 512
  EXPECT_GT(aten::device_limits().memory.value(), 1e9);
}

}  // namespace
}  // namespace sibyl
