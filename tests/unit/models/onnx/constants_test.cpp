// What is a parameter, what a buffer, and the arithmetic on shapes that exporters leave in the file.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/models/graph_builder.h"
#include "tests/unit/models/onnx/lookup.h"

namespace sibyl {
namespace {

// x.view(x.shape[0], -1) and x.view(b, s, h, e // h), as torch traces them.
TEST(ShapeArithmetic, ChainsOfShapeGatherConcatReshape) {
  ModelBuilder model(13);
  model.input("x", {"batch", 6, 32}).ints("zero", {0}).ints("one", {1}).ints("two", {2}).ints("four", {4});
  model.node("Shape", {"x"}, {"shape"});
  model.node("Gather", {"shape", "zero"}, {"b"})
      .node("Gather", {"shape", "one"}, {"s"})
      .node("Gather", {"shape", "two"}, {"e"});
  model.node("Div", {"e", "four"}, {"d"}).node("Concat", {"b", "s", "four", "d"}, {"target"}, {{"axis", 0}});
  model.node("Reshape", {"x", "target"}, {"y"}).output("y");
  ImportOptions options;
  options.batch = 5;
  const auto imported = import(model, options);
  EXPECT_EQ(result_shape(imported), (Shape{5, 6, 4, 8}));
  EXPECT_EQ(imported->graph.operations().size(), 1u);  // the arithmetic is gone
  EXPECT_EQ(find_tensor(imported->graph, "y")->batch_axis, 0u);
}

// Expand's target by Where(Equal(t, -1), ones, t), as torch writes x.expand(-1, 5).
TEST(ShapeArithmetic, WhereAndEqual) {
  ModelBuilder model(13);
  model.input("x", {"batch", 1}).ints("target", {-1, 5}).ints("minus", {-1}).ints("length", {2});
  model.node("ConstantOfShape", {"length"}, {"zeros"});
  auto* value = model.graph().mutable_node(0)->add_attribute();
  value->set_name("value");
  value->set_type(onnx::AttributeProto::TENSOR);
  value->mutable_t()->set_data_type(onnx::TensorProto::INT64);
  value->mutable_t()->add_dims(1);
  value->mutable_t()->add_int64_data(1);
  model.node("Equal", {"target", "minus"}, {"is"}).node("Where", {"is", "zeros", "target"}, {"final"});
  model.node("Expand", {"x", "final"}, {"y"}).output("y");
  ImportOptions options;
  options.batch = 3;
  EXPECT_EQ(result_shape(import(model, options)), (Shape{3, 5}));
}

TEST(ShapeArithmetic, RangeGivesPositions) {
  ModelBuilder model(13);
  model.input("x", {2, 7, 16}).weight("table", {32, 16});
  for (const auto& [name, number] : {std::pair{"zero", 0}, std::pair{"seven", 7}, std::pair{"one", 1}}) {
    auto* tensor = model.graph().add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::INT64);
    tensor->add_int64_data(number);
  }
  model.node("Range", {"zero", "seven", "one"}, {"positions"}).node("Gather", {"table", "positions"}, {"e"});
  model.node("Add", {"x", "e"}, {"y"}).output("y");
  const auto imported = import(model);
  EXPECT_EQ(result_shape(imported), (Shape{2, 7, 16}));
  EXPECT_EQ(count<Embedding>(imported->graph), 1);
  EXPECT_EQ(find_tensor(imported->graph, "positions")->values, (std::vector<double>{0, 1, 2, 3, 4, 5, 6}));
}

TEST(Parameters, AreFloatingInitializersThatAreUsedAsWeights) {
  ModelBuilder model(13);
  model.input("x", {2, 3, 4, 4}).weight("scale", {3}).weight("shift", {3}).weight("mean", {3}).weight("variance", {3});
  model.scalar("factor", 0.5F).weight("unused", {100});
  model.node("BatchNormalization", {"x", "scale", "shift", "mean", "variance"}, {"n"})
      .node("Mul", {"n", "factor"}, {"y"})
      .output("y");
  const auto imported = import(model);
  ASSERT_TRUE(imported);
  const Graph& graph = imported->graph;
  EXPECT_EQ(graph.parameter_count(), 6);
  EXPECT_EQ(find_tensor(graph, "scale")->kind, TensorKind::parameter);
  EXPECT_EQ(find_tensor(graph, "mean")->kind, TensorKind::buffer);
  EXPECT_EQ(find_tensor(graph, "variance")->kind, TensorKind::buffer);
  EXPECT_EQ(find_tensor(graph, "unused"), nullptr);
}

// The head uses the embedding's table, transposed: one parameter.
TEST(Parameters, TiedWeightsAreOne) {
  ModelBuilder model(13);
  model.input("ids", {2, 7}, onnx::TensorProto::INT64).weight("table", {50, 16});
  model.node("Identity", {"table"}, {"head"})
      .node("Transpose", {"head"}, {"head_t"}, {{"perm", std::vector<int>{1, 0}}});
  model.node("Gather", {"table", "ids"}, {"e"}).node("MatMul", {"e", "head_t"}, {"y"}).output("y");
  const auto imported = import(model);
  EXPECT_EQ(result_shape(imported), (Shape{2, 7, 50}));
  EXPECT_EQ(imported->graph.parameter_count(), 50 * 16);
}

// Adds a matrix of these elements, row by row, inside the file.
void stored(ModelBuilder& model, const std::string& name, int rows, int columns, const auto& element) {
  auto* tensor = model.graph().add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(onnx::TensorProto::FLOAT);
  tensor->add_dims(rows);
  tensor->add_dims(columns);
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) {
      const float value = element(i, j);
      tensor->mutable_raw_data()->append(reinterpret_cast<const char*>(&value), sizeof value);
    }
}

std::int64_t parameters_of_head(const auto& table, const auto& head) {
  ModelBuilder model(17);
  model.input("ids", {2, 7}, onnx::TensorProto::INT64);
  stored(model, "table", 50, 16, table);
  stored(model, "onnx::MatMul_9", 16, 50, head);
  model.node("Gather", {"table", "ids"}, {"e"}).node("MatMul", {"e", "onnx::MatMul_9"}, {"y"}).output("y");
  const auto imported = import(model);
  EXPECT_EQ(result_shape(imported), (Shape{2, 7, 50}));
  return imported ? imported->graph.parameter_count() : -1;
}

// torch's inference export stores the head of a tied model once more, transposed: found by its elements.
TEST(Parameters, AStoredTransposedTableIsTied) {
  const auto element = [](int i, int j) { return static_cast<float>(100 * i + j); };
  EXPECT_EQ(parameters_of_head(element, [&](int i, int j) { return element(j, i); }), 50 * 16);
  EXPECT_EQ(parameters_of_head(element, [&](int i, int j) { return element(j, i) + 1; }), 2 * 50 * 16);
  // All alike: no telling.
  const auto one = [](int, int) { return 1.0F; };
  EXPECT_EQ(parameters_of_head(one, one), 2 * 50 * 16);
}

// Of a model with external data its elements are in a file beside it; where they are not, that is said.
TEST(Parameters, ATransposedTableInAFileOfWeightsIsTied) {
  const auto folder = std::filesystem::temp_directory_path() / ("sibyl_tied_" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  ModelBuilder model(17);
  model.input("ids", {2, 7}, onnx::TensorProto::INT64).weight("table", {50, 16}).weight("onnx::MatMul_9", {16, 50});
  auto* offset = model.graph().mutable_initializer(1)->add_external_data();
  offset->set_key("offset");
  offset->set_value("3200");
  model.node("Gather", {"table", "ids"}, {"e"}).node("MatMul", {"e", "onnx::MatMul_9"}, {"y"}).output("y");
  std::ofstream(folder / "model.onnx", std::ios::binary) << model.bytes();
  const auto expect = [&](std::int64_t parameters, std::size_t doubts) {
    ImportOptions options;
    options.loss = LossKind::none;
    const auto imported = inspect_onnx(folder / "model.onnx", options);
    ASSERT_TRUE(imported) << to_string(imported.error());
    EXPECT_EQ(imported->graph.parameter_count(), parameters);
    ASSERT_EQ(imported->graph.assumed.size(), doubts);
    if (doubts > 0) {
      EXPECT_NE(imported->graph.assumed[0].find("onnx::MatMul_9 is a weight of its own"), std::string::npos);
    }
  };
  expect(2 * 50 * 16, 1);
  std::ofstream weights(folder / "weights.bin", std::ios::binary);
  const auto put = [&](int i, int j) {
    const auto value = static_cast<float>(100 * i + j);
    weights.write(reinterpret_cast<const char*>(&value), sizeof value);
  };
  for (int place = 0; place < 50 * 16; ++place) put(place / 16, place % 16);
  for (int place = 0; place < 50 * 16; ++place) put(place % 50, place / 50);
  weights.close();
  expect(50 * 16, 0);
  std::filesystem::resize_file(folder / "weights.bin", 3200);  // cut off behind the table
  expect(2 * 50 * 16, 1);
  std::filesystem::remove_all(folder);
}

// torch's inference export merges vectors of equal values (a fresh model's norms) and leaves Identity nodes with their
// names.
TEST(Parameters, VectorsMergedForTheirValuesArePutApart) {
  ModelBuilder model(17);
  model.input("x", {2, 16, 1, 1}).weight("norm1", {16, 1, 1}).node("Identity", {"norm1"}, {"norm2"});
  model.node("Mul", {"x", "norm1"}, {"a"}).node("Mul", {"a", "norm2"}, {"y"}).output("y");
  const auto imported = import(model);
  ASSERT_TRUE(imported);
  EXPECT_EQ(imported->graph.parameter_count(), 32);
}

// Of a fresh nn.TransformerEncoder's layers, which are copies, too.
TEST(Parameters, MatricesMergedForTheirValuesArePutApart) {
  ModelBuilder model(17);
  model.input("x", {2, 16}).weight("w1", {16, 16}).node("Identity", {"w1"}, {"w2"});
  model.node("MatMul", {"x", "w1"}, {"a"}).node("MatMul", {"a", "w2"}, {"y"}).output("y");
  const auto imported = import(model);
  ASSERT_TRUE(imported);
  EXPECT_EQ(imported->graph.parameter_count(), 2 * 16 * 16);
}

// softmax(scores.float()).half(), of a model stored in f16: weights and all else are f32, and nothing is cast.
TEST(Parameters, StoredInTwoBytesAreTrainedInFour) {
  constexpr int half = onnx::TensorProto::FLOAT16;
  ModelBuilder model(17);
  model.input("q", {"batch", 2, 6, 4}, half).input("k", {"batch", 2, 4, 6}, half).input("v", {"batch", 2, 6, 4}, half);
  model.weight("w", {4, 4}).graph().mutable_initializer(0)->set_data_type(half);
  model.node("MatMul", {"q", "k"}, {"scores"}).node("Cast", {"scores"}, {"wide"}, {{"to", 1}});
  model.node("Softmax", {"wide"}, {"p"}, {{"axis", -1}}).node("Cast", {"p"}, {"narrow"}, {{"to", half}});
  model.node("MatMul", {"narrow", "v"}, {"a"}).node("MatMul", {"a", "w"}, {"y"}).output("y");
  const auto imported = import(model);
  ASSERT_TRUE(imported);
  const Graph& graph = imported->graph;
  EXPECT_EQ(test::operations_of(graph),
            (std::vector<std::string>{"transpose(permutation=0x1x3x2)", "attention", "linear(weight_kn=1)"}));
  for (const Tensor& tensor : graph.tensors()) EXPECT_EQ(tensor.dtype, DType::f32) << tensor.name;
  ASSERT_EQ(graph.assumed.size(), 1U);
  EXPECT_NE(graph.assumed[0].find("stored in f16"), std::string::npos);
}

// Fills a tensor with these numbers, one after the other and again.
void fill(onnx::TensorProto& tensor, const std::vector<std::int64_t>& shape, const std::vector<float>& numbers) {
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  for (const std::int64_t extent : shape) tensor.add_dims(extent);
  for (std::size_t i = 0; i < static_cast<std::size_t>(element_count(shape)); ++i)
    tensor.add_float_data(numbers[i % numbers.size()]);
}

void initializer(ModelBuilder& model, const std::string& name, const std::vector<std::int64_t>& shape,
                 const std::vector<float>& numbers) {
  auto* tensor = model.graph().add_initializer();
  tensor->set_name(name);
  fill(*tensor, shape, numbers);
}

std::int64_t parameters_of(const ModelBuilder& model) {
  const auto imported = import(model);
  EXPECT_TRUE(imported) << to_string(imported.error());
  return imported ? imported->graph.parameter_count() : -1;
}

// torch's dynamo exporter gives a convolution without bias zeros for one, and has no name for them.
TEST(Parameters, ZerosWithoutANameAreNoBias) {
  const auto biased = [](const std::string& bias, std::int64_t filters) {
    ModelBuilder model(18);
    model.input("x", {2, 3, 4, 4}).weight("conv.weight", {filters, 3, 1, 1});
    initializer(model, bias, {filters}, {0});
    return model.node("Conv", {"x", "conv.weight", bias}, {"y"}).output("y");
  };
  EXPECT_EQ(parameters_of(biased("val_3", 5)), 5 * 3);
  EXPECT_EQ(parameters_of(biased("val_3", 1)), 3);
  EXPECT_EQ(parameters_of(biased("conv.bias", 5)), 5 * 3 + 5);
  const auto imported = import(biased("val_3", 5));
  ASSERT_TRUE(imported);
  const std::vector<TensorId>& operands = imported->graph.operations()[0].inputs;
  EXPECT_TRUE(operands.size() < 3 || !operands[2].valid());
}

// nn.GroupNorm of a fresh model: its ones and zeros are folded into values without a name, too, but multiplied by.
TEST(Parameters, OnesThatAreMultipliedByAreWeights) {
  ModelBuilder model(18);
  model.input("x", {2, 6, 3, 3});
  initializer(model, "val_1", {6, 1, 1}, {1});
  initializer(model, "val_2", {6, 1, 1}, {0});
  model.node("Mul", {"x", "val_1"}, {"scaled"}).node("Add", {"scaled", "val_2"}, {"y"}).output("y");
  EXPECT_EQ(parameters_of(model), 6 + 6);
}

TEST(Parameters, OfAFreshGemmWithoutANameStayWeights) {
  ModelBuilder model(18);
  model.input("x", {2, 3});
  initializer(model, "val_1", {3, 4}, {0});
  initializer(model, "val_2", {4}, {0, 1});
  model.node("Gemm", {"x", "val_1", "val_2"}, {"y"}).output("y");
  EXPECT_EQ(parameters_of(model), 3 * 4 + 4);
}

// Ones and zeros scale and shift the groups, as the exporters write nn.GroupNorm; its own are of the channels.
TEST(Parameters, OnesAndZerosOfGroupsAreTheGroupNorms) {
  ModelBuilder model(18);
  model.input("x", {2, 6, 3, 3})
      .ints("apart", {0, 2, -1})
      .weight("norm.weight", {6, 1, 1})
      .weight("norm.bias", {6, 1, 1});
  initializer(model, "val_1", {2}, {1});
  initializer(model, "val_2", {2}, {0});
  model.node("Reshape", {"x", "apart"}, {"groups"}).node("Shape", {"x"}, {"shape"});
  model.node("InstanceNormalization", {"groups", "val_1", "val_2"}, {"n"}).node("Reshape", {"n", "shape"}, {"back"});
  model.node("Mul", {"back", "norm.weight"}, {"scaled"}).node("Add", {"scaled", "norm.bias"}, {"y"}).output("y");
  const auto imported = import(model);
  ASSERT_TRUE(imported);
  EXPECT_EQ(test::operations_of(imported->graph), std::vector<std::string>{"normalization(kind=group,groups=2)"});
  EXPECT_EQ(imported->graph.parameter_count(), 6 + 6);
}

// In a Constant node: a weight where a layer multiplies by it, unless its elements are all alike.
TEST(Parameters, MayBeNodesOfTheirOwn) {
  const auto with_constant = [](const std::string& op_type, const std::vector<float>& numbers) {
    ModelBuilder model(13);
    model.input("x", {2, 4, 4}).node("Constant", {}, {"w"}).node(op_type, {"x", "w"}, {"y"}).output("y");
    auto* value = model.graph().mutable_node(0)->add_attribute();
    value->set_name("value");
    value->set_type(onnx::AttributeProto::TENSOR);
    fill(*value->mutable_t(), {4, 4}, numbers);
    return model;
  };
  EXPECT_EQ(parameters_of(with_constant("MatMul", {1, 2, 3})), 16);
  EXPECT_EQ(count<Linear>(import(with_constant("MatMul", {1, 2, 3}))->graph), 1);
  EXPECT_EQ(parameters_of(with_constant("MatMul", {1})), 0);
  EXPECT_EQ(parameters_of(with_constant("Add", {1, 2, 3})), 0);
  ModelBuilder beside = with_constant("MatMul", {1, 2, 3});  // weights that are stored as such: this is a number
  beside.weight("b", {4}).node("Add", {"y", "b"}, {"z"}).output("z");
  EXPECT_EQ(parameters_of(beside), 4);
}

// causal_mask[..., :written] = where(…, causal_mask[..., :written], lowest), as Hugging Face's decoders hide padding:
// the constant mask of each sample, into which what depends on the input is written, then added to scores.
ModelBuilder written_into(int written) {
  ModelBuilder model(17);
  model.input("scores", {"batch", 1, 6, 6}).input("hidden", {"batch", 1, 6, written}).scalar("low", -1e9F);
  model.input("places", {"batch", 1, 6, written, 4}, onnx::TensorProto::INT64);
  model.node("Shape", {"scores"}, {"shape"}).node("Expand", {"low", "shape"}, {"mask"});
  model.node("ScatterND", {"mask", "places", "hidden"}, {"hiding"}).node("Add", {"scores", "hiding"}, {"y"});
  return model;
}

TEST(Masks, WrittenIntoAreACopy) {
  for (const int written : {6, 5}) {
    ModelBuilder model = written_into(written);
    model.output("y");
    ImportOptions options;
    options.batch = 3;
    const auto imported = import(model, options);
    EXPECT_EQ(result_shape(imported), (Shape{3, 1, 6, 6}));
    ASSERT_TRUE(imported);
    const Graph& graph = imported->graph;
    ASSERT_EQ(test::operations_of(graph), (std::vector<std::string>{"copy", "binary"}));
    const Operation& copy = graph.operations()[0];
    EXPECT_EQ(graph[copy.inputs[0]].name, written == 6 ? "hidden" : "mask");
    EXPECT_EQ(graph[copy.outputs[0]].shape, (Shape{3, 1, 6, 6}));
    EXPECT_EQ(graph[copy.outputs[0]].batch_axis, 0u);
  }
}

TEST(Masks, WhatGradientsGoThroughIsNotWrittenInto) {
  ModelBuilder model = written_into(6);
  model.weight("w", {6, 6}).node("MatMul", {"y", "w"}, {"h"}).node("ScatterND", {"h", "places", "hidden"}, {"z"});
  model.output("z");
  const auto imported = import(model);
  ASSERT_TRUE(imported);
  ASSERT_EQ(imported->unsupported.size(), 1u);
  EXPECT_EQ(imported->unsupported[0].node, "z");
}

TEST(ControlFlow, AnIfWithAConstantConditionIsItsBranch) {
  ModelBuilder model(13);
  model.input("x", {"batch", 1, 6}).ints("one", {1}).ints("at", {1});
  model.node("Shape", {"x"}, {"shape"})
      .node("Gather", {"shape", "at"}, {"extent"})
      .node("Equal", {"extent", "one"}, {"is_one"});
  model.node("If", {"is_one"}, {"y"});
  auto* branch = model.graph().mutable_node(3)->add_attribute();
  branch->set_name("then_branch");
  branch->set_type(onnx::AttributeProto::GRAPH);
  auto* squeeze = branch->mutable_g()->add_node();
  squeeze->set_op_type("Squeeze");
  squeeze->add_input("x");
  squeeze->add_input("at");
  squeeze->add_output("squeezed");
  branch->mutable_g()->add_output()->set_name("squeezed");
  auto* other = model.graph().mutable_node(3)->add_attribute();
  other->set_name("else_branch");
  other->set_type(onnx::AttributeProto::GRAPH);
  auto* identity = other->mutable_g()->add_node();
  identity->set_op_type("Identity");
  identity->add_input("x");
  identity->add_output("same");
  other->mutable_g()->add_output()->set_name("same");
  model.output("y");
  ImportOptions options;
  options.batch = 4;
  EXPECT_EQ(result_shape(import(model, options)), (Shape{4, 6}));
}

TEST(ControlFlow, LoopsAreListed) {
  ModelBuilder model(13);
  model.input("x", {2, 3})
      .node("Relu", {"x"}, {"r"})
      .node("Loop", {"", "", "r"}, {"l"})
      .node("Relu", {"l"}, {"y"})
      .output("y");
  const auto imported = import(model);
  ASSERT_TRUE(imported);
  ASSERT_EQ(imported->unsupported.size(), 1u);
  EXPECT_EQ(imported->unsupported[0].node, "l");
}

// Functions inside the model are unfolded, with the caller's attributes.
TEST(Functions, AreUnfolded) {
  ModelBuilder model(18);
  model.opset("mine", 1).input("x", {"batch", 6});
  model.node("Leaky", {"x"}, {"y"}, {{"slope", 0.3}}, "mine").output("y");
  auto* function = model.model().add_functions();
  function->set_name("Leaky");
  function->set_domain("mine");
  function->add_input("in");
  function->add_output("out");
  function->add_attribute("slope");
  auto* node = function->add_node();
  node->set_op_type("LeakyRelu");
  node->add_input("in");
  node->add_output("out");
  auto* slope = node->add_attribute();
  slope->set_name("alpha");
  slope->set_type(onnx::AttributeProto::FLOAT);
  slope->set_ref_attr_name("slope");
  const auto imported = import(model);
  EXPECT_EQ(result_shape(imported), (Shape{1, 6}));
  EXPECT_FLOAT_EQ(static_cast<float>(first<Unary>(imported->graph)->alpha), 0.3F);
}

}  // namespace
}  // namespace sibyl
