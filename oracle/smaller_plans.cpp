#include "oracle/smaller_plans.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "oracle/plan/zero.h"

namespace sibyl {
namespace {

struct SmallerPlan {
  Strategy strategy;
  int changes = 0;
};
using SmallerPlans = std::vector<SmallerPlan>;

std::vector<int> divisors(int number) {
  std::vector<int> all;
  for (int d = 1; d <= number; ++d)
    if (number % d == 0) all.push_back(d);
  return all;
}

// Replicas split further by a pipeline, over tensor ranks, or both. Stages that the user named are not cut anew.
SmallerPlans resplit(const Strategy& strategy) {
  SmallerPlans pipelines, tensors, both;
  for (const int p : divisors(strategy.data))
    for (const int t : divisors(strategy.data / p)) {
      if (p * t == 1 || (p > 1 && (!strategy.stage_starts.empty() || strategy.reduce_each))) continue;
      Strategy s = strategy;
      s.pipeline *= p;
      s.tensor *= t;
      s.data /= p * t;
      // So many stages keep their devices busy with as many micro-batches, which stay as large as they were. Tensor
      // ranks alone take what all of them had at once, and hold as much of it as before.
      if (p > 1) s.accumulation *= p * t;
      (p > 1 && t > 1 ? both : p > 1 ? pipelines : tensors).push_back({s, p > 1 && t > 1 ? 2 : 1});
    }
  std::ranges::move(tensors, std::back_inserter(pipelines));
  std::ranges::move(both, std::back_inserter(pipelines));
  return pipelines;
}

SmallerPlans sharing_state(const Strategy& strategy) {
  SmallerPlans all{{strategy, 0}};
  const bool replicas = strategy.data > 1 || strategy.samplers() > 1;
  const auto add = [&](int zero, bool each, int changes) {
    all.push_back({strategy, changes});
    all.back().strategy.zero = zero;
    all.back().strategy.reduce_each = each;
  };
  for (int zero = strategy.zero; replicas && zero <= 3; ++zero) {
    const int changes = zero > strategy.zero ? 1 : 0;
    if (changes > 0) add(zero, strategy.reduce_each, changes);
    Strategy each = strategy;
    each.zero = zero;
    each.reduce_each = true;
    if (!strategy.reduce_each && check_reduce_each(each)) add(zero, true, changes + 1);
  }
  return all;
}

SmallerPlans recomputing(const Strategy& strategy) {
  SmallerPlans all{{strategy, 0}};
  const bool whole =
      strategy.recompute == Recompute::full && strategy.recompute_every == 1 && strategy.recompute_together == 1;
  const auto add = [&](Recompute recompute) {
    Strategy s = strategy;
    s.recompute = recompute;
    s.recompute_every = s.recompute_together = 1;
    s.recompute_kinds.clear();
    all.push_back({std::move(s), 1});
  };
  if (strategy.recompute == Recompute::none) add(Recompute::selective);
  if (!whole) add(Recompute::full);
  return all;
}

// The micro-batches that it has, where they come out even; as large as those of `usual`; and single samples.
SmallerPlans parting_batch(const Strategy& strategy, std::int64_t usual) {
  SmallerPlans all;
  const std::int64_t replica = strategy.global_batch / strategy.data;  // samples
  if (replica * strategy.data != strategy.global_batch) return all;
  for (const std::int64_t parts : {strategy.accumulation, replica / usual, replica / strategy.samplers()}) {
    const bool known = std::ranges::any_of(all, [&](const SmallerPlan& a) { return a.strategy.accumulation == parts; });
    if (parts < strategy.accumulation || known || replica % (parts * strategy.samplers()) != 0) continue;
    all.push_back({strategy, all.empty() ? 0 : 1});
    all.back().strategy.accumulation = parts;
  }
  return all;
}

}  // namespace

std::vector<Strategy> smaller_plans(const Strategy& strategy, bool split) {
  const std::int64_t micro_batch =
      std::max<std::int64_t>(1, strategy.global_batch / strategy.data / strategy.accumulation);
  SmallerPlans splits{{strategy, 0}};
  if (split) std::ranges::move(resplit(strategy), std::back_inserter(splits));
  SmallerPlans all;
  for (const SmallerPlan& mesh : splits)
    for (const SmallerPlan& state : sharing_state(mesh.strategy))
      for (const SmallerPlan& kept : recomputing(state.strategy))
        for (SmallerPlan& plan : parting_batch(kept.strategy, micro_batch)) {
          plan.changes += mesh.changes + state.changes + kept.changes;
          const bool same = plan.strategy.reduce_each != strategy.reduce_each && plan.strategy.accumulation == 1;
          if (plan.changes > 0 && !same) all.push_back(std::move(plan));
        }
  std::ranges::stable_sort(all, {}, &SmallerPlan::changes);
  std::vector<Strategy> strategies;
  for (SmallerPlan& plan : all) strategies.push_back(std::move(plan.strategy));
  return strategies;
}

}  // namespace sibyl
