// Dropout as torch spells it out: (RandomUniformLike < p), cast, over p.
#include <gmock/gmock.h>

#include "tests/unit/models/onnx/lookup.h"

namespace sibyl {
namespace {

ImportOptions samples(std::int64_t batch) {
  ImportOptions options;
  options.batch = batch;
  return options;
}

// Stochastic depth of torchvision: one number for each sample, in a shape that is computed or (`baked`) stored.
ModelBuilder stochastic_depth(bool baked) {
  ModelBuilder model(15);
  model.input("x", {baked ? Extent(2) : Extent("batch"), 8, 4, 4}).weight("w", {8, 8, 1, 1});
  model.node("Conv", {"x", "w"}, {"c"}).scalar("kept", 0.8F).ints("ones", {1, 1, 1});
  if (baked) {
    model.ints("shape", {2, 1, 1, 1});
  } else {
    model.ints("front", {0}).node("Shape", {"x"}, {"all"}).node("Gather", {"all", "front"}, {"rows"});
    model.node("Concat", {"rows", "ones"}, {"shape"}, {{"axis", 0}});
  }
  model.node("ConstantOfShape", {"shape"}, {"empty"}).node("RandomUniformLike", {"empty"}, {"u"}, {{"dtype", 1}});
  model.node("Less", {"u", "kept"}, {"b"}).node("Cast", {"b"}, {"noise"}, {{"to", 1}});
  model.node("Div", {"noise", "kept"}, {"scaled"}).node("Mul", {"c", "scaled"}, {"m"}).node("Add", {"x", "m"}, {"y"});
  return model.output("y");
}

TEST(StochasticDepth, DropsBlocksBySample) {
  for (const bool baked : {false, true})
    for (const std::int64_t batch : {1, 2, 6}) {
      const auto imported = import(stochastic_depth(baked), samples(batch));
      EXPECT_EQ(result_shape(imported), (Shape{batch, 8, 4, 4}));
      ASSERT_TRUE(imported);
      const Graph& graph = imported->graph;
      ASSERT_EQ(count<Dropout>(graph), 1) << batch;
      EXPECT_NEAR(first<Dropout>(graph)->ratio, 0.2, 1e-6);
      EXPECT_EQ(count<Cast>(graph) + count<Unary>(graph), 0);  // they are in the dropout
      EXPECT_EQ(count<Binary>(graph), 2);                      // times the noise, plus the shortcut
      const Tensor* noise = find_tensor(graph, "scaled");
      ASSERT_NE(noise, nullptr);
      EXPECT_EQ(noise->shape, (Shape{batch, 1, 1, 1}));
      EXPECT_EQ(noise->batch_axis, 0U);
      EXPECT_EQ(graph.parameter_count(), 64);
    }
}

TEST(StochasticDepth, BernoulliDrawsItToo) {
  ModelBuilder model(15);
  model.input("x", {"batch", 16}).node("Shape", {"x"}, {"shape"}).scalar("kept", 0.5F);
  model.node("Expand", {"kept", "shape"}, {"chance"}).node("Bernoulli", {"chance"}, {"b"});
  model.node("Div", {"b", "kept"}, {"noise"}).node("Mul", {"x", "noise"}, {"y"}).output("y");
  const auto imported = import(model, samples(4));
  EXPECT_EQ(result_shape(imported), (Shape{4, 16}));
  ASSERT_TRUE(imported);
  ASSERT_EQ(count<Dropout>(imported->graph), 1);
  EXPECT_EQ(first<Dropout>(imported->graph)->ratio, 0.5);
  EXPECT_EQ(count<Cast>(imported->graph), 0);
}

TEST(StochasticDepth, NumbersThatAreNotDividedByTheirChanceStayApart) {
  ModelBuilder model(15);
  model.input("x", {"batch", 16}).scalar("kept", 0.8F).scalar("half", 0.5F);
  model.node("RandomUniformLike", {"x"}, {"u"}).node("Less", {"u", "kept"}, {"b"});
  model.node("Cast", {"b"}, {"noise"}, {{"to", 1}}).node("Div", {"noise", "half"}, {"scaled"});
  model.node("Mul", {"x", "scaled"}, {"y"}).output("y");
  const auto imported = import(model);
  ASSERT_TRUE(imported);
  EXPECT_EQ(count<Cast>(imported->graph), 1);
}

TEST(StochasticDepth, ADrawIsNoConstant) {
  ModelBuilder model(15);
  model.input("x", {2, 3}).node("RandomUniform", {}, {"u"}, {{"shape", std::vector<int>{2, 3}}});
  model.node("Add", {"x", "u"}, {"y"}).output("y");
  const auto imported = import(model);
  ASSERT_TRUE(imported);
  EXPECT_EQ(find_tensor(imported->graph, "u")->kind, TensorKind::activation);
}

}  // namespace
}  // namespace sibyl
