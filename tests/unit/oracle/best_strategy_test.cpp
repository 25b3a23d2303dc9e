// What a search finds, beside every strategy of its space by itself and beside plain data parallelism: whatever the
// model, cluster and batch.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "oracle/predict.h"
#include "oracle/search/search.h"
#include "tests/support/any_plan.h"

namespace sibyl {
namespace {

// Half of them have so little memory that some strategies do not fit.
Cluster any_small_cluster() {
  Cluster cluster = test::any_cluster();
  if (test::any(0, 1) == 1) return test::with_memory(std::move(cluster), Bytes{1e5 * std::exp2(test::any(0, 10))});
  return cluster;
}

// Replicas alone, each with all that it has of the batch at once: one of the strategies that are tried.
RC_GTEST_PROP(BestStrategy, IsNoSlowerThanPlainReplicas, ()) {
  if (test::any(0, 1) != 0) return;  // a search takes as long as many other cases
  const Graph graph = test::any_model();
  const Cluster cluster = any_small_cluster();
  SearchSpace space;
  space.devices = {test::one_of(1, 2, 3, 4, 6, 7, 8)};
  space.fixed.global_batch = space.devices.front() * test::any(1, 6);
  space.fixed.precision = test::one_of(Precision::fp32, Precision::fp16, Precision::bf16);
  space.fixed.optimizer = test::one_of(OptimizerKind::sgd, OptimizerKind::momentum, OptimizerKind::adamw);
  space.micro_batches = {1};
  const SearchResult result = search(graph, space, cluster, {.keep = 1, .threads = 1}).value();
  Strategy plain = space.fixed;
  plain.data = space.devices.front();
  const auto replicas = predict(graph, plain, cluster);
  RC_ASSERT(replicas.has_value());
  RC_CLASSIFY(!replicas->fits, "does not fit");
  if (!replicas->fits) return;
  RC_ASSERT(!result.best.empty());
  RC_CLASSIFY(result.best.front().step_time < replicas->step_time, "another one is faster");
  RC_ASSERT(result.best.front().step_time <= replicas->step_time);
}

// What usually is not varied is searched as well: against predicting each strategy.
RC_GTEST_PROP(BestStrategy, IsTheFastestOfAllWhateverIsVaried, ()) {
  if (test::any(0, 1) != 0) return;
  const Graph graph = test::any_model();
  const Cluster cluster = any_small_cluster();
  SearchSpace space;
  space.devices = {test::one_of(1, 2, 4)};
  space.fixed.global_batch = test::one_of(4, 12);
  space.fixed.precision = test::one_of(Precision::fp32, Precision::bf16);
  space.fixed.optimizer = test::one_of(OptimizerKind::sgd, OptimizerKind::adamw, OptimizerKind::lamb);
  space.micro_batches = {1};
  space.zero = {0, test::any(1, 3)};
  space.chunks = {2};
  space.recompute = {Recompute::none, Recompute::full};
  const std::string varied =
      test::one_of<std::string>("schedule", "recompute", "offload", "reduce", "shards", "context", "nvme,offload",
                                "schedule,recompute,offload", "prefetch,offload", "overlap-tensor,recompute");
  RC_ASSERT(parse_varied(varied, space).has_value());
  if (varied == "context") RC_ASSERT(parse_axes("data,context", space).has_value());
  if (varied == "overlap-tensor,recompute") RC_ASSERT(parse_axes("data,sequence", space).has_value());
  Evaluator evaluator(graph, cluster);
  Seconds fastest{std::numeric_limits<double>::infinity()};
  for (const Strategy& strategy : strategies(space))
    if (const auto exact = evaluator.evaluate(strategy); exact && exact->fits)
      fastest = std::min(fastest, exact->step_time);
  const SearchResult result = search(graph, space, cluster, {.keep = 1, .threads = 1}).value();
  RC_TAG(varied);
  RC_ASSERT(result.best.empty() == std::isinf(fastest.value()));
  if (result.best.empty()) return;
  RC_ASSERT(result.best.front().step_time == fastest);
  RC_ASSERT(predict(graph, result.best.front().strategy, cluster)->step_time == fastest);
}

}  // namespace
}  // namespace sibyl
