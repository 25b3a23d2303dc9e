// Gradients that are summed over different ranks do not wait for one another.
#include <gtest/gtest.h>

#include <algorithm>

#include "models/onnx/import.h"
#include "models/zoo/layers.h"
#include "oracle/closed/closed_form.h"
#include "oracle/cost/price.h"
#include "oracle/predict.h"
#include "oracle/simulate/step_program.h"
#include "tests/support/clusters.h"

namespace sibyl {
namespace {

// Three convolutions that two ranks share by height, and two large layers after them, which each of the two has whole:
// their gradients are summed over replicas alone, those of the convolutions over all four ranks.
Graph split_then_whole() {
  zoo::Builder b("split_then_whole");
  zoo::Value x = b.input("input", {zoo::batch_extent, 4, 16, 16});
  for (const char* name : {"conv1", "conv2", "conv3"})
    x = zoo::relu(b, zoo::conv(b, x, name, 16, {.kernel = {3, 3}, .pad = {1, 1}}));
  x = zoo::flatten(b, zoo::max_pool(b, x, {.kernel = 4, .stride = 4}));
  b.output(zoo::fully_connected(b, zoo::relu(b, zoo::fully_connected(b, x, "fc1", 256)), "fc2", 10));
  ImportOptions options;
  options.batch = 16;
  return inspect_onnx_bytes(b.bytes(), "split_then_whole", options)->graph;
}

Strategy shared_by_height() {
  Strategy strategy;
  EXPECT_TRUE(parse_parallel("data=2,spatial=2x1", strategy).has_value());
  strategy.global_batch = 16;
  return strategy;
}

TEST(GradientGroups, DoNotWaitForOneAnother) {
  const Graph graph = split_then_whole();
  const Plan plan = *make_plan(graph, shared_by_height());
  const Stage& stage = plan.stages.front();
  ASSERT_EQ(stage.gradients.size(), 2U) << "or this tests nothing";
  const PricedStage priced = price(plan, stage, test::cluster(2, 2));
  const StepProgram program = step_program(stage, priced, {});
  // Backward goes from the last step to the first, so a bucket that a later step completes is sent earlier.
  std::vector<std::size_t> completed;
  for (const StepProgram::Sent& sent : program.sent) completed.push_back(priced.messages[sent.index].ready_after);
  EXPECT_TRUE(std::ranges::is_sorted(completed, std::ranges::greater{})) << testing::PrintToString(completed);
  // The groups by themselves are not in that order: the convolutions are the first operations, so theirs is the first
  // group.
  const auto completes = [](const PricedMessage& m) { return m.ready_after; };
  EXPECT_FALSE(std::ranges::is_sorted(priced.messages, std::ranges::greater{}, completes)) << "or this tests nothing";
}

TEST(GradientGroups, DoNotWaitInTheFormulaEither) {
  const Graph graph = split_then_whole();
  const Cluster cluster = test::cluster(2, 2);
  KernelPrices kernels(cluster);
  const auto form = closed::ProgramForm::make(graph, nullptr, shared_by_height(), kernels);
  ASSERT_TRUE(form.has_value());
  EXPECT_NEAR((*form)->of(shared_by_height())->step_time / predict(graph, shared_by_height(), cluster)->step_time, 1.0,
              1e-3);
}

}  // namespace
}  // namespace sibyl
