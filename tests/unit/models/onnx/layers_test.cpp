// Nodes that are whole layers or losses, other domains' among them, and what exporters write for one.
#include <cmath>

#include "tests/unit/models/onnx/lookup.h"
#include "tests/unit/models/onnx/one_node.h"

namespace sibyl {
namespace {

// Operators that libonnx 1.12 (opset 17) does not know.
TEST(NewerOpsets, GeluGroupNormRmsNormAttention) {
  const auto gelu = import(one(20, "Gelu", {2, 3}, {}, {{"approximate", std::string("tanh")}}));
  EXPECT_EQ(result_shape(gelu), (Shape{2, 3}));
  EXPECT_EQ(first<Unary>(gelu->graph)->kind, UnaryKind::gelu_tanh);

  auto group = one(21, "GroupNormalization", {2, 8, 4, 4}, {"s", "b"}, {{"num_groups", 4}});
  const auto normed = import(group.weight("s", {8}).weight("b", {8}));
  EXPECT_EQ(first<Normalization>(normed->graph)->groups, 4);

  auto rms = one(23, "RMSNormalization", {2, 5, 16}, {"s"});
  const auto rms_normed = import(rms.weight("s", {16}));
  EXPECT_EQ(first<Normalization>(rms_normed->graph)->kind, NormalizationKind::rms);

  ModelBuilder attention(23);
  attention.input("q", {2, 5, 32}).input("k", {2, 7, 16}).input("v", {2, 7, 16});
  attention.node("Attention", {"q", "k", "v"}, {"y"}, {{"q_num_heads", 4}, {"kv_num_heads", 2}, {"is_causal", 1}})
      .output("y");
  const auto attended = import(attention);
  EXPECT_EQ(result_shape(attended), (Shape{2, 5, 32}));
  const auto* found = first<Attention>(attended->graph);
  ASSERT_NE(found, nullptr);
  EXPECT_TRUE(found->causal);
  EXPECT_DOUBLE_EQ(found->scale, 1.0 / std::sqrt(8.0));  // heads of 32 / 4 = 8
}

TEST(Contrib, SkipLayerNormalizationIsAnAddAndANorm) {
  auto model = one(17, "SkipLayerNormalization", {2, 5, 16}, {"x", "g", "b"}, {}, "com.microsoft");
  model.opset("com.microsoft", 1).weight("g", {16}).weight("b", {16});
  const auto imported = import(model);
  EXPECT_EQ(result_shape(imported), (Shape{2, 5, 16}));
  EXPECT_EQ(count<Normalization>(imported->graph), 1);
}

// As tf2onnx writes a Keras model: channels last at the borders, transposes around Conv, explicit asymmetric pads.
TEST(KerasStyle, TransposesAroundConvolutions) {
  ModelBuilder model(13);
  model.input("image", {"unk__6", 32, 32, 3}).weight("w", {8, 3, 3, 3}).weight("b", {8}).weight("dense", {2048, 10});
  model.ints("pads", {0, 0, 0, 0, 0, 0, 1, 1}).ints("flat", {-1, 2048});
  model.node("Transpose", {"image"}, {"nchw"}, {{"perm", Numbers{0, 3, 1, 2}}});
  model.node("Pad", {"nchw", "pads"}, {"padded"});
  model.node("Conv", {"padded", "w", "b"}, {"conv"}, {{"strides", Numbers{2, 2}}, {"auto_pad", std::string("VALID")}});
  model.node("Relu", {"conv"}, {"relu"}).node("Transpose", {"relu"}, {"nhwc"}, {{"perm", Numbers{0, 2, 3, 1}}});
  model.node("Reshape", {"nhwc", "flat"}, {"rows"}).node("MatMul", {"rows", "dense"}, {"y"}).output("y");
  ImportOptions options;
  options.batch = 4;
  const auto imported = import(model, options);
  EXPECT_EQ(result_shape(imported), (Shape{4, 10}));  // (33 - 3) / 2 + 1 = 16; 16*16*8 = 2048
  EXPECT_EQ(imported->graph.parameter_count(), 8 * 27 + 8 + 20480);
}

TEST(Losses, SoftmaxCrossEntropyIsTheModelsOwn) {
  for (const bool probabilities : {false, true}) {  // as a second result
    ModelBuilder model(13);
    model.input("x", {"batch", 8}).input("labels", {"batch"}, onnx::TensorProto::INT64).weight("w", {8, 10});
    model.node("MatMul", {"x", "w"}, {"z"});
    model.node("SoftmaxCrossEntropyLoss", {"z", "labels"},
               probabilities ? std::vector<std::string>{"loss", "p"} : std::vector<std::string>{"loss"});
    model.output("loss");
    ImportOptions options;
    options.batch = 4;
    const auto imported = inspect_onnx_bytes(model.bytes(), "loss.onnx", options);
    ASSERT_TRUE(imported) << to_string(imported.error());
    const Graph& graph = imported->graph;
    ASSERT_TRUE(graph.loss.valid());
    EXPECT_EQ(graph[graph.loss].name, "loss");
    EXPECT_EQ(count<CrossEntropy>(graph), 1);
    EXPECT_EQ(count<MeanSquaredError>(graph), 0);
    EXPECT_EQ(find_tensor(graph, "labels")->index_bound, 10);
    EXPECT_EQ(graph.operations().size(), 2U);
    ASSERT_EQ(graph.assumed.size(), 1U);
  }
}

TEST(Losses, NegativeLogLikelihoodOfALogSoftmaxIsCrossEntropy) {
  ModelBuilder model(13);
  model.input("x", {"batch", 10, 4, 4}).input("labels", {"batch", 4, 4}, onnx::TensorProto::INT64);
  model.weight("w", {10, 10, 1, 1}).node("Conv", {"x", "w"}, {"z"}).node("LogSoftmax", {"z"}, {"p"}, {{"axis", 1}});
  model.node("NegativeLogLikelihoodLoss", {"p", "labels"}, {"loss"}).output("loss");
  const auto imported = inspect_onnx_bytes(model.bytes(), "loss.onnx", {});
  ASSERT_TRUE(imported) << to_string(imported.error());
  EXPECT_EQ(count<Softmax>(imported->graph), 0);
  EXPECT_EQ(count<CrossEntropy>(imported->graph), 1);
}

TEST(Losses, SumsAndWeightsAreUnsupported) {
  for (const char* reduction : {"sum", "none"}) {
    ModelBuilder model(13);
    model.input("x", {2, 10}).input("labels", {2}, onnx::TensorProto::INT64);
    model.node("SoftmaxCrossEntropyLoss", {"x", "labels"}, {"y"}, {{"reduction", std::string(reduction)}}).output("y");
    const auto imported = import(model);
    ASSERT_TRUE(imported);
    EXPECT_EQ(imported->unsupported.size(), 1U) << reduction;
  }
}

// cos and sin are tables of 16 positions by half a head; of 4 heads of 32, or of the first 16 features of each.
TEST(Attentions, RotaryEmbedding) {
  for (const bool pairs : {false, true})
    for (const int some : {0, 16}) {
      auto model = one(23, "RotaryEmbedding", {"batch", 4, 16, 32}, {"cos", "sin"},
                       {{"interleaved", pairs ? 1 : 0}, {"rotary_embedding_dim", some}});
      const std::int64_t half = some == 0 ? 16 : 8;
      model.weight("cos", {16, half}).weight("sin", {16, half});
      const auto imported = import(model);
      EXPECT_EQ(result_shape(imported), (Shape{1, 4, 16, 32}));
      ASSERT_TRUE(imported);
      EXPECT_EQ(imported->graph.parameter_count(), 0);  // tables are not trained
      EXPECT_EQ(count<Binary>(imported->graph), 6);
      EXPECT_EQ(count<Concat>(imported->graph), some == 0 ? 1 : 2);
    }
}

TEST(Attentions, RotaryEmbeddingOfTokensByPosition) {
  auto model = one(23, "RotaryEmbedding", {"batch", 16, 128}, {"cos", "sin", "places"}, {{"num_heads", 4}});
  model.input("places", {"batch", 16}, onnx::TensorProto::INT64).weight("cos", {64, 16}).weight("sin", {64, 16});
  const auto imported = import(model);
  EXPECT_EQ(result_shape(imported), (Shape{1, 16, 128}));
  ASSERT_TRUE(imported);
  EXPECT_EQ(count<Gather>(imported->graph), 2);
  EXPECT_EQ(imported->graph.parameter_count(), 0);
  auto wide = one(23, "RotaryEmbedding", {"batch", 4, 16, 32}, {"cos", "sin"});
  EXPECT_FALSE(import(wide.weight("cos", {16, 12}).weight("sin", {16, 12})));
}

// RoBERTa's positions: 1 + the number of tokens so far that are no padding.
TEST(RunningSums, NumberTokens) {
  ModelBuilder model(13);
  model.input("ids", {"batch", 8}, onnx::TensorProto::INT64).weight("table", {40, 16});
  model.ints("pad", {1}).ints("axis", {1}).ints("reverse", {0});
  model.node("Equal", {"ids", "pad"}, {"is_pad"}).node("Not", {"is_pad"}, {"is_token"});
  model.node("Cast", {"is_token"}, {"mask"}, {{"to", static_cast<int>(onnx::TensorProto::INT32)}});
  model.node("CumSum", {"mask", "axis"}, {"count"}).node("Mul", {"count", "mask"}, {"places"});
  model.node("Cast", {"places"}, {"wide"}, {{"to", static_cast<int>(onnx::TensorProto::INT64)}});
  model.node("Add", {"wide", "pad"}, {"positions"}).node("Gather", {"table", "positions"}, {"y"}).output("y");
  const auto imported = import(model);
  EXPECT_EQ(result_shape(imported).back(), 16);
  const auto* sum = first<RunningSum>(imported->graph);
  ASSERT_NE(sum, nullptr);
  EXPECT_EQ(*sum, (RunningSum{1, false, false}));
  EXPECT_EQ(count<Embedding>(imported->graph), 1);
}

TEST(RunningSums, FromTheOtherEndWithoutThemselves) {
  auto model = one(14, "CumSum", {2, 3, 4}, {"axis"}, {{"reverse", 1}, {"exclusive", 1}});
  const auto imported = import(model.ints("axis", {-1}));
  EXPECT_EQ(result_shape(imported), (Shape{2, 3, 4}));
  EXPECT_EQ(*first<RunningSum>(imported->graph), (RunningSum{2, true, true}));
  auto outside = one(14, "CumSum", {2, 3}, {"axis"});
  EXPECT_FALSE(import(outside.ints("axis", {2})));
}

TEST(GatheredElements, HaveTheIndicesShapeAndBoundThem) {
  auto model = one(13, "GatherElements", {"batch", 12, 9}, {"places"}, {{"axis", -1}});
  model.input("places", {"batch", 12, 4}, onnx::TensorProto::INT64);
  ImportOptions options;
  options.batch = 6;
  const auto imported = import(model, options);
  EXPECT_EQ(result_shape(imported), (Shape{6, 12, 4}));
  EXPECT_EQ(*first<GatherElements>(imported->graph), GatherElements{2});
  EXPECT_EQ(find_tensor(imported->graph, "places")->index_bound, 9);
  auto longer = one(13, "GatherElements", {2, 3}, {"places"}, {{"axis", 1}});
  EXPECT_FALSE(import(longer.input("places", {3, 3}, onnx::TensorProto::INT64)));
}

}  // namespace
}  // namespace sibyl
