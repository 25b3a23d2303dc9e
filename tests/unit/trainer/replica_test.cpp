#include "trainer/replica.h"

#include <cmath>

#include "aten/memory.h"
#include "tests/support/graphs.h"
#include "tests/unit/trainer/alone.h"

namespace sibyl::trainer {
namespace {

struct Built {
  Graph graph;
  Plan plan;
};

Built built(const std::vector<std::int64_t>& widths, std::int64_t batch) {
  Graph graph = test::mlp(widths, batch);
  Strategy strategy;
  strategy.global_batch = batch;
  Plan plan = *make_plan(graph, strategy);
  return {std::move(graph), std::move(plan)};
}

LocalTensorId named(Replica& replica, const std::string& name) {
  for (std::size_t i = 0; i < replica.stage().tensors.size(); ++i)
    if (replica.graph()[replica.stage().tensors[i].origin].name == name) return LocalTensorId{i};
  return {};
}

TEST(Replica, computes_the_loss_and_its_gradients) {
  // One linear layer of zeros over 4 classes: loss ln 4; d loss / d bias = (softmax - onehot) summed over the mean.
  const Built b = built({3, 4}, 2);
  Replica replica = *Replica::create(b.graph, b.plan.stages.front(), alone, 1);
  {
    const at::NoGradGuard no_grad;
    replica[named(replica, "fc1.weight")].zero_();
  }
  at::Tensor loss = replica.forward();
  EXPECT_NEAR(loss.item<double>(), std::log(4.0), 1e-6);
  loss.backward();
  // Both targets are class 0 (inputs start as zeros): (1/4 - 1, 1/4, 1/4, 1/4).
  const at::Tensor gradient = replica[named(replica, "fc1.bias")].grad();
  EXPECT_NEAR(gradient[0].item<double>(), -0.75, 1e-6);
  EXPECT_NEAR(gradient[3].item<double>(), 0.25, 1e-6);
}

TEST(Replica, keeps_between_steps_what_it_had_before) {
  const Built b = built({64, 128, 64, 8}, 16);
  Replica replica = *Replica::create(b.graph, b.plan.stages.front(), alone, 1);
  aten::MemoryMeter::install();
  const auto step = [&] {
    replica.forward().backward();
    for (const LocalTensorId id : replica.parameters()) replica[id].mutable_grad().reset();
    return aten::MemoryMeter::live();
  };
  const std::int64_t first = step();
  EXPECT_EQ(step(), first);
}

TEST(Replica, drops_activations_that_backward_does_not_need) {
  // 8 -> 4096 -> 8 at batch 64: the hidden layer takes 1 MiB before and 1 MiB after its ReLU. ReLU's backward needs its
  // result only, so at the end of forward one of the two is left.
  const Built b = built({8, 4096, 8}, 64);
  Replica replica = *Replica::create(b.graph, b.plan.stages.front(), alone, 1);
  aten::MemoryMeter::install();
  const std::int64_t before = aten::MemoryMeter::live();
  aten::MemoryMeter::reset_peak();
  const at::Tensor loss = replica.forward();
  constexpr std::int64_t hidden = 64 * 4096 * 4, small = 16 * 1024;
  EXPECT_NEAR(static_cast<double>(aten::MemoryMeter::live() - before), hidden, small);
  EXPECT_NEAR(static_cast<double>(aten::MemoryMeter::peak() - before), 2 * hidden, small);
}

TEST(Replica, starts_from_the_seed_and_the_name_alone) {
  const Built b = built({100, 50, 10}, 4), wider_batch = built({100, 50, 10}, 8);
  Replica one = *Replica::create(b.graph, b.plan.stages.front(), alone, 7);
  Replica same = *Replica::create(wider_batch.graph, wider_batch.plan.stages.front(), alone, 7);
  Replica other = *Replica::create(b.graph, b.plan.stages.front(), alone, 8);
  const LocalTensorId weight = named(one, "fc1.weight");
  EXPECT_TRUE(at::equal(one[weight], same[named(same, "fc1.weight")]));
  EXPECT_FALSE(at::equal(one[weight], other[weight]));
  EXPECT_EQ(one[named(one, "fc1.bias")].abs().max().item<double>(), 0.0);
  // Variance 1 / fan-in = 0.01; of 5,000 uniform values the sample variance strays by 0.9 / sqrt(5000) = 1.3 %.
  EXPECT_NEAR(one[weight].var().item<double>(), 0.01, 0.0006);
}

}  // namespace
}  // namespace sibyl::trainer
