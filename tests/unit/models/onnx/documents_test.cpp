// Reading the file itself: payloads stay out of memory, small tensors are decoded.
#include "models/onnx/document.h"

#include "models/onnx/payload.h"
#include "models/onnx/wire.h"
#include "tests/support/cancelling.h"
#include "tests/unit/models/onnx/lookup.h"

namespace sibyl {
namespace {

using namespace onnx_import;

TEST(Payloads, LargeOnesAreLeftOutSmallOnesKept) {
  ModelBuilder model(13);
  model.input("x", {2, 3}).node("Relu", {"x"}, {"y"}).output("y");
  for (const auto& [name, elements] : {std::pair{"large", 1000000}, std::pair{"small", 3}}) {
    auto* tensor = model.graph().add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::FLOAT);
    tensor->add_dims(elements);
    tensor->set_raw_data(std::string(static_cast<std::size_t>(elements) * 4, '\0'));
  }
  const auto slim = without_payloads(model.bytes());
  ASSERT_TRUE(slim);
  EXPECT_LT(slim->size(), 1000u);
  const auto document = parse_model(model.bytes(), "test");
  ASSERT_TRUE(document);
  EXPECT_EQ(document->graph.initializers[0].shape, Shape{1000000});
  EXPECT_FALSE(document->graph.initializers[0].values);
  ASSERT_TRUE(document->graph.initializers[1].values);
  EXPECT_EQ(*document->graph.initializers[1].values, (Values{0, 0, 0}));
}

// protobuf takes what it parses in blocks of 64 KiB: 640 KiB more are ten.
TEST(Documents, ReadingEndsWhenItIsCancelled) {
  const auto asked = [](std::size_t described) {
    ModelBuilder model(13);
    model.input("x", {2, 3}).node("Relu", {"x"}, {"r"}).node("Relu", {"r"}, {"y"}).output("y");
    model.graph().mutable_node(0)->set_doc_string(std::string(described, 'd'));
    const std::string bytes = model.bytes();
    const auto parse = [&](const Cancelled& cancelled) { return parse_model(bytes, "test", cancelled); };
    test::expect_ends_when_cancelled(parse);
    return test::times_asked(parse);
  };
  EXPECT_EQ(asked(10 << 16), asked(0) + 10);
}

// 0x3C00 is 1.0 in half precision, 0xC000 is -2; 0x3FC0 is 1.5 in bfloat16.
TEST(Payloads, DecodesHalfBfloatAndIntegers) {
  EXPECT_EQ(*decode_raw(std::string_view("\x00\x3C\x00\xC0", 4), 10, 2), (Values{1.0, -2.0}));
  EXPECT_EQ(*decode_raw(std::string_view("\xC0\x3F", 2), 16, 1), (Values{1.5}));
  EXPECT_EQ(*decode_raw(std::string_view("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 8), 7, 1), (Values{-1}));
  EXPECT_FALSE(decode_raw("abc", 1, 1));
}

// 96 layers of GPT-3's size and more: 10^12 parameters by shape.
TEST(Weights, ATrillionParametersAreOnlyShapes) {
  ModelBuilder model(17);
  model.input("x", {"batch", 128, 25600});
  std::string last = "x";
  for (int layer = 0; layer < 130; ++layer) {
    const std::string n = std::to_string(layer);
    model.weight("up" + n, {25600, 153600}).weight("down" + n, {153600, 25600});
    model.node("MatMul", {last, "up" + n}, {"a" + n}).node("Gelu", {"a" + n}, {"g" + n}, {}, "com.microsoft");
    model.node("MatMul", {"g" + n, "down" + n}, {"y" + n});
    last = "y" + n;
  }
  model.output(last);
  const auto imported = import(model);
  EXPECT_EQ(result_shape(imported), (Shape{1, 128, 25600}));
  EXPECT_EQ(imported->graph.parameter_count(), std::int64_t{130} * 2 * 25600 * 153600);  // 1.02e12
}

}  // namespace
}  // namespace sibyl
