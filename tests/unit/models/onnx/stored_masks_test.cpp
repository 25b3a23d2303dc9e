// Masks of attention that an export computed and stored among the weights. Attention of N samples: 4 heads, 6 tokens.
#include <onnx/onnx_pb.h>

#include <functional>
#include <limits>

#include "tests/unit/models/onnx/tensorflow_file.h"

namespace sibyl {
namespace {

struct StoredMasks : TensorFlowFile {
  static constexpr std::int64_t tokens = 6;
  using Keeps = std::function<bool(std::int64_t query, std::int64_t key)>;

  static bool causal(std::int64_t query, std::int64_t key) { return key <= query; }
  static bool window(std::int64_t query, std::int64_t key) { return key <= query && query - key < 3; }

  // `repeats` times [size, size]: 0 where a key is kept, else `low`.
  static std::vector<float> squares(const Keeps& keeps, std::int64_t size, std::int64_t repeats, float low) {
    std::vector<float> elements;
    for (std::int64_t i = 0; i < repeats; ++i)
      for (std::int64_t query = 0; query < size; ++query)
        for (std::int64_t key = 0; key < size; ++key) elements.push_back(keeps(query, key) ? 0.0F : low);
    return elements;
  }
  std::string floats(const std::vector<std::int64_t>& shape, const std::vector<float>& elements) {
    auto* tensor = file.graph().add_initializer();
    tensor->set_name(fresh("mask"));
    tensor->set_data_type(onnx::TensorProto::FLOAT);
    for (const std::int64_t extent : shape) tensor->add_dims(extent);
    tensor->set_raw_data(std::string(reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(float)));
    return tensor->name();
  }
  std::string booleans(const Keeps& keeps) {
    auto* tensor = file.graph().add_initializer();
    tensor->set_name(fresh("mask"));
    tensor->set_data_type(onnx::TensorProto::BOOL);
    for (const std::int64_t extent : {std::int64_t{1}, std::int64_t{1}, tokens, tokens}) tensor->add_dims(extent);
    for (std::int64_t query = 0; query < tokens; ++query)
      for (std::int64_t key = 0; key < tokens; ++key) tensor->add_int32_data(keeps(query, key) ? 1 : 0);
    return tensor->name();
  }

  // Of what the batch is in the file: a symbol or a number.
  std::string attends(const Extent& batch, const std::function<std::string(const std::string&)>& masked) {
    const auto heads = [&] { return input({batch, 4, 6, 8}); };
    const std::string q = heads(), keys = transpose(heads(), {0, 1, 3, 2});
    const std::string p = op("Softmax", {masked(op("MatMul", {q, keys}))}, {{"axis", -1}});
    return op("MatMul", {p, heads()});
  }
  std::string with_added(const std::string& mask, const Extent& batch = "N") {
    return attends(batch, [&](const std::string& scores) { return op("Add", {scores, mask}); });
  }
  std::string with_condition(const std::string& mask) {
    return attends("N", [&](const std::string& scores) { return op("Where", {mask, scores, number(-1e4)}); });
  }

  void expect_causal(const std::string& y, std::int64_t batch = 2) {
    const auto found = operations(y, batch);
    const auto* attention = first<Attention>(graph);
    ASSERT_NE(attention, nullptr) << testing::PrintToString(found);
    EXPECT_TRUE(attention->causal);
    EXPECT_EQ(last().inputs.size(), 3U);
    EXPECT_EQ(graph.parameter_count(), 0);
  }
  void expect_masked(const std::string& y, std::int64_t parameters = 0) {
    const auto found = operations(y);
    const auto* attention = first<Attention>(graph);
    ASSERT_NE(attention, nullptr) << testing::PrintToString(found);
    EXPECT_FALSE(attention->causal);
    EXPECT_EQ(last().inputs.size(), 4U);
    EXPECT_EQ(graph.parameter_count(), parameters);
  }
};

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

TEST_F(StoredMasks, AreCausalWhereTheyAreATriangle) {
  expect_causal(with_added(floats({1, 1, tokens, tokens}, squares(causal, tokens, 1, minus_infinity))));
}

TEST_F(StoredMasks, AreCausalByLowNumbersToo) {  // torch.finfo(torch.float32).min
  const float lowest = std::numeric_limits<float>::lowest();
  expect_causal(with_added(floats({tokens, tokens}, squares(causal, tokens, 1, lowest))));
}

TEST_F(StoredMasks, AreConstantsOtherwise) {
  expect_masked(with_added(floats({1, 1, tokens, tokens}, squares(window, tokens, 1, -1e4F))));
  const TensorId mask = last().inputs[3];
  EXPECT_EQ(graph[mask].kind, TensorKind::buffer);
  EXPECT_EQ(graph[mask].values.size(), 36U);
}

TEST_F(StoredMasks, OfEachHeadAreConstants) {
  expect_masked(with_added(floats({1, 4, tokens, tokens}, squares(window, tokens, 4, -1e4F))));
}

TEST_F(StoredMasks, OfKeysAreConstants) {  // [1, 1, 1, T]
  expect_masked(with_added(floats({1, 1, 1, tokens}, {0, 0, 0, 0, minus_infinity, minus_infinity})));
}

// Expanded to the samples of the export: at three the file would else not do.
TEST_F(StoredMasks, OfEachSampleAreForAnyBatch) {
  expect_causal(with_added(floats({2, 1, tokens, tokens}, squares(causal, tokens, 2, minus_infinity)), 2), 3);
}

TEST_F(StoredMasks, AreNoMasksWithOtherElements) {  // a bias of heads
  std::vector<float> elements = squares(causal, tokens, 4, minus_infinity);
  elements[3] = 0.25F;
  expect_masked(with_added(floats({1, 4, tokens, tokens}, elements)), 4 * 6 * 6);
}

TEST_F(StoredMasks, ThatAreConditionsAreCausalAsATriangle) { expect_causal(with_condition(booleans(causal))); }

TEST_F(StoredMasks, ThatAreConditionsAreMasksOtherwise) { expect_masked(with_condition(booleans(window))); }

// 300 x 300 are more elements than are read; they are looked at in the file.
TEST_F(StoredMasks, OfManyTokensAreConstants) {
  const std::string x = input({"N", 300, 300});
  const auto found = operations(op("Add", {x, floats({300, 300}, squares(window, 300, 1, minus_infinity))}));
  EXPECT_THAT(found, testing::ElementsAre("binary"));
  EXPECT_EQ(graph.parameter_count(), 0);
}

TEST_F(StoredMasks, OfManyTokensWithOtherElementsAreWeights) {
  const std::string x = input({"N", 300, 300});
  operations(op("Add", {x, floats({300, 300}, std::vector<float>(300 * 300, 0.5F))}));
  EXPECT_EQ(graph.parameter_count(), 300 * 300);
}

}  // namespace
}  // namespace sibyl
