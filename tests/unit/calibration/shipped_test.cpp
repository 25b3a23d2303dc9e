#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calibration/cluster.h"

namespace sibyl {
namespace {

TEST(Shipped, CalibrationsAreSoundAndCited) {
  EXPECT_THAT(shipped_calibrations(), testing::ElementsAre("a100-pcie-40gb", "a100-pcie-80gb", "a100-sxm-80gb",
                                                           "h100-sxm", "v100-sxm2-16gb", "v100-sxm2-32gb"));
  for (const std::string& name : shipped_calibrations()) {
    const auto c = shipped_calibration(name);
    ASSERT_TRUE(c) << to_string(c.error());
    EXPECT_GT(c->kernels.size(), 1000U) << name;
    for (const KernelSample& sample : c->kernels) ASSERT_FALSE(sample.source.empty()) << name;
    EXPECT_EQ(c->device.backend, Backend::cuda);
  }
  EXPECT_FALSE(shipped_calibration("abacus"));
}

TEST(Shipped, ClustersLoad) {
  EXPECT_THAT(shipped_clusters(),
              testing::ElementsAre("abci-v100", "dgx-a100", "dgx-h100", "dgx1-v100", "ethernet-100g"));
  for (const std::string& name : shipped_clusters()) {
    const auto cluster = load_cluster(name);
    ASSERT_TRUE(cluster) << to_string(cluster.error());
    EXPECT_EQ(cluster->name, name);
    EXPECT_TRUE(resized(*cluster, 128, cluster->devices_per_node)) << name;
  }
}

TEST(Shipped, AnswersWithMeasuredNumbers) {
  // DeepBench, NV_V100, fp32: 112x112x64, batch 8, 128 filters of 3x3, padding 1: forward and both gradients were
  // timed.
  const auto cluster = load_cluster("dgx1-v100");
  ASSERT_TRUE(cluster);
  const auto key = parse_kernel_key(
      "backward:11 convolution(kernel=3x3,stride=1x1,dilation=1x1,pad_begin=1x1,pad_end=1x1)"
      "[8x64x112x112,128x64x3x3]->[8x128x112x112]:f32");
  ASSERT_TRUE(key);
  EXPECT_EQ(cluster->kernels.estimate(*key).time.provenance, Provenance::measured);
}

}  // namespace
}  // namespace sibyl
