// Where pipelines are cut.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>

#include "oracle/plan/pipeline/balance.h"
#include "oracle/plan/pipeline/cut.h"
#include "oracle/plan/plan.h"
#include "tests/support/graphs.h"
#include "tests/support/networks.h"
#include "tests/support/stages.h"
#include "tests/support/strategies.h"

namespace sibyl {
namespace {

using test::carried;
using test::pipelined;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> operations(const Graph& graph, const Stage& stage) {
  std::vector<std::string> names;
  for (const Step& step : stage.steps)
    if (const auto* compute = std::get_if<Compute>(&step)) names.push_back(graph[compute->operation].name);
  return names;
}

// FLOPs grow with the product of widths: fc1 16 x 64, fc2 64 x 16, fc3 16 x 64, fc4 64 x 16 are alike; the middle,
// where 16 features cross, is the narrowest cut near the best.
TEST(Cut, BalancesFlopsAtTheNarrowestPlace) {
  const Graph graph = test::mlp({16, 64, 16, 64, 16}, 2);
  const auto plan = make_plan(graph, pipelined(2, 4));
  ASSERT_TRUE(plan.has_value());
  ASSERT_EQ(plan->stages.size(), 2U);
  const Stage& first = plan->stages[0];
  const Stage& second = plan->stages[1];
  EXPECT_THAT(operations(graph, first), ElementsAre("fc1", "fc1.relu", "fc2", "fc2.relu"));
  EXPECT_THAT(operations(graph, second), ElementsAre("fc3", "fc3.relu", "fc4", "loss"));
  EXPECT_THAT(carried(graph, first, first.sends), ElementsAre("fc2.relu"));
  EXPECT_THAT(carried(graph, second, second.receives), ElementsAre("fc2.relu"));
  EXPECT_TRUE(first.receives.empty());
  EXPECT_TRUE(second.sends.empty());
  EXPECT_EQ(first.sends[0].peer, 1);
  EXPECT_TRUE(first.sends[0].gradient);
  EXPECT_EQ(first.updates.size(), 4U);
  EXPECT_EQ(second.updates.size(), 4U);
  EXPECT_EQ(first.micro_batches(), 4);
  EXPECT_THAT(stage_starts(graph, *plan), ElementsAre("fc3"));
  // 2 samples x 16 features x 4 bytes, 4 micro-batches, each way.
  EXPECT_EQ(bytes_sent_per_step(*plan, 0, Algorithm::ring), 512);
  EXPECT_EQ(bytes_sent_per_step(*plan, 1, Algorithm::ring), 512);
}

TEST(Cut, TheCallersCostsDecide) {
  const Graph graph = test::mlp({16, 64, 16, 64, 16}, 2);
  CutCosts costs;
  costs.time = [&](const Stage&, const Step& step) {
    return graph[std::get<Compute>(step).operation].name == "fc1" ? 10.0 : 1.0;
  };
  const auto plan = make_plan(graph, pipelined(2, 4), costs);
  ASSERT_TRUE(plan.has_value());
  EXPECT_THAT(operations(graph, plan->stages[0]), ElementsAre("fc1"));
}

// Weights and their gradients take 8,704, 8,320, 8,704 and 8,320 bytes, and what is kept of two micro-batches and
// worked on, one layer's further gradients of weights among it, less than 7,400: in 24,500 bytes two layers have room.
// Without a limit all but the loss, which is dear here, would come first.
TEST(Cut, NoStageHoldsMoreThanADevice) {
  const Graph graph = test::mlp({16, 64, 16, 64, 16}, 2);
  CutCosts costs;
  costs.time = [&](const Stage&, const Step& step) {
    return graph[std::get<Compute>(step).operation].name == "loss" ? 100.0 : 1.0;
  };
  const auto free = make_plan(graph, pipelined(2, 4), costs);
  ASSERT_TRUE(free.has_value());
  EXPECT_THAT(operations(graph, free->stages[1]), ElementsAre("loss"));
  costs.memory = Bytes{24500};
  const auto bound = make_plan(graph, pipelined(2, 4), costs);
  ASSERT_TRUE(bound.has_value());
  EXPECT_THAT(operations(graph, bound->stages[1]), ElementsAre("fc3", "fc3.relu", "fc4", "loss"));
  // Adam's state takes as much again, too much for any cut, unless it lies elsewhere.
  Strategy adam = pipelined(2, 4);
  adam.optimizer = OptimizerKind::adam;
  EXPECT_THAT(operations(graph, make_plan(graph, adam, costs)->stages[1]), ElementsAre("loss"));
  adam.optimizer_tier = Tier::host;
  EXPECT_THAT(operations(graph, make_plan(graph, adam, costs)->stages[1]),
              ElementsAre("fc3", "fc3.relu", "fc4", "loss"));
}

// What all operations but the last ones need as a stage.
double needed_without(std::size_t last, const Graph& graph, const Strategy& strategy, int in_flight) {
  const Stage whole = make_program(graph, strategy).value();
  const Places places(whole);
  const std::vector<std::size_t> like;
  const BackwardMemory backward(whole, strategy, Backend::cpu, like, {});
  StageMemories memories(backward, places, like);
  const StageMemory::Need need = memories.of(strategy).of(0, places.count() - last, {static_cast<double>(in_flight)});
  return need.resting + need.passing;
}

// The loss is dear here: the stage that has it is best short. On a device that has room for all else in one way of
// training, and not in another, it is so in the first alone.
TEST(Cut, StagesAreEvenWhereWhatIsSavedMakesThemFit) {
  Strategy plain = pipelined(2, 4);
  plain.data = 2;
  plain.global_batch = 64;
  plain.optimizer = OptimizerKind::adamw;
  const auto compare = [&](const Graph& graph, const Strategy& saving) {
    CutCosts costs;
    costs.time = [&](const Stage&, const Step& step) {
      const auto* compute = std::get_if<Compute>(&step);
      return compute && graph[compute->operation].name == "loss" ? 1000.0 : 1.0;
    };
    const auto last = [&](const Strategy& strategy) {
      return operations(graph, make_plan(graph, strategy, costs)->stages[1]).size();
    };
    const std::size_t best = last(plain);
    const double most = needed_without(best, graph, plain, 2), less = needed_without(best, graph, saving, 2);
    EXPECT_LT(less, 0.95 * most);
    costs.memory = Bytes{(less + most) / 2};
    EXPECT_EQ(last(saving), best);
    EXPECT_GT(last(plain), best);
  };
  for (const Recompute recompute : {Recompute::full, Recompute::selective}) {
    Strategy saving = plain;
    saving.recompute = recompute;
    compare(test::transformer(4, 32, 4, 64, 16), saving);
  }
  const Graph of_weights = test::transformer(4, 64, 4, 8, 16);
  Strategy sharded = plain, outside = plain;
  sharded.zero = 1;
  outside.optimizer_tier = Tier::host;
  compare(of_weights, sharded);
  compare(of_weights, outside);
}

// Every cut of a short program, by hand.
class AllCuts {
 public:
  AllCuts(const Stage& whole, const std::vector<double>& times, double link, const std::vector<int>& in_flight,
          Bytes capacity)
      : whole_(whole),
        times_(times),
        link_(link),
        in_flight_(in_flight),
        capacity_(capacity),
        places_(whole),
        backward_(whole, Strategy{}, Backend::cpu, {}, {}),
        memories_(backward_, places_, like_),
        crossing_(whole),
        begins_(beginnings(whole)) {}

  // Of one stage; infinite where it cannot be.
  [[nodiscard]] double cost(std::size_t stage, std::size_t begin, std::size_t end) const {
    bool trains = false;
    double time = end < whole_.steps.size() ? link_ * crossing_.bytes(end).value() : 0;
    for (std::size_t i = begin; i < end; ++i) {
      time += times_[i];
      each_gradient(whole_, whole_.steps[i], [&](LocalTensorId) { trains = true; });
    }
    const bool starts = begin == 0 || begins_[begin].valid(),
               stops = end == whole_.steps.size() || begins_[end].valid();
    return trains && starts && stops && holds(stage, begin, end) ? time : infinite;
  }
  // The slowest stage of the best cut from here on.
  [[nodiscard]] double best(std::size_t stage = 0, std::size_t begin = 0) const {
    if (stage + 1 == in_flight_.size())
      return begin < whole_.steps.size() ? cost(stage, begin, whole_.steps.size()) : infinite;
    double least = infinite;
    for (std::size_t end = begin + 1; end < whole_.steps.size(); ++end)
      least = std::min(least, std::max(cost(stage, begin, end), best(stage + 1, end)));
    return least;
  }
  // What the stages from here on send at least, of the cuts whose slowest stage takes no longer.
  [[nodiscard]] double least_sent(double limit, std::size_t stage = 0, std::size_t begin = 0) const {
    const std::size_t all = whole_.steps.size();
    if (stage + 1 == in_flight_.size()) return begin < all && cost(stage, begin, all) <= limit ? 0 : infinite;
    double least = infinite;
    for (std::size_t end = begin + 1; end < all; ++end)
      if (cost(stage, begin, end) <= limit)
        least = std::min(least, crossing_.bytes(end).value() + least_sent(limit, stage + 1, end));
    return least;
  }
  [[nodiscard]] double sent(const std::vector<std::size_t>& begins) const {
    double bytes = 0;
    for (const std::size_t begin : begins) bytes += crossing_.bytes(begin).value();
    return bytes;
  }
  [[nodiscard]] double slowest(const std::vector<std::size_t>& begins) const {
    double most = 0;
    for (std::size_t s = 0; s < in_flight_.size(); ++s)
      most = std::max(most, cost(s, s == 0 ? 0 : begins[s - 1], s < begins.size() ? begins[s] : whole_.steps.size()));
    return most;
  }

  static constexpr double infinite = std::numeric_limits<double>::infinity();

 private:
  [[nodiscard]] bool holds(std::size_t stage, std::size_t begin, std::size_t end) const {
    if (capacity_.value() <= 0) return true;
    const std::size_t last = end == whole_.steps.size() ? places_.count() : places_.of_step(end);
    const StageMemory::Need need =
        memories_.of(Strategy{}).of(places_.of_step(begin), last, {static_cast<double>(in_flight_[stage])});
    return need.resting + need.passing <= capacity_.value();
  }

  const Stage& whole_;
  const std::vector<double>& times_;
  double link_;
  const std::vector<int>& in_flight_;
  Bytes capacity_;
  Places places_;
  std::vector<std::size_t> like_;
  BackwardMemory backward_;
  mutable StageMemories memories_;
  Crossing crossing_;
  std::vector<OperationId> begins_;
};

RC_GTEST_PROP(Cut, IsTheNarrowestNearTheBestOfAllCutsAndThereWhereAnyIs, ()) {
  const auto any = [](int least, int most) { return *rc::gen::inRange(least, most + 1); };
  std::vector<std::int64_t> widths(static_cast<std::size_t>(any(3, 9)));
  for (std::int64_t& width : widths) width = any(0, 3) == 0 ? 128 : any(1, 3) * 8;  // some that few stages hold
  const int batch = any(0, 1) == 0 ? 2 : 1024;  // what stages hold is parameters, or what micro-batches keep
  const Graph graph = test::mlp(widths, batch);
  Strategy strategy;
  strategy.global_batch = batch;
  const Stage whole = make_program(graph, strategy).value();
  std::vector<double> times;
  for (std::size_t i = 0; i < whole.steps.size(); ++i) times.push_back(any(1, 100));
  const double link = 0.01 * any(0, 20);
  CutCosts costs;
  costs.time = [&](const Stage& stage, const Step& step) {
    return times[static_cast<std::size_t>(&step - stage.steps.data())];
  };
  costs.link = [&](Bytes bytes) { return link * bytes.value(); };
  const Places places(whole);
  const BackwardMemory backward(whole, strategy, Backend::cpu, {}, {});
  const std::vector<std::size_t> like;
  StageMemories memories(backward, places, like);
  CutTable table(whole, places, Crossing(whole), costs);
  for (int drawn = 0; drawn < 4; ++drawn) {
    std::vector<int> in_flight;
    for (int s = any(1, 5); s > 0; --s) in_flight.push_back(any(1, 4));
    std::vector<OnTheWay> micro_batches;
    for (const int n : in_flight) micro_batches.push_back({static_cast<double>(n)});
    const StageMemory& memory = memories.of(strategy);
    const StageMemory::Need all = memory.of(0, places.count(), micro_batches.front());
    const Bytes capacity{(all.resting + all.passing) * 0.01 * any(0, 200)};
    const MemoryLimit limit{memory, micro_batches, in_flight.size(), capacity};
    const AllCuts cuts(whole, times, link, in_flight, capacity);
    const double best = cuts.best();
    const std::vector<std::size_t> begins = table.cut(in_flight.size(), capacity.value() > 0 ? &limit : nullptr);
    if (in_flight.size() == 1) continue;  // nothing to cut, and nothing says whether it fits
    RC_ASSERT(begins.empty() == (best == AllCuts::infinite));
    RC_ASSERT(begins.empty() || capacity.value() == 0 || table.possible(in_flight.size(), limit));
    if (begins.empty()) continue;
    RC_ASSERT(cuts.slowest(begins) <= best * 1.022 + 1e-9);
    RC_ASSERT(cuts.sent(begins) <= cuts.least_sent(best * 1.02 - 1e-9));
  }
}

// Of 2 blocks of 4 heads on 64 tokens, one sample: on the CPU attention keeps its scores, 2 x 4 x 64 x 64 x 4 bytes;
// fused kernels of a GPU keep a little of their own. Stages that were cut by the CPU's rule wherever they ran were as
// uneven as 25 to 70.
TEST(Cut, CountsWhatTheBackendKeeps) {
  const Graph graph = test::transformer(2, 32, 4, 64, 1);
  Strategy strategy;
  const Stage whole = make_program(graph, strategy).value();
  const Places places(whole);
  const std::vector<std::size_t> like;
  const auto of = [&](Backend backend) {
    const BackwardMemory backward(whole, strategy, backend, like, {});
    return StageMemories(backward, places, like).of(strategy).of(0, places.count(), {1}).resting;
  };
  EXPECT_GT(of(Backend::cpu) - of(Backend::cuda), 0.8 * 2 * 4 * 64 * 64 * 4);
}

TEST(Cut, TooManyStagesNamesTheMost) {
  const auto plan = make_plan(test::mlp({4, 8, 3}, 2), pipelined(8, 8));
  ASSERT_FALSE(plan.has_value());
  EXPECT_EQ(plan.error().code, ErrorCode::infeasible);
  EXPECT_THAT(plan.error().hint, HasSubstr("pipeline=4"));  // fc1, its relu, fc2, the loss
}

TEST(Cut, StagesAreNamedByHand) {
  const Graph graph = test::mlp({16, 64, 16, 64, 16}, 2);
  Strategy strategy = pipelined(3, 4);
  strategy.stage_starts = {"fc2", "fc4"};
  const auto plan = make_plan(graph, strategy);
  ASSERT_TRUE(plan.has_value());
  EXPECT_THAT(operations(graph, plan->stages[1]), ElementsAre("fc2", "fc2.relu", "fc3", "fc3.relu"));
  EXPECT_EQ(stage_starts(graph, *plan), strategy.stage_starts);
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"fc2", "nothing"}, {"fc4", "fc2"}, {"fc1", "fc2"}, {"fc2", "fc2"}}) {
    strategy.stage_starts = wrong;
    const auto refused = make_plan(graph, strategy);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::usage);
  }
}

}  // namespace
}  // namespace sibyl
