#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "calibration/cluster.h"
#include "calibration/device_names.h"
#include "calibration/shipped.h"
#include "profiler/interpolation/family.h"

namespace sibyl {
namespace {

TEST(Shipped, CalibrationsAreSoundAndCited) {
  std::size_t measured = 0, bytes = 0;
  for (const std::string& name : shipped_calibrations()) {
    const auto c = shipped_calibration(name);
    ASSERT_TRUE(c) << to_string(c.error());
    measured += c->kernels.empty() ? 0 : 1;
    for (const KernelSample& sample : c->kernels) ASSERT_FALSE(sample.source.empty()) << name;
    EXPECT_FALSE(c->kernels.empty() && c->donors.empty()) << name << " knows nothing";
    EXPECT_FALSE(c->device.architecture.empty()) << name;
    EXPECT_GT(c->device.multiprocessors, 0) << name;
    EXPECT_GT(c->device.peak.at(DType::f32).value(), 1e12) << name;
    EXPECT_GT(c->device.cache.value(), 1e6) << name;
    EXPECT_GT(c->device.board_power.value(), 50) << name;
    bytes += shipped::find(shipped::Kind::calibration, name)->size();
  }
  EXPECT_GE(measured, 12U);
  EXPECT_LT(bytes, 15'000'000U);
  EXPECT_FALSE(shipped_calibration("abacus"));
}

// Nobody published what a context holds, nor what workspaces kernels were given.
TEST(Shipped, DevicesSayWhatWasNotMeasured) {
  for (const std::string& name : shipped_clusters()) {
    const auto cluster = load_cluster(name);
    ASSERT_TRUE(cluster) << name;
    EXPECT_TRUE(cluster->kernels.device().framework_assumed) << name;
    EXPECT_FALSE(cluster->kernels.knows_workspace()) << name;
  }
}

double tensor_bytes(const KernelKey& key) {
  double elements = 0;
  for (const auto* shapes : {&key.signature.inputs, &key.signature.outputs})
    for (const Shape& shape : *shapes) elements += static_cast<double>(element_count(shape));
  return elements * size_in_bytes(key.signature.dtype);
}

// Winograd's F(4x4, 3x3) needs a quarter of the multiplications; windows wider than 1x1 at stride 1 may use it.
bool may_skip_multiplications(const KernelKey& key) {
  const auto* op = std::get_if<Convolution>(&key.signature.attributes);
  return op && op->kernel != Ints{1, 1} && op->stride == Ints{1, 1};
}

// Whoever timed them: no product exceeds the peak, and what does not fit the cache twice over comes at memory's rate at
// best.
TEST(Shipped, NoKernelBeatsItsDatasheet) {
  for (const std::string& name : shipped_calibrations()) {
    const auto c = shipped_calibration(name);
    ASSERT_TRUE(c);
    const Device& d = c->device;
    for (const KernelSample& sample : c->kernels) {
      const DType dtype = sample.key.signature.dtype;
      const auto peak = d.peak.contains(dtype) ? d.peak.at(dtype) : d.peak.at(DType::f32);
      if (const auto product = interpolation::as_product(sample.key)) {
        const double flops = 2 * product->m * product->n * product->k * product->batch;
        const double least = flops / peak.value() / (may_skip_multiplications(sample.key) ? 4 : 1);
        ASSERT_GE(sample.time.value(), least) << name << ": " << to_string(sample.key);
      }
      const double from_memory = tensor_bytes(sample.key) - 2 * d.cache.value();
      ASSERT_GE(sample.time.value(), from_memory / d.memory_bandwidth.value()) << name << ": " << to_string(sample.key);
    }
  }
}

TEST(Shipped, DevicesAreFoundByTheNamesThatPeopleGiveThem) {
  const std::pair<std::string_view, std::string_view> names[] = {{"A100-SXM-80GB", "a100-sxm-80gb"},
                                                                 {"NVIDIA A100-SXM4-40GB", "a100-sxm-40gb"},
                                                                 {"K80(half-board GK210)", "k80"},
                                                                 {"RTX-6000-Ada", "rtx-6000-ada"},
                                                                 {"H100-PCIe-80GB", "h100-pcie-80gb"},
                                                                 {"H100-SXM-80GB", "h100-sxm"},
                                                                 {"V100-SXM3-32GB", "v100-sxm3-32gb"},
                                                                 {"Tesla V100S-PCIE-32GB", "v100s-pcie-32gb"},
                                                                 {"Tesla V100-SXM2-16GB", "v100-sxm2-16gb"},
                                                                 {"NVIDIA TITAN X (Pascal)", "titan-x-pascal"},
                                                                 {"MI250 (1 GCD)", "mi250"},
                                                                 {"Quadro-RTX-8000", "quadro-rtx-8000"},
                                                                 {"L4-24GB", "l4"},
                                                                 {"GeForce RTX 3090", "rtx-3090"},
                                                                 {"NVIDIA H100 80GB HBM3", "h100-sxm"},
                                                                 {"M60", "m60"},
                                                                 {"P100-SXM2-16GB", "p100-sxm2-16gb"}};
  for (const auto& [text, name] : names) EXPECT_EQ(shipped_device(text), name) << text;
  EXPECT_EQ(shipped_device("A100"), std::nullopt);  // which of four?
  EXPECT_EQ(shipped_device("H100-95GB-HBM2e-lower-TDP"), std::nullopt);
  for (const std::string& name : shipped_calibrations()) EXPECT_EQ(shipped_device(name), name);
  EXPECT_TRUE(shipped_calibration("NVIDIA A100-SXM4-80GB"));
}

// Kernels of a K80 were timed at 562 MHz, of 750 that it is priced at. They are lent by one of its own generation:
// surer than the 63 % of another, and at best quicker by the clock (3.74 against 2.806 TFLOP/s).
TEST(Shipped, AK80IsLentTheKernelsOfOneAtAnotherClock) {
  const auto measured = shipped_calibration("k80-562mhz");
  auto usual = shipped_calibration("k80");
  ASSERT_TRUE(measured && usual);
  ASSERT_EQ(usual->donors.front(), "k80-562mhz");
  const auto key = parse_kernel_key(
      "forward convolution(kernel=3x3,stride=1x1,dilation=1x1,pad_begin=1x1,pad_end=1x1)"
      "[256x256x14x14,256x256x3x3]->[256x256x14x14]:f32");
  ASSERT_TRUE(key);
  const auto sample = std::ranges::find_if(measured->kernels, [&](const KernelSample& s) { return s.key == *key; });
  ASSERT_NE(sample, measured->kernels.end());
  const Estimate carried = kernel_table(std::move(*usual)).estimate(*key).time;
  EXPECT_GT(carried.time / sample->time, 0.99 * 2.806 / 3.74);
  EXPECT_LT(carried.relative_error, 0.3);
  EXPECT_EQ(carried.provenance, Provenance::estimated);
}

// Forward batch-norms of a V100 are cuDNN's; what comes back moves half as much again, at the same rate.
TEST(Shipped, AV100IsTimedAtBatchNorms) {
  auto v100 = shipped_calibration("v100-sxm2-16gb");
  ASSERT_TRUE(v100);
  const KernelTable table = kernel_table(std::move(*v100));
  const std::string norm = "normalization[256x64x112x112,64,64,64,64]->[256x64x112x112]:f32";
  const Estimate forward = table.estimate(*parse_kernel_key("forward " + norm)).time;
  EXPECT_EQ(forward.provenance, Provenance::measured);
  EXPECT_NEAR(2 * 822.1e6 / forward.time.value(), 0.54 * 900e9, 0.01 * 900e9);
  const Estimate backward = table.estimate(*parse_kernel_key("backward:11100 " + norm)).time;
  EXPECT_NEAR(backward.time / forward.time, 1.5, 0.1);
}

// Both gradients of 32 to 32 channels of two volumes of 128^3 took 16.68 ms with the addition of x's to those before,
// three passes over 268 MB at 792 GB/s.
TEST(Shipped, VolumesWereTimedWithGradientsAddedUp) {
  const auto v100 = shipped_calibration("v100-sxm2-16gb");
  ASSERT_TRUE(v100);
  const auto key = parse_kernel_key(
      "backward:11 convolution(kernel=3x3x3,stride=1x1x1,dilation=1x1x1,pad_begin=1x1x1,pad_end=1x1x1)"
      "[2x32x128x128x128,32x32x3x3x3]->[2x32x128x128x128]:f16");
  ASSERT_TRUE(key);
  const auto sample = std::ranges::find_if(v100->kernels, [&](const KernelSample& s) { return s.key == *key; });
  ASSERT_NE(sample, v100->kernels.end());
  EXPECT_NEAR(sample->time.value(), 16.68e-3 - 3 * 268.4e6 / 792e9, 1e-5);
}

// A device that nobody measured answers everything, and calls it estimated.
TEST(Shipped, ADatasheetIsEnoughForAnEstimate) {
  auto c = shipped_calibration("rtx-3090");
  ASSERT_TRUE(c);
  const KernelTable table = kernel_table(std::move(*c));
  const auto linear = parse_kernel_key("forward linear[4096x4096,4096x4096]->[4096x4096]:f32");
  const Estimate e = table.estimate(*linear).time;
  EXPECT_EQ(e.provenance, Provenance::estimated);
  // 2 * 4096^3 FLOPs at 35.6 TFLOP/s are 3.86 ms: it cannot be faster, and no GPU is half as fast at that size.
  EXPECT_GT(e.time.value(), 3.86e-3);
  EXPECT_LT(e.time.value(), 2 * 3.86e-3);
  EXPECT_GT(e.relative_error, 0.05);
}

// 1691.3 us on a V100S, of which 35.1 are the host's: by the f32 peaks a V100 SXM2 takes 16.35 / 15.7 of 1656.2 us. Its
// own bytes would let it be done in a tenth of that; f16 is no quicker, for no tensor core computes it (what other
// donors guess of that counts for 2 %).
TEST(Shipped, DepthwiseConvolutionsAreThoseOfTheDeviceThatWasMeasured) {
  const KernelTable table = kernel_table(std::move(*shipped_calibration("v100-sxm2-16gb")));
  for (const char* type : {"f32", "f16"}) {
    const std::string op = "convolution(kernel=5x5,stride=1x1,dilation=1x1,pad_begin=2x2,pad_end=2x2,groups=240)";
    const auto key = parse_kernel_key("forward " + op + "[128x240x28x28,240x1x5x5]->[128x240x28x28]:" + type);
    const Estimate e = table.estimate(*key).time;
    EXPECT_EQ(e.provenance, Provenance::estimated);
    EXPECT_NEAR(e.time.value(), 1656.2e-6 * 16.35 / 15.7, 60e-6) << type;
  }
}

TEST(Shipped, DonorsAreMeasured) {
  for (const std::string& name : shipped_calibrations()) {
    const auto borrower = shipped_calibration(name);
    ASSERT_TRUE(borrower);
    for (const std::string& donor : borrower->donors) {
      const auto c = shipped_calibration(donor);
      ASSERT_TRUE(c) << name;
      EXPECT_FALSE(c->kernels.empty()) << name << " is promised kernels by " << donor;
      EXPECT_NE(donor, name);
    }
  }
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
