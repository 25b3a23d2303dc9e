// How often autograd adds to a parameter's gradient in each kind of turn is what the trainer takes it to be, with
// parameters that several operations read, within segments that run again and outside of them, and with gradients that
// are put off. Each process by itself, stage by stage.
#include "trainer/gradient_arrivals.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tests/mpi/sharded/case.h"
#include "tests/mpi/sharded/models.h"
#include "trainer/accumulation_hooks.h"
#include "trainer/replica.h"
#include "trainer/tensor_bytes.h"

namespace sibyl::trainer {
namespace {

// One stage, and how often backward has added to each of its parameters' gradients.
class CountedStage {
 public:
  CountedStage(const Graph& graph, const Stage& stage)
      : graph_(graph),
        stage_(stage),
        replica_(Replica::create(graph, stage, groups_, 1).value()),
        added_(stage.tensors.size(), 0) {
    for (const LocalTensorId id : replica_.parameters())
      if (replica_[id].requires_grad()) hooks_.add(replica_[id], [this, id] { ++added_[id.index()]; });
  }

  void expect_counts() {
    const auto later = splits_backward(stage_) ? std::make_shared<LaterGradients>() : nullptr;
    replica_.begin(0, 0, later);
    backward();
    expect(later ? Turn::Kind::backward_input : Turn::Kind::backward);
    if (!later) return;
    later->run();
    expect(Turn::Kind::backward_weight);
  }

 private:
  // From zeros received, and as if ones came back for what is sent.
  void backward() {
    for (const Link& link : stage_.receives)
      replica_[link.tensor] = room_for(stage_[link.tensor]).zero_().requires_grad_(link.gradient);
    std::vector<at::Tensor> roots, seeds;
    if (const at::Tensor loss = replica_.forward(); loss.defined()) roots.push_back(loss);
    for (const Link& link : stage_.sends)
      if (link.gradient) roots.push_back(replica_.take(link.tensor));
    for (const at::Tensor& root : roots) seeds.push_back(at::ones_like(root));
    torch::autograd::backward(roots, seeds);
  }

  void expect(Turn::Kind kind) {
    const std::vector<int> graphs = graphs_that_read(stage_, kind);
    for (const LocalTensorId id : replica_.parameters())
      EXPECT_EQ(added_[id.index()], graphs[id.index()])
          << graph_[stage_[id].origin].name << " in a turn of kind " << static_cast<int>(kind);
    std::ranges::fill(added_, 0);
  }

  const Graph& graph_;
  const Stage& stage_;
  MeshGroups groups_;  // of a rank alone
  Replica replica_;
  std::vector<int> added_;  // by tensor
  AccumulationHooks hooks_;
};

TEST(GradientArrivals, AreAsOftenAsAutogradAdds) {
  for (const std::string model : {"gpt2", "shared", "experts", "cnn"})
    for (const std::string recompute : {"none", "full", "linear"})
      for (const Case& one : {Case{model, "data=1", 1, PipelineSchedule::gpipe, 1, 0, recompute},
                              Case{model, "pipeline=2", 2, PipelineSchedule::zero_bubble, 1, 0, recompute}}) {
        SCOPED_TRACE(testing::PrintToString(one));
        const Plan plan = *make_plan(graph_of(model), strategy_of(one));
        for (const Stage& stage : plan.stages) CountedStage(graph_of(model), stage).expect_counts();
      }
}

// Three blocks of the same weights, each a graph of its own.
TEST(GradientArrivals, TellTheLastOfATurn) {
  const Graph& graph = graph_of("shared");
  const Plan plan = *make_plan(graph, strategy_of({"shared", "data=1", 1, PipelineSchedule::gpipe, 1, 0, "full"}));
  const Stage& stage = plan.stages.front();
  const auto weight = std::ranges::find_if(
      stage.tensors, [&](const LocalTensor& tensor) { return graph[tensor.origin].name == "up.weight"; });
  ASSERT_NE(weight, stage.tensors.end());
  const LocalTensorId id(static_cast<std::size_t>(weight - stage.tensors.begin()));
  GradientArrivals arrivals(stage);
  for (int turn = 0; turn < 2; ++turn) {
    arrivals.begin(Turn::Kind::backward);
    EXPECT_FALSE(arrivals.last(id));
    EXPECT_FALSE(arrivals.last(id));
    EXPECT_TRUE(arrivals.last(id));
  }
}

}  // namespace
}  // namespace sibyl::trainer
