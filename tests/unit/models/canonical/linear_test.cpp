#include "tests/unit/models/canonical/canonical_test.h"

namespace sibyl {
namespace {

using test::GraphBuilder;
using test::Names;

struct Layers : test::CanonicalTest {};

TEST_F(Layers, MatMulAndAddBecomeLinear) {
  b.add(b.parameter({16}), b.matmul(b.input({2, 4, 8}), b.parameter({8, 16})));
  ASSERT_EQ(canonical(), Names{"linear(weight_kn=1)"});
  EXPECT_EQ(result.operations()[0].inputs.size(), 3U);
  EXPECT_EQ(result.operations()[0].fused.size(), 2U);
}

TEST_F(Layers, BiasesMayStayApart) {
  const auto layers = [](const Apart& apart) {
    GraphBuilder g;
    const Convolution conv{{1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1, false, {}};
    const TensorId image =
        g.op(conv, {g.input({2, 3, 8, 8}), g.parameter({5, 3, 1, 1}), g.parameter({5})}, {2, 5, 8, 8});
    const TensorId y = g.add(g.matmul(g.input({2, 8}), g.parameter({8, 16})), g.parameter({16}));
    return canonicalize(g.finish({image, y}), apart).value();
  };
  EXPECT_EQ(layers({}).operations().size(), 2U);
  EXPECT_EQ(test::operations_of(layers({.linear_bias = true})).back(), "binary");
  EXPECT_EQ(layers({.linear_bias = true}).operations().size(), 3U);
  const Graph split = layers({.convolution_bias = true});
  ASSERT_EQ(split.operations().size(), 3U);
  const Operation &product = split.operations()[0], &add = split.operations()[1];
  EXPECT_EQ(product.inputs.size(), 2U);
  EXPECT_EQ(add.inputs[0], product.outputs[0]);
  EXPECT_EQ(split[add.inputs[1]].shape, (Shape{5, 1, 1}));
  EXPECT_EQ(split.parameter_count(), layers({}).parameter_count());
}

TEST_F(Layers, ATransposedParameterIsAWeightByRows) {  // tied output embeddings
  const TensorId table = b.parameter({100, 8});
  const TensorId ids = b.input({2, 4}, DType::i64);
  const TensorId x = b.op(Embedding{}, {table, ids}, {2, 4, 8});
  b.matmul(x, b.transpose(table, {1, 0}));
  EXPECT_EQ(canonical(), (Names{"embedding", "linear"}));
  EXPECT_EQ(result.parameter_count(), 800);
}

TEST_F(Layers, AProductOfActivationsStays) {
  b.matmul(b.input({2, 4, 8}), b.input({2, 8, 4}));
  EXPECT_EQ(canonical(), Names{"matmul"});
}

TEST_F(Layers, TwoUsesOfTheProductKeepTheAddApart) {
  const TensorId y = b.matmul(b.input({2, 8}), b.parameter({8, 16}));
  const TensorId z = b.add(y, b.parameter({16}));
  EXPECT_EQ(canonical({y, z}), (Names{"linear(weight_kn=1)", "binary"}));
}

TEST_F(Layers, AResidualIsNoBias) {
  const TensorId x = b.input({2, 16});
  b.add(b.matmul(x, b.parameter({16, 16})), x);
  EXPECT_EQ(canonical(), (Names{"linear(weight_kn=1)", "binary"}));
}

TEST_F(Layers, AddOverChannelsIsAConvolutionsBias) {
  const Convolution conv{{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1, false, {}};
  const TensorId y = b.op(conv, {b.input({2, 3, 8, 8}), b.parameter({5, 3, 3, 3})}, {2, 5, 8, 8});
  b.add(y, b.parameter({1, 5, 1, 1}));
  ASSERT_EQ(canonical().size(), 1U);
  const Operation& op = result.operations()[0];
  ASSERT_EQ(op.inputs.size(), 3U);
  EXPECT_EQ(result[op.inputs[2]].shape, Shape{5});  // as a convolution takes its bias
}

TEST_F(Layers, AddOverColumnsIsNotAConvolutionsBias) {
  const Convolution conv{{1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1, false, {}};
  const TensorId y = b.op(conv, {b.input({2, 3, 5, 5}), b.parameter({5, 3, 1, 1})}, {2, 5, 5, 5});
  b.add(y, b.parameter({5}));  // broadcasts along the last axis, which has 5 columns
  EXPECT_EQ(canonical().size(), 2U);
}

}  // namespace
}  // namespace sibyl
