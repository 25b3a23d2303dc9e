// Work that is done more than once: by every rank of an axis, or twice by the same.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "oracle/axes.h"
#include "oracle/limits/finders.h"
#include "oracle/plan/recompute.h"

namespace sibyl::limits {
namespace {

bool is_cut(const Stage& stage, LocalTensorId id, MeshAxis axis) {
  if (!id.valid()) return false;
  const auto& cuts = stage[id].cuts;
  return std::any_of(cuts.begin(), cuts.end(), [&](const PartOf& part) { return part.axis == axis; });
}

// Operations none of whose operands and results an axis cuts run alike on all its ranks.
bool is_repeated(const Stage& stage, const Compute& compute, MeshAxis axis) {
  const auto cut = [&](LocalTensorId id) { return is_cut(stage, id, axis); };
  return std::none_of(compute.inputs.begin(), compute.inputs.end(), cut) &&
         std::none_of(compute.outputs.begin(), compute.outputs.end(), cut);
}

// [samples, tokens, features]: sequence= can cut it along the tokens.
bool is_of_tokens(const Stage& stage, LocalTensorId id) {
  constexpr std::size_t rank = 3;
  return id.valid() && stage[id].shape.size() == rank;
}

Seconds kernel_times(const PricedStage& priced, std::size_t step) {
  const StageKernels::OfStep& kernels = priced.kernels.steps[step];
  Seconds time;
  for (const auto& kernel : {kernels.forward, kernels.backward, kernels.backward_weight})
    if (kernel) time += priced.time(*kernel);
  return time;
}

}  // namespace

void repeated_work(const Found& f, Limits& limits) {
  for (const MeshAxis axis : axes_within_samples()) {
    if (f.degree(axis) == 1) continue;
    Seconds all, longest;
    std::string name;
    bool of_tokens = false;
    f.each_slowest([&](const Stage& stage, const PricedStage& priced) {
      for (std::size_t i = 0; i < stage.steps.size(); ++i) {
        const auto* compute = std::get_if<Compute>(&stage.steps[i]);
        if (!compute || !is_repeated(stage, *compute, axis)) continue;
        const Seconds time = kernel_times(priced, i);
        all += time;
        of_tokens = of_tokens ||
                    std::ranges::any_of(compute->outputs, [&](LocalTensorId id) { return is_of_tokens(stage, id); });
        if (time <= longest) continue;
        longest = time;
        name = f.graph[compute->operation].name;
      }
    });
    const bool along_tokens = of_tokens && axis == MeshAxis::tensor && !f.plan.strategy.sequence;
    add_cost(f, all * f.micro_batches(), "redundant work", fmt::format("{}, longest {}", to_string(axis), name),
             those_that_suit({{fmt::format("extents that {} divides", f.degree(axis))},
                              {"sequence=", along_tokens},
                              {"a lower degree"}}),
             limits);
  }
}

void recomputation(const Found& f, Limits& limits) {
  Seconds time;
  f.each_slowest([&](const Stage& stage, const PricedStage& priced) {
    const std::vector<bool> again = recomputed_steps(stage);
    for (std::size_t i = 0; i < stage.steps.size(); ++i)
      if (const auto& forward = priced.kernels.steps[i].forward; forward && again[i]) time += priced.time(*forward);
  });
  add_cost(f, time * f.micro_batches(), "recomputation", "",
           those_that_suit({{"smaller micro-batches, whose results can be kept", f.has_samples_to_part()},
                            {"replicas of more devices, which can keep more"}}),
           limits);
}

}  // namespace sibyl::limits
