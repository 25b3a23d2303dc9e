// Mixtures of experts: the forms of com.microsoft's MoE, and TopK.
#include <gmock/gmock.h>

#include "tests/unit/models/onnx/lookup.h"

namespace sibyl {
namespace {

using testing::HasSubstr;
using NodeAttributes = std::vector<std::pair<std::string, ModelBuilder::Value>>;

// 3 samples of 10 tokens of width 16; 4 experts of width 24 (fc1's rows as given).
ModelBuilder mixture(const NodeAttributes& attributes, std::int64_t first_rows = 24, const std::string& third = "") {
  ModelBuilder model(17);
  model.opset("com.microsoft", 1).input("x", {"batch", 10, 16});
  model.weight("gate", {16, 4}).ints("rows", {-1, 4}).weight("fc1", {4, first_rows, 16}).weight("fc2", {4, 16, 24});
  if (third == "fc3") model.weight("fc3", {4, 24, 16});
  model.node("MatMul", {"x", "gate"}, {"scores"}).node("Reshape", {"scores", "rows"}, {"router"});
  model.node("MoE", {"x", "router", "fc1", "", "fc2", "", third}, {"y"}, attributes, "com.microsoft").output("y");
  return model;
}

Result<Import> imported(const ModelBuilder& model, double factor = 1.0) {
  ImportOptions options;
  options.batch = 3;
  options.capacity_factor = factor;
  return import(model, options);
}

std::vector<std::string> kinds(const Graph& graph) {
  std::vector<std::string> names;
  for (const Operation& operation : graph.operations()) names.push_back(to_string(operation.attributes));
  return names;
}

// 10 tokens, 2 of 4 experts each: 5 slots an expert and sample, and 3 samples.
TEST(MixtureOfExperts, BecomesRoutingDispatchExpertsAndCombine) {
  const auto result =
      imported(mixture({{"k", 2}, {"activation_type", std::string("silu")}, {"normalize_routing_weights", 1}}));
  EXPECT_EQ(result_shape(result), (Shape{3, 10, 16}));
  EXPECT_THAT(kinds(result->graph),
              testing::ElementsAre("linear(weight_kn=1)", "reshape", "reshape", "softmax(axis=1)", "top_k(k=2)",
                                   "reduce(kind=sum,axes=1)", "binary(kind=div)", "dispatch(tokens=10,capacity=5)",
                                   "grouped_linear", "unary(kind=silu)", "grouped_linear",
                                   "combine(tokens=10,capacity=5)", "reshape"));
  const Graph& graph = result->graph;
  for (const Operation& operation : graph.operations())
    if (std::holds_alternative<Dispatch>(operation.attributes)) {
      EXPECT_EQ(graph[operation.outputs[0]].shape, (Shape{4, 15, 16}));
      EXPECT_EQ(graph[operation.outputs[0]].batch_axis, 1U);
      EXPECT_EQ(graph[operation.outputs[1]].shape, (Shape{30, 2}));
      EXPECT_EQ(graph[operation.outputs[1]].dtype, DType::i64);
    }
  EXPECT_EQ(graph.parameter_count(), 16 * 4 + 2 * 4 * 24 * 16);
}

// 1.3 x 5 = 6.5 slots are 7; no expert can be given more than the 10 tokens there are.
TEST(MixtureOfExperts, SlotsFollowTheCapacityFactor) {
  const auto capacity = [](double factor) {
    return first<Dispatch>(imported(mixture({{"k", 2}}), factor)->graph)->capacity;
  };
  EXPECT_EQ(capacity(1.0), 5);
  EXPECT_EQ(capacity(1.3), 7);
  EXPECT_EQ(capacity(2.0), 10);
  EXPECT_EQ(capacity(100.0), 10);
  EXPECT_EQ(capacity(0.01), 1);
}

// A third layer is multiplied with the activation of the first.
TEST(MixtureOfExperts, GatedByAThirdLayer) {
  const auto result = imported(mixture({{"activation_type", std::string("silu")}}, 24, "fc3"));
  EXPECT_EQ(count<GroupedLinear>(result->graph), 3);
  ASSERT_EQ(count<Binary>(result->graph), 1);
  EXPECT_EQ(first<Binary>(result->graph)->kind, BinaryKind::mul);
  EXPECT_EQ(result_shape(result), (Shape{3, 10, 16}));
}

// Gate and value lie one behind the other, or in pairs; clipped at 7, G sigmoid(1.702 G) (L + 1).
TEST(MixtureOfExperts, SwigluInOneLayer) {
  for (const int fusion : {1, 2}) {
    const auto result = imported(mixture({{"activation_type", std::string("swiglu")},
                                          {"swiglu_fusion", fusion},
                                          {"swiglu_limit", 7.0},
                                          {"activation_alpha", 1.702},
                                          {"activation_beta", 1.0}},
                                         48));
    EXPECT_EQ(result_shape(result), (Shape{3, 10, 16}));
    EXPECT_EQ(count<GroupedLinear>(result->graph), 2);
    EXPECT_EQ(count<Split>(result->graph), fusion == 2 ? 1 : 0);
    EXPECT_EQ(count<Slice>(result->graph), fusion == 1 ? 2 : 0);
    int clips = 0, sigmoids = 0;
    for (const Operation& operation : result->graph.operations())
      if (const auto* unary = std::get_if<Unary>(&operation.attributes)) {
        clips += unary->kind == UnaryKind::clip;
        sigmoids += unary->kind == UnaryKind::sigmoid;
      }
    EXPECT_EQ(clips, 2);
    EXPECT_EQ(sigmoids, 1);
  }
  const auto plain = imported(mixture({{"activation_type", std::string("swiglu")}}, 24, "fc3"));
  EXPECT_EQ(first<Unary>(plain->graph)->kind, UnaryKind::silu);
}

TEST(MixtureOfExperts, SaysWhatDoesNotFit) {
  const auto refusal = [](const ModelBuilder& model) {
    const auto result = imported(model);
    return result ? "imported" : result.error().message;
  };
  EXPECT_THAT(refusal(mixture({{"k", 5}})), HasSubstr("chooses 5 of 4 experts"));
  EXPECT_THAT(refusal(mixture({}, 20)), HasSubstr("does not fit"));
  const NodeAttributes halves = {{"activation_type", std::string("swiglu")}, {"swiglu_fusion", 2}};
  EXPECT_THAT(refusal(mixture(halves, 49)), HasSubstr("no gate"));
  EXPECT_THAT(refusal(mixture({{"activation_type", std::string("snake")}})), HasSubstr("snake"));
  const auto sparse = imported(mixture({{"use_sparse_mixer", 1}}));
  ASSERT_TRUE(sparse);
  ASSERT_FALSE(sparse->unsupported.empty());
  EXPECT_THAT(sparse->unsupported[0].reason, HasSubstr("sparse mixer"));
}

TEST(TopK, OfTheLastAxis) {
  ModelBuilder model(13);
  model.input("x", {2, 3, 8})
      .ints("k", {2})
      .node("TopK", {"x", "k"}, {"y", "i"}, {{"largest", 0}})
      .output("y")
      .output("i");
  const auto result = import(model);
  EXPECT_EQ(result_shape(result), (Shape{2, 3, 2}));
  EXPECT_EQ(*first<TopK>(result->graph), (TopK{2, false}));
  EXPECT_EQ(find_tensor(result->graph, "i")->dtype, DType::i64);
  ModelBuilder other(13);
  other.input("x", {2, 3, 8}).ints("k", {2}).node("TopK", {"x", "k"}, {"y", "i"}, {{"axis", 1}}).output("y");
  const auto across = import(other);
  ASSERT_TRUE(across);
  ASSERT_FALSE(across->unsupported.empty());
  EXPECT_THAT(across->unsupported[0].reason, HasSubstr("another axis"));
}

}  // namespace
}  // namespace sibyl
