// LayerNorm and RMSNorm as PyTorch, TensorFlow and language models write them. x is [2, 4, 8]: means run over the
// last 8.
#include "tests/unit/models/canonical/canonical_test.h"

namespace sibyl {
namespace {

using test::GraphBuilder;
using test::Names;

const Names layer = {"normalization(kind=layer)"};
const Names rms = {"normalization(kind=rms,epsilon=1e-06)"};

struct Norms : test::CanonicalTest {
  TensorId x = b.input({2, 4, 8});

  TensorId standard_deviation(TensorId square, double epsilon = 1e-5) {
    return b.unary(UnaryKind::sqrt, b.add(b.mean_last(square), epsilon));
  }
};

TEST_F(Norms, TorchLayerNormWithAffine) {
  const TensorId d = b.sub(x, b.mean_last(x));
  const TensorId y = b.div(d, standard_deviation(b.pow(d, 2)));
  b.add(b.mul(y, b.parameter({8})), b.parameter({8}));
  ASSERT_EQ(canonical(), layer);
  EXPECT_EQ(result.operations()[0].inputs.size(), 3U);
  EXPECT_EQ(result.operations()[0].fused.size(), 9U);  // mean, sub, pow, mean, add, sqrt, div, mul, add
  EXPECT_EQ(result.parameter_count(), 16);
}

TEST_F(Norms, WithoutAffineAndWithSquareAsProduct) {
  const TensorId d = b.sub(x, b.mean_last(x));
  b.div(d, standard_deviation(b.mul(d, d)));
  ASSERT_EQ(canonical(), layer);
  EXPECT_EQ(result.operations()[0].inputs.size(), 1U);
}

TEST_F(Norms, ReciprocalOfTheRoot) {
  const TensorId d = b.sub(x, b.mean_last(x));
  const TensorId y = b.mul(d, b.unary(UnaryKind::reciprocal, standard_deviation(b.mul(d, d))));
  b.mul(b.parameter({8}), y);  // a scale alone, on the left
  ASSERT_EQ(canonical(), layer);
  EXPECT_EQ(result.operations()[0].inputs.size(), 2U);
}

TEST_F(Norms, TheDifferenceTakenTwice) {
  const TensorId mean = b.mean_last(x);
  const TensorId d = b.sub(x, mean);
  b.div(b.sub(x, mean), standard_deviation(b.mul(d, d)));
  EXPECT_EQ(canonical(), layer);
}

TEST_F(Norms, TensorFlowFoldsTheScaleIn) {  // inv = 1 / sqrt(v + e) g;  x inv + (s - m inv)
  const TensorId mean = b.mean_last(x), d = b.sub(x, mean);
  const TensorId root = b.unary(UnaryKind::reciprocal, standard_deviation(b.mul(d, d)));
  const TensorId inverse = b.mul(root, b.parameter({8}));
  b.add(b.mul(x, inverse), b.sub(b.parameter({8}), b.mul(mean, inverse)));
  ASSERT_EQ(canonical(), layer);
  EXPECT_EQ(result.operations()[0].inputs.size(), 3U);
}

TEST_F(Norms, ScaleOfAnotherShapeIsNotPartOfIt) {
  const TensorId d = b.sub(x, b.mean_last(x));
  b.mul(b.div(d, standard_deviation(b.pow(d, 2))), b.parameter({4, 1}));
  EXPECT_EQ(canonical(), (Names{layer[0], "binary(kind=mul)"}));
}

TEST_F(Norms, TheNormalisedValueUsedTwiceKeepsItsAffineApart) {
  const TensorId d = b.sub(x, b.mean_last(x));
  const TensorId y = b.div(d, standard_deviation(b.pow(d, 2)));
  const TensorId scaled = b.mul(y, b.parameter({8}));
  EXPECT_EQ(canonical({y, scaled}), (Names{layer[0], "binary(kind=mul)"}));
}

TEST_F(Norms, NotWhenTheVarianceIsUsedElsewhere) {
  const TensorId d = b.sub(x, b.mean_last(x));
  const TensorId variance = b.mean_last(b.pow(d, 2));
  const TensorId y = b.div(d, b.unary(UnaryKind::sqrt, b.add(variance, 1e-5)));
  EXPECT_EQ(canonical({y, variance}).size(), 7U);
}

TEST_F(Norms, NotWhenTheMeanIsOfSomethingElse) {
  const TensorId other = b.input({2, 4, 8});
  const TensorId d = b.sub(x, b.mean_last(other));
  b.div(d, standard_deviation(b.pow(d, 2)));
  // d / sqrt(mean(d^2) + eps) is no quotient by a reciprocal: the RMS of d, whatever d is.
  EXPECT_EQ(canonical(), (Names{"reduce(axes=2)", "binary(kind=sub)", "normalization(kind=rms)"}));
}

TEST_F(Norms, RmsAsLlamaWritesIt) {  // w (x rsqrt(mean(x^2) + eps)), rsqrt as Reciprocal(Sqrt)
  const TensorId root = b.unary(UnaryKind::reciprocal, standard_deviation(b.pow(x, 2), 1e-6));
  b.mul(b.parameter({8}), b.mul(x, root));
  ASSERT_EQ(canonical(), rms);
  EXPECT_EQ(result.operations()[0].inputs.size(), 2U);
}

TEST_F(Norms, RmsWithDivisionOfOne) {
  const TensorId root = b.div(b.constant(1), standard_deviation(b.pow(x, 2), 1e-6));
  b.mul(b.mul(x, root), b.parameter({8}));
  EXPECT_EQ(canonical(), rms);
}

TEST_F(Norms, NotOverAFirstAxis) {
  const TensorId mean = b.op(Reduce{ReduceKind::mean, {1}, true}, {b.mul(x, x)}, {2, 1, 8});
  b.div(x, b.unary(UnaryKind::sqrt, b.add(mean, 1e-6)));
  EXPECT_EQ(canonical().size(), 5U);
}

// x [2, 6, 3, 3] in 2 groups of 3 channels: [2, 2, 27].
struct GroupNorms : Norms {
  TensorId image = b.input({2, 6, 3, 3});
  TensorId normalised(TensorId scale, TensorId shift) {
    const TensorId grouped = b.reshape(image, {2, 2, 27});
    return b.reshape(b.op(Normalization{NormalizationKind::instance}, {grouped, scale, shift}, {2, 2, 27}),
                     {2, 6, 3, 3});
  }
};

TEST_F(GroupNorms, AsTorchExportsIt) {
  const TensorId y = normalised(b.buffer({2}), b.buffer({2}));
  const TensorId scale = b.parameter({6}), shift = b.parameter({6, 1, 1});
  const TensorId z = b.add(b.mul(y, b.reshape(scale, {6, 1, 1})), shift);
  ASSERT_EQ(canonical({z}), Names{"normalization(kind=group,groups=2)"});
  const Operation& op = result.operations()[0];
  ASSERT_EQ(op.inputs.size(), 3U);
  EXPECT_EQ(result[op.inputs[1]].shape, Shape{6});
  EXPECT_EQ(result[op.inputs[2]].shape, Shape{6});
  EXPECT_EQ(op.fused.size(), 5U);
}

TEST_F(GroupNorms, NotWhenTheInstanceNormIsTrained) {
  const TensorId y = normalised(b.parameter({2}), b.parameter({2}));
  const TensorId z = b.add(b.mul(y, b.parameter({6, 1, 1})), b.parameter({6, 1, 1}));
  EXPECT_EQ(canonical({z}).size(), 5U);
}

TEST_F(GroupNorms, NotOfNoChannels) {
  const TensorId grouped = b.reshape(b.input({2, 0, 3, 3}), {2, 0, 9}), none = b.buffer({0});
  const TensorId y = b.op(Normalization{NormalizationKind::instance}, {grouped, none, none}, {2, 0, 9});
  const TensorId z = b.reshape(y, {2, 0, 3, 3});
  EXPECT_EQ(canonical({z}), (Names{"reshape", "normalization(kind=instance)", "reshape"}));
}

TEST_F(GroupNorms, NotWithAScaleAlongTheColumns) {
  const TensorId y = normalised(b.buffer({2}), b.buffer({2}));
  const TensorId z = b.add(b.mul(y, b.parameter({3})), b.parameter({6, 1, 1}));
  EXPECT_EQ(canonical({z}).size(), 5U);
}

}  // namespace
}  // namespace sibyl
