// Strategies by formula beside the simulation that they stand for.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "oracle/closed/closed_form.h"
#include "oracle/predict.h"
#include "oracle/search/search.h"
#include "tests/support/any_plan.h"

namespace sibyl {
namespace {

using test::any_cluster, test::any_model, test::any_strategy;

Strategy any_with_closed_form() {
  Strategy s = any_strategy();
  s.clip = 0;
  s.compression = {};
  s.optimizer = test::one_of(OptimizerKind::sgd, OptimizerKind::momentum, OptimizerKind::adamw);
  s.recompute = test::one_of(Recompute::none, Recompute::selective, Recompute::full);
  s.recompute_every = s.recompute_together = 1;
  return s;
}

// Of many random strategies, by how much the formula's step times and memory differ from the simulation's.
struct Differences {
  std::vector<double> time, memory;

  static double quantile(std::vector<double> all, double share) {
    std::ranges::sort(all);
    return all[static_cast<std::size_t>(share * static_cast<double>(all.size() - 1))];
  }
};

// Random models are small and their stages a few steps: what is hard for a formula is common here (docs/search.md has
// real models).
TEST(ProgramForm, IsNearTheSimulationOfRandomPlans) {
  Differences all;
  EXPECT_TRUE(rc::check([&all] {
    const Graph graph = any_model();
    const Cluster cluster = any_cluster();
    const Strategy strategy = any_with_closed_form();
    if (strategy.devices() > cluster.devices()) return;
    KernelPrices kernels(cluster);
    const auto exact = Evaluator(graph, cluster).evaluate(strategy);
    const auto made = closed::ProgramForm::make(graph, nullptr, strategy, kernels);
    RC_ASSERT(made || !exact);
    if (!made) return;
    const auto form = (*made)->of(strategy);
    RC_ASSERT(form.has_value() == exact.has_value());
    if (!form) {
      RC_ASSERT(form.error().message == exact.error().message);
      return;
    }
    all.time.push_back(std::abs(form->step_time / exact->step_time - 1));
    all.memory.push_back(std::abs(form->memory / exact->memory.total - 1));
    RC_ASSERT(all.time.back() < 0.25);
  }));
  ASSERT_GT(all.time.size(), 50U);
  EXPECT_LT(Differences::quantile(all.time, 0.5), 0.001);
  EXPECT_LT(Differences::quantile(all.time, 0.8), 0.01);
  EXPECT_LT(Differences::quantile(all.memory, 0.5), 0.1);
}

// Without a pipeline and units of parameters there is nothing to guess: every kernel and message is there.
RC_GTEST_PROP(ProgramForm, IsTheSimulationOfOneStageWhoseHostIsFast, ()) {
  const Graph graph = any_model();
  Cluster cluster = any_cluster();
  Strategy strategy = any_with_closed_form();
  strategy.pipeline = strategy.chunks = 1;
  strategy.schedule = PipelineSchedule::one_forward_one_backward;
  strategy.zero = std::min(strategy.zero, 2);
  if (cluster.kernels.device().dispatch.value() > 0 || strategy.devices() > cluster.devices()) return;
  KernelPrices kernels(cluster);
  const auto exact = Evaluator(graph, cluster).evaluate(strategy);
  if (!exact) return;
  const closed::Form form = (*closed::ProgramForm::make(graph, nullptr, strategy, kernels))->of(strategy).value();
  RC_ASSERT(std::abs(form.step_time / exact->step_time - 1) < 0.001);
}

// What one form was asked before changes nothing.
RC_GTEST_PROP(ProgramForm, AnswersDoNotDependOnWhatWasAskedBefore, ()) {
  const Graph graph = any_model();
  const Cluster cluster = any_cluster();
  Strategy strategy = any_with_closed_form();
  KernelPrices kernels(cluster);
  const auto shared = closed::ProgramForm::make(graph, nullptr, strategy, kernels);
  if (!shared) return;
  for (int drawn = 0; drawn < 6; ++drawn) {
    Strategy other = strategy;
    switch (test::any(0, 4)) {
      case 0: other.zero = test::any(0, 1); break;
      case 1: other.recompute = test::one_of(Recompute::none, Recompute::full); break;
      case 2: other.pipeline = test::any(1, 3), other.chunks = 1, other.schedule = PipelineSchedule::gpipe; break;
      case 3: other.data *= 2, other.global_batch *= 2; break;
      default: other.accumulation *= 2, other.global_batch *= 2; break;
    }
    if (closed::form_key(other, cluster) != closed::form_key(strategy, cluster)) continue;
    const auto alone = closed::ProgramForm::make(graph, nullptr, other, kernels);
    RC_ASSERT(alone.has_value());
    const auto one = (*shared)->of(other), two = (*alone)->of(other);
    RC_ASSERT(one.has_value() == two.has_value());
    if (!one) continue;
    RC_ASSERT(std::abs(one->step_time / two->step_time - 1) < 1e-9);
    RC_ASSERT(std::abs(one->memory / two->memory - 1) < 1e-9);
  }
}

// Leaving most strategies to the formula loses no optimum.
RC_GTEST_PROP(ClosedSearch, FindsTheBestOfAll, ()) {
  if (test::any(0, 3) != 0) return;  // a search takes as long as a hundred other cases
  const Graph graph = any_model();
  const Cluster cluster = any_cluster();
  SearchSpace space;
  space.devices = {4};
  space.fixed.global_batch = test::one_of(12, 24);
  space.micro_batches = {1, 4};
  space.zero = {0, 3};
  space.recompute = {Recompute::none, Recompute::full};
  space.fixed.precision = test::one_of(Precision::fp32, Precision::bf16);
  space.fixed.optimizer = OptimizerKind::adamw;
  space.chunks = {2};
  if (test::any(0, 2) == 0) space.orders = true, space.zero = {0};
  if (test::any(0, 2) == 0) space.buckets = {Bytes{25.0 * 1024 * 1024}, Bytes{1e5}, Bytes{}}, space.zero = {0};
  const SearchResult quick = search(graph, space, cluster, {.keep = 3, .threads = 1}).value();
  const SearchResult all = search(graph, space, cluster, {.keep = 3, .exhaustive = true, .threads = 1}).value();
  RC_ASSERT(quick.best.size() == all.best.size());
  for (std::size_t i = 0; i < all.best.size(); ++i)
    RC_ASSERT(quick.best[i].step_time.value() == all.best[i].step_time.value());
  RC_ASSERT(quick.simulated <= all.simulated);
  if (!all.best.empty()) RC_ASSERT(complexity(quick.recommended.strategy) == complexity(all.recommended.strategy));
  for (const Candidate& wanted : all.front)
    RC_ASSERT(std::ranges::any_of(quick.front, [&](const Candidate& found) {
      return found.step_time <= 1.05 * wanted.step_time && found.memory <= 1.2 * wanted.memory &&
             found.strategy.devices() <= wanted.strategy.devices();
    }));
}

}  // namespace
}  // namespace sibyl
