#include "profiler/kernel_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/unit/profiler/parsed_key.h"

namespace sibyl {
namespace {

using test::key;

// 10 TFLOP/s, 100 GB/s; on CUDA the roofline adds 2 us of start-up.
Device device() {
  Device d;
  d.backend = Backend::cuda;
  d.peak[DType::f32] = FlopsPerSecond{10e12};
  d.peak[DType::f16] = FlopsPerSecond{40e12};
  d.memory_bandwidth = BytesPerSecond{100e9};
  return d;
}

KernelSample sample(const std::string& text, double seconds) {
  KernelSample s;
  s.key = key(text);
  s.time = Seconds{seconds};
  s.spread = 0.1;
  s.runs = 25;
  return s;
}

std::string relu(std::int64_t elements, const std::string& dtype = "f32") {
  return "forward unary[" + std::to_string(elements) + "]->[" + std::to_string(elements) + "]:" + dtype;
}
// 4 bytes read and 4 written an element, at 100 GB/s, and 2 us.
double roofline_relu(double elements) { return 8 * elements / 100e9 + 2e-6; }

const std::string shapes =
    "convolution(kernel=1x1,stride=1x1,dilation=1x1,pad_begin=0x0,pad_end=0x0)"
    "[8x64x56x56,64x64x1x1]->[8x64x56x56]:f32";

TEST(KernelTable, AnswersASampleAsMeasured) {
  KernelSample s = sample(relu(1 << 20), 1e-3);
  s.workspace = Bytes{4096};
  s.kept = Bytes{512};
  const auto e = KernelTable(device(), {s}).estimate(s.key);
  EXPECT_EQ(e.time.time, Seconds{1e-3});
  EXPECT_EQ(e.time.provenance, Provenance::measured);
  EXPECT_EQ(e.workspace, Bytes{4096});
  EXPECT_EQ(e.kept, Bytes{512});
  // The median of 25 runs that spread by 10 %: 1.25 * 0.1 / 5 = 0.025; with 0.02 for the step around it, hypot =
  // 0.0320.
  EXPECT_NEAR(e.time.relative_error, 0.0320, 1e-4);
}

// Spreads of 0.1, 0.2 and 0.4: a kernel that was not timed varies by their median; without any, by none.
TEST(KernelTable, TellsHowFarRunsSpread) {
  std::vector<KernelSample> samples = {sample(relu(1 << 20), 1e-3), sample(relu(1 << 21), 2e-3),
                                       sample(relu(1 << 22), 4e-3)};
  samples[1].spread = 0.2, samples[2].spread = 0.4;
  const KernelTable table(device(), samples);
  EXPECT_EQ(table.estimate(samples[2].key).spread, 0.4);
  EXPECT_EQ(table.estimate(key(relu(1 << 23))).spread, 0.2);
  for (KernelSample& s : samples) s.spread = 0;
  EXPECT_EQ(KernelTable(device(), samples).estimate(samples[0].key).spread, 0.0);
}

TEST(KernelTable, TakesTheMeanOfSamplesOfOneKernel) {
  const KernelSample one = sample(relu(1 << 20), 1e-3),
                     other = sample("forward unary[1024x1024]->[1024x1024]:f32", 3e-3);
  const KernelTable two(device(), {one, other});
  EXPECT_DOUBLE_EQ(two.estimate(one.key).time.time.value(), 2e-3);
  EXPECT_EQ(two.size(), 2U);
  const KernelTable three(device(), {other, one, sample(relu(1 << 20), 1.2e-3)});
  EXPECT_DOUBLE_EQ(three.estimate(one.key).time.time.value(), 1.1e-3);  // 3 ms is more than twice the median
}

// Samples of 0.9, 1 and 1.1 ms, 25 runs each that spread by 10 %: the median of each is known to 1.25 * 0.1 / 5 =
// 0.025, that of all to 0.025 / sqrt(3) = 0.0144 if they are alike; with 0.02 for the step around it, hypot = 0.0247.
// They are not: their variance is 0.01, so that the mean is known to 0.1 / sqrt(3) = 0.0577, and hypot = 0.0611.
TEST(KernelTable, IsLessSureWhereTheMachineDrifts) {
  const std::vector<KernelSample> steady(3, sample(relu(1 << 20), 1e-3));
  std::vector<KernelSample> drifting = steady;
  drifting[0].time = Seconds{0.9e-3}, drifting[2].time = Seconds{1.1e-3};
  const KernelKey of = steady[0].key;
  EXPECT_NEAR(KernelTable(device(), steady).estimate(of).time.relative_error, 0.0246, 1e-4);
  EXPECT_NEAR(KernelTable(device(), drifting).estimate(of).time.relative_error, 0.0611, 1e-4);
}

// 80 ms, of five runs that spread by half, beside 50 and 52 ms, known to a percent: somebody else had the processor. 80
// is known to 1.25 * 0.5 / sqrt(5) = 0.28 of 52 ms, 14.5 ms; by it alone the others' mean moves by less than a third of
// a millisecond, and runs are no more apart than theirs.
TEST(KernelTable, HeedsDisturbedSamplesLittle) {
  std::vector<KernelSample> samples(3, sample(relu(1 << 20), 50e-3));
  samples[1].time = Seconds{52e-3}, samples[2].time = Seconds{80e-3};
  for (KernelSample& s : samples) s.spread = 0.01, s.runs = 5;
  const KernelEstimate alike = KernelTable(device(), samples).estimate(samples[0].key);
  EXPECT_NEAR(alike.time.time.value(), (50e-3 + 52e-3 + 80e-3) / 3, 1e-3);
  samples[2].spread = 0.5;
  const KernelEstimate disturbed = KernelTable(device(), samples).estimate(samples[0].key);
  EXPECT_NEAR(disturbed.time.time.value(), 51e-3, 0.3e-3);
  EXPECT_LT(disturbed.spread, 0.06);
  EXPECT_LT(disturbed.time.relative_error, alike.time.relative_error / 3);
}

TEST(KernelTable, InterpolatesTheEfficiencyBetweenTwoSamples) {
  // Both take twice the roofline's time; so does what lies between.
  const KernelTable table(
      device(), {sample(relu(1 << 20), 2 * roofline_relu(1 << 20)), sample(relu(1 << 22), 2 * roofline_relu(1 << 22))});
  const auto e = table.estimate(key(relu(1 << 21)));
  EXPECT_NEAR(e.time.time.value(), 2 * roofline_relu(1 << 21), 1e-9);
  EXPECT_EQ(e.time.provenance, Provenance::interpolated);
}

TEST(KernelTable, InterpolatesAMovingEfficiency) {
  // Slow-down 2 at 2^20 and 8 at 2^22; half way in log2 of size, by symmetry, the geometric mean: 4.
  const KernelTable table(
      device(), {sample(relu(1 << 20), 2 * roofline_relu(1 << 20)), sample(relu(1 << 22), 8 * roofline_relu(1 << 22))});
  EXPECT_NEAR(table.estimate(key(relu(1 << 21))).time.time.value(), 4 * roofline_relu(1 << 21), 1e-9);
}

TEST(KernelTable, NeverMixesElementTypesOfMatrixProducts) {
  // 100 times slower than the roofline in f32: f16, which other units compute, must not hear of it. Datasheet:
  // 2 * 1024^3 FLOPs at 40 TFLOP/s = 53.7 us (less than its 6 MiB at 100 GB/s = 62.9 us), + 2 us, times 1.4.
  std::vector<KernelSample> samples;
  auto product = [](int m, const std::string& dtype) {
    const std::string rows = std::to_string(m);
    return "forward linear[" + rows + "x1024,1024x1024]->[" + rows + "x1024]:" + dtype;
  };
  for (int m = 256; m <= 4096; m *= 2)
    samples.push_back(sample(product(m, "f32"), 100 * (m * 2.0 * 1024 * 1024 / 10e12)));
  const auto e = KernelTable(device(), samples).estimate(key(product(1024, "f16")));
  EXPECT_NEAR(e.time.time.value(), 1.4 * (6.0 * 1024 * 1024 / 100e9 + 2e-6), 1e-9);
  EXPECT_EQ(e.time.provenance, Provenance::estimated);
  EXPECT_GE(e.time.relative_error, 0.3);
}

TEST(KernelTable, TakesTheMemoryBoundFromAnotherTypeAsAGuess) {
  // 3 times the roofline in f32 at every size: so it is in f16, which moves half the bytes, but nobody measured it.
  std::vector<KernelSample> samples;
  for (int i = 16; i < 24; ++i) samples.push_back(sample(relu(1 << i), 3 * roofline_relu(1 << i)));
  const auto e = KernelTable(device(), samples).estimate(key(relu(1 << 20, "f16")));
  EXPECT_NEAR(e.time.time.value(), 3 * (4.0 * (1 << 20) / 100e9 + 2e-6), 1e-9);
  EXPECT_EQ(e.time.provenance, Provenance::estimated);
  EXPECT_GT(e.time.relative_error, 0.1);
}

TEST(KernelTable, CallsARelativesAnswerAnEstimate) {
  // tanh is not relu's family. It is its relative, so that 5 times the roofline carries over, as a guess.
  std::vector<KernelSample> samples;
  for (int i = 16; i < 24; ++i) samples.push_back(sample(relu(1 << i), 5 * roofline_relu(1 << i)));
  const KernelTable table(device(), samples);
  const auto own = table.estimate(key(relu(3 << 18)));
  const auto other = table.estimate(key("forward unary(kind=tanh)[786432]->[786432]:f32"));
  EXPECT_EQ(own.time.provenance, Provenance::interpolated);
  EXPECT_EQ(other.time.provenance, Provenance::estimated);
  EXPECT_GE(other.time.relative_error, 0.2);
  EXPECT_GT(other.time.relative_error, own.time.relative_error);
}

TEST(KernelTable, WithoutAnySampleUsesTheDatasheet) {
  // 2 * 1024^3 FLOPs at 10 TFLOP/s = 214.7 us (more than its 12 MiB at 100 GB/s), + 2 us, times 1.4 for matrix
  // products.
  const auto e = KernelTable(device(), {}).estimate(key("forward linear[1024x1024,1024x1024]->[1024x1024]:f32"));
  EXPECT_NEAR(e.time.time.value(), 1.4 * (2.0 * 1024 * 1024 * 1024 / 10e12 + 2e-6), 1e-9);
  EXPECT_EQ(e.time.provenance, Provenance::estimated);
  EXPECT_GE(e.time.relative_error, 0.3);
}

TEST(KernelTable, WidensAwayFromItsSamples) {
  std::vector<KernelSample> samples;
  for (int i = 16; i < 24; ++i)
    samples.push_back(sample(relu(1 << i), (i % 2 == 0 ? 2.0 : 2.2) * roofline_relu(1 << i)));
  const KernelTable table(device(), samples);
  const auto inside = table.estimate(key(relu(3 << 19))), near = table.estimate(key(relu(3LL << 23))),
             far = table.estimate(key(relu(1LL << 30)));
  EXPECT_LE(inside.time.relative_error, near.time.relative_error);
  EXPECT_LT(near.time.relative_error, far.time.relative_error);
  EXPECT_EQ(inside.time.provenance, Provenance::interpolated);
  EXPECT_EQ(far.time.provenance, Provenance::estimated);
  EXPECT_GE(far.time.relative_error, 0.3);
  // However far, the efficiency stays within what was seen (2 to 2.2 times the roofline, and a tenth beyond).
  EXPECT_GT(far.time.time.value(), 1.7 * roofline_relu(1LL << 30));
  EXPECT_LT(far.time.time.value(), 2.5 * roofline_relu(1LL << 30));
}

TEST(KernelTable, AddsSingleGradientPasses) {
  const KernelTable table(device(), {sample("backward:10 " + shapes, 1e-3), sample("backward:01 " + shapes, 2e-3)});
  const auto e = table.estimate(key("backward:11 " + shapes));
  EXPECT_DOUBLE_EQ(e.time.time.value(), 3e-3);
  EXPECT_EQ(e.time.provenance, Provenance::measured);
}

TEST(KernelTable, TakesOneGradientFromTheWholeLessTheOther) {
  const KernelTable table(device(), {sample("backward:11 " + shapes, 5e-3), sample("backward:01 " + shapes, 2e-3)});
  const auto e = table.estimate(key("backward:10 " + shapes));
  EXPECT_DOUBLE_EQ(e.time.time.value(), 3e-3);
  EXPECT_EQ(e.time.provenance, Provenance::measured);
  // The errors of 5 ms and 2 ms add: (5 + 2) / 3 times that of one sample.
  EXPECT_NEAR(e.time.relative_error, 0.0320 * 7 / 3, 1e-3);
}

TEST(KernelTable, KeepsPointwiseAndWiderConvolutionsApart) {
  auto conv = [](int window, int batch) {
    const std::string w = std::to_string(window) + "x" + std::to_string(window), n = std::to_string(batch);
    const std::string pad = window == 3 ? "1x1" : "0x0";
    return "forward convolution(kernel=" + w + ",stride=1x1,dilation=1x1,pad_begin=" + pad + ",pad_end=" + pad + ")[" +
           n + "x64x56x56,64x64x" + w + "]->[" + n + "x64x56x56]:f32";
  };
  std::vector<KernelSample> samples;
  for (int batch = 1; batch <= 64; batch *= 2) samples.push_back(sample(conv(1, batch), 1e-3 * batch));
  const KernelTable table(device(), samples);
  EXPECT_EQ(table.estimate(key(conv(1, 24))).time.provenance, Provenance::interpolated);
  EXPECT_EQ(table.estimate(key(conv(3, 24))).time.provenance, Provenance::estimated);
}

TEST(KernelTable, PricesMatrixProductsOfAllPassesFromOneFamily) {
  // The gradient of x of a [64,128] x [128,256] product is a [64,256] x [256,128] one.
  std::vector<KernelSample> samples;
  for (int m = 16; m <= 512; m *= 2)
    for (int n = 64; n <= 512; n *= 2) {
      const std::string x = std::to_string(m), y = std::to_string(n);
      samples.push_back(sample("forward linear[" + x + "x256," + y + "x256]->[" + x + "x" + y + "]:f32", 1e-5));
    }
  const auto e = KernelTable(device(), samples).estimate(key("backward:10 linear[64x128,256x128]->[64x256]:f32"));
  EXPECT_EQ(e.time.provenance, Provenance::interpolated);
}

TEST(KernelTable, IsTheSameWhateverTheOrderOfSamples) {
  std::vector<KernelSample> samples;
  for (int i = 0; i < 200; ++i) samples.push_back(sample(relu(1000 + 37 * i * i), 1e-5 * (1 + i % 7)));
  const KernelTable table(device(), samples);
  const KernelTable again(device(), samples);
  std::shuffle(samples.begin(), samples.end(), std::mt19937(7));
  const KernelTable shuffled(device(), samples);
  for (int n : {500, 5000, 77777, 1000000}) {
    EXPECT_EQ(table.estimate(key(relu(n))).time.time, again.estimate(key(relu(n))).time.time);
    EXPECT_NEAR(table.estimate(key(relu(n))).time.time / shuffled.estimate(key(relu(n))).time.time, 1.0, 1e-9);
  }
}

TEST(KernelTable, InterpolatesMemoryAsAFractionOfTraffic) {
  // Workspace of a tenth of the traffic (8 bytes an element) on both sides.
  std::vector<KernelSample> samples = {sample(relu(1 << 20), 1e-3), sample(relu(1 << 22), 4e-3)};
  samples[0].workspace = Bytes{0.8 * (1 << 20)};
  samples[1].workspace = Bytes{0.8 * (1 << 22)};
  EXPECT_NEAR(KernelTable(device(), samples).estimate(key(relu(1 << 21))).workspace.value(), 0.8 * (1 << 21), 1);
}

// A relu of 2^20 elements is bound by memory: 83.9 us and 2 us of start-up. Twice the bandwidth halves the 83.9; twice
// the arithmetic changes nothing. A sample of twice the roofline's time stays at twice.
TEST(KernelTable, OnAnotherDeviceGainsFromWhatBindsIt) {
  const double before = 2 * roofline_relu(1 << 20);
  const KernelTable table(device(), {sample(relu(1 << 20), before)});
  Device wide = device(), quick = device();
  wide.memory_bandwidth *= 2;
  quick.peak[DType::f32] *= 2;
  const KernelKey relu_key = key(relu(1 << 20));
  const auto e = table.on(wide).estimate(relu_key);
  EXPECT_NEAR(e.time.time.value(), 2 * (8.0 * (1 << 20) / 200e9 + 2e-6), 1e-12);
  EXPECT_EQ(e.time.provenance, Provenance::interpolated);
  EXPECT_GT(e.time.relative_error, table.estimate(relu_key).time.relative_error);
  EXPECT_EQ(table.on(quick).estimate(relu_key).time.time, Seconds{before});
  EXPECT_EQ(table.on(quick).estimate(relu_key).time.provenance, Provenance::measured);
}

// 3 x 3 windows at four times the rate that multiplying allows (Winograd's), 5 x 5 of stride 2 at half of it: what a
// 1 x 7 takes follows from the latter. 2 * 8 * 56 * 56 * 64 * 64 * 7 FLOPs at 10 TFLOP/s are 144 us, and twice that it
// takes.
TEST(KernelTable, WindowsWithoutAFastAlgorithmAreLikeThoseThatStep) {
  std::vector<KernelSample> samples;
  for (const int n : {4, 8, 16}) {
    const std::string batch = std::to_string(n) + "x64x";
    const double multiplied = 2.0 * n * 56 * 56 * 64 * 64 / 10e12;
    samples.push_back(sample("forward convolution(kernel=3x3,stride=1x1,dilation=1x1,pad_begin=1x1,pad_end=1x1)[" +
                                 batch + "56x56,64x64x3x3]->[" + batch + "56x56]:f32",
                             9 * multiplied / 4));
    samples.push_back(sample("forward convolution(kernel=5x5,stride=2x2,dilation=1x1,pad_begin=2x2,pad_end=2x2)[" +
                                 batch + "112x112,64x64x5x5]->[" + batch + "56x56]:f32",
                             2 * 25 * multiplied));
  }
  const double least = 2.0 * 8 * 56 * 56 * 64 * 64 * 7 / 10e12;
  const auto e = KernelTable(device(), samples)
                     .estimate(key("forward convolution(kernel=1x7,stride=1x1,dilation=1x1,pad_begin=0x3,pad_end=0x3)"
                                   "[8x64x56x56,64x64x1x7]->[8x64x56x56]:f32"));
  EXPECT_NEAR(e.time.time.value(), 2 * least, 0.15 * least);
}

// Twice the bandwidth, another architecture, no sample of its own: a sum of two tensors that takes twice its roofline's
// time on the donor takes twice its own here. 3 * 4 * 2^20 bytes at 200 GB/s are 62.9 us.
TEST(KernelTable, CarriesKernelsOverFromADonor) {
  const std::string addition = "forward binary[1048576,1048576]->[1048576]:f32";
  const KernelTable donor(device(), {sample(addition, 2 * (12.0 * (1 << 20) / 100e9 + 2e-6))});
  Device own = device();
  own.memory_bandwidth *= 2;
  own.architecture = "other";
  int loaded = 0;
  const KernelTable table(own, {}, [&] {
    ++loaded;
    return std::vector<KernelTable>{donor};
  });
  EXPECT_EQ(loaded, 0);  // nobody asked yet
  const auto e = table.estimate(key(addition));
  EXPECT_NEAR(e.time.time.value(), 2 * (12.0 * (1 << 20) / 200e9 + 2e-6), 1e-12);
  EXPECT_EQ(e.time.provenance, Provenance::estimated);
  EXPECT_GT(e.time.relative_error, 0.1);
  EXPECT_EQ(table.estimate(key(addition)).time.time, e.time.time);
  EXPECT_EQ(loaded, 1);
}

// A donor that nobody timed anything like the kernel on knows no more of it than the datasheet here.
TEST(KernelTable, HearsNoDonorThatKnowsADatasheetAlone) {
  const KernelTable knows(device(), {sample("forward softmax(axis=1)[1024x1024]->[1024x1024]:f32", 1e-3)});
  const KernelTable knows_nothing(device(), {});
  Device own = device();
  own.memory_bandwidth *= 2;
  const KernelTable one(own, {}, [&] { return std::vector{knows}; });
  const KernelTable both(own, {}, [&] { return std::vector{knows_nothing, knows}; });
  const KernelKey half = key("forward softmax(axis=1)[1024x1024]->[1024x1024]:f16");
  const KernelEstimate heard = one.estimate(half);
  EXPECT_EQ(heard.time.provenance, Provenance::estimated);
  EXPECT_NE(heard.time.time, KernelTable(own, {}).estimate(half).time.time);
  EXPECT_EQ(both.estimate(half).time.time, heard.time.time);
}

// The same silicon under another name (a card with twice the memory): its measurements are this card's.
TEST(KernelTable, TakesATwinsMeasurementsAsItsOwn) {
  Device one = device(), other = device();
  one.architecture = other.architecture = "same";
  other.memory = Bytes{32e9};
  const KernelTable donor(one, {sample(relu(1 << 20), 1e-3)});
  const KernelTable twin(other, {}, [&] { return std::vector<KernelTable>{donor}; });
  const auto e = twin.estimate(key(relu(1 << 20)));
  EXPECT_EQ(e.time.time, Seconds{1e-3});
  EXPECT_EQ(e.time.provenance, Provenance::measured);
}

// 2 * 8192^3 FLOPs at 10 TFLOP/s are 110 ms, and no sum of bytes comes near that.
constexpr double long_product = 2.0 * 8192 * 8192 * 8192 / 10e12;
const std::string product = "forward linear[8192x8192,8192x8192]->[8192x8192]:f32";

// Of `name`'s silicon, on a board of `watts`, one that took twice the least time of a product if `samples`.
KernelTable on_board(double watts, double wanted, bool samples, std::vector<KernelTable> donors = {}) {
  Device d = device();
  d.architecture = "same";
  d.board_power = Watts{watts};
  d.boost_power = Watts{wanted};
  const auto own = samples ? std::vector{sample(product, 2 * long_product), sample(relu(1 << 20), 1e-3)}
                           : std::vector<KernelSample>{};
  return {d, own, [donors] { return donors; }};
}

// Products that want 400 W run at half the clock on a board of 100 W, whose power goes as the clock's square, and at
// the whole one on a board of 500. What waits for memory takes as long on either, and is no twin's all the same.
TEST(KernelTable, CarriesProductsToABoardOfOtherPowerByItsClock) {
  const KernelTable weak = on_board(100, 400, true);
  const KernelTable strong = on_board(500, 400, false, {weak});
  const auto quick = strong.estimate(key(product));
  EXPECT_NEAR(quick.time.time.value(), long_product, 1e-3 * long_product);
  EXPECT_EQ(quick.time.provenance, Provenance::estimated);
  EXPECT_LT(quick.time.relative_error, 0.08);
  EXPECT_NEAR(strong.estimate(key(relu(1 << 20))).time.time.value(), 1e-3, 1e-9);
  const KernelTable back = on_board(100, 400, false, {on_board(500, 400, true)});
  EXPECT_NEAR(back.estimate(key(product)).time.time.value(), 4 * long_product, 4e-3 * long_product);
}

// A product that reaches 70 % of 40 TFLOP/s in f16, on another board whose units are as many and as quick: where that
// board lets them run at half their rate alone it is that half which they reach, not 70 % of it; where the product
// reaches less than half, it takes as long on either.
TEST(KernelTable, CarriesProductsToUnitsThatABoardSlowsDown) {
  const std::string half_product = "forward linear[8192x8192,8192x8192]->[8192x8192]:f16";
  const auto device_of = [](double peak, double share) {
    Device d = device();
    d.multiprocessors = 64;  // whose tiles fill whole waves
    d.memory_bandwidth = BytesPerSecond{4e12};
    d.peak[DType::f16] = FlopsPerSecond{peak};
    if (share < 1) d.unit_share[DType::f16] = share;
    return d;
  };
  const auto carried_time = [&](double reached, double peak, double share) {
    const double there = long_product * 10e12 / (reached * 40e12);
    const KernelTable donor(device_of(40e12, 1.0), {sample(half_product, there)});
    const KernelTable table(device_of(peak, share), {}, [donor] { return std::vector{donor}; });
    return table.estimate(key(half_product)).time.time.value() / (long_product * 10e12 / 40e12);
  };
  EXPECT_NEAR(carried_time(0.7, 40e12, 1.0), 1 / 0.7, 1e-3);
  EXPECT_NEAR(carried_time(0.7, 20e12, 1.0), 2 / 0.7, 1e-3) << "units that are half as quick";
  EXPECT_NEAR(carried_time(0.7, 20e12, 0.5), 2.0, 1e-2);
  EXPECT_NEAR(carried_time(0.4, 20e12, 0.5), 1 / 0.4, 1e-3);
}

// Of a product only the silicon matters, of what waits for memory the memory, too.
TEST(KernelTable, OtherMemoryMakesProductsNoLessSure) {
  Device d = device();
  d.architecture = "same";
  d.memory_bandwidth *= 2;
  const KernelTable other(d, {}, [] { return std::vector{on_board(0, 0, true)}; });
  const auto long_one = other.estimate(key(product));
  EXPECT_NEAR(long_one.time.time.value(), 2 * long_product, 1e-9);
  EXPECT_LT(long_one.time.relative_error, 0.08);
  const std::string softmax = "forward softmax(axis=1)[1024x1024]->[1024x1024]:f32";
  Device one = device();
  one.architecture = "same";
  const KernelTable donor(one, {sample(softmax, 1e-3)});
  const KernelTable wide(d, {}, [&] { return std::vector{donor}; });
  EXPECT_GT(wide.estimate(key(softmax)).time.relative_error, 0.2);
}

// More power than the clock of the peaks wants is no faster, and none is faster than the peak.
TEST(KernelTable, NoPowerLiftsAProductAboveItsPeak) {
  const KernelTable enough = on_board(500, 400, true);
  EXPECT_NEAR(on_board(900, 400, false, {enough}).estimate(key(product)).time.time.value(), 2 * long_product, 1e-6);
  const KernelTable weak = on_board(50, 400, true);  // an eighth of the power, 0.35 of the clock: 0.71 of the least
  EXPECT_GE(on_board(500, 400, false, {weak}).estimate(key(product)).time.time.value(), long_product);
}

// Where the clock that a board can hold is not known, its kernels count as those of the other board, not quite as sure.
TEST(KernelTable, BoardsOfOtherPowerAreNoTwins) {
  const auto e = on_board(300, 0, false, {on_board(350, 0, true)}).estimate(key(product));
  EXPECT_NEAR(e.time.time.value(), 2 * long_product, 1e-9);
  EXPECT_EQ(e.time.provenance, Provenance::estimated);
  const auto unknown = on_board(300, 0, false, {on_board(0, 0, true)}).estimate(key(product));
  EXPECT_EQ(unknown.time.provenance, Provenance::measured);
}

// A fused update of Adam moves 7 * 4 bytes an element (p, g, m, v read; p, m, v written): nobody timed it, but a sum of
// two tensors that moves as many bytes takes 3 times its roofline.
TEST(KernelTable, PricesAnUpdateByTheBytesOfASum) {
  std::vector<KernelSample> samples;
  for (int i = 16; i < 26; ++i) {
    const std::string n = std::to_string(1 << i);
    samples.push_back(
        sample("forward binary[" + n + "," + n + "]->[" + n + "]:f32", 3 * (12.0 * (1 << i) / 100e9 + 2e-6)));
  }
  const auto e = KernelTable(device(), samples)
                     .estimate(key("forward optimizer_update(kind=adam,fused=1)[1048576]->[1048576]:f32"));
  EXPECT_NEAR(e.time.time.value(), 3 * (28.0 * (1 << 20) / 100e9 + 2e-6), 1e-8);
  EXPECT_EQ(e.time.provenance, Provenance::estimated);
}

TEST(KernelTable, SaysWhatItHolds) {
  std::vector<KernelSample> samples;
  for (int i = 16; i < 24; ++i) samples.push_back(sample(relu(1 << i), 2 * roofline_relu(1 << i)));
  const auto coverage = KernelTable(device(), samples).coverage();
  ASSERT_EQ(coverage.size(), 1U);
  EXPECT_EQ(coverage[0].name, "forward unary");
  EXPECT_EQ(coverage[0].samples, 8U);
  EXPECT_EQ(coverage[0].fastest, samples.front().time);
  EXPECT_EQ(coverage[0].slowest, samples.back().time);
  EXPECT_NEAR(coverage[0].median_error, 0.0, 1e-9);  // the same efficiency everywhere
}

}  // namespace
}  // namespace sibyl
