#include "oracle/without_effect.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <variant>

#include "oracle/plan/compression.h"
#include "oracle/plan/offload_activations.h"

namespace sibyl {
namespace {

bool any_sync(const Plan& plan, const std::function<bool(const GradientSync&)>& is) {
  return std::ranges::any_of(plan.stages, [&](const Stage& stage) { return std::ranges::any_of(stage.gradients, is); });
}

bool has_batch_norm(const Graph& graph) {
  return std::ranges::any_of(graph.operations(), [](const Operation& operation) {
    const auto* norm = std::get_if<Normalization>(&operation.attributes);
    return norm != nullptr && norm->kind == NormalizationKind::batch;
  });
}

// Sums that go back to parts of a sequence are scattered; without sequence= they are all-reduced.
bool scatters_sequences(const Plan& plan) {
  return std::ranges::any_of(plan.stages, [](const Stage& stage) {
    return std::ranges::any_of(stage.steps, [](const Step& step) {
      const auto* exchange = std::get_if<Exchange>(&step);
      return exchange != nullptr && exchange->axis == MeshAxis::tensor &&
             exchange->forward.motion == Motion::reduce_scatter;
    });
  });
}

bool runs_nothing_again(const Plan& plan) {
  return std::ranges::all_of(plan.stages, [](const Stage& stage) { return stage.recomputed.empty(); });
}

// Of updates that --fused-update and --written-update choose between ways of.
bool has_kernels_apart(const Strategy& s, const Device& device) {
  const bool one = s.optimizer == OptimizerKind::lamb || s.optimizer == OptimizerKind::lars ||
                   (s.optimizer == OptimizerKind::sgd && !s.written_update);
  return device.backend == Backend::cuda && !one;
}

// Numbers of the stages that run blocks again and keep nothing of these outside.
std::vector<std::size_t> keep_nothing_outside(const Plan& plan) {
  std::vector<std::size_t> stages;
  for (std::size_t s = 0; s < plan.stages.size(); ++s)
    if (!plan.stages[s].recomputed.empty() && kept_outside_bytes(plan.stages[s]) == 0) stages.push_back(s);
  return stages;
}

bool shares_samples(const Strategy& s) { return s.data * s.samplers() * s.depth * s.height * s.width > 1; }

}  // namespace

std::vector<std::string> without_effect(const Graph& graph, const Plan& plan, const Device& device) {
  const Strategy& s = plan.strategy;
  std::vector<std::string> list;
  const bool in_sequence = s.sequence && scatters_sequences(plan);
  if (s.sequence && !in_sequence)
    list.push_back(fmt::format("sequence={}: no sums of sequences of tokens were found that {} ranks could share",
                               s.tensor, s.tensor));
  if (s.overlap_tensor && !in_sequence)
    list.emplace_back("--overlap-tensor: there are no exchanges of sequence= to go on beside products");
  if (s.zero > 0 && !any_sync(plan, [](const GradientSync& sync) { return sync.sharded(); }))
    list.push_back(fmt::format("--zero {}: there are no replicas that could share state", s.zero));
  if (s.reduce_each && std::ranges::none_of(plan.stages, &Stage::reduces_each))
    list.emplace_back(s.accumulation == 1 ? "--reduce-each: there is one micro-batch"
                                          : "--reduce-each: there are no replicas that could share state");
  if (s.gather_late && std::ranges::all_of(plan.stages, [](const Stage& stage) { return stage.units.empty(); }))
    list.emplace_back("--backward-prefetch post: no parameters are gathered block by block (--zero 3)");
  if (s.compression.kind != Compression::Kind::none &&
      !any_sync(plan, [](const GradientSync& sync) { return sync.senders > 1; }))
    list.push_back(fmt::format("--compress {}: no gradients are summed over ranks", compression_text(s.compression)));
  if (s.batch_norm == BatchNorm::synchronised && !(has_batch_norm(graph) && shares_samples(s)))
    list.emplace_back(has_batch_norm(graph) ? "--batch-norm synchronised: one rank has all samples"
                                            : "--batch-norm synchronised: the model has no batch-norm");
  if (s.recompute != Recompute::none && runs_nothing_again(plan))
    list.push_back(
        s.recompute == Recompute::selective
            ? "--recompute selective: no attention was found that could be run again"
            : fmt::format("--recompute {}: nothing was found that could be run again so", recompute_text(s)));
  if (const auto stages = keep_nothing_outside(plan); s.activation_tier != Tier::device && !stages.empty())
    list.push_back(fmt::format(
        "--offload activations: nothing that blocks keep could leave the device{}; what a stage has from another, or "
        "hands on, stays",
        plan.stages.size() == 1
            ? ""
            : fmt::format(" of stage{} {}", stages.size() == 1 ? "" : "s", fmt::join(stages, ", "))));
  if (s.context_exchange != ContextExchange::automatic && s.context == 1)
    list.push_back(
        fmt::format("--context-exchange {}: sequences are not split (context=)", to_string(s.context_exchange)));
  if (s.whole_experts && s.tensor == 1)
    list.emplace_back("--whole-experts: there are no ranks of tensor= that could deal them out");
  if (s.dropless && s.expert == 1 && !s.whole_experts)
    list.emplace_back("--dropless: experts are not dealt out (expert=)");
  if (s.fused_norms && !has_batch_norm(graph)) list.emplace_back("--fused-norms: the model has no batch-norm");
  if ((s.fused_update || s.written_update) && !has_kernels_apart(s, device))
    list.push_back(fmt::format("--{}-update: {}", s.fused_update ? "fused" : "written",
                               device.backend == Backend::cuda ? "this optimizer's update is one kernel in any case"
                                                               : "processors run an update in one go"));
  if (s.precision == Precision::tf32 && !device.peak.contains(DType::tf32))
    list.emplace_back("--precision tf32: the device has none, and computes in fp32");
  return list;
}

}  // namespace sibyl
