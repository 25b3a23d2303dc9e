// torch.nn.MultiheadAttention: 2 samples of 6 tokens of 16 features in 4 heads.
#include <gmock/gmock.h>

#include "models/canonical/canonical.h"
#include "tests/unit/models/torch_attention.h"

namespace sibyl {
namespace {

using test::Packing;
using test::Products;

struct FoldedHeads : testing::TestWithParam<std::pair<Packing, Products>> {
  Graph canonical(std::int64_t samples) {
    test::TorchAttention attention{samples, GetParam().first, GetParam().second};
    const auto graph = canonicalize(attention.raw());
    EXPECT_TRUE(graph) << to_string(graph.error());
    return graph ? *graph : Graph{};
  }
};

template <class Op>
std::vector<std::string> of_kind(const Graph& graph) {
  std::vector<std::string> found;
  for (const Operation& op : graph.operations())
    if (std::holds_alternative<Op>(op.attributes))
      found.push_back(to_string(op.attributes) + " " + to_string(graph[op.inputs[0]].shape) + " " +
                      to_string(graph[op.outputs[0]].shape));
  return found;
}

// [S, B, E] -> [S, B, H, D] -> [B, H, S, D], and back.
TEST_P(FoldedHeads, AreADimensionOfTheirOwn) {
  const Graph graph = canonical(2);
  EXPECT_THAT(of_kind<Attention>(graph), testing::ElementsAre("attention(scale=0.5) 2x4x6x4 2x4x6x4"));
  const std::string features = "reshape 6x2x16 6x2x4x4", of_three = "reshape 1x6x2x16 6x2x4x4";
  const bool selected = GetParam().first == Packing::selected;
  std::vector<std::string> reshapes(3, selected ? of_three : features);
  if (selected) reshapes.insert(reshapes.begin(), "reshape 6x2x48 6x2x3x16");
  reshapes.emplace_back("reshape 6x2x4x4 6x2x16");
  EXPECT_THAT(of_kind<Reshape>(graph), testing::UnorderedElementsAreArray(reshapes));
  const std::string turned = "transpose(permutation=1x2x0x3) 6x2x4x4 2x4x6x4";
  std::vector<std::string> transposes = {"transpose(permutation=1x0x2) 2x6x16 6x2x16",
                                         turned,
                                         turned,
                                         turned,
                                         "transpose(permutation=2x0x1x3) 2x4x6x4 6x2x4x4",
                                         "transpose(permutation=1x0x2) 6x2x16 2x6x16"};
  if (selected) transposes.emplace_back("transpose(permutation=2x0x1x3) 6x2x3x16 3x6x2x16");
  EXPECT_THAT(of_kind<Transpose>(graph), testing::UnorderedElementsAreArray(transposes));
  EXPECT_THAT(of_kind<Linear>(graph),
              testing::ElementsAre("linear(weight_kn=1) 6x2x16 6x2x48", "linear(weight_kn=1) 6x2x16 6x2x16"));
}

// At a batch of one, too, where [6, 1, 16] is viewed as [6, 4, 4].
TEST_P(FoldedHeads, AreThatAtAnyBatch) {
  const Graph one = canonical(1), two = canonical(2);
  EXPECT_EQ(test::operations_of(one), test::operations_of(two));
  EXPECT_THAT(of_kind<Attention>(one), testing::ElementsAre("attention(scale=0.5) 1x4x6x4 1x4x6x4"));
  for (const Tensor& tensor : one.tensors()) {
    if (tensor.batch_axis) {
      EXPECT_EQ(tensor.shape[*tensor.batch_axis], 1) << tensor.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Torch, FoldedHeads,
                         testing::Values(std::pair(Packing::slices, Products::folded),
                                         std::pair(Packing::slices, Products::by_heads),
                                         std::pair(Packing::selected, Products::folded),
                                         std::pair(Packing::selected, Products::by_heads)));

// Hugging Face's Bart without a mask: [B, S, H, D] -> [B, H, S, D] -> [B H, S, D]; no reshape of the scores tells.
TEST(HeadsOfAView, AreThoseOfTheBatch) {
  test::GraphBuilder b;
  const auto heads = [&] {
    return b.reshape(b.transpose(b.reshape(b.input({2, 6, 16}), {2, 6, 4, 4}), {0, 2, 1, 3}), {8, 6, 4});
  };
  const TensorId q = heads(), k = heads(), v = heads();
  const TensorId y = b.matmul(b.softmax(b.matmul(q, b.transpose(k, {0, 2, 1}))), v);
  const TensorId back = b.reshape(b.transpose(b.reshape(y, {2, 4, 6, 4}), {0, 2, 1, 3}), {2, 6, 16});
  const auto graph = canonicalize(b.finish({back}));
  ASSERT_TRUE(graph);
  EXPECT_THAT(of_kind<Attention>(*graph), testing::ElementsAre("attention 2x4x6x4 2x4x6x4"));
  EXPECT_EQ(of_kind<Reshape>(*graph).size(), 4U);
  EXPECT_EQ(of_kind<Transpose>(*graph).size(), 4U);
}

// Which of the 8 are heads is not known where the batch is not.
TEST(HeadsOfAView, StayWhereTheyAreWithoutABatch) {
  test::TorchAttention attention;
  Graph graph = attention.raw();
  for (std::size_t i = 0; i < graph.tensors().size(); ++i) graph.at(TensorId{i}).batch_axis = std::nullopt;
  const auto result = canonicalize(std::move(graph));
  ASSERT_TRUE(result);
  EXPECT_THAT(of_kind<Attention>(*result), testing::ElementsAre("attention(scale=0.5) 8x1x6x4 8x1x6x4"));
}

}  // namespace
}  // namespace sibyl
