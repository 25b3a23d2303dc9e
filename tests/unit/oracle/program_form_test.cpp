// Strategies by formula beside the simulation that they stand for.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "oracle/closed/closed_form.h"
#include "oracle/closed/least_time.h"
#include "oracle/plan/offload.h"
#include "oracle/plan/offload_activations.h"
#include "oracle/plan/zero.h"
#include "oracle/predict.h"
#include "oracle/report/search_report.h"
#include "oracle/search/search.h"
#include "oracle/search/space.h"
#include "tests/support/any_plan.h"

namespace sibyl {
namespace {

using test::any_cluster, test::any_model, test::any_strategy;

// What of it may lie there.
void put_outside(Strategy& s) {
  const auto tier = [] { return test::one_of(Tier::device, Tier::host, Tier::nvme); };
  s.optimizer_tier = tier();
  if (!check_offload(s)) s.optimizer_tier = Tier::device;
  s.parameter_tier = tier();
  if (!check_offload(s)) s.parameter_tier = Tier::device;
  s.activation_tier = tier();
  if (!check_activations(s)) s.activation_tier = Tier::device;
}

// Of what is drawn only rows of operations that run again, and parameters gathered anew, have no formula together.
// `reduce_each` is left where it may be.
Strategy any_with_closed_form(const Graph& model) {
  Strategy s = any_strategy(model);
  s.half_weights = test::any(0, 3) == 0;
  s.fp32_gradients = test::any(0, 1) == 0;
  if (test::any(0, 4) == 0) s.data_source = DataSource::storage;
  s.fused_pointwise = test::any(0, 3) == 0;
  s.fused_update = test::any(0, 3) == 0;
  s.overlap_tensor = s.sequence && test::any(0, 1) == 0;
  if (s.context > 1 && test::any(0, 1) == 0) s.context_exchange = ContextExchange::ring;
  s.written_update = !s.fused_update && test::any(0, 3) == 0;
  if (test::any(0, 1) == 0) put_outside(s);
  s.gather_late = test::any(0, 2) == 0;
  s.reduce_each = s.zero > 1 && test::any(0, 1) == 0;
  if (!check_reduce_each(s)) s.reduce_each = false;
  return s;
}

// Kernels and messages slow each other down, steps and ranks are not all alike. Half have so little memory that stages
// may have to be cut within it.
Cluster any_busy_cluster() {
  Cluster cluster = any_cluster();
  cluster.overlap.compute_slowdown = 1 + 0.01 * test::any(0, 100);
  cluster.overlap.communication_slowdown = 1 + 0.01 * test::any(0, 200);
  cluster.composition.factor = 0.01 * test::any(90, 130);
  cluster.composition.spread = 0.01 * test::any(0, 5);
  cluster.storage_read = BytesPerSecond{std::pow(10.0, test::any(5, 11))};
  cluster.host_link = BytesPerSecond{std::pow(10.0, test::any(6, 11))};
  if (test::any(0, 1) == 1) return test::with_memory(std::move(cluster), Bytes{1e4 * std::exp2(test::any(0, 16))});
  return cluster;
}

// Of all that was drawn.
struct Drawn {
  std::vector<double> time, memory;  // by how much the formula is off, where there is one
  // Shares of the time that are known before a program is cut, of its stages whatever they exchange, and of pipelines
  // before their schedule is walked; and of the memory, of stages whatever they exchange.
  std::vector<double> uncut, least, unwalked, least_memory;
  int without_formula = 0;

  static double quantile(std::vector<double> all, double share) {
    std::ranges::sort(all);
    return all.at(static_cast<std::size_t>(share * static_cast<double>(all.size() - 1)));
  }
};

void compare(const Graph& graph, const Cluster& cluster, const Strategy& strategy, const Evaluation& exact,
             Drawn& drawn) {
  if (!closed::has_closed_form(strategy, cluster)) {
    ++drawn.without_formula;
    return;
  }
  KernelPrices kernels(cluster);
  const auto program = closed::ProgramForm::make(graph, nullptr, strategy, kernels);
  const auto form = (*program)->of(strategy);
  RC_ASSERT(form.has_value());
  std::vector<closed::Form> asked;
  const bool gathers = strategy.zero == 3 && strategy.data * strategy.samplers() > 1;
  const std::size_t asks = strategy.stages() == 1 ? 1 : gathers ? 3 : 2;
  const auto unwalked = (*program)->of(strategy, [&](const closed::Form& at_least) {
    asked.push_back(at_least);
    return asked.size() < asks;
  });
  RC_ASSERT(asked.size() == asks);
  RC_ASSERT(!unwalked->walked);
  RC_ASSERT(unwalked->memory == asked.back().memory && unwalked->step_time == asked.back().step_time);
  RC_ASSERT(strategy.stages() == 1 || unwalked->memory == form->memory);
  for (const closed::Form& at_least : asked) RC_ASSERT(at_least.memory <= form->memory * (1 + 1e-12));
  const std::optional<Folding> folding = test::any(0, 1) == 0 ? fold(graph) : std::nullopt;
  auto folded = closed::FoldedProgram::make(graph, folding ? &*folding : nullptr, strategy);
  const Seconds uncut = closed::LeastTime(*folded, strategy, kernels).of(strategy);
  std::vector<Seconds> bounds{uncut};
  for (const closed::Form& at_least : asked) bounds.push_back(at_least.step_time);
  for (const Seconds at_least : bounds) {
    if (at_least > form->step_time || at_least > exact.step_time)
      RC_LOG() << graph.name << ", " << strategy_words(strategy) << ": at least " << at_least.value()
               << " s, by formula " << form->step_time.value() << ", simulated " << exact.step_time.value() << "\n";
    RC_ASSERT(at_least <= form->step_time);
    RC_ASSERT(at_least <= exact.step_time);
  }
  drawn.uncut.push_back(uncut / exact.step_time);
  drawn.least.push_back(asked.front().step_time / exact.step_time);
  drawn.least_memory.push_back(asked.front().memory / form->memory);
  if (asked.size() > 1) drawn.unwalked.push_back(asked.back().step_time / exact.step_time);
  drawn.memory.push_back(std::abs(form->memory / exact.memory.total - 1));
  const double off = form->step_time / exact.step_time - 1;
  drawn.time.push_back(std::abs(off));
  if (std::abs(off) >= 0.01)
    RC_LOG() << graph.name << " of " << graph.operations().size() << " operations, " << strategy_words(strategy) << ", "
             << to_string(strategy.precision) << ", bucket " << strategy.bucket.value() << ": " << 100 * off << " %\n";
  RC_ASSERT(std::abs(off) < 0.01);
}

// What a search and the desktop are answered by, on random models, clusters and strategies: twelve strategies for each
// of a hundred models; those that a model cannot be split by are drawn again.
TEST(ProgramForm, IsWithinOnePercentOfTheSimulation) {
  Drawn drawn;
  EXPECT_TRUE(rc::check([&drawn] {
    const Graph graph = any_model();
    const Cluster cluster = any_busy_cluster();
    Evaluator evaluator(graph, cluster);
    int compared = 0;
    for (int tries = 0; compared < 12 && tries < 120; ++tries) {
      const Strategy strategy = any_with_closed_form(graph);
      if (const auto exact = evaluator.evaluate(strategy)) {
        compare(graph, cluster, strategy, *exact, drawn);
        ++compared;
      }
    }
    RC_ASSERT(compared == 12);
  }));
  const auto answered = static_cast<int>(drawn.time.size());
  EXPECT_GE(answered, 1000);
  EXPECT_GT(answered, 10 * drawn.without_formula);
  EXPECT_LT(Drawn::quantile(drawn.time, 0.99), 0.002);
  EXPECT_LT(Drawn::quantile(drawn.memory, 0.5), 0.03);
  EXPECT_LT(Drawn::quantile(drawn.memory, 0.9), 0.2);
  EXPECT_GT(Drawn::quantile(drawn.uncut, 0.5), 0.4);
  EXPECT_GT(Drawn::quantile(drawn.least, 0.5), 0.4);
  EXPECT_GT(Drawn::quantile(drawn.unwalked, 0.5), 0.8);
  EXPECT_GT(Drawn::quantile(drawn.least_memory, 0.5), 0.8);
}

// What cannot be split so has no formula either, for the same reason.
RC_GTEST_PROP(ProgramForm, RefusesWhatTheSimulationRefuses, ()) {
  const Graph graph = any_model();
  const Cluster cluster = any_cluster();
  const Strategy strategy = any_with_closed_form(graph);
  if (strategy.devices() > cluster.devices() || !closed::has_closed_form(strategy, cluster)) return;
  KernelPrices kernels(cluster);
  const auto exact = Evaluator(graph, cluster).evaluate(strategy);
  const auto made = closed::ProgramForm::make(graph, nullptr, strategy, kernels);
  RC_ASSERT(made || !exact);
  if (!made) return;
  const auto form = (*made)->of(strategy);
  RC_ASSERT(form.has_value() == exact.has_value());
  if (!form) RC_ASSERT(form.error().message == exact.error().message);
}

// Without a pipeline and units of parameters there is nothing to guess: every kernel and message is there. Waits for
// the host are there, too; only messages beside less than 0.3 % of them are laid by formula (oracle/closed/run.h).
RC_GTEST_PROP(ProgramForm, IsTheSimulationOfOneStage, ()) {
  const Graph graph = any_model();
  const Cluster cluster = any_busy_cluster();
  Strategy strategy = any_with_closed_form(graph);
  strategy.pipeline = strategy.chunks = 1;
  strategy.schedule = PipelineSchedule::one_forward_one_backward;
  strategy.zero = std::min(strategy.zero, 2);
  strategy.accumulation = test::any(1, 40);
  strategy.global_batch = strategy.data * strategy.expert * strategy.accumulation * test::any(1, 4);
  if (!closed::has_closed_form(strategy, cluster)) return;
  KernelPrices kernels(cluster);
  const auto exact = Evaluator(graph, cluster).evaluate(strategy);
  if (!exact) return;
  const closed::Form form = (*closed::ProgramForm::make(graph, nullptr, strategy, kernels))->of(strategy).value();
  RC_ASSERT(std::abs(form.step_time / exact->step_time - 1) < 0.004);
}

// What one form was asked before changes nothing.
RC_GTEST_PROP(ProgramForm, AnswersDoNotDependOnWhatWasAskedBefore, ()) {
  const Graph graph = any_model();
  const Cluster cluster = any_busy_cluster();
  Strategy strategy = any_with_closed_form(graph);
  if (!closed::has_closed_form(strategy, cluster)) return;
  KernelPrices kernels(cluster);
  const auto shared = closed::ProgramForm::make(graph, nullptr, strategy, kernels);
  if (!shared) return;
  for (int drawn = 0; drawn < 6; ++drawn) {
    Strategy other = strategy;
    switch (test::any(0, 7)) {
      case 0: other.zero = test::any(0, 1); break;
      case 1: other.recompute = test::one_of(Recompute::none, Recompute::full); break;
      case 2: other.pipeline = test::any(1, 3), other.chunks = 1, other.schedule = PipelineSchedule::gpipe; break;
      case 3: other.data *= 2, other.global_batch *= 2; break;
      case 4: put_outside(other); break;
      case 5: other.compression = {test::one_of(Compression::Kind::none, Compression::Kind::fp16)}; break;
      case 6:
        other.exchange = test::one_of(GradientExchange::overlapped, GradientExchange::at_end);
        other.compression = {Compression::Kind::top_k, 0.1};
        break;
      default: other.accumulation *= 2, other.global_batch *= 2; break;
    }
    if (closed::form_key(other, cluster) != closed::form_key(strategy, cluster)) continue;
    const auto alone = closed::ProgramForm::make(graph, nullptr, other, kernels);
    const auto one = (*shared)->of(other);
    RC_ASSERT(alone || !one);
    if (!alone) continue;
    const auto two = (*alone)->of(other);
    RC_ASSERT(one.has_value() == two.has_value());
    if (!one) continue;
    RC_ASSERT(std::abs(one->step_time / two->step_time - 1) < 1e-9);
    RC_ASSERT(std::abs(one->memory / two->memory - 1) < 1e-9);
  }
}

// Nor does a form of the same program whose ranks lie on other nodes, with which it shares what it can.
RC_GTEST_PROP(ProgramForm, AnswersDoNotDependOnAnAlikeOne, ()) {
  const Graph graph = any_model();
  const Cluster cluster = any_busy_cluster();
  const std::optional<Folding> found = test::any(0, 1) == 0 ? fold(graph) : std::nullopt;
  const Folding* folding = found ? &*found : nullptr;
  KernelPrices kernels(cluster);
  Strategy first = any_with_closed_form(graph), second = first;
  second.order = {MeshAxis::data, MeshAxis::tensor};
  if (!closed::has_closed_form(first, cluster) || program_key(first) != program_key(second)) return;
  const auto of = [&](const Strategy& strategy, closed::ProgramForm* alike) {
    auto program = closed::FoldedProgram::make(graph, folding, strategy);
    return program ? closed::ProgramForm::of(graph, folding, std::move(*program), strategy, kernels, alike) : nullptr;
  };
  const auto alike = of(first, nullptr), alone = of(second, nullptr);
  if (!alike || !alone) return;
  (void)alike->of(first);
  const auto shared = of(second, alike.get());
  for (const Recompute recompute : {second.recompute, Recompute::none, Recompute::full}) {
    second.recompute = recompute;
    const auto one = shared->of(second), two = alone->of(second);
    RC_ASSERT(one.has_value() == two.has_value());
    if (!one) continue;
    RC_ASSERT(one->step_time.value() == two->step_time.value());
    RC_ASSERT(one->memory.value() == two->memory.value());
  }
}

// Gradients that are shared out as they come need a buffer for each bucket, and two at the most.
TEST(ProgramForm, HasNoMoreBuffersThanBuckets) {
  const Cluster cluster = test::cluster(1, 2);
  KernelPrices kernels(cluster);
  for (const int layers : {1, 2, 4}) {
    const Graph graph = test::mlp(std::vector<std::int64_t>(static_cast<std::size_t>(layers) + 1, 256), 2);
    Strategy strategy;
    strategy.data = 2, strategy.global_batch = 4, strategy.zero = 2;
    strategy.bucket = strategy.first_bucket = Bytes{256 * 1024};  // a layer's
    const auto form = closed::ProgramForm::make(graph, nullptr, strategy, kernels);
    ASSERT_TRUE(form);
    const auto exact = predict(graph, strategy, cluster);
    ASSERT_TRUE(exact);
    EXPECT_NEAR((*form)->of(strategy)->memory / exact->memory.total, 1.0, 0.05) << layers;
  }
}

// State that lies outside comes in blocks of what a stage reads one after the other: the embedding that the last stage
// holds, too, is the first parameter of the program and the last of that stage.
TEST(ProgramForm, JoinsBlocksAsTheStageHasItsParameters) {
  const Graph graph = test::transformer(2, 16, 2, 8, 4, true);
  Cluster cluster = test::cluster(1, 2);
  cluster.host_link = BytesPerSecond{1e8};
  KernelPrices kernels(cluster);
  Strategy strategy;
  strategy.pipeline = strategy.chunks = 2, strategy.global_batch = strategy.accumulation = 4;
  strategy.schedule = PipelineSchedule::interleaved;
  strategy.optimizer = OptimizerKind::adamw, strategy.optimizer_tier = Tier::host;
  for (int kilobytes = 4; kilobytes < 64; ++kilobytes) {
    strategy.bucket = Bytes{kilobytes * 1e3};
    const auto form = closed::ProgramForm::make(graph, nullptr, strategy, kernels);
    ASSERT_TRUE(form);
    const auto exact = predict(graph, strategy, cluster);
    ASSERT_TRUE(exact);
    EXPECT_NEAR((*form)->of(strategy)->step_time / exact->step_time, 1.0, 1e-9) << kilobytes;
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
  if (test::any(0, 2) == 0)
    RC_ASSERT(
        parse_varied(test::one_of<std::string>("schedule", "recompute", "offload", "reduce", "shards", "nvme"), space)
            .has_value());
  if (test::any(0, 2) == 0)
    RC_ASSERT(parse_axes("data,context", space).has_value() && parse_varied("context", space).has_value());
  const std::size_t keep = test::one_of(1, 3, 1000);
  const SearchResult quick = search(graph, space, cluster, {.keep = keep, .threads = 1}).value();
  const SearchResult all = search(graph, space, cluster, {.keep = keep, .exhaustive = true, .threads = 1}).value();
  const auto json = [](const SearchResult& result) {
    return to_json(SearchReport{"model", "cluster", "sibyl", result});
  };
  RC_ASSERT(json(quick) == json(search(graph, space, cluster, {.keep = keep, .threads = 3}).value()));
  RC_ASSERT(quick.best.size() == all.best.size());
  for (std::size_t i = 0; i < all.best.size(); ++i)
    RC_ASSERT(quick.best[i].step_time.value() == all.best[i].step_time.value());
  RC_ASSERT(quick.simulated <= all.simulated);
  RC_ASSERT(all.too_slow == 0U);
  if (!all.best.empty()) RC_ASSERT(complexity(quick.recommended.strategy) == complexity(all.recommended.strategy));
  for (const Candidate& wanted : all.front)
    RC_ASSERT(std::ranges::any_of(quick.front, [&](const Candidate& found) {
      return found.step_time <= 1.05 * wanted.step_time && found.memory <= 1.2 * wanted.memory &&
             found.strategy.devices() <= wanted.strategy.devices();
    }));
}

}  // namespace
}  // namespace sibyl
