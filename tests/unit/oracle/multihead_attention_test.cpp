// torch.nn.MultiheadAttention, whose exports fold heads into the batch, is shared by its heads as any other attention:
// 2 samples of 6 tokens of 16 features in 4 heads.
#include <gmock/gmock.h>

#include "models/canonical/canonical.h"
#include "models/onnx/import.h"
#include "tests/support/sharded.h"
#include "tests/support/stages.h"
#include "tests/unit/models/torch_attention.h"

namespace sibyl {
namespace {

struct SharedAttention {
  std::string attention;     // the signature of a rank's
  std::vector<PartOf> cuts;  // of the weight that makes queries, keys and values
  std::vector<std::string> exchanges;
};

SharedAttention shared_attention(test::Packing packing, test::Products products, std::string_view parallel) {
  test::TorchAttention layer{2, packing, products};
  const auto graph = canonicalize(layer.raw());
  EXPECT_TRUE(graph) << to_string(graph.error());
  if (!graph) return {};
  const Stage stage = test::plan_of(*graph, parallel).stages[0];
  SharedAttention shared;
  for (const Step& step : stage.steps)
    if (const auto* c = std::get_if<Compute>(&step); c && std::holds_alternative<Attention>(c->attributes))
      shared.attention = to_string(signature(stage, *c));
  const LocalTensor& weight = test::parameter(*graph, stage, layer.b.graph[layer.joint_weight].name);
  shared.cuts.assign(weight.cuts.begin(), weight.cuts.end());
  shared.exchanges = test::exchanges(stage);
  return shared;
}

TEST(MultiheadAttention, IsCutByHeads) {
  for (const test::Packing packing : {test::Packing::slices, test::Packing::selected})
    for (const test::Products products : {test::Products::folded, test::Products::by_heads}) {
      const SharedAttention shared = shared_attention(packing, products, "tensor=2");
      EXPECT_EQ(shared.attention, "attention(scale=0.5)[2x2x6x4,2x2x6x4,2x2x6x4]->[2x2x6x4]:f32");
      EXPECT_THAT(shared.cuts, testing::ElementsAre(PartOf{MeshAxis::tensor, Layout::split(1, {16, 16, 16})}));
      EXPECT_THAT(shared.exchanges, testing::ElementsAre("all-reduce/none"));
    }
}

// 4 heads are none for each of 8 ranks: what made queries, keys and values is gathered, and every rank attends.
TEST(MultiheadAttention, OfTooFewHeadsIsWhole) {
  for (const test::Packing packing : {test::Packing::slices, test::Packing::selected}) {
    const SharedAttention shared = shared_attention(packing, test::Products::by_heads, "tensor=8");
    EXPECT_EQ(shared.attention, "attention(scale=0.5)[2x4x6x4,2x4x6x4,2x4x6x4]->[2x4x6x4]:f32");
    EXPECT_EQ(shared.cuts.size(), 1U);
  }
}

#ifdef SIBYL_EXPORTED_MODELS
// Files that torch.onnx wrote: two layers of 4 heads of 8 over 6 tokens, or of 2 heads of 16 over 17. The encoder's
// first projection reads what a linear layer made, which is cut by columns: so it is cut by rows, and its attention is
// whole.
TEST(MultiheadAttention, OfExportedFilesIsCutByHeads) {
  struct File {
    const char* name;
    Shape first, second;
  };
  const Shape whole{4, 4, 6, 8}, two{4, 2, 6, 8}, one{4, 1, 17, 16};
  const File files[] = {{"encoder_o13_train_b1", whole, two}, {"encoder_o16_train_dynamic", whole, two},
                        {"encoder_o17_train_b4", whole, two}, {"vit_o13_eval_b1", one, one},
                        {"vit_o14_train_b8", one, one},       {"vit_o17_eval_dynamic", one, one}};
  for (const auto& [name, first, second] : files) {
    ImportOptions options;
    options.batch = 4;
    const auto imported = inspect_onnx(std::string(SIBYL_EXPORTED_MODELS) + "/" + name + ".onnx", options);
    ASSERT_TRUE(imported) << name;
    const Stage stage = test::plan_of(imported->graph, "tensor=2").stages[0];
    std::vector<Shape> queries;
    for (const Step& step : stage.steps)
      if (const auto* c = std::get_if<Compute>(&step); c && std::holds_alternative<Attention>(c->attributes))
        queries.push_back(stage[c->inputs[0]].shape);
    EXPECT_THAT(queries, testing::ElementsAre(first, second)) << name;
  }
}
#endif

}  // namespace
}  // namespace sibyl
