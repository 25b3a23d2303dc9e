// What a device can do at most, where libraries and devices differ. Needs no device.
#include "profiler/cudnn/facts.h"

#include <gtest/gtest.h>

#include "calibration/calibration.h"

namespace sibyl::cudnn {
namespace {

// Of libraries that know all types but one.
std::function<Result<Seconds>(const KernelKey&)> all_but(DType unknown) {
  return [unknown](const KernelKey& key) -> Result<Seconds> {
    if (key.signature.dtype == unknown) return fail("no matrix product of this element type");
    return Seconds{1e-3};
  };
}

TEST(Peaks, ATypeThatLibrariesRefuseIsLeftOut) {
  const auto peaks = measure_peaks({DType::f32, DType::f8e4m3, DType::bf16}, all_but(DType::f8e4m3));
  ASSERT_TRUE(peaks) << to_string(peaks.error());
  EXPECT_EQ(peaks->size(), 2U);
  EXPECT_FALSE(peaks->contains(DType::f8e4m3));
  // 2 * 8192^3 in a millisecond.
  EXPECT_NEAR(peaks->at(DType::bf16).value(), 2.0 * 8192 * 8192 * 8192 / 1e-3, 1e12);
}

TEST(Peaks, NoDeviceIsWithoutF32) {
  const auto peaks = measure_peaks({DType::f32, DType::f16}, all_but(DType::f32));
  ASSERT_FALSE(peaks);
  EXPECT_EQ(peaks.error().message, "no matrix product of this element type");
}

TEST(Architecture, IsCalledAsShippedCalibrationsCallIt) {
  struct Known {
    const char* shipped;
    int major, minor;
  };
  for (const Known& known :
       {Known{"k80", 3, 7}, Known{"m40", 5, 2}, Known{"p100-sxm2-16gb", 6, 0}, Known{"p4", 6, 1},
        Known{"v100-sxm2-16gb", 7, 0}, Known{"t4", 7, 5}, Known{"a100-sxm-80gb", 8, 0}, Known{"rtx-3090", 8, 6},
        Known{"l40s", 8, 9}, Known{"h200-sxm", 9, 0}, Known{"b200-sxm", 10, 0}}) {
    const auto shipped = shipped_calibration(known.shipped);
    ASSERT_TRUE(shipped) << known.shipped;
    EXPECT_EQ(architecture_of(known.major, known.minor), shipped->device.architecture) << known.shipped;
  }
  EXPECT_EQ(architecture_of(99, 0), "");
}

}  // namespace
}  // namespace sibyl::cudnn
