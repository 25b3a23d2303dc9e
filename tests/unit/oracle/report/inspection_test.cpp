#include "oracle/report/inspection.h"

#include <gmock/gmock.h>

#include "models/training/products.h"
#include "models/zoo/zoo.h"

namespace sibyl {
namespace {

using testing::HasSubstr;
using testing::Not;

// x[2,4] -> linear (weight 3x4, bias 3) -> h[2,3] -> relu -> y[2,3] -> linear (the same weight would not fit: 5x3) ->
// z[2,5]
Import two_layers() {
  Import import;
  Graph& g = import.graph;
  import.opset = 17;
  import.producer = "pytorch";
  const auto tensor = [&](const char* name, Shape shape, TensorKind kind) {
    Tensor t;
    t.name = name, t.shape = std::move(shape), t.kind = kind;
    return g.add(std::move(t));
  };
  const TensorId x = tensor("x", {2, 4}, TensorKind::input), w1 = tensor("w1", {3, 4}, TensorKind::parameter);
  const TensorId b1 = tensor("b1", {3}, TensorKind::parameter), h = tensor("h", {2, 3}, TensorKind::activation);
  const TensorId y = tensor("y", {2, 3}, TensorKind::activation), w2 = tensor("w2", {5, 3}, TensorKind::parameter);
  const TensorId z = tensor("z", {2, 5}, TensorKind::activation);
  for (const TensorId id : {x, h, y, z}) g.at(id).batch_axis = 0;
  g.add({"fc1", Linear{}, {x, w1, b1}, {h}, {"MatMul_0", "Add_1"}});
  g.add({"act", Unary{}, {h}, {y}, {}});
  g.add({"fc2", Linear{}, {y, w2}, {z}, {}});
  EXPECT_TRUE(g.finish(2).has_value());
  return import;
}

TEST(Inspection, CountsParametersAndKeptTensorsOnce) {
  const Inspection i = inspect(two_layers(), "m.onnx", DType::f32, Backend::cpu);
  EXPECT_EQ(i.parameters, 12 + 3 + 15);
  EXPECT_EQ(i.parameter_bytes, Bytes{120});
  ASSERT_EQ(i.operations.size(), 3u);
  EXPECT_EQ(i.operations[0].parameters, 15);
  // Autograd keeps x for fc1's weight (8 floats), relu's result y (6 floats), and y again for fc2's weight: counted
  // once.
  EXPECT_EQ(i.operations[0].kept, Bytes{32});
  EXPECT_EQ(i.operations[1].kept, Bytes{24});
  EXPECT_EQ(i.operations[2].kept, Bytes{0});
  EXPECT_EQ(i.activation_bytes, Bytes{56});
}

TEST(Inspection, HalfPrecisionKeepsHalf) {
  EXPECT_EQ(inspect(two_layers(), "m.onnx", DType::bf16, Backend::cuda).activation_bytes, Bytes{28});
}

TEST(Inspection, BackwardIsWhatTrainingRuns) {
  const Inspection i = inspect(two_layers(), "m.onnx", DType::f32, Backend::cpu);
  // fc2: 2 x 5 x 3 multiply-adds, two FLOPs each; backward does as many for the weight and as many for y.
  EXPECT_EQ(i.operations[2].forward, Flops{60});
  EXPECT_EQ(i.operations[2].backward, Flops{120});
  // fc1: 2 x 3 x 4 multiply-adds; x is the model's input, so backward computes no gradient of it: less than twice
  // forward.
  EXPECT_GE(i.operations[0].forward, Flops{48});
  EXPECT_LT(i.operations[0].backward, 2 * i.operations[0].forward);
}

TEST(Inspection, TextShowsLayersFusionsAndUnsupportedNodes) {
  Import import = two_layers();
  EXPECT_THAT(to_text(inspect(import, "m.onnx", DType::f32, Backend::cpu), {}),
              HasSubstr("Every operation can be priced."));
  import.unsupported.push_back({"Loop_7", "Loop", "control flow is not supported"});
  const std::string text = to_text(inspect(import, "m.onnx", DType::f32, Backend::cpu), {});
  EXPECT_THAT(text, HasSubstr("opset 17, written by pytorch"));
  EXPECT_THAT(text, HasSubstr("1 of linear from 2 nodes (as MatMul_0 + Add_1)"));
  EXPECT_THAT(text, HasSubstr("1 node cannot be priced"));
  EXPECT_THAT(text, HasSubstr("Loop_7"));
  EXPECT_THAT(text, Not(HasSubstr("Every operation")));
}

TEST(Inspection, WhatIsAssumedIsSaid) {
  Import import = two_layers();
  EXPECT_THAT(to_text(inspect(import, "m.onnx", DType::f32, Backend::cpu), {}), Not(HasSubstr("Assumed")));
  import.graph.assumed = {"it has two layers"};
  const Inspection i = inspect(import, "m.onnx", DType::f32, Backend::cpu);
  EXPECT_THAT(to_text(i, {}), HasSubstr("Assumed\n  - it has two layers\n"));
  EXPECT_THAT(to_json(i), HasSubstr("\"assumed\": [\n    \"it has two layers\"\n  ]"));
}

TEST(Inspection, APartOfAModelIsSaidToBeOne) {
  Import import = two_layers();
  EXPECT_THAT(to_text(inspect(import, "m.onnx", DType::f32, Backend::cpu), {}), Not(HasSubstr("partial")));
  import.unsupported.push_back({"Loop_7", "Loop", "control flow is not supported"});
  import.unseen = 12;
  const Inspection i = inspect(import, "m.onnx", DType::f32, Backend::cpu);
  EXPECT_THAT(to_text(i, {}), HasSubstr("partial"));
  EXPECT_THAT(to_text(i, {}), HasSubstr("1 node cannot be priced, and 12 nodes behind could not be looked at"));
  EXPECT_THAT(to_json(i), HasSubstr("\"partial\": true,\n  \"unseen_nodes\": 12"));
}

// Two of eight experts: of the 45,097,156,608 parameters of experts a quarter (12.9 B in all by the model's authors).
TEST(Inspection, CountsTheParametersThatATokenMeets) {
  const Inspection i = inspect(*inspect_onnx_bytes(*zoo_model_bytes("mixtral-8x7b"), "mixtral", {}), "mixtral",
                               DType::f32, Backend::cuda);
  EXPECT_EQ(i.active_parameters, 46'702'792'704 - 45'097'156'608 / 4 * 3);
  EXPECT_THAT(to_text(i, {}), HasSubstr("12,879,925,248   for a token: 2 of 8 experts"));
  const Inspection dense = inspect(two_layers(), "m.onnx", DType::f32, Backend::cpu);
  EXPECT_EQ(dense.active_parameters, dense.parameters);
  EXPECT_THAT(to_text(dense, {}), Not(HasSubstr("for a token")));
}

// fc1 (its bias and the ReLU are no products): 2 x 3 x 4 multiply-adds, backward as many for its weight. fc2: 2 x 5 x
// 3, backward twice as many.
TEST(Inspection, TellsProductsFromTheRest) {
  const Inspection i = inspect(two_layers(), "m.onnx", DType::f32, Backend::cpu);
  EXPECT_EQ(i.products_forward, Flops{48 + 60});
  EXPECT_EQ(i.products_backward, Flops{48 + 120});
  EXPECT_LT(i.products_forward, i.flops_forward);
  EXPECT_THAT(to_text(i, {}),
              HasSubstr("    of which   108 FLOP     in convolutions and matrix products: 54 multiply-adds, as "
                        "published counts are\n"));
  const std::string json = to_json(i);
  EXPECT_THAT(json, HasSubstr("\"flops_forward_products\": 108,"));
  EXPECT_THAT(json, HasSubstr("\"flops_backward_products\": 168,"));
}

// Published: 300.8 M multiply-adds (fvcore's count, to four digits), 1.28 M of them the classifier's.
TEST(Inspection, ReadsAsPublished) {
  ImportOptions one;
  one.batch = 1;
  const Inspection i =
      inspect(*inspect_onnx_bytes(*zoo_model_bytes("mobilenet-v2"), "m", one), "m", DType::f32, Backend::cuda);
  EXPECT_EQ(i.products_forward, Flops{2.0 * 300'774'272});
  EXPECT_THAT(to_text(i, {}), HasSubstr("601.5 MFLOP"));
  EXPECT_THAT(to_text(i, {}), HasSubstr("300.8 M multiply-adds"));
}

// Attention of 2 heads, 3 queries, 5 keys, 7 wide: two products of 2 x 2 x 3 x 5 x 7 FLOPs; backward four, and where
// the kernel keeps no probabilities, one of forward's again.
TEST(Inspection, CountsTheProductsOfAttention) {
  const Signature s{Attention{}, {{1, 2, 3, 7}, {1, 2, 5, 7}, {1, 2, 5, 7}}, {{1, 2, 3, 7}}, DType::f32};
  EXPECT_EQ(product_work(s, 7, Backend::cuda).forward, Flops{2 * 420});
  EXPECT_EQ(product_work(s, 7, Backend::cuda).backward, Flops{5 * 420});
  EXPECT_EQ(product_work(s, 7, Backend::cpu).backward, Flops{4 * 420});
  EXPECT_EQ(product_work(s, 0, Backend::cpu).backward, Flops{});
}

TEST(Inspection, SaysWhatNoLossReaches) {
  Import import = two_layers();
  EXPECT_THAT(to_text(inspect(import, "m.onnx", DType::f32, Backend::cpu), {}), Not(HasSubstr("left out")));
  import.graph.untrained = {{ "pooled", 2, 590592 }};
  const Inspection i = inspect(import, "m.onnx", DType::f32, Backend::cpu);
  EXPECT_THAT(to_text(i, {}),
              HasSubstr("  left out     2 parameters of 590592 elements only reach output pooled, which no "
                        "loss is attached to\n"));
  EXPECT_THAT(to_json(i), HasSubstr("\"output\": \"pooled\""));
}

TEST(Inspection, JsonHasTheDocumentedKeys) {
  const std::string json = to_json(inspect(two_layers(), "m.onnx", DType::f32, Backend::cpu));
  for (const char* key :
       {"parameters", "flops_forward", "flops_backward", "activation_bytes", "operations", "unsupported", "untrained"})
    EXPECT_THAT(json, HasSubstr('"' + std::string(key) + "\": "));
}

}  // namespace
}  // namespace sibyl
