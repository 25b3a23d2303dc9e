// Activations as exporters spell them, each in the orders met in files, and near misses that must stay as they are.
#include <cmath>
#include <numbers>

#include "tests/unit/models/canonical/canonical_test.h"

namespace sibyl {
namespace {

using test::canonical;
using test::GraphBuilder;
using test::Names;

TEST(Gelu, AsTorchExportsIt) {  // Div, Erf, Add, Mul, Mul
  GraphBuilder b;
  const TensorId x = b.input({2, 8});
  b.mul(b.mul(x, b.add(b.unary(UnaryKind::erf, b.div(x, std::numbers::sqrt2)), 1.0)), 0.5);
  const auto graph = canonicalize(b.finish());
  ASSERT_TRUE(graph);
  ASSERT_EQ(test::operations_of(*graph), Names{"unary(kind=gelu)"});
  EXPECT_EQ(graph->operations()[0].fused.size(), 5U);  // the five nodes it stands for
  EXPECT_EQ(graph->tensors().size(), 2U);              // x and y; the constants are gone
}

TEST(Gelu, HalfBeforeTheProduct) {
  GraphBuilder b;
  const TensorId x = b.input({2, 8});
  b.mul(b.mul(x, 0.5), b.add(b.unary(UnaryKind::erf, b.mul(x, 0.70710678)), 1.0));
  EXPECT_EQ(canonical(b), Names{"unary(kind=gelu)"});
}

TEST(Gelu, HalfOnTheGate) {  // x * (0.5 * (1 + erf))
  GraphBuilder b;
  const TensorId x = b.input({2, 8});
  b.mul(b.mul(b.add(b.unary(UnaryKind::erf, b.div(x, 1.4142135)), 1.0), 0.5), x);
  EXPECT_EQ(canonical(b), Names{"unary(kind=gelu)"});
}

TEST(Gelu, OfAScaledTensor) {  // x = 2 u is outside the pattern and stays
  GraphBuilder b;
  const TensorId x = b.mul(b.input({2, 8}), 2.0);
  b.mul(b.mul(x, b.add(b.unary(UnaryKind::erf, b.div(x, std::numbers::sqrt2)), 1.0)), 0.5);
  EXPECT_EQ(canonical(b), (Names{"unary(kind=scale_shift,alpha=2)", "unary(kind=gelu)"}));
}

TEST(Gelu, NotWithAnotherConstant) {
  GraphBuilder b;
  const TensorId x = b.input({2, 8});
  b.mul(b.mul(x, b.add(b.unary(UnaryKind::erf, b.div(x, 1.5)), 1.0)), 0.5);
  EXPECT_EQ(canonical(b).size(), 5U);
}

TEST(Gelu, NotWhenAValueInsideIsUsed) {
  GraphBuilder b;
  const TensorId x = b.input({2, 8});
  const TensorId erf = b.unary(UnaryKind::erf, b.div(x, std::numbers::sqrt2));
  const TensorId y = b.mul(b.mul(x, b.add(erf, 1.0)), 0.5);
  EXPECT_EQ(canonical(b, {y, erf}).size(), 5U);
}

TEST(GeluTanh, WithPow) {  // 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
  GraphBuilder b;
  const TensorId x = b.input({2, 8});
  const TensorId inner = b.mul(b.add(x, b.mul(b.pow(x, 3), 0.044715)), std::sqrt(2 / std::numbers::pi));
  b.mul(b.mul(x, 0.5), b.add(b.unary(UnaryKind::tanh, inner), 1.0));
  EXPECT_EQ(canonical(b), Names{"unary(kind=gelu_tanh)"});
}

TEST(GeluTanh, Factored) {  // tanh(0.7978845608 x (1 + 0.044715 x x))
  GraphBuilder b;
  const TensorId x = b.input({2, 8});
  const TensorId inner = b.mul(b.mul(x, 0.7978845608), b.add(b.mul(b.mul(x, 0.044715), x), 1.0));
  b.mul(b.mul(x, 0.5), b.add(b.unary(UnaryKind::tanh, inner), 1.0));
  EXPECT_EQ(canonical(b), Names{"unary(kind=gelu_tanh)"});
}

TEST(Silu, SigmoidTimesX) {
  GraphBuilder b;
  const TensorId x = b.input({2, 8});
  b.mul(b.unary(UnaryKind::sigmoid, x), x);
  EXPECT_EQ(canonical(b), Names{"unary(kind=silu)"});
}

TEST(Silu, NotAGateOnSomethingElse) {  // squeeze-and-excitation: sigmoid(a) b
  GraphBuilder b;
  const TensorId a = b.input({2, 8}), x = b.input({2, 8});
  b.mul(b.unary(UnaryKind::sigmoid, a), x);
  EXPECT_EQ(canonical(b), (Names{"unary(kind=sigmoid)", "binary(kind=mul)"}));
}

TEST(Silu, NotTheQuickGelu) {  // x sigmoid(1.702 x) runs as it is written
  GraphBuilder b;
  const TensorId x = b.input({2, 8});
  b.mul(x, b.unary(UnaryKind::sigmoid, b.mul(x, 1.702)));
  EXPECT_EQ(canonical(b).size(), 3U);
}

TEST(HardSwish, FromHardSigmoid) {
  GraphBuilder b;
  const TensorId x = b.input({2, 8});
  b.mul(x, b.unary(UnaryKind::hard_sigmoid, x, 1.0 / 6, 0.5));
  EXPECT_EQ(canonical(b), Names{"unary(kind=hard_swish)"});
}

TEST(HardSwish, FromClip) {  // x clip(x + 3, 0, 6) / 6
  GraphBuilder b;
  const TensorId x = b.input({2, 8});
  b.div(b.mul(x, b.unary(UnaryKind::clip, b.add(x, 3.0), 0, 6)), 6.0);
  EXPECT_EQ(canonical(b), Names{"unary(kind=hard_swish)"});
}

TEST(Mish, FromSoftplusAndTanh) {
  GraphBuilder b;
  const TensorId x = b.input({2, 8});
  b.mul(x, b.unary(UnaryKind::tanh, b.unary(UnaryKind::softplus, x)));
  EXPECT_EQ(canonical(b), Names{"unary(kind=mish)"});
}

TEST(Scalars, BecomeUnary) {
  GraphBuilder b;
  TensorId x = b.input({2, 8});
  x = b.sub(b.constant(1), x);                      // 1 - x
  x = b.div(b.constant(1), x);                      // 1 / x
  x = b.binary(BinaryKind::max, x, b.constant(0));  // relu
  x = b.binary(BinaryKind::pow, x, b.constant(0.75));
  x = b.binary(BinaryKind::min, x, b.constant(6));
  b.div(x, b.unary(UnaryKind::sqrt, b.constant(64)));  // / sqrt(64), folded
  EXPECT_EQ(canonical(b), (Names{"unary(kind=scale_shift,alpha=-1,beta=1)", "unary(kind=reciprocal)", "unary",
                                 "unary(kind=pow,alpha=0.75)", "unary(kind=clip,alpha=-inf,beta=6)",
                                 "unary(kind=scale_shift,alpha=0.125)"}));
}

TEST(Scalars, ATrainedScalarStays) {
  GraphBuilder b;
  b.mul(b.input({2, 8}), b.parameter({}));
  EXPECT_EQ(canonical(b), Names{"binary(kind=mul)"});
}

}  // namespace
}  // namespace sibyl
