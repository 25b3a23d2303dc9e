#include "tests/support/cancelling.h"
#include "tests/unit/models/canonical/canonical_test.h"

namespace sibyl {
namespace {

using test::canonical;
using test::GraphBuilder;
using test::Names;

TEST(Views, IdentitiesGo) {
  GraphBuilder b;
  TensorId x = b.input({2, 8});
  x = b.reshape(x, {2, 8});
  x = b.op(Expand{}, {x}, {2, 8});
  x = b.op(Cast{DType::f32}, {x}, {2, 8});
  x = b.transpose(x, {0, 1});
  b.unary(UnaryKind::relu, x);
  EXPECT_EQ(canonical(b), Names{"unary"});
}

TEST(Views, AnOutputThatIsAnIdentityKeepsTheGraphsOutput) {
  GraphBuilder b;
  const TensorId y = b.unary(UnaryKind::relu, b.input({2, 8}));
  const auto graph = canonicalize(b.finish({b.reshape(y, {2, 8})}));
  ASSERT_TRUE(graph);
  ASSERT_EQ(graph->outputs.size(), 1U);
  EXPECT_EQ((*graph)[graph->producer(graph->outputs[0])].name, b.graph[y].name);
}

TEST(Views, ReshapesMergeAndCancel) {
  GraphBuilder b;
  const TensorId x = b.input({2, 8});
  const TensorId merged = b.reshape(b.reshape(x, {2, 2, 4}), {2, 4, 2});
  const TensorId cancelled = b.unary(UnaryKind::relu, b.reshape(b.reshape(x, {2, 2, 4}), {2, 8}));
  EXPECT_EQ(canonical(b, {merged, cancelled}), (Names{"reshape", "unary"}));
}

TEST(Views, TransposesCancelOrCompose) {
  GraphBuilder b;
  const TensorId x = b.input({2, 3, 4, 5});
  // NCHW -> NHWC -> NCHW around nothing: as tf2onnx leaves it.
  const TensorId same = b.unary(UnaryKind::relu, b.transpose(b.transpose(x, {0, 2, 3, 1}), {0, 3, 1, 2}));
  const TensorId composed = b.transpose(b.transpose(x, {0, 2, 3, 1}), {0, 2, 1, 3});
  EXPECT_EQ(canonical(b, {same, composed}), (Names{"unary", "transpose(permutation=0x3x2x1)"}));
}

TEST(Views, TransposesAroundAConvolutionStay) {
  GraphBuilder b;
  const Convolution conv{{1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, 1, false, {}};
  const TensorId x = b.transpose(b.input({2, 4, 5, 3}), {0, 3, 1, 2});
  b.transpose(b.op(conv, {x, b.parameter({3, 3, 1, 1})}, {2, 3, 4, 5}), {0, 2, 3, 1});
  EXPECT_EQ(canonical(b).size(), 3U);
}

TEST(Select, OnePositionIsASliceAndAReshape) {  // x[:, -1]: the last token
  GraphBuilder b;
  b.op(Gather{1}, {b.input({2, 4, 8}), b.constant(-1)}, {2, 8});
  EXPECT_EQ(canonical(b), (Names{"slice(axes=1,starts=3,ends=4,steps=1)", "reshape"}));
}

TEST(Select, SeveralPositionsStay) {
  GraphBuilder b;
  b.op(Gather{1}, {b.input({2, 4, 8}), b.buffer({2}, DType::i64)}, {2, 2, 8});
  EXPECT_EQ(canonical(b), Names{"gather(axis=1)"});
}

TEST(DeadCode, WhatNoOutputNeedsGoes) {
  GraphBuilder b;
  const TensorId x = b.input({2, 8});
  b.matmul(x, b.parameter({8, 100}));  // a head that is not returned
  const TensorId y = b.unary(UnaryKind::relu, x);
  const auto graph = canonicalize(b.finish({y}));
  ASSERT_TRUE(graph);
  EXPECT_EQ(test::operations_of(*graph), Names{"unary"});
  EXPECT_EQ(graph->parameter_count(), 0);
}

// Before each pattern.
TEST(Canonical, EndsWhenItIsCancelled) {
  GraphBuilder b;
  const TensorId x = b.input({2, 4});
  const Graph graph = b.finish({b.unary(UnaryKind::relu, b.reshape(b.reshape(x, {2, 2, 4}), {2, 8}))});
  const auto work = [&](const Cancelled& cancelled) { return canonicalize(graph, {}, cancelled); };
  test::expect_ends_when_cancelled(work);
  EXPECT_GT(test::times_asked(work), 20U);
}

}  // namespace
}  // namespace sibyl
