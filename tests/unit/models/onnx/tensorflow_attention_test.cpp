// Attention and dense layers of Keras and TensorFlow as tf2onnx writes them, from the file: as Einsum, as what its
// optimiser makes of that, as tensordot. What they become is what PyTorch's exports of the same layers become.
#include <cmath>

#include "tests/unit/models/onnx/tensorflow_file.h"

namespace sibyl {
namespace {

using testing::ElementsAre;

// --- attention: N samples, S = 6 tokens, E = 32 features, H = 4 heads of D = 8
// ----------------------------------------

enum class Scale { query, scores, none };
struct AttentionCase {
  Scale scale;
  bool masked;
};

struct KerasAttentions : TensorFlowFile, testing::WithParamInterface<AttentionCase> {
  std::string x = input({"N", 6, 32});
  double expected_scale() const { return GetParam().scale == Scale::none ? 1.0 : 1 / std::sqrt(8.0); }

  std::string scaled_query(const std::string& q) {
    return GetParam().scale == Scale::query ? op("Mul", {q, number(1 / std::sqrt(8.0))}) : q;
  }
  // Scores [N, H, S, T] to probabilities; the mask [N, T] of the input hides tokens.
  std::string probabilities(std::string scores) {
    if (GetParam().scale == Scale::scores) scores = op("Div", {scores, number(std::sqrt(8.0))});
    if (GetParam().masked) {
      const std::string mask = op("Reshape", {input({"N", 6}), ints({-1, 1, 1, 6})});
      scores = op("Add", {scores, op("Mul", {op("Sub", {number(1), mask}), number(-1e9)})});
    }
    return op("Softmax", {scores}, {{"axis", -1}});
  }
  // Four linear layers with their biases, the transposes of heads that PyTorch makes too, one attention.
  void expect_attention(const std::string& y) {
    const auto found = operations(y);
    EXPECT_EQ(count<Linear>(graph), 4) << testing::PrintToString(found);
    EXPECT_EQ(count<Attention>(graph), 1);
    EXPECT_EQ(count<MatMul>(graph), 0);
    EXPECT_EQ(count<Transpose>(graph), 4) << testing::PrintToString(found);
    EXPECT_EQ(count<Reshape>(graph), GetParam().masked ? 5 : 4) << testing::PrintToString(found);
    EXPECT_EQ(count<Binary>(graph), 0);
    EXPECT_EQ(count<Unary>(graph), GetParam().masked ? 2 : 0);  // of the mask: 1 - m, times -1e9
    EXPECT_EQ(graph.parameter_count(), 4 * (32 * 32 + 32));
    for (const Operation& op : graph.operations()) {
      if (std::holds_alternative<Linear>(op.attributes)) {
        ASSERT_EQ(op.inputs.size(), 3u);
        EXPECT_EQ(shape_of(op.inputs[0]), (Shape{2, 6, 32}));
        EXPECT_EQ(shape_of(op.inputs[1]), (Shape{32, 32}));
        EXPECT_EQ(shape_of(op.inputs[2]), Shape{32});
      }
      if (const auto* attention = std::get_if<Attention>(&op.attributes)) {
        EXPECT_NEAR(attention->scale, expected_scale(), 1e-6);
        ASSERT_EQ(op.inputs.size(), GetParam().masked ? 4u : 3u);
        for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(shape_of(op.inputs[i]), (Shape{2, 4, 6, 8}));
        if (GetParam().masked) {
          EXPECT_EQ(shape_of(op.inputs[3]), (Shape{2, 1, 1, 6}));
        }
      }
    }
  }
};

TEST_P(KerasAttentions, AsEinsum) {  // keras.layers.MultiHeadAttention
  const auto projected = [&] { return op("Add", {einsum("abc,cde->abde", x, weight({32, 4, 8})), weight({4, 8})}); };
  const std::string q = scaled_query(projected()), k = projected(), v = projected();
  const std::string p = probabilities(einsum("aecd,abcd->acbe", k, q));
  const std::string heads = einsum("acbe,aecd->abcd", p, v);
  expect_attention(op("Add", {einsum("abcd,cde->abe", heads, weight({4, 8, 32})), weight({32})}));
}

TEST_P(KerasAttentions, AsEinsumTakenApart) {  // the same after tf2onnx's optimiser of einsums
  const auto unsqueezed = [&](const std::string& t, std::int64_t axis) { return op("Unsqueeze", {t, ints({axis})}); };
  const auto layer = [&](const std::string& rows) {
    return op("Gemm", {op("Reshape", {rows, ints({-1, 32})}), weight({32, 32})}, {{"transB", 1}});
  };
  const auto projected = [&] {
    const std::string wide = transpose(unsqueezed(unsqueezed(x, 3), 4), {0, 1, 3, 4, 2});
    const std::string y = op("Squeeze", {op("Reshape", {layer(wide), ints({-1, 6, 4, 8, 1})}), ints({4})});
    return op("Add", {y, weight({4, 8})});
  };
  const std::string q = scaled_query(projected()), k = projected(), v = projected();
  // (k q^T)^T, with heads folded into the batch.
  const std::string q3 = op("Reshape", {transpose(unsqueezed(q, 1), {0, 3, 1, 2, 4}), ints({-1, 6, 8})});
  const std::string k3 = op("Reshape", {transpose(unsqueezed(k, 2), {0, 3, 1, 2, 4}), ints({-1, 6, 8})});
  const std::string product = op("MatMul", {k3, transpose(q3, {0, 2, 1})});
  const std::string turned = transpose(op("Reshape", {product, ints({-1, 4, 6, 6, 1})}), {0, 1, 3, 4, 2});
  const std::string p = probabilities(op("Squeeze", {turned, ints({3})}));
  const std::string p3 = op("Reshape", {unsqueezed(p, 3), ints({-1, 6, 6})});
  const std::string v3 = op("Reshape", {transpose(unsqueezed(v, 2), {0, 3, 2, 4, 1}), ints({-1, 8, 6})});
  const std::string attended = op("MatMul", {p3, transpose(v3, {0, 2, 1})});
  const std::string heads = transpose(op("Reshape", {attended, ints({-1, 4, 6, 8, 1})}), {0, 2, 1, 3, 4});
  const std::string joined = transpose(heads, {0, 1, 4, 2, 3});
  expect_attention(op("Add", {op("Reshape", {layer(joined), ints({-1, 6, 32})}), weight({32})}));
}

// A dense layer of Keras on [N, S, E].
struct Dense {
  TensorFlowFile* file;
  std::string operator()(const std::string& x, std::int64_t from, std::int64_t to, bool bias = true) const {
    const std::string rows = file->op("Reshape", {x, file->ints({-1, from})});
    const std::string product = file->op("MatMul", {rows, file->weight({from, to})});
    const std::string y = file->op("Reshape", {product, file->ints({-1, 6, to})});
    return bias ? file->op("Add", {y, file->weight({to})}) : y;
  }
};

TEST_P(KerasAttentions, AsMatMulAndTranspose) {  // Hugging Face's TFBertSelfAttention
  const Dense dense{this};
  const auto heads_of = [&](const std::string& y) {
    return transpose(op("Reshape", {y, ints({-1, 6, 4, 8})}), {0, 2, 1, 3});
  };
  const std::string q = heads_of(scaled_query(dense(x, 32, 32)));
  const std::string k = transpose(heads_of(dense(x, 32, 32)), {0, 1, 3, 2});
  const std::string v = heads_of(dense(x, 32, 32));
  const std::string y = transpose(op("MatMul", {probabilities(op("MatMul", {q, k})), v}), {0, 2, 1, 3});
  expect_attention(dense(op("Reshape", {y, ints({-1, 6, 32})}), 32, 32));
}

TEST_P(KerasAttentions, WithHeadsFoldedIntoTheBatch) {  // Hugging Face's TFBartAttention
  const Dense dense{this};
  const auto heads_of = [&](const std::string& y) {
    const std::string heads = transpose(op("Reshape", {y, ints({-1, 6, 4, 8})}), {0, 2, 1, 3});
    return op("Reshape", {heads, ints({-1, 6, 8})});
  };
  const std::string q = heads_of(scaled_query(dense(x, 32, 32)));
  const std::string k = transpose(heads_of(dense(x, 32, 32)), {0, 2, 1});
  const std::string v = heads_of(dense(x, 32, 32));
  const std::string scores = op("Reshape", {op("MatMul", {q, k}), ints({-1, 4, 6, 6})});
  const std::string p = op("Reshape", {probabilities(scores), ints({-1, 6, 6})});
  const std::string attended = op("Reshape", {op("MatMul", {p, v}), ints({-1, 4, 6, 8})});
  expect_attention(dense(op("Reshape", {transpose(attended, {0, 2, 1, 3}), ints({-1, 6, 32})}), 32, 32));
}

TEST_P(KerasAttentions, WithANumberAddedToTheScores) {  // Hugging Face's stable_softmax
  const auto heads = [&] { return input({"N", 4, 6, 8}); };
  const std::string k = transpose(heads(), {0, 1, 3, 2});
  std::string scores = op("MatMul", {heads(), k});
  scores = op("Mul", {scores, number(0.5)});
  if (GetParam().masked) scores = op("Add", {scores, input({"N", 1, 1, 6})});
  const std::string p = op("Softmax", {op("Add", {scores, number(1e-9)})}, {{"axis", -1}});
  EXPECT_THAT(operations(op("MatMul", {p, heads()})), ElementsAre("attention(scale=0.5)"));
}

INSTANTIATE_TEST_SUITE_P(ScaleAndMask, KerasAttentions,
                         testing::Values(AttentionCase{Scale::query, false}, AttentionCase{Scale::query, true},
                                         AttentionCase{Scale::scores, false}, AttentionCase{Scale::scores, true},
                                         AttentionCase{Scale::none, true}));

using StoredWeights = TensorFlowFile;

TEST_F(StoredWeights, AKernelOfHeadsIsAMatrixWhereverItIsUsed) {  // the same layer twice, as ALBERT shares them
  const std::string w = weight({32, 4, 8});
  const std::string once = op("Relu", {einsum("abc,cde->abde", input({"N", 6, 32}), w)});
  const std::string again = einsum("abc,cde->abde", op("Reshape", {once, ints({-1, 6, 32})}), w);
  operations(again);
  EXPECT_EQ(count<Linear>(graph), 2);
  EXPECT_EQ(graph.parameter_count(), 32 * 32);
}

TEST_F(StoredWeights, AKernelOfHeadsThatIsReadOtherwiseToo) {
  const std::string w = weight({8, 2, 4});
  const std::string y = einsum("abc,cde->abde", input({"N", 6, 8}), w);  // [N, 6, 2, 4]
  operations(op("Add", {y, op("ReduceMean", {w}, {{"axes", std::vector<int>{0}}, {"keepdims", 0}})}));
  EXPECT_EQ(count<Linear>(graph), 0);
  EXPECT_EQ(count<MatMul>(graph), 1);
  EXPECT_EQ(graph.parameter_count(), 64);
}

// --- dense layers of three axes
// ---------------------------------------------------------------------------------------

using DenseLayers = TensorFlowFile;

TEST_F(DenseLayers, OnThreeAxesAreOneLinearWithItsBias) {
  ASSERT_THAT(operations(Dense{this}(input({"N", 6, 8}), 8, 16)), ElementsAre("linear(weight_kn=1)"));
  ASSERT_EQ(last().inputs.size(), 3u);
  EXPECT_EQ(shape_of(last().inputs[0]), (Shape{2, 6, 8}));
  EXPECT_EQ(shape_of(last().outputs[0]), (Shape{2, 6, 16}));
  EXPECT_EQ(last().fused.size(), 3u);  // MatMul, the reshape after it, Add; the one before may have other readers
}

TEST_F(DenseLayers, WithTheBiasAddedToRows) {  // Hugging Face's TFConv1D of GPT-2
  const std::string rows = op("MatMul", {op("Reshape", {input({"N", 6, 8}), ints({-1, 8})}), weight({8, 16})});
  const std::string y = op("Reshape", {op("Add", {rows, weight({1, 16})}), ints({-1, 6, 16})});
  ASSERT_THAT(operations(y), ElementsAre("linear(weight_kn=1)"));
  EXPECT_EQ(last().inputs.size(), 3u);
}

TEST_F(DenseLayers, AtABatchOfOneToo) {
  EXPECT_THAT(operations(Dense{this}(input({"N", 6, 8}), 8, 16), 1), ElementsAre("linear(weight_kn=1)"));
}

TEST_F(DenseLayers, ABiasOfOtherExtentsStays) {  // [6, 1]: along tokens
  const std::string y = Dense{this}(input({"N", 6, 8}), 8, 6, false);
  EXPECT_THAT(operations(op("Add", {y, weight({6, 1})})), ElementsAre("linear(weight_kn=1)", "binary"));
}

TEST_F(DenseLayers, RowsThatCutThroughTokensStay) {  // two tokens a row: [N, 6, 8] -> [3 N, 16]
  const std::string rows = op("MatMul", {op("Reshape", {input({"N", 6, 8}), ints({-1, 16})}), weight({16, 16})});
  ASSERT_THAT(operations(op("Reshape", {rows, ints({-1, 6, 8})})),
              ElementsAre("reshape", "linear(weight_kn=1)", "reshape"));
  EXPECT_EQ(shape_of(graph.operations()[1].inputs[0]), (Shape{6, 16}));
}

}  // namespace
}  // namespace sibyl
