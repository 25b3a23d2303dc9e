// Models that return more than what is trained.
#include "models/untrained.h"

#include <gmock/gmock.h>

#include "tests/unit/models/onnx/lookup.h"

namespace sibyl {
namespace {

// A body (4 x 16), logits (16 x 3, the first output), and beside them a pooler (16 x 16 and 16) whose result goes on to
// a second head (16 x 5): two further outputs.
ModelBuilder with_pooler() {
  ModelBuilder model(17);
  model.input("x", {"batch", 4}).weight("body", {4, 16}).weight("logits", {16, 3}).weight("pool", {16, 16});
  model.weight("shift", {16}).weight("next", {16, 5});
  model.node("MatMul", {"x", "body"}, {"hidden"}).node("MatMul", {"hidden", "logits"}, {"scores"});
  model.node("MatMul", {"hidden", "pool"}, {"pooled_"}).node("Add", {"pooled_", "shift"}, {"pooled"});
  model.node("MatMul", {"pooled", "next"}, {"relation"});
  return model.output("scores").output("pooled").output("relation");
}

TEST(Untrained, IsWhatOnlyOtherOutputsNeed) {
  ImportOptions options;
  options.batch = 2;
  options.loss = LossKind::cross_entropy;
  const auto result = import(with_pooler(), options);
  ASSERT_TRUE(result.has_value()) << to_string(result.error());
  EXPECT_EQ(result->graph.parameter_count(), 4 * 16 + 16 * 3) << "training sees the body and the logits";
  EXPECT_THAT(result->graph.untrained,
              testing::ElementsAre(UntrainedOutput{"pooled", 2, 16 * 16 + 16}, UntrainedOutput{"relation", 1, 16 * 5}));
  EXPECT_EQ(untrained_sentence(result->graph.untrained[0]),
            "2 parameters of 272 elements only reach output pooled, which no loss is attached to");
}

// With no loss nothing is left out, and of a single output nothing can be.
TEST(Untrained, IsNothingWhereAllOutputsStay) {
  ImportOptions options;
  options.batch = 2;
  const auto whole = import(with_pooler(), options);  // the builder's helper attaches no loss unless told
  EXPECT_EQ(whole->graph.parameter_count(), 64 + 48 + 272 + 80);
  EXPECT_TRUE(whole->graph.untrained.empty());
}

}  // namespace
}  // namespace sibyl
