// Scaled dot-product attention: B = 2 samples, H = 4 heads, S = 6 tokens, D = 16 per head, scale 1/sqrt(16) = 0.25.
#include <limits>

#include "tests/unit/models/canonical/canonical_test.h"

namespace sibyl {
namespace {

using test::GraphBuilder;
using test::Names;

struct Attentions : test::CanonicalTest {
  TensorId q = b.input({2, 4, 6, 16}), v = b.input({2, 4, 6, 16});
  TensorId tokens = b.input({2, 6, 4, 16});  // k before its heads are split: [B, S, H, D]

  TensorId keys() { return b.transpose(tokens, {0, 2, 3, 1}); }  // [B, H, D, S]
  const Operation& last() { return result.operations().back(); }
};

TEST_F(Attentions, ScaledByADivisionOfTheScores) {
  b.matmul(b.softmax(b.div(b.matmul(q, keys()), 4.0)), v);
  ASSERT_EQ(canonical(), (Names{"transpose(permutation=0x2x1x3)", "attention(scale=0.25)"}));
  EXPECT_EQ(result[last().inputs[1]].shape, (Shape{2, 4, 6, 16}));
  EXPECT_EQ(last().fused.size(), 4U);  // product, division, softmax, product
}

TEST_F(Attentions,
       ScaledByTheRootOnBothSides) {  // torch's scaled_dot_product_attention: q sqrt(scale), k^T sqrt(scale)
  b.matmul(b.softmax(b.matmul(b.mul(q, 0.5), b.mul(keys(), 0.5))), v);
  EXPECT_EQ(canonical(), (Names{"transpose(permutation=0x2x1x3)", "attention(scale=0.25)"}));
}

TEST_F(Attentions, KeysTransposedFromTheirHeads) {
  const TensorId k = b.input({2, 4, 6, 16});
  b.matmul(b.softmax(b.matmul(b.mul(q, 0.25), b.transpose(k, {0, 1, 3, 2}))), v);
  ASSERT_EQ(canonical(), Names{"attention(scale=0.25)"});
}

TEST_F(Attentions, WithMaskAndDropout) {  // BERT: scores / 4 + mask, softmax, dropout
  const TensorId mask = b.input({2, 1, 1, 6});
  const TensorId p = b.softmax(b.add(b.div(b.matmul(q, keys()), 4.0), mask));
  b.matmul(b.op(Dropout{0.1}, {p}, {2, 4, 6, 6}), v);
  ASSERT_EQ(canonical().back(), "attention(scale=0.25,dropout=0.1)");
  ASSERT_EQ(last().inputs.size(), 4U);
  EXPECT_EQ(result[last().inputs[3]].shape, (Shape{2, 1, 1, 6}));
}

TEST_F(Attentions, ASelectedConstantTriangleIsCausal) {  // GPT-2
  const TensorId triangle = b.buffer({1, 1, 6, 6}, DType::boolean);
  const TensorId scores = b.div(b.matmul(q, keys()), 4.0);
  b.matmul(b.softmax(b.op(Where{}, {triangle, scores, b.constant(-1e4)}, {2, 4, 6, 6})), v);
  ASSERT_EQ(canonical().back(), "attention(causal=1,scale=0.25)");
  EXPECT_EQ(last().inputs.size(), 3U);
}

TEST_F(Attentions, AStoredTriangleToAddIsCausalAndNoParameter) {  // minus infinity above the diagonal, [:S, :S] of it
  const TensorId mask = b.op(Slice{{0, 1}, {0, 0}, {6, 6}, {1, 1}}, {b.parameter({8, 8})}, {6, 6});
  b.matmul(b.softmax(b.add(b.div(b.matmul(q, keys()), 4.0), mask)), v);
  ASSERT_EQ(canonical().back(), "attention(causal=1,scale=0.25)");
  EXPECT_EQ(last().inputs.size(), 3U);
  EXPECT_EQ(result.parameter_count(), 0);
}

TEST_F(Attentions, AStoredSquareThatIsNoTriangleIsAMask) {  // each token sees itself alone
  const TensorId mask = b.buffer({6, 6});
  b.graph.at(mask).values.assign(36, -std::numeric_limits<double>::infinity());
  for (std::size_t i = 0; i < 6; ++i) b.graph.at(mask).values[7 * i] = 0;
  b.matmul(b.softmax(b.add(b.div(b.matmul(q, keys()), 4.0), mask)), v);
  ASSERT_EQ(canonical().back(), "attention(scale=0.25)");
  EXPECT_EQ(last().inputs.size(), 4U);
}

TEST_F(Attentions, ALearnedBiasOfHeadsIsAMask) {
  b.matmul(b.softmax(b.add(b.div(b.matmul(q, keys()), 4.0), b.parameter({1, 4, 6, 6}))), v);
  ASSERT_EQ(canonical().back(), "attention(scale=0.25)");
  EXPECT_EQ(last().inputs.size(), 4U);
  EXPECT_EQ(result.parameter_count(), 4 * 6 * 6);
}

TEST_F(Attentions, AMultipliedTriangleIsCausal) {  // scores t - 1e10 (1 - t)
  const TensorId triangle = b.op(Slice{{2, 3}, {0, 0}, {6, 6}, {1, 1}}, {b.parameter({1, 1, 8, 8})}, {1, 1, 6, 6});
  const TensorId kept = b.mul(b.div(b.matmul(q, keys()), 4.0), triangle);
  b.matmul(b.softmax(b.sub(kept, b.mul(b.sub(b.constant(1), triangle), 1e10))), v);
  ASSERT_EQ(canonical().back(), "attention(causal=1,scale=0.25)");
  EXPECT_EQ(result.parameter_count(), 0);
}

TEST_F(Attentions, AComparedMaskIsNoParameter) {  // masked_fill(mask[:, :, :S, :S] == 0, -inf), the mask stored as f32
  const TensorId mask = b.parameter({1, 1, 8, 8});
  const TensorId slice = b.op(Slice{{2, 3}, {0, 0}, {6, 6}, {1, 1}}, {mask}, {1, 1, 6, 6});
  const TensorId masked = b.binary(BinaryKind::equal, slice, b.constant(0));
  const TensorId scores = b.div(b.matmul(q, keys()), 4.0);
  b.matmul(b.softmax(b.op(Where{}, {masked, b.constant(-1e9), scores}, {2, 4, 6, 6})), v);
  ASSERT_EQ(canonical().back(), "attention(causal=1,scale=0.25)");
  EXPECT_EQ(result.parameter_count(), 0);
}

TEST_F(Attentions, ASelectedConditionOfTheInputBecomesAMaskToAdd) {
  const TensorId padding = b.input({2, 1, 1, 6}, DType::boolean);
  const TensorId minus_infinity = b.constant(-std::numeric_limits<double>::infinity());
  const TensorId scores = b.matmul(q, keys());
  b.matmul(b.softmax(b.op(Where{}, {padding, minus_infinity, scores}, {2, 4, 6, 6})), v);
  ASSERT_EQ(canonical(), (Names{"transpose(permutation=0x2x1x3)", "where", "attention"}));
  const Operation& where = result.operations()[1];
  EXPECT_EQ(result[where.inputs[2]].values, std::vector<double>{0});  // kept where the condition is false
  EXPECT_EQ(result[last().inputs[3]].shape, (Shape{2, 1, 1, 6}));
}

// Where(IsNaN(p), 0, p), as torch.onnx writes it behind a mask that is a condition: a query may be left without keys.
TEST_F(Attentions, ProbabilitiesThatAreNanBecomeZero) {
  const TensorId p = b.softmax(b.add(b.div(b.matmul(q, keys()), 4.0), b.input({2, 1, 6, 6})));
  const TensorId is_nan = b.unary(UnaryKind::logical_not, b.binary(BinaryKind::equal, p, p));
  const TensorId kept = b.op(Where{}, {is_nan, b.constant(0), p}, {2, 4, 6, 6});
  b.matmul(b.op(Dropout{0.1}, {kept}, {2, 4, 6, 6}), v);
  ASSERT_EQ(canonical(), (Names{"transpose(permutation=0x2x1x3)", "attention(scale=0.25,dropout=0.1)"}));
  EXPECT_EQ(last().inputs.size(), 4U);
}

TEST_F(Attentions, NotWhereProbabilitiesThatAreNanBecomeOne) {
  const TensorId p = b.softmax(b.matmul(q, keys()));
  const TensorId is_nan = b.unary(UnaryKind::logical_not, b.binary(BinaryKind::equal, p, p));
  b.matmul(b.op(Where{}, {is_nan, b.constant(1), p}, {2, 4, 6, 6}), v);
  EXPECT_EQ(canonical().back(), "matmul");
}

TEST_F(Attentions, CausalAndPadding) {
  const TensorId scores = b.div(b.matmul(q, keys()), 4.0);
  const TensorId causal = b.add(scores, b.buffer({6, 6}));
  b.matmul(b.softmax(b.add(causal, b.input({2, 1, 1, 6}))), v);
  ASSERT_EQ(canonical().back(), "attention(causal=1,scale=0.25)");
  EXPECT_EQ(last().inputs.size(), 4U);
}

TEST_F(Attentions, GroupedQueries) {  // 2 heads of k and v, each for 2 of q
  auto repeated = [&](TensorId t) {
    const TensorId wide = b.op(Expand{}, {b.reshape(t, {2, 2, 1, 6, 16})}, {2, 2, 2, 6, 16});
    return b.reshape(wide, {2, 4, 6, 16});
  };
  const TensorId k = b.input({2, 2, 6, 16}), few = b.input({2, 2, 6, 16});
  const TensorId kt = b.transpose(repeated(k), {0, 1, 3, 2});
  b.matmul(b.softmax(b.mul(b.matmul(q, kt), 0.25)), repeated(few));
  ASSERT_EQ(canonical(), Names{"attention(scale=0.25)"});
  EXPECT_EQ(result[last().inputs[1]].shape, (Shape{2, 2, 6, 16}));
}

TEST_F(Attentions, HeadsFoldedIntoTheBatch) {  // torch.nn.MultiheadAttention: [B*H, S, D]
  const TensorId q3 = b.input({8, 6, 16}), k3 = b.input({8, 6, 16}), v3 = b.input({8, 6, 16});
  const TensorId y = b.matmul(b.softmax(b.matmul(b.mul(q3, 0.25), b.transpose(k3, {0, 2, 1}))), v3);
  ASSERT_EQ(canonical({y}), (Names{"reshape", "reshape", "reshape", "attention(scale=0.25)", "reshape"}));
  const Operation& attention = result.operations()[3];
  EXPECT_EQ(result[attention.inputs[0]].shape, (Shape{8, 1, 6, 16}));
  EXPECT_EQ(result[attention.outputs[0]].shape, (Shape{8, 1, 6, 16}));
  EXPECT_EQ(attention.fused.size(), 5U);  // scale, transposition of k, product, softmax, product
  EXPECT_EQ(result[result.outputs[0]].shape, (Shape{8, 6, 16}));
}

TEST_F(Attentions, NotOfNoHeads) {  // scores [0, S, S] reshaped to [1, 0, S, S]: nothing to divide by
  const TensorId q3 = b.input({0, 6, 16}), kt = b.input({0, 16, 6}), v3 = b.input({0, 6, 16});
  const TensorId p = b.reshape(b.softmax(b.reshape(b.matmul(q3, kt), {1, 0, 6, 6})), {0, 6, 6});
  const TensorId y = b.matmul(p, v3);
  EXPECT_EQ(canonical({y}), (Names{"matmul", "reshape", "softmax", "reshape", "matmul"}));
}

TEST_F(Attentions, NotWhenTheProbabilitiesAreReturned) {
  const TensorId p = b.softmax(b.div(b.matmul(q, keys()), 4.0));
  const TensorId y = b.matmul(p, v);
  EXPECT_EQ(canonical({y, p}), (Names{"transpose(permutation=0x2x3x1)", "matmul", "unary(kind=scale_shift,alpha=0.25)",
                                      "softmax", "matmul"}));
}

TEST_F(Attentions, NotOverAnotherAxis) {
  const TensorId p = b.op(Softmax{2, false}, {b.matmul(q, keys())}, {2, 4, 6, 6});
  b.matmul(p, v);
  EXPECT_EQ(canonical().size(), 4U);
}

}  // namespace
}  // namespace sibyl
