// Batch-norm over all samples: what is sent, by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/onnx/import.h"
#include "models/zoo/zoo.h"
#include "oracle/plan/plan.h"

namespace sibyl {
namespace {

Graph resnet(std::int64_t batch) {
  ImportOptions options;
  options.batch = batch;
  return inspect_onnx_bytes(*zoo_model_bytes("resnet50"), "resnet50", options)->graph;
}

Plan plan_of(const Graph& graph, std::string_view parallel, BatchNorm batch_norm) {
  Strategy strategy;
  EXPECT_TRUE(parse_parallel(parallel, strategy).has_value());
  strategy.global_batch = graph.batch() * strategy.data;
  strategy.batch_norm = batch_norm;
  return *make_plan(graph, strategy);
}

// Elements of each exchange over an axis that sums statistics both ways, or one way.
std::vector<std::int64_t> sums(const Stage& stage, MeshAxis axis) {
  std::vector<std::int64_t> elements;
  for (const Step& step : stage.steps)
    if (const auto* e = std::get_if<Exchange>(&step);
        e && e->axis == axis && (e->forward.motion == Motion::all_reduce || e->backward.motion == Motion::all_reduce))
      elements.push_back(element_count(stage[e->input].shape));
  return elements;
}

// ResNet-50 has 53 batch-norms with 26,560 channels: 64 in the stem; in four groups of 3, 4, 6 and 3 blocks with widths
// w = 64, 128, 256, 512 each block has w + w + 4 w, the first of a group 4 w more for its shortcut: w (6 n + 4) =
// 1408 + 3584 + 10240 + 11264. A ring of 2 sends as many bytes as the buffer has, which is two numbers a channel.
TEST(SynchronisedNorms, SendTwoNumbersAChannelBothWays) {
  const Graph graph = resnet(4);
  const Plan own = plan_of(graph, "data=2", BatchNorm::replica), all = plan_of(graph, "data=2", BatchNorm::synchronised);
  EXPECT_TRUE(sums(own.stages[0], MeshAxis::data).empty());
  EXPECT_EQ(sums(all.stages[0], MeshAxis::data).size(), 53U);
  const std::int64_t channels = 64 + 1408 + 3584 + 10240 + 11264;
  EXPECT_EQ(channels, 26560);
  EXPECT_EQ(bytes_sent_per_step(all, 0, Algorithm::ring) - bytes_sent_per_step(own, 0, Algorithm::ring),
            2 * 2 * channels * 4);
}

// The unbiased running variance counts the samples of all parts: 2 replicas, 2 halves of the image.
TEST(SynchronisedNorms, KnowOverHowManyParts) {
  const Stage stage = plan_of(resnet(4), "data=2,spatial=2x1", BatchNorm::synchronised).stages[0];
  std::vector<std::int64_t> parts;
  for (const Step& step : stage.steps)
    if (const auto* compute = std::get_if<Compute>(&step))
      if (const auto* norm = std::get_if<ApplyNorm>(&compute->attributes)) parts.push_back(norm->parts);
  ASSERT_EQ(parts.size(), 53U);
  EXPECT_EQ(parts.front(), 4);
  EXPECT_EQ(parts.back(), 2) << "by then the image has been gathered";
}

TEST(SynchronisedNorms, ChannelsNeedNoOther) {
  const Stage stage = plan_of(resnet(4), "data=2,tensor=2", BatchNorm::synchronised).stages[0];
  EXPECT_THAT(sums(stage, MeshAxis::data), testing::SizeIs(53));
  EXPECT_EQ(sums(stage, MeshAxis::data).front(), 2 * 64 / 2) << "of its own half of the stem's channels";
}

TEST(SynchronisedNorms, ALoneRankHasNothingToSynchronise) {
  const Stage stage = plan_of(resnet(4), "tensor=2", BatchNorm::synchronised).stages[0];
  for (const Step& step : stage.steps) {
    const auto* compute = std::get_if<Compute>(&step);
    EXPECT_FALSE(compute && std::holds_alternative<ApplyNorm>(compute->attributes));
  }
}

}  // namespace
}  // namespace sibyl
