#include "models/graph.h"

#include <gmock/gmock.h>

namespace sibyl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Graphs : testing::Test {
  Graph graph;

  TensorId tensor(std::string name, TensorKind kind, Shape shape = {4, 8}) {
    Tensor t;
    t.name = std::move(name);
    t.kind = kind;
    t.shape = std::move(shape);
    return graph.add(std::move(t));
  }
  TensorId input(std::string name = "x") {
    const TensorId id = tensor(std::move(name), TensorKind::input);
    graph.at(id).batch_axis = 0;
    return id;
  }
  TensorId activation(std::string name) {
    const TensorId id = tensor(std::move(name), TensorKind::activation);
    graph.at(id).batch_axis = 0;
    return id;
  }
  void op(std::string name, std::vector<TensorId> inputs, TensorId output) {
    graph.add(Operation{std::move(name), Unary{}, std::move(inputs), {output}, {}});
  }
  std::vector<std::string> order() const {
    std::vector<std::string> names;
    for (const Operation& operation : graph.operations()) names.push_back(operation.name);
    return names;
  }
};

TEST_F(Graphs, SortsOperationsAndKeepsTheOrderOfAdditionAmongFreeOnes) {
  const TensorId x = input(), a = activation("a"), b = activation("b"), c = activation("c"), d = activation("d");
  op("last", {c, b}, d);  // added first, runs last
  op("c", {a}, c);
  op("b", {x}, b);  // free from the start, and added before a
  op("a", {x}, a);
  ASSERT_TRUE(graph.finish(4));
  EXPECT_THAT(order(), ElementsAre("b", "a", "c", "last"));
}

TEST_F(Graphs, LinksProducersConsumersAndDependencies) {
  const TensorId x = input(), a = activation("a"), b = activation("b");
  op("a", {x}, a);
  op("b", {a, a}, b);
  ASSERT_TRUE(graph.finish(4));
  EXPECT_FALSE(graph.producer(x).valid());
  EXPECT_EQ(graph[graph.producer(b)].name, "b");
  ASSERT_EQ(graph.consumers(a).size(), 1U);  // once, though both operands are a
  EXPECT_TRUE(graph.consumers(b).empty());
  EXPECT_EQ(boost::num_vertices(graph.dependencies()), 2U);
}

TEST_F(Graphs, ACycleIsAnErrorThatNamesAnOperationOnIt) {
  const TensorId x = input(), a = activation("a"), b = activation("b");
  op("first", {x, b}, a);
  op("second", {a}, b);
  const auto finished = graph.finish(4);
  ASSERT_FALSE(finished);
  EXPECT_THAT(finished.error().message, HasSubstr("cycle"));
  EXPECT_EQ(finished.error().where, "first");
}

TEST_F(Graphs, TwoProducersAreAnError) {
  const TensorId x = input(), a = activation("a");
  op("one", {x}, a);
  op("other", {x}, a);
  const auto finished = graph.finish(4);
  ASSERT_FALSE(finished);
  EXPECT_THAT(finished.error().message, HasSubstr("'a' is produced twice"));
  EXPECT_EQ(finished.error().where, "other");
}

TEST_F(Graphs, AnActivationThatNothingProducesIsAnError) {
  op("one", {activation("missing")}, activation("a"));
  const auto finished = graph.finish(4);
  ASSERT_FALSE(finished);
  EXPECT_THAT(finished.error().message, HasSubstr("'missing'"));
}

TEST_F(Graphs, GradientsFlowFromParameters) {
  const TensorId x = input(), w = tensor("w", TensorKind::parameter), s = tensor("s", TensorKind::buffer);
  const TensorId a = activation("a"), b = activation("b"), c = activation("c"), d = activation("d");
  op("frozen", {x, s}, a);
  op("trained", {a, w}, b);
  op("after", {b}, c);
  op("index", {b}, d);
  graph.at(d).dtype = DType::i64;
  ASSERT_TRUE(graph.finish(4));
  EXPECT_FALSE(graph.requires_gradient(x));
  EXPECT_FALSE(graph.requires_gradient(s));
  EXPECT_FALSE(graph.requires_gradient(a));
  EXPECT_TRUE(graph.requires_gradient(w));
  EXPECT_TRUE(graph.requires_gradient(b));
  EXPECT_TRUE(graph.requires_gradient(c));
  EXPECT_FALSE(graph.requires_gradient(d));  // integers have no gradient
  EXPECT_EQ(graph.parameter_count(), 32);
}

TEST_F(Graphs, LocalShapesScaleTheBatchAxis) {
  const TensorId x = input(), w = tensor("w", TensorKind::parameter);
  const TensorId tokens = activation("tokens");
  graph.at(tokens).shape = {4 * 6, 8};  // 6 tokens a sample, flattened
  op("a", {x, {}, w, {}}, tokens);
  ASSERT_TRUE(graph.finish(4));
  EXPECT_EQ(local_shape(graph, x, 1), (Shape{1, 8}));
  EXPECT_EQ(local_shape(graph, tokens, 3), (Shape{18, 8}));
  EXPECT_EQ(local_shape(graph, w, 1), (Shape{4, 8}));

  // An absent operand in the middle keeps its place; absent ones at the end are left out.
  const Signature s = signature(graph, OperationId{0}, 2, DType::bf16);
  EXPECT_THAT(s.inputs, ElementsAre(Shape{2, 8}, Shape{0}, Shape{4, 8}));
  EXPECT_THAT(s.outputs, ElementsAre(Shape{12, 8}));
  EXPECT_EQ(s.dtype, DType::bf16);
}

TEST(Shapes, CountAndText) {
  EXPECT_EQ(element_count({}), 1);
  EXPECT_EQ(element_count({3, 0, 2}), 0);
  EXPECT_EQ(element_count({8, 64, 56, 56}), 1'605'632);
  EXPECT_EQ(to_string(Shape{}), "scalar");
  EXPECT_EQ(to_string(Shape{8, 64, 56}), "8x64x56");
}

}  // namespace
}  // namespace sibyl
