// How kernels are timed one after another, with made-up times: what cannot be timed, and a device that fails.
#include <gmock/gmock.h>

#include "calibration/program/compute.h"
#include "program_folder.h"

namespace sibyl {
namespace {

using testing::HasSubstr;

KernelKey relu_of(int size) {
  return *parse_kernel_key("forward unary[" + std::to_string(size) + "]->[" + std::to_string(size) + "]:f32");
}

// A GPU as CUDA shows it: after a kernel that makes it fail, every call fails until another process opens it.
struct FakeGpu {
  std::optional<KernelKey> refused, fatal;
  std::vector<KernelKey> begun = {};
  bool failed = false;

  KernelTimers timers() {
    return {.together =
                [this](std::span<const KernelKey> keys) {
                  std::vector<Result<KernelSample>> samples;
                  for (const KernelKey& key : keys) samples.push_back(time(key));
                  return samples;
                },
            .usable = [this]() -> Result<void> {
              if (failed) return fail("an illegal memory access was encountered");
              return {};
            }};
  }

 private:
  Result<KernelSample> time(const KernelKey& key) {
    begun.push_back(key);
    failed = failed || key == fatal;
    if (failed || key == refused) return fail("refused", to_string(key));
    KernelSample sample;
    sample.key = key;
    sample.time = Seconds{1e-6};
    return sample;
  }
};

class MeasureKernels : public CalibratorFolder {
 protected:
  // One run of the program, whose process opens the device anew.
  Result<void> run(FakeGpu& gpu) {
    gpu.failed = false;
    gpu.begun.clear();
    SIBYL_TRY(Session session, open(of_cudnn()));
    describe(session.calibration().device);
    const Result<void> measured = measure_kernels(ranks_, session, keys_, gpu.timers(), {}, std::nullopt);
    timed_ = session.calibration().kernels.size();
    SIBYL_CHECK(session.save());
    return measured;
  }

  std::vector<KernelKey> keys_{relu_of(1), relu_of(2), relu_of(3), relu_of(4)};
  std::size_t timed_ = 0;
};

TEST_F(MeasureKernels, OneThatIsRefusedDoesNotStopTheOthersAndIsAskedForAgain) {
  FakeGpu gpu{.refused = relu_of(2), .fatal = {}};
  const auto first = run(gpu);
  ASSERT_FALSE(first);
  EXPECT_THAT(first.error().message, HasSubstr("1 of 4 kernels cannot be timed"));
  EXPECT_EQ(timed_, 3U);
  EXPECT_FALSE(std::filesystem::exists(file().string() + ".refused"));
  gpu.refused.reset();
  EXPECT_TRUE(run(gpu));
  EXPECT_EQ(timed_, 4U);
}

TEST_F(MeasureKernels, ADeviceThatFailsEndsTheRunAtTheKernelItFailedAt) {
  FakeGpu gpu{.refused = {}, .fatal = relu_of(2)};
  const auto measured = run(gpu);
  ASSERT_FALSE(measured);
  EXPECT_EQ(measured.error().where, to_string(relu_of(2)));
  EXPECT_THAT(measured.error().message, HasSubstr("an illegal memory access"));
  EXPECT_EQ(gpu.begun.size(), 2U) << "nothing is begun after it";
  EXPECT_EQ(timed_, 1U) << "what was timed before it stays";
}

TEST_F(MeasureKernels, TheNextRunGoesOnBehindTheKernelThatTheDeviceFailedAt) {
  FakeGpu gpu{.refused = {}, .fatal = relu_of(2)};
  ASSERT_FALSE(run(gpu));
  const auto next = run(gpu);
  EXPECT_EQ(gpu.begun, (std::vector<KernelKey>{relu_of(3), relu_of(4)}));
  EXPECT_EQ(timed_, 3U);
  ASSERT_FALSE(next) << "one is missing, still";
  EXPECT_THAT(next.error().message, HasSubstr("1 of 3 kernels cannot be timed"));
  EXPECT_THAT(next.error().message, HasSubstr(file().string() + ".refused"));
  EXPECT_EQ(next.error().where, to_string(relu_of(2)));

  std::filesystem::remove(file().string() + ".refused");
  gpu.fatal.reset();
  EXPECT_TRUE(run(gpu)) << "somebody else's driver";
  EXPECT_EQ(timed_, 4U);
}

}  // namespace
}  // namespace sibyl
