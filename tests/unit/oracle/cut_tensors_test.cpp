// What crosses the cuts of a pipeline: activations that are handed on, tied parameters, the norm of all gradients.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "oracle/plan/pipeline/cut.h"
#include "oracle/plan/plan.h"
#include "tests/support/graphs.h"
#include "tests/support/stages.h"
#include "tests/support/strategies.h"

namespace sibyl {
namespace {

using test::carried;
using test::pipelined;
using testing::ElementsAre;
using testing::HasSubstr;

class Builder {
 public:
  explicit Builder(std::int64_t width) : width_(width) { graph_.name = "test"; }
  TensorId input() { return add("x", {2, width_}, TensorKind::input); }
  TensorId weight(const std::string& name) { return add(name, {width_, width_}, TensorKind::parameter); }
  TensorId run(const std::string& name, Attributes op, std::vector<TensorId> inputs) {
    const TensorId out = add(name + ".y", {2, width_}, TensorKind::activation);
    graph_.add(Operation{name, std::move(op), std::move(inputs), {out}, {}});
    return out;
  }
  Graph finish(TensorId logits) {
    const TensorId targets = graph_.add(Tensor{"targets", {2}, DType::i64, TensorKind::input, 0, {}, width_});
    graph_.loss = graph_.add(Tensor{"loss", {}, DType::f32, TensorKind::activation, {}, {}, 0});
    graph_.add(Operation{"loss", CrossEntropy{1}, {logits, targets}, {graph_.loss}, {}});
    EXPECT_TRUE(graph_.finish(2).has_value());
    return std::move(graph_);
  }

 private:
  TensorId add(const std::string& name, Shape shape, TensorKind kind) {
    const std::optional<std::size_t> batch =
        kind == TensorKind::parameter ? std::nullopt : std::optional<std::size_t>(0);
    return graph_.add(Tensor{name, std::move(shape), DType::f32, kind, batch, {}, 0});
  }
  std::int64_t width_;
  Graph graph_;
};

// What the first stage makes and the last one adds goes through both between, and its gradient comes back so.
TEST(CutTensors, SkipConnectionsAreRelayed) {
  Builder b(4);
  const TensorId skip = b.run("one", Linear{}, {b.input(), b.weight("w1")});
  const TensorId two = b.run("two", Linear{}, {skip, b.weight("w2")});
  const TensorId three = b.run("three", Linear{}, {two, b.weight("w3")});
  const Graph graph = b.finish(b.run("sum", Binary{BinaryKind::add}, {skip, three}));
  Strategy strategy = pipelined(4, 1);
  strategy.stage_starts = {"two", "three", "sum"};
  const auto plan = make_plan(graph, strategy);
  ASSERT_TRUE(plan.has_value());
  const std::vector<Stage>& s = plan->stages;
  EXPECT_THAT(carried(graph, s[0], s[0].sends), ElementsAre("one.y"));
  EXPECT_THAT(carried(graph, s[1], s[1].sends), ElementsAre("one.y", "two.y"));
  EXPECT_THAT(carried(graph, s[2], s[2].receives), ElementsAre("one.y", "two.y"));
  EXPECT_THAT(carried(graph, s[2], s[2].sends), ElementsAre("one.y", "three.y"));
  EXPECT_THAT(carried(graph, s[3], s[3].receives), ElementsAre("one.y", "three.y"));
  EXPECT_EQ(s[2].sends[0].tensor, s[2].receives[0].tensor);  // handed on as it is
  EXPECT_EQ(s[3].receives[0].peer, 2);
  // 2 x 4 x 4 bytes a tensor: the second stage sends two on and one back.
  EXPECT_EQ(bytes_sent_per_step(*plan, 1, Algorithm::ring), 96);
}

Graph tied() {
  Builder b(4);
  const TensorId weight = b.weight("w");
  const TensorId one = b.run("one", Linear{}, {b.input(), weight});
  const TensorId two = b.run("two", Linear{}, {one, b.weight("other")});
  return b.finish(b.run("three", Linear{}, {two, weight}));
}

// Both ends hold the weight; its gradient is summed over them, and over replicas averaged.
TEST(CutTensors, TiedParametersAreSummedOverTheirStages) {
  const Graph graph = tied();
  Strategy strategy = pipelined(3, 1);
  strategy.data = 2;
  strategy.global_batch = 4;
  strategy.stage_starts = {"two", "three"};
  const auto plan = make_plan(graph, strategy);
  ASSERT_TRUE(plan.has_value());
  ASSERT_EQ(plan->mesh.size(), 6);
  for (const std::size_t s : {0U, 2U}) {
    const Stage& stage = plan->stages[s];
    ASSERT_EQ(stage.gradients.size(), 1U);
    EXPECT_THAT(stage.gradients[0].axes, ElementsAre(MeshAxis::data, MeshAxis::pipeline));
    EXPECT_THAT(stage.gradients[0].stages, ElementsAre(0, 2));
    EXPECT_FALSE(stage.gradients[0].overlapped);
    EXPECT_EQ(stage.updates.size(), 1U);
  }
  // Ranks 0 and 1 are the replicas' first stages, 4 and 5 their last.
  EXPECT_THAT(sync_group(plan->mesh, plan->stages[0].gradients[0], 1), ElementsAre(0, 1, 4, 5));
  EXPECT_THAT(plan->stages[1].gradients[0].axes, ElementsAre(MeshAxis::data));
  EXPECT_THAT(sync_group(plan->mesh, plan->stages[1].gradients[0], 3), ElementsAre(2, 3));
}

// One number over all stages, whatever holds parts within some of them; a rank with two stages sends it once.
TEST(CutTensors, GradientsAreClippedByTheNormOverAllStages) {
  const Graph graph = test::mlp({16, 64, 16, 64, 16}, 2);
  Strategy strategy = pipelined(2, 4);
  strategy.data = 2;
  strategy.global_batch = 16;
  const Plan unclipped = make_plan(graph, strategy).value();
  strategy.clip = 1;
  const Plan plan = make_plan(graph, strategy).value();
  for (const Stage& stage : plan.stages) EXPECT_THAT(stage.clip->axes, ElementsAre(MeshAxis::pipeline));
  // A ring of two for one element: the rank that holds it receives the other's and sends the sum.
  for (const int rank : {0, 1, 2, 3})
    EXPECT_EQ(bytes_by_kind(plan, rank, Algorithm::ring) - bytes_by_kind(unclipped, rank, Algorithm::ring),
              BytesSent{.norms = 4});
  strategy.zero = 1;
  const Plan sharded = make_plan(graph, strategy).value();
  for (const Stage& stage : sharded.stages)
    EXPECT_THAT(stage.clip->axes, ElementsAre(MeshAxis::data, MeshAxis::pipeline));
  strategy = pipelined(2, 4);
  strategy.schedule = PipelineSchedule::interleaved;
  strategy.chunks = 2;
  strategy.clip = 1;
  const Plan interleaved = make_plan(graph, strategy).value();
  EXPECT_EQ(bytes_by_kind(interleaved, 0, Algorithm::ring).norms, 4);
  EXPECT_TRUE(interleaved.stages[1].clip->sends);
  EXPECT_FALSE(interleaved.stages[2].clip->sends);
}

TEST(CutTensors, TiedParametersOnOneCoordinateAreRefused) {
  Strategy strategy = pipelined(2, 2);
  strategy.schedule = PipelineSchedule::interleaved;
  strategy.chunks = 2;
  strategy.stage_starts = {"two", "three", "loss"};  // stages 0 and 2 lie on coordinate 0
  const auto plan = make_plan(tied(), strategy);
  ASSERT_FALSE(plan.has_value());
  EXPECT_EQ(plan.error().code, ErrorCode::infeasible);
  EXPECT_THAT(plan.error().message,
              HasSubstr("the parameter 'w' is used by stages 0 and 2, which are both on pipeline coordinate 0"));
}

// In bf16 a tied weight is cast on each of its stages: casts are made again, not sent.
TEST(CutTensors, CastsOfWeightsAreMadeAgain) {
  const Graph graph = tied();
  Strategy strategy = pipelined(2, 1);
  strategy.precision = Precision::bf16;
  strategy.stage_starts = {"three"};
  const auto plan = make_plan(graph, strategy);
  ASSERT_TRUE(plan.has_value());
  EXPECT_THAT(carried(graph, plan->stages[0], plan->stages[0].sends), ElementsAre("two.y"));
  EXPECT_EQ(bytes_sent_per_step(*plan, 0, Algorithm::ring), 2 * 4 * 2 + 4 * 4 * 4);  // bf16 on; half a ring of the tie
}

}  // namespace
}  // namespace sibyl
