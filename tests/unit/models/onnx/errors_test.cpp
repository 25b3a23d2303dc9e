// Bad files: one clear error that names the node or tensor, never a crash.
#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>

#include "tests/unit/models/onnx/lookup.h"

namespace sibyl {
namespace {

ModelBuilder good() {
  ModelBuilder model(13);
  model.input("x", {2, 3, 8, 8})
      .weight("w", {4, 3, 3, 3})
      .node("Conv", {"x", "w"}, {"c"})
      .node("Relu", {"c"}, {"y"})
      .output("y");
  return model;
}

Error error_of(const ModelBuilder& model) {
  const auto imported = import(model);
  EXPECT_FALSE(imported);
  return imported ? Error{} : imported.error();
}

TEST(Errors, EveryTruncationIsAnErrorOrAModel) {
  const std::string bytes = good().bytes();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto imported = inspect_onnx_bytes(bytes.substr(0, size), "cut.onnx", {});
    if (imported) continue;  // cut between two fields: a shorter model
    EXPECT_EQ(imported.error().code, ErrorCode::bad_input);
    EXPECT_FALSE(imported.error().message.empty());
  }
  const auto half = inspect_onnx_bytes(bytes.substr(0, bytes.size() / 2), "cut.onnx", {});
  ASSERT_FALSE(half);
  EXPECT_EQ(half.error().where, "cut.onnx");
  EXPECT_THAT(half.error().message, testing::HasSubstr("truncated"));
}

TEST(Errors, NotOnnx) {
  for (const char* text : {"hello", "PK\x03\x04", "{\"json\": true}"})
    EXPECT_FALSE(inspect_onnx_bytes(text, "f", {})) << text;
  EXPECT_FALSE(inspect_onnx_bytes("", "f", {}));
}

TEST(Errors, AFileThatIsNotThere) {
  const auto imported = inspect_onnx("/nonexistent/model.onnx", {});
  ASSERT_FALSE(imported);
  EXPECT_EQ(imported.error().where, "/nonexistent/model.onnx");
  EXPECT_FALSE(inspect_onnx("/", {}));
}

// A sparse file: it takes no room on disk and is not read.
TEST(Errors, TwoGibibytesSayHowToSaveTheModel) {
  const auto path = std::filesystem::temp_directory_path() / ("sibyl_large_" + std::to_string(::getpid()) + ".onnx");
  std::ofstream(path).put('x');
  std::filesystem::resize_file(path, std::uintmax_t{1} << 31);
  const auto imported = inspect_onnx(path, {});
  std::filesystem::remove(path);
  ASSERT_FALSE(imported);
  EXPECT_THAT(imported.error().message, testing::HasSubstr("2 GiB"));
  EXPECT_THAT(imported.error().hint, testing::HasSubstr("external data"));
}

TEST(Errors, ACycle) {
  ModelBuilder model(13);
  model.input("x", {2, 3}).node("Add", {"x", "b"}, {"a"}).node("Relu", {"a"}, {"b"}).output("b");
  const Error error = error_of(model);
  EXPECT_THAT(error.message, testing::HasSubstr("cycle"));
  EXPECT_EQ(error.where, "a");
}

TEST(Errors, NodesOutOfOrderAreNotACycle) {
  ModelBuilder model(13);
  model.input("x", {2, 3}).node("Relu", {"a"}, {"y"}).node("Relu", {"x"}, {"a"}).output("y");
  EXPECT_EQ(result_shape(import(model)), (Shape{2, 3}));
}

TEST(Errors, ATensorProducedTwice) {
  auto model = good();
  model.node("Sigmoid", {"c"}, {"y"});
  EXPECT_THAT(error_of(model).message, testing::HasSubstr("'y' is produced twice"));
  auto shadowed = good();
  shadowed.node("Sigmoid", {"c"}, {"w"});
  EXPECT_EQ(error_of(shadowed).where, "w");
  auto twice = good();
  twice.weight("w", {1});
  EXPECT_EQ(error_of(twice).where, "w");
}

TEST(Errors, ANameThatNothingProduces) {
  auto model = good();
  model.node("Add", {"y", "ghost"}, {"z"});
  const Error error = error_of(model);
  EXPECT_EQ(error.where, "z");
  EXPECT_THAT(error.message, testing::HasSubstr("'ghost'"));
}

TEST(Errors, ShapesThatDoNotFitNameTheNode) {
  ModelBuilder model(13);
  model.input("x", {2, 5, 8, 8}).weight("w", {4, 3, 3, 3}).node("Conv", {"x", "w"}, {"c"}).output("c");
  const Error error = error_of(model);
  EXPECT_EQ(error.where, "c");
  EXPECT_THAT(error.message, testing::HasSubstr("2x5x8x8"));
}

TEST(Errors, MissingShapesAndTypes) {
  auto model = good();
  model.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  EXPECT_EQ(error_of(model).where, "x");
  auto untyped = good();
  untyped.graph().mutable_input(0)->clear_type();
  EXPECT_EQ(error_of(untyped).where, "x");
}

TEST(Errors, NegativeAndOverflowingExtents) {
  auto negative = good();
  negative.weight("n", {-3, 4});
  EXPECT_EQ(error_of(negative).where, "n");
  auto large = good();
  large.weight("l", {std::int64_t{1} << 32, std::int64_t{1} << 31});  // 2^63 elements
  EXPECT_EQ(error_of(large).where, "l");
  ModelBuilder input(13);
  input.input("x", {-2, 3}).node("Relu", {"x"}, {"y"}).output("y");
  EXPECT_EQ(error_of(input).where, "x");
  ModelBuilder grown(13);  // 2^62 elements by expansion of small ones
  grown.input("x", {2, 3})
      .ints("s", {std::int64_t{1} << 31, std::int64_t{1} << 31, 2, 3})
      .node("Expand", {"x", "s"}, {"y"})
      .output("y");
  EXPECT_EQ(error_of(grown).where, "y");
}

TEST(Errors, ExternalDataOutsideTheFolder) {
  for (const char* location : {"/etc/passwd", "../weights.bin", "a/../../b", "..\\x", ""}) {
    auto model = good();
    model.weight("far", {4}, location);
    const Error error = error_of(model);
    EXPECT_EQ(error.where, "far") << location;
  }
  auto inside = good();
  inside.weight("near", {4}, "data/weights.bin");
  EXPECT_TRUE(import(inside));
}

TEST(Errors, UnknownOperatorsAndDomainsAreListedWithTheirNodes) {
  auto model = good();
  model.node("Frobnicate", {"y"}, {"z"}).node("Thing", {"y"}, {"t"}, {}, "org.example");
  const auto imported = import(model);
  ASSERT_TRUE(imported);
  ASSERT_EQ(imported->unsupported.size(), 2u);
  EXPECT_EQ(imported->unsupported[0].node, "z");
  EXPECT_THAT(imported->unsupported[1].reason, testing::HasSubstr("org.example"));
}

// One unknown operator hides neither the next of its kind nor how much lies behind it.
TEST(Errors, UnknownOperatorsBehindUnknownOnesAreListedToo) {
  auto model = good();
  model.node("Frobnicate", {"y"}, {"z"}).node("Relu", {"z"}, {"r"}).node("Frobnicate", {"r"}, {"s"});
  model.node("Add", {"s", "c"}, {"t"}).node("Loop", {"t"}, {"u"}).node("Sigmoid", {"y"}, {"seen"});
  const auto imported = import(model);
  ASSERT_TRUE(imported);
  ASSERT_EQ(imported->unsupported.size(), 3u);
  EXPECT_EQ(imported->unsupported[0].node, "z");
  EXPECT_EQ(imported->unsupported[1].node, "s");
  EXPECT_EQ(imported->unsupported[2].node, "u");
  EXPECT_EQ(imported->unseen, 2);  // Relu and Add
}

TEST(Errors, UnknownOperatorsInFunctionsBehindUnknownOnesAreListed) {
  auto model = good();
  model.opset("mine", 1).node("Frobnicate", {"y"}, {"z"}).node("F", {"z"}, {"f"}, {}, "mine");
  auto* function = model.model().add_functions();
  function->set_name("F");
  function->set_domain("mine");
  function->add_input("in");
  function->add_output("out");
  auto* node = function->add_node();
  node->set_op_type("Unheard");
  node->set_name("inside");
  node->add_input("in");
  node->add_output("out");
  const auto imported = import(model);
  ASSERT_TRUE(imported);
  ASSERT_EQ(imported->unsupported.size(), 2u);
  EXPECT_EQ(imported->unsupported[1].node, "f/inside");
}

TEST(Errors, APaddingThatOnnxDoesNotKnow) {
  ModelBuilder model(13);
  model.input("x", {2, 3, 8, 8}).weight("w", {4, 3, 3, 3});
  model.node("Conv", {"x", "w"}, {"c"}, {{"auto_pad", std::string("FOO")}}).output("c");
  const Error error = error_of(model);
  EXPECT_EQ(error.where, "c");
  EXPECT_THAT(error.message, testing::HasSubstr("'FOO'"));
}

// The importer's other tests leave the loss away; without one there is nothing to train that could be missing.
TEST(Errors, AnExtentOfZeroIsNamed) {
  ModelBuilder model(13);
  model.input("x", {4, 0}).weight("w", {0, 10}).node("MatMul", {"x", "w"}, {"y"}).output("y");
  const auto imported = inspect_onnx_bytes(model.bytes(), "zero.onnx", {});
  ASSERT_FALSE(imported);
  EXPECT_EQ(imported.error().where, "x");
  EXPECT_THAT(imported.error().message, testing::HasSubstr("extent of 0"));
}

TEST(Errors, APositionBehindTheTableSaysHowLongSequencesAre) {
  ModelBuilder model(13);
  model.input("ids", {"batch", "seq"}, onnx::TensorProto::INT64)
      .weight("tokens", {100, 8})
      .weight("positions", {16, 8});
  model.node("Shape", {"ids"}, {"shape"}).ints("one", {1});
  model.node("Gather", {"shape", "one"}, {"length"}).node("Squeeze", {"length"}, {"limit"});
  model.node("Constant", {}, {"start"}, {{"value_int", 0}}).node("Constant", {}, {"step"}, {{"value_int", 1}});
  model.node("Range", {"start", "limit", "step"}, {"places"}).node("Gather", {"positions", "places"}, {"p"});
  model.node("Gather", {"tokens", "ids"}, {"t"}).node("Add", {"t", "p"}, {"y"}).output("y");
  ImportOptions options;
  options.dims["seq"] = 16;
  EXPECT_TRUE(import(model, options));
  options.dims["seq"] = 17;
  const auto longer = import(model, options);
  ASSERT_FALSE(longer);
  EXPECT_EQ(longer.error().where, "p");
  EXPECT_THAT(longer.error().hint, testing::HasSubstr("16 rows"));
}

TEST(Errors, AnOpsetThatIsNewerThanSibylIsSaid) {
  for (const int opset : {24, 99}) {
    ModelBuilder model(opset);
    model.input("x", {2, 3}).node("Relu", {"x"}, {"y"}).output("y");
    const auto imported = import(model);
    ASSERT_TRUE(imported);
    EXPECT_EQ(imported->graph.assumed.size(), opset == 99 ? 1U : 0U);
  }
}

TEST(Errors, OperandsThatAreMissing) {
  ModelBuilder model(13);
  model.input("x", {2, 3, 8, 8}).node("Conv", {"x"}, {"c"}).output("c");
  EXPECT_EQ(error_of(model).where, "c");
}

TEST(Errors, OldOpsets) {
  ModelBuilder model(6);
  model.input("x", {2, 3}).node("Relu", {"x"}, {"y"}).output("y");
  EXPECT_THAT(error_of(model).message, testing::HasSubstr("opset 6"));
}

TEST(Errors, AFunctionThatCallsItself) {
  ModelBuilder model(18);
  model.opset("mine", 1).input("x", {2, 3}).node("F", {"x"}, {"y"}, {}, "mine").output("y");
  auto* function = model.model().add_functions();
  function->set_name("F");
  function->set_domain("mine");
  function->add_input("in");
  function->add_output("out");
  auto* node = function->add_node();
  node->set_op_type("F");
  node->set_domain("mine");
  node->add_input("in");
  node->add_output("out");
  EXPECT_FALSE(import(model));
}

}  // namespace
}  // namespace sibyl
