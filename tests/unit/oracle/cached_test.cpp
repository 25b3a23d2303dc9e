// What kernels of a step find in the cache, and how long ago what they touch was touched before.
#include "oracle/cost/cached.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "oracle/closed/closed_form.h"
#include "oracle/memory/footprint.h"
#include "oracle/plan/recompute.h"
#include "oracle/predict.h"
#include "tests/support/clusters.h"
#include "tests/support/graphs.h"

namespace sibyl {
namespace {

MemoryOwner piece(std::size_t index) { return {MemoryOwner::What::tensor, nullptr, index}; }

std::vector<double> distances(const Reuse& reuse, std::size_t run) {
  const std::vector<Reuse::Run> runs = reuse.runs();
  std::vector<double> result;
  for (const Reuse::Touch& touch : runs.at(run).touches) result.push_back(touch.last.distance.value());
  return result;
}

// Two kernels a step: one of a and b, one of a. To the first a comes back after itself alone, for the second touched it
// last, b after a and itself; to the second a after b and itself.
TEST(Reuse, CountsEachByteOnceSinceItWasTouched) {
  Reuse reuse;
  for (int step = 0; step < 2; ++step) {
    if (step > 0) reuse.again();
    reuse.kernel(nullptr, 0);
    reuse.touch(reuse.fixed(piece(0), 100));
    reuse.touch(reuse.fixed(piece(1), 50));
    reuse.touch(reuse.fixed(piece(0), 100));  // once a kernel
    reuse.kernel(nullptr, 1);
    reuse.touch(reuse.fixed(piece(0), 100));
  }
  ASSERT_EQ(reuse.runs().size(), 2U) << "of the last step";
  EXPECT_EQ(distances(reuse, 0), (std::vector<double>{100, 150}));
  EXPECT_EQ(distances(reuse, 1), (std::vector<double>{150}));
  EXPECT_EQ(reuse.step(), Bytes{150});
}

// A kernel of 3 ms touches a and b, one of 5 a alone: a comes back after 3 ms, and after the 5 of the other kernel, to
// the first; b after 8.
TEST(Reuse, CountsTheTimeOfKernelsSinceEachTouch) {
  Reuse reuse;
  for (int step = 0; step < 2; ++step) {
    if (step > 0) reuse.again();
    reuse.kernel(nullptr, 0, Seconds{3e-3});
    reuse.touch(reuse.fixed(piece(0), 100));
    reuse.touch(reuse.fixed(piece(1), 50));
    reuse.kernel(nullptr, 1, Seconds{5e-3});
    reuse.touch(reuse.fixed(piece(0), 100));
  }
  const std::vector<Reuse::Run> runs = reuse.runs();
  const auto &a = runs.at(0).touches.at(0), &b = runs[0].touches.at(1), &again = runs.at(1).touches.at(0);
  EXPECT_NEAR(a.last.age.value(), 5e-3, 1e-12);
  EXPECT_NEAR(b.last.age.value(), 8e-3, 1e-12);
  EXPECT_NEAR(again.last.age.value(), 3e-3, 1e-12);
  EXPECT_NEAR(reuse.time().value(), 8e-3, 1e-12);
}

// Of a and b, of 100 and 50 bytes, three touches a step come to memory, 250 bytes in all: a comes again after 125 of
// them in the mean, b after all. What is warm anyway does not come to memory.
TEST(Reuse, CountsHowOftenAPieceComesAgain) {
  Reuse reuse;
  for (int step = 0; step < 2; ++step) {
    if (step > 0) reuse.again();
    reuse.kernel(nullptr, 0);
    reuse.touch(reuse.fixed(piece(0), 100));
    reuse.touch(reuse.fixed(piece(1), 50));
    reuse.kernel(nullptr, 1);
    reuse.touch(reuse.fixed(piece(0), 100));
    reuse.touch(reuse.fixed(piece(1), 50), Reuse::Warm::always);
  }
  const std::vector<Reuse::Run> runs = reuse.runs();
  EXPECT_EQ(runs.at(0).touches.at(0).apart, Bytes{125});
  EXPECT_EQ(runs.at(0).touches.at(1).apart, Bytes{250});
  EXPECT_EQ(runs.at(1).touches.at(0).apart, Bytes{125});
}

TEST(Reuse, LeavesOutWhatIsWarmAnyway) {
  Reuse reuse;
  reuse.kernel(nullptr, 0);
  reuse.touch(reuse.fixed(piece(0), 100), Reuse::Warm::always);
  reuse.touch(reuse.fixed(piece(1), 50));
  EXPECT_EQ(distances(reuse, 0), (std::vector<double>{INFINITY})) << "never touched before";
}

// A kernel touches a and b, of 100 and 60 bytes, which lie side by side; the next one c, of 150, which lies where a did
// and the first 50 of b: what was a comes after a and b, what was b after b alone.
TEST(Reuse, KnowsThePastOfEachPartOfWhatIsTaken) {
  Reuse reuse;
  const Reuse::Memory a = reuse.take(100), b = reuse.take(60);
  const Reuse::Memory c{a.begin, a.begin + 150};  // as if a heap laid it there
  EXPECT_EQ(a.end, b.begin);
  reuse.kernel(nullptr, 0);
  reuse.touch(a);
  reuse.touch(b);
  reuse.kernel(nullptr, 1);
  reuse.touch(c);
  const std::vector<Reuse::Touch> touches = reuse.runs().at(1).touches;
  ASSERT_EQ(touches.size(), 2U);
  EXPECT_EQ(touches[0].bytes, Bytes{100});
  EXPECT_EQ(touches[0].last.distance, Bytes{160});
  EXPECT_EQ(touches[1].bytes, Bytes{50});
  EXPECT_EQ(touches[1].last.distance, Bytes{60});
  EXPECT_EQ(touches[1].apart, Bytes{310.0 / 2}) << "a, b and c are 310 bytes, and this is touched twice";
  EXPECT_EQ(reuse.step(), Bytes{160});
}

TEST(Reuse, LaysAStepWhereItLayTheOneBefore) {
  Reuse reuse;
  std::vector<Reuse::Memory> first, second;
  for (auto* step : {&first, &second}) {
    for (const double bytes : {4000.0, 9000.0, 2000.5}) step->push_back(reuse.take(bytes));
    reuse.give(step->at(0));
    step->push_back(reuse.take(0));
    step->push_back(reuse.take(300));
    reuse.again();  // what is still taken goes back
  }
  EXPECT_EQ(first, second);
  EXPECT_EQ(first[2].end - first[2].begin, 2001U);
  EXPECT_EQ(first[3], Reuse::Memory{}) << "nothing lies nowhere";
  EXPECT_EQ(first[4].begin, first[0].begin);
}

// ---- kernels

const Graph& layers() {
  static const Graph graph = test::mlp({64, 64, 64, 64, 64, 8}, 16);
  return graph;
}

Strategy alone(Recompute recompute = Recompute::none) {
  Strategy strategy;
  strategy.global_batch = 16;
  strategy.recompute = recompute;
  return strategy;
}

// Every kernel takes 1 ms, and `cached` of that out of the cache, which holds so much; of other ranks it is free by a
// fifth.
Cluster with_cache(Bytes cache, double cached = 0.5, const Strategy& strategy = alone()) {
  std::vector<KernelSample> samples;
  for (KernelKey& key : kernels_of(make_plan(layers(), strategy).value(), Backend::cpu)) {
    KernelSample& sample = samples.emplace_back();
    sample.key = std::move(key);
    sample.time = Seconds{1e-3};
    sample.runs = 100;
    sample.alone = Seconds{0.8e-3};
    sample.cached = Seconds{cached * 1e-3};
  }
  Cluster cluster = test::cluster(1, 1, BytesPerSecond{1e9}, std::move(samples));
  cluster.reuse = ReuseCurve({}, {}, cache);
  return cluster;
}

std::vector<PricedKernel> priced(const Cluster& cluster) {
  return price(make_plan(layers(), alone()).value(), cluster).front().prices;
}

double kernels(const Cluster& cluster, const Strategy& strategy = alone()) {
  return predict(layers(), strategy, cluster).value().step_time.value();
}

// A ReLU of 16 x 64 numbers reads what was made right before, forward and backward: what counts is its result, and what
// it kept and the gradient that it makes. A linear layer's weights and bias count, and its result.
TEST(Reuse, OfAKernelIsWhatWasNotMadeRightBefore) {
  const Plan plan = make_plan(layers(), alone()).value();
  const Cluster cluster = test::cluster(1, 1);
  const std::vector<PricedStage> stages = price(plan, cluster);
  const std::vector<Reuse::Run> runs = reuse_of(plan, stages, 0, cluster.kernels.device()).runs();
  const auto touched = [&](const std::string& kernel) {
    for (const Reuse::Run& run : runs) {
      if (!to_string(stages.front().kernels.keys[run.key]).starts_with(kernel)) continue;
      double bytes = 0;
      for (const Reuse::Touch& touch : run.touches) bytes += touch.bytes.value();
      return bytes;
    }
    return 0.0;
  };
  EXPECT_EQ(touched("forward unary"), 4096);
  EXPECT_EQ(touched("backward:1 unary"), 4096 + 4096);
  // The first of a step reads the batch, which nothing made.
  EXPECT_EQ(touched("forward linear"), 4096 + 16384 + 256 + 4096);
}

// What runs again is touched again, and its backward finds it there.
TEST(Reuse, TellsOfWhatRunsAgain) {
  const Plan plan = make_plan(layers(), alone(Recompute::full)).value();
  const Stage& stage = plan.stages.front();
  const Cluster cluster = test::cluster(1, 1);
  const std::vector<PricedStage> stages = price(plan, cluster);
  const Reuse reuse = reuse_of(plan, stages, 0, cluster.kernels.device());
  const std::vector<KernelKey>& keys = stages.front().kernels.keys;
  std::ptrdiff_t forwards = 0;
  for (const Reuse::Run& run : reuse.runs()) {
    forwards += keys[run.key].pass == Pass::forward ? 1 : 0;
    if (to_string(keys[run.key]).starts_with("backward:1 unary")) {
      EXPECT_LT(run.touches.front().last.distance, reuse.step() / 2.0) << "the result that it kept";
    }
  }
  const std::vector<bool> again = recomputed_steps(stage);
  EXPECT_EQ(forwards, std::ssize(stage.steps) + std::ranges::count(again, true));
  EXPECT_GT(std::ranges::count(again, true), 0);
}

TEST(Cached, AllOfAStepThatTheCacheHolds) {
  for (const PricedKernel& kernel : priced(with_cache(Bytes{1e9}))) {
    EXPECT_DOUBLE_EQ(kernel.estimate.time.time.value(), 0.5e-3);
    EXPECT_DOUBLE_EQ(kernel.estimate.alone, 1) << "it waits for nobody's memory then";
  }
}

TEST(Cached, NothingOfAStepInACacheOfNothing) {
  for (const PricedKernel& kernel : priced(with_cache(Bytes{16}))) {
    EXPECT_DOUBLE_EQ(kernel.estimate.time.time.value(), 1e-3);
    EXPECT_DOUBLE_EQ(kernel.estimate.alone, 0.8);
  }
}

// Of a share f that is found a kernel saves between nothing and all, or as much less as it may save more: evenly spread
// over 2 min(f, 1 - f) of the half that all would save.
TEST(Cached, IsSureOfAllAndOfNothing) {
  const std::vector<PricedKernel> all = priced(with_cache(Bytes{1e9})), none = priced(with_cache(Bytes{16})),
                                  some = priced(with_cache(Bytes{30e3}));
  int between = 0;
  for (std::size_t k = 0; k < some.size(); ++k) {
    const Estimate& time = some[k].estimate.time;
    const double error = none[k].estimate.time.relative_error, left = time.time.value() / 1e-3, f = (1 - left) / 0.5;
    EXPECT_DOUBLE_EQ(all[k].estimate.time.relative_error, error);
    EXPECT_NEAR(time.relative_error, std::hypot(error, 0.5 * 2 * std::min(f, 1 - f) / std::sqrt(12.0) / left), 1e-9);
    between += f > 0.01 && f < 0.99 ? 1 : 0;
  }
  EXPECT_GT(between, 3);
}

// A cache that holds what comes again within `fast` bytes in the mean, however far apart, and of what comes again after
// four times as many only what is near, which is nothing of what counts here; in between it goes by the logarithm.
std::vector<PricedKernel> priced_holding(Bytes fast) {
  Cluster cluster = with_cache(Bytes{16});
  std::vector<ReuseSample> samples;
  for (const auto& [step, far] : {std::pair{fast, 4e10}, std::pair{4.0 * fast, 1e10}})
    for (const auto& [distance, rate] : {std::pair{1.0, 4e10}, std::pair{2.0, far}})
      samples.push_back({step, Bytes{distance}, BytesPerSecond{rate}});
  cluster.reuse = ReuseCurve(samples, {}, {});
  return priced(cluster);
}

Reuse reuse_of_layers() {
  const Plan plan = make_plan(layers(), alone()).value();
  const Cluster cluster = with_cache(Bytes{16});
  return reuse_of(plan, price(plan, cluster), 0, cluster.kernels.device());
}

TEST(Cached, HoldsAWholeStepOrNothingOfIt) {
  const Bytes step = reuse_of_layers().step();
  for (const PricedKernel& kernel : priced_holding(step)) EXPECT_DOUBLE_EQ(kernel.estimate.time.time.value(), 0.5e-3);
  for (const PricedKernel& kernel : priced_holding(2.0 * step))
    EXPECT_DOUBLE_EQ(kernel.estimate.time.time.value(), 0.5e-3);
  for (const PricedKernel& kernel : priced_holding(step / 64.0))
    EXPECT_DOUBLE_EQ(kernel.estimate.time.time.value(), 1e-3);
}

TEST(Cached, HoldsWhatComesAgainOften) {
  const Reuse reuse = reuse_of_layers();
  const double step = reuse.step().value(), fast = step / 4;
  std::map<std::size_t, std::vector<double>> saved;  // by kernel: of each run the half that all would save
  bool often = false, seldom = false;
  for (const Reuse::Run& run : reuse.runs()) {
    double bytes = 0, found = 0;
    for (const Reuse::Touch& touch : run.touches) {
      const double comes_again = std::min(step, std::max(touch.apart.value(), touch.last.distance.value()));
      bytes += touch.bytes.value();
      found += touch.bytes.value() * std::clamp(1 - std::log2(comes_again / fast) / 2, 0.0, 1.0);
      often = often || comes_again < step / 2;
      seldom = seldom || comes_again == step;
    }
    saved[run.key].push_back(found / bytes);
  }
  EXPECT_TRUE(often && seldom);
  const std::vector<PricedKernel> kernels = priced_holding(Bytes{fast});
  const std::vector<KernelKey> keys = kernels_of(make_plan(layers(), alone()).value(), Backend::cpu);
  int checked = 0;
  for (const auto& [kernel, shares] : saved) {
    const Work work = work_of(keys.at(kernel), Backend::cpu);
    if (work.read + work.written > Bytes{fast}) continue;  // does not find all of its own, timed in the cache
    ++checked;
    const double mean = std::accumulate(shares.begin(), shares.end(), 0.0) / static_cast<double>(shares.size());
    EXPECT_NEAR(kernels[kernel].estimate.time.time.value(), 1e-3 * (1 - 0.5 * mean), 1e-12);
  }
  EXPECT_GT(checked, 5);
}

// A cache that holds all of a step, and from which all is gone in 3 ms or half of it in 1 s: kernels of 1 ms find there
// what the one before touched, or a step's share of it.
TEST(Cached, GoesByTheTimeThatHasPassed) {
  const auto after = [](double seconds, double rate) {
    Cluster cluster = with_cache(Bytes{1e9});
    const std::vector<ReuseSample> samples{{Bytes{1e9}, Bytes{1e9}, BytesPerSecond{4e10}},
                                           {Bytes{4e9}, Bytes{1e9}, BytesPerSecond{4e10}},
                                           {Bytes{4e9}, Bytes{4e9}, BytesPerSecond{1e10}}};
    cluster.reuse = ReuseCurve(samples, {}, {},
                               {{0, Seconds{}, BytesPerSecond{1e10}},
                                {2, Seconds{}, BytesPerSecond{4e10}},
                                {2, Seconds{seconds}, BytesPerSecond{rate}}});
    return kernels(cluster);
  };
  const double all = after(1, 4e10), none = kernels(with_cache(Bytes{16}));
  EXPECT_NEAR(all, kernels(with_cache(Bytes{1e9})), 1e-12);
  EXPECT_GT(after(3e-3, 1e10), all);
  EXPECT_LT(after(3e-3, 1e10), none);
  EXPECT_GT(after(1, 1e10), all);
  EXPECT_LT(after(1, 1e10), after(3e-3, 1e10));
  EXPECT_NEAR(after(1e-9, 1e10), none, none * 0.2) << "but what a kernel touches twice itself";
}

TEST(Cached, IsLeftOutWhereItIsNotKnown) {
  Cluster cluster = with_cache(Bytes{1e9});
  cluster.reuse = {};
  EXPECT_FALSE(knows_caches(cluster));
  EXPECT_DOUBLE_EQ(priced(cluster).front().estimate.time.time.value(), 1e-3);
  cluster = with_cache(Bytes{1e9}, 0.97);
  EXPECT_FALSE(knows_caches(cluster)) << "two timings of one thing";
  cluster = with_cache(Bytes{1e9});
  cluster.kernels = cluster.kernels.as_timed();
  EXPECT_DOUBLE_EQ(priced(cluster).front().estimate.time.time.value(), 1e-3);
}

TEST(Cached, MoreCacheIsNeverSlower) {
  double before = kernels(with_cache(Bytes{16}));
  EXPECT_NEAR(before, kernels(with_cache(Bytes{16}, 1)), 1e-12);
  const double least = kernels(with_cache(Bytes{1e9}));
  int different = 0;
  for (double cache = 1024; cache < 1e6; cache *= 2) {
    const double now = kernels(with_cache(Bytes{cache}));
    EXPECT_LE(now, before * (1 + 1e-12)) << cache;
    EXPECT_GE(now, least * (1 - 1e-12)) << cache;
    different += now < before ? 1 : 0;
    before = now;
  }
  EXPECT_NEAR(before, least, 1e-12);
  EXPECT_GE(different, 3) << "parts of the step come and go";
}

// What runs again right before its backward is still there when that runs.
TEST(Cached, RecomputingLeavesMoreInTheCache) {
  const auto saved = [](Recompute recompute, Bytes cache) {
    const Strategy strategy = alone(recompute);
    return kernels(with_cache(Bytes{16}, 0.5, strategy), strategy) -
           kernels(with_cache(cache, 0.5, strategy), strategy);
  };
  const Bytes cache{60e3};
  const Plan plan = make_plan(layers(), alone(Recompute::full)).value();
  ASSERT_FALSE(plan.stages.front().recomputed.empty());
  EXPECT_GT(saved(Recompute::full, cache), saved(Recompute::none, cache));
}

// Formulas of ranges of steps do not know what ran before them.
TEST(Cached, HasNoClosedForm) {
  EXPECT_FALSE(closed::has_closed_form(alone(), with_cache(Bytes{1e9})));
  EXPECT_TRUE(closed::has_closed_form(alone(), with_cache(Bytes{1e9}, 0.97)));
}

// A gradient that weights' turns come back to was made long before; where their kernels are timed it is made right
// before. Nothing of the rest is found, so it costs what as many bytes of that would save.
TEST(Cached, KnowsWhatIsColderThanItWasTimed) {
  Strategy strategy;
  strategy.pipeline = 2, strategy.accumulation = 4, strategy.global_batch = 16;
  strategy.schedule = PipelineSchedule::zero_bubble;
  const Plan plan = make_plan(layers(), strategy).value();
  const Cluster cluster = with_cache(Bytes{16}, 0.5, strategy);
  const std::vector<PricedStage> stages = price(plan, cluster);
  int longer = 0;
  for (int c = 0; c < 2; ++c) {
    const PricedStage& stage = stages[static_cast<std::size_t>(c)];
    std::set<std::size_t> put_off;
    for (const StageKernels::OfStep& step : stage.kernels.steps)
      if (step.backward_weight) put_off.insert(*step.backward_weight);
    std::map<std::size_t, std::vector<double>> longer_by;  // by kernel, of each run: as a share of what all would save
    for (const Reuse::Run& run : reuse_of(plan, stages, c, cluster.kernels.device()).runs()) {
      double warm = 0, cold = 0;
      for (const Reuse::Touch& touch : run.touches) (touch.warm_when_timed ? warm : cold) += touch.bytes.value();
      EXPECT_EQ(warm > 0, put_off.contains(run.key)) << to_string(stage.kernels.keys[run.key]);
      longer_by[run.key].push_back(warm / cold);
      longer += warm > 0 ? 1 : 0;
    }
    for (const auto& [key, shares] : longer_by) {
      const double mean = std::accumulate(shares.begin(), shares.end(), 0.0) / static_cast<double>(shares.size());
      EXPECT_NEAR(stage.prices[key].estimate.time.time.value(), 1e-3 * (1 + 0.5 * mean), 1e-12);
    }
  }
  EXPECT_GT(longer, 0);
}

// Two steps alike, whatever the schedule: every kernel of every stage is told of, with nothing it never met before.
TEST(Cached, KnowsEveryKernelOfAPipeline) {
  Strategy strategy;
  strategy.pipeline = 2, strategy.accumulation = 4, strategy.global_batch = 16;
  strategy.schedule = PipelineSchedule::zero_bubble;
  const Plan plan = make_plan(layers(), strategy).value();
  const Cluster cluster = test::cluster(1, 2);
  const std::vector<PricedStage> stages = price(plan, cluster);
  for (int c = 0; c < 2; ++c) {
    const Reuse reuse = reuse_of(plan, stages, c, cluster.kernels.device());
    std::vector<int> runs(stages[static_cast<std::size_t>(c)].kernels.keys.size(), 0);
    for (const Reuse::Run& run : reuse.runs()) {
      EXPECT_EQ(run.stage, &plan.stages[static_cast<std::size_t>(c)]);
      ++runs[run.key];
      for (const Reuse::Touch& touch : run.touches) {
        EXPECT_LE(touch.last.distance, reuse.step());
        EXPECT_GE(touch.last.distance, touch.bytes);
      }
    }
    for (const StageKernels::OfStep& step : stages[static_cast<std::size_t>(c)].kernels.steps)
      for (const auto& key : {step.forward, step.backward, step.backward_weight})
        EXPECT_TRUE(!key || runs[*key] >= 4) << to_string(stages[static_cast<std::size_t>(c)].kernels.keys[*key]);
  }
}

}  // namespace
}  // namespace sibyl
