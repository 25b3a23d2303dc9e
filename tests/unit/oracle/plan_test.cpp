// Plans: meshes, buckets, who computes which gradient.
#include "oracle/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "oracle/plan/buckets.h"
#include "tests/support/graphs.h"
#include "tests/support/strategies.h"

namespace sibyl {
namespace {

using test::data_parallel;
using testing::ElementsAre;

std::vector<std::string> names(const Graph& graph, const Stage& stage, const std::vector<LocalTensorId>& ids) {
  std::vector<std::string> result;
  for (const LocalTensorId id : ids) result.push_back(graph[stage[id].origin].name);
  return result;
}

TEST(Mesh, GroupsDifferInOneDigit) {
  const Mesh mesh{{{MeshAxis::data, 6}}};
  EXPECT_EQ(mesh.size(), 6);
  EXPECT_EQ(mesh.stride(MeshAxis::data), 1);
  EXPECT_EQ(mesh.coordinate(4, MeshAxis::data), 4);
  EXPECT_THAT(mesh.group(4, MeshAxis::data), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(Mesh, PlacementFillsNodesInOrder) {
  const Mesh mesh{{{MeshAxis::data, 16}}};
  EXPECT_EQ(placement(mesh, MeshAxis::data, 8), (GroupPlacement{8, 2, 1}));
  EXPECT_EQ(placement(mesh, MeshAxis::data, 1), (GroupPlacement{1, 16, 1}));
  EXPECT_EQ(placement(mesh, MeshAxis::data, 32), (GroupPlacement{16, 1, 1}));
}

// Three ranks each, on nodes of eight: the third group lies on two nodes, 6 and 7 | 8, and the two others of the first
// node send nothing out of it. Of four, three apart, two lie as 0, 3, 6 | 9, one as 2, 5 | 8, 11: all three leave.
TEST(Mesh, IrregularGroupsLieAsTheWorstDoes) {
  const Mesh mesh{{{MeshAxis::tensor, 3}, {MeshAxis::data, 4}}};
  EXPECT_EQ(placement(mesh, MeshAxis::tensor, 8), (GroupPlacement{2, 2, 1, 1}));
  EXPECT_EQ(placement(mesh, MeshAxis::data, 8), (GroupPlacement{3, 2, 3, 2}));
  EXPECT_EQ(placement(mesh, MeshAxis::tensor, 12), (GroupPlacement{3, 1, 4}));
  EXPECT_EQ(placement(Mesh{{{MeshAxis::data, 12}}}, MeshAxis::data, 8), (GroupPlacement{8, 2, 1, 4}));
}

// However they lie a group has as many ranks as its axis.
TEST(Mesh, PlacementsHaveTheRanksThereAre) {
  for (int ranks = 2; ranks <= 9; ++ranks)
    for (int groups = 1; groups <= 6; ++groups)
      for (int each = 1; each <= 8; ++each) {
        const Mesh mesh{{{MeshAxis::tensor, ranks}, {MeshAxis::data, groups}}};
        const GroupPlacement near = placement(mesh, MeshAxis::tensor, each);
        const GroupPlacement far = placement(mesh, MeshAxis::data, each);
        EXPECT_EQ(near.size(), ranks) << groups << " on " << each;
        EXPECT_EQ(far.size(), groups) << ranks << " on " << each;
        EXPECT_LE(near.ranks_per_node, each);
        EXPECT_GE(near.fewest_on_a_node(), 1);
      }
}

// Of one group: the fullest node counts, wherever it lies. 0, 1 | 2; 1 | 2, 3; 0, 1 | 2, 3 and 1 | 4.
TEST(Mesh, OneGroupLiesAsItDoes) {
  const Mesh mesh{{{MeshAxis::data, 6}}};
  EXPECT_EQ(placement(mesh, std::vector<int>{0, 1, 2}, 2), (GroupPlacement{2, 2, 1, 1}));
  EXPECT_EQ(placement(mesh, std::vector<int>{1, 2, 3}, 2), (GroupPlacement{2, 2, 1, 1}));
  EXPECT_EQ(placement(mesh, std::vector<int>{0, 1, 2, 3}, 2), (GroupPlacement{2, 2, 1}));
  EXPECT_EQ(placement(mesh, std::vector<int>{1, 4}, 2), (GroupPlacement{1, 2, 2}));
}

TEST(Mesh, OrderSaysWhoseRanksAreNeighbours) {
  Strategy s;
  ASSERT_TRUE(parse_parallel("data=2,tensor=4,pipeline=2", s).has_value());
  EXPECT_THAT(mesh_of(s).group(5, MeshAxis::tensor), ElementsAre(4, 5, 6, 7));
  EXPECT_EQ(order_text(s), "");
  ASSERT_TRUE(parse_order("pipeline,data", s).has_value());  // tensor follows
  const Mesh mesh = mesh_of(s);
  EXPECT_THAT(mesh.group(5, MeshAxis::pipeline), ElementsAre(4, 5));
  EXPECT_THAT(mesh.group(5, MeshAxis::data), ElementsAre(5, 7));
  EXPECT_THAT(mesh.group(5, MeshAxis::tensor), ElementsAre(1, 5, 9, 13));
  EXPECT_EQ(placement(mesh, MeshAxis::pipeline, 4), (GroupPlacement{2, 1, 2}));
  EXPECT_EQ(placement(mesh, MeshAxis::tensor, 4), (GroupPlacement{1, 4, 4}));
  EXPECT_EQ(order_text(s), "pipeline,data,tensor");
  ASSERT_TRUE(parse_order("sequence,spatial", s).has_value());
  EXPECT_EQ(s.order.size(), 4U);
  EXPECT_EQ(order_text(s), "") << "what is not split does not count";
  for (const char* wrong : {"rows", "data,data", "tensor,sequence", "data,,tensor"})
    EXPECT_FALSE(parse_order(wrong, s).has_value()) << wrong;
}

TEST(Plan, FirstLayerNeedsNoGradientOfItsInput) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  const auto plan = make_plan(graph, data_parallel(1, 2));
  ASSERT_TRUE(plan.has_value());
  const Stage& stage = plan->stages.at(0);
  ASSERT_EQ(stage.steps.size(), 4U);  // fc1, relu, fc2, loss
  EXPECT_EQ(std::get<Compute>(stage.steps[0]).gradients, 0b110U);
  EXPECT_EQ(std::get<Compute>(stage.steps[1]).gradients, 0b1U);
  EXPECT_EQ(std::get<Compute>(stage.steps[2]).gradients, 0b111U);
  EXPECT_EQ(std::get<Compute>(stage.steps[3]).gradients, 0b1U);
  EXPECT_EQ(stage.updates.size(), 4U);
  EXPECT_TRUE(stage.gradients.empty()) << "one replica exchanges nothing";
}

TEST(Plan, LocalShapesHoldTheMicroBatch) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  Strategy strategy = data_parallel(2, 24);
  strategy.accumulation = 3;
  const auto plan = make_plan(graph, strategy);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->micro_batch, 4);  // 24 / 2 replicas / 3 micro-batches
  const auto& fc1 = std::get<Compute>(plan->stages[0].steps[0]);
  EXPECT_EQ(to_string(signature(plan->stages[0], fc1)), "linear[4x4,8x4,8]->[4x8]:f32");
  EXPECT_EQ(plan->stages[0].schedule.size(), 6U);
}

// As DistributedDataParallel sees them come: tests/ddp compares its buckets with a plan's.
TEST(Plan, GradientsArriveFromTheLastLayer) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  const auto plan = make_plan(graph, data_parallel(1, 2));
  ASSERT_TRUE(plan.has_value());
  EXPECT_THAT(names(graph, plan->stages[0], gradient_order(plan->stages[0])),
              ElementsAre("fc2.bias", "fc2.weight", "fc1.bias", "fc1.weight"));
}

// Sizes in bytes: fc1 8x4+8 -> 128, 32; fc2 3x8+3 -> 96, 12. First cap 100, then 150.
// Arrival order fc2.b 12, fc2.w -> 108 >= 100: closed. fc1.b 32, fc1.w -> 160 >= 150: closed.
TEST(Buckets, CloseWhenTheCapIsReached) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  Strategy strategy = data_parallel(2, 2);
  strategy.first_bucket = Bytes{100};
  strategy.bucket = Bytes{150};
  const auto plan = make_plan(graph, strategy);
  ASSERT_TRUE(plan.has_value());
  const Stage& stage = plan->stages[0];
  const GradientSync& sync = stage.gradients.at(0);
  ASSERT_EQ(sync.buckets.size(), 2U);
  EXPECT_THAT(names(graph, stage, sync.buckets[0].parameters), ElementsAre("fc2.bias", "fc2.weight"));
  EXPECT_EQ(sync.buckets[0].bytes(), 108);
  EXPECT_THAT(names(graph, stage, sync.buckets[1].parameters), ElementsAre("fc1.bias", "fc1.weight"));
  EXPECT_EQ(sync.buckets[1].bytes(), 160);
  // First step: caps in parameter order, then the list reversed: fc1.w 128 >= 100 | fc1.b 32, fc2.w -> 128, fc2.b ->
  // 140.
  ASSERT_EQ(sync.first_buckets.size(), 2U);
  EXPECT_THAT(names(graph, stage, sync.first_buckets[0].parameters), ElementsAre("fc1.bias", "fc2.weight", "fc2.bias"));
  EXPECT_THAT(names(graph, stage, sync.first_buckets[1].parameters), ElementsAre("fc1.weight"));
}

// Weights of two bytes: fc1 64, fc2 48; biases of four: 32, 12. First cap 40 of either type, then 60: fc2.w closes at
// once, fc2.b waits for fc1.b and closes with 44, fc1.w with 64. With 70 fc1.w is left, and sent last.
TEST(Buckets, OfTwoTypesFillSideBySide) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  const auto plan = make_plan(graph, data_parallel(1, 2));
  ASSERT_TRUE(plan.has_value());
  Stage stage = plan->stages[0];
  const std::vector<LocalTensorId> order = gradient_order(stage);
  for (const LocalTensorId id : order)
    if (stage[id].shape.size() == 2) stage.tensors[id.index()].dtype = DType::f16;
  for (const double cap : {60, 70}) {
    const std::vector<Bucket> buckets = make_buckets(stage, order, Bytes{40}, Bytes{cap});
    ASSERT_EQ(buckets.size(), 3U);
    EXPECT_THAT(names(graph, stage, buckets[0].parameters), ElementsAre("fc2.weight"));
    EXPECT_THAT(names(graph, stage, buckets[1].parameters), ElementsAre("fc2.bias", "fc1.bias"));
    EXPECT_EQ(buckets[1].bytes(), 44);
    EXPECT_THAT(names(graph, stage, buckets[2].parameters), ElementsAre("fc1.weight"));
    EXPECT_EQ(buckets[2].bytes(), 64);
  }
}

TEST(Buckets, OneMessageWhenNotOverlapped) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  Strategy strategy = data_parallel(2, 2);
  strategy.exchange = GradientExchange::at_end;
  const auto plan = make_plan(graph, strategy);
  ASSERT_TRUE(plan.has_value());
  const GradientSync& sync = plan->stages[0].gradients.at(0);
  ASSERT_EQ(sync.buckets.size(), 1U);
  EXPECT_FALSE(sync.overlapped);
  EXPECT_EQ(sync.buckets[0].elements, graph.parameter_count());
}

TEST(Plan, AnUndividableBatchNamesTheNearest) {
  const Graph graph = test::mlp({4, 3}, 2);
  const auto plan = make_plan(graph, data_parallel(4, 10));
  ASSERT_FALSE(plan.has_value());
  EXPECT_EQ(plan.error().code, ErrorCode::infeasible);
  EXPECT_THAT(plan.error().hint, testing::HasSubstr("8 or 12"));
}

TEST(Plan, HalfPrecisionCastsWeightsOnceAndKeepsMasters) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  Strategy strategy = data_parallel(1, 2);
  strategy.precision = Precision::bf16;
  const auto plan = make_plan(graph, strategy);
  ASSERT_TRUE(plan.has_value());
  const Stage& stage = plan->stages[0];
  int casts = 0;
  for (const Step& step : stage.steps)
    if (std::holds_alternative<Cast>(std::get<Compute>(step).attributes)) ++casts;
  EXPECT_EQ(casts, 6);  // the batch, four parameters, and the logits back to f32 for the loss
  EXPECT_EQ(stage.updates.size(), 4U);
  for (const Update& update : stage.updates) EXPECT_EQ(stage[update.parameter].dtype, DType::f32);
}

TEST(Strategy, ReadsAndRefusesAxes) {
  Strategy strategy;
  EXPECT_TRUE(parse_parallel("data=8", strategy).has_value());
  EXPECT_EQ(strategy.data, 8);
  EXPECT_FALSE(parse_parallel("dta=8", strategy).has_value());
  EXPECT_FALSE(parse_parallel("data=0", strategy).has_value());
  EXPECT_FALSE(parse_parallel("data=two", strategy).has_value());
}

}  // namespace
}  // namespace sibyl
