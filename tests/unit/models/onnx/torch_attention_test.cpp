// torch.nn.MultiheadAttention with its residual connection, as torch.onnx writes it: N samples of 6 tokens of 16
// features in 4 heads, tokens in front.
#include <onnx/onnx_pb.h>

#include <utility>

#include "tests/unit/models/onnx/tensorflow_file.h"

namespace sibyl {
namespace {

// PyTorch 2 gives q, k and v an axis of their own and selects; PyTorch 1 takes slices. With by_heads
// (need_weights=False) heads become an axis again before the products.
struct TorchExport {
  bool selects;
  bool by_heads;
};

struct TorchMultiheads : TensorFlowFile, testing::WithParamInterface<TorchExport> {
  std::string index(std::int64_t value) {
    auto* tensor = file.graph().add_initializer();
    tensor->set_name(fresh("at"));
    tensor->set_data_type(onnx::TensorProto::INT64);
    tensor->add_int64_data(value);
    return tensor->name();
  }
  std::string reshape(const std::string& x, const std::vector<std::int64_t>& shape) {
    return op("Reshape", {x, ints(shape)});
  }

  // [6, N, 48] -> three of [6, N, 16]
  std::vector<std::string> parts(const std::string& joint) {
    std::vector<std::string> qkv;
    if (!GetParam().selects) {
      for (const std::int64_t start : {0, 16, 32})
        qkv.push_back(op("Slice", {joint, ints({start}), ints({start + 16}), ints({-1})}));
      return qkv;
    }
    const std::string apart = op("Unsqueeze", {reshape(joint, {6, -1, 3, 16}), ints({0})});
    const std::string three = op("Squeeze", {transpose(apart, {3, 1, 2, 0, 4}), ints({-2})});
    for (const std::int64_t i : {0, 1, 2}) qkv.push_back(op("Gather", {three, index(i)}, {{"axis", 0}}));
    return qkv;
  }
  std::string heads(const std::string& x) {
    const std::string folded = transpose(reshape(x, {6, -1, 4}), {1, 0, 2});
    return GetParam().by_heads ? reshape(folded, {-1, 4, 6, 4}) : folded;
  }
  // From [N, 6, 16] to that.
  std::string layer(const std::string& x) {
    const std::string product = op("MatMul", {transpose(x, {1, 0, 2}), weight({16, 48})});
    const std::vector<std::string> qkv = parts(op("Add", {weight({48}), product}));
    const std::string q = heads(qkv[0]), k = heads(qkv[1]), v = heads(qkv[2]);
    const bool apart = GetParam().by_heads;
    const std::string keys = apart ? transpose(k, {0, 1, 3, 2}) : transpose(k, {0, 2, 1});
    const std::string scores = op("MatMul", {op("Div", {q, number(2)}), keys});
    const std::string mixed = op("MatMul", {op("Softmax", {scores}, {{"axis", -1}}), v});
    const std::string tokens = apart ? transpose(mixed, {2, 0, 1, 3}) : transpose(mixed, {1, 0, 2});
    const std::string rows = reshape(tokens, {-1, 16});
    const std::string y = op("Gemm", {rows, weight({16, 16}), weight({16})}, {{"transB", 1}});
    return op("Add", {transpose(reshape(y, {6, -1, 16}), {1, 0, 2}), x});
  }
};

TEST_P(TorchMultiheads, AreADimensionOfTheirOwn) {
  const std::string x = input({"N", 6, 16});
  const auto found = operations(layer(x));
  EXPECT_EQ(count<Linear>(graph), 2) << testing::PrintToString(found);
  EXPECT_EQ(count<MatMul>(graph), 0);
  EXPECT_EQ(count<Reshape>(graph), GetParam().selects ? 5 : 4) << testing::PrintToString(found);
  EXPECT_EQ(graph.parameter_count(), 16 * 48 + 48 + 16 * 16 + 16);
  int attentions = 0;
  for (const Operation& operation : graph.operations()) {
    const auto* attention = std::get_if<Attention>(&operation.attributes);
    if (!attention) continue;
    ++attentions;
    EXPECT_DOUBLE_EQ(attention->scale, 0.5);
    ASSERT_EQ(operation.inputs.size(), 3U);
    for (const TensorId in : operation.inputs) EXPECT_EQ(shape_of(in), (Shape{2, 4, 6, 4}));
    EXPECT_EQ(shape_of(operation.outputs[0]), (Shape{2, 4, 6, 4}));
  }
  EXPECT_EQ(attentions, 1);
  for (const Tensor& tensor : graph.tensors()) EXPECT_NE(tensor.shape, (Shape{6, 8, 4})) << tensor.name;
}

INSTANTIATE_TEST_SUITE_P(Exports, TorchMultiheads,
                         testing::Values(TorchExport{false, false}, TorchExport{false, true}, TorchExport{true, false},
                                         TorchExport{true, true}));

}  // namespace
}  // namespace sibyl
