#include "oracle/validate/published/strategies.h"

#include <fmt/format.h>

#include <algorithm>

#include "oracle/plan/precision.h"
#include "oracle/plan/zero.h"
#include "oracle/validate/published/cells.h"
#include "oracle/validate/published/clusters.h"
#include "oracle/validate/published/shards.h"

namespace sibyl::published {
namespace {

// "tf32-or-fp32 (… TF32 on Ampere+)" is tf32 where the device has it.
Result<void> set_precision(const Row& row, const FrameworkRecipe& framework, const Device& device,
                           StrategyRecipe& recipe) {
  const std::string text = lower_case(row.precision);
  const bool has_tf32 = device.peak.count(DType::tf32) > 0;
  Strategy& strategy = recipe.strategy;
  if (text.empty()) {
    recipe.assumed.push_back("fp32 (the source does not say)");
  } else if (has(text, "fp8") || has(text, "float8")) {
    strategy.precision = Precision::fp8;
  } else if (has(text, "bf16") || has(text, "bfloat16")) {
    strategy.precision = Precision::bf16;
  } else if (has(text, "fp16") || has(text, "float16") || has(text, "half") || has(text, "mixed") ||
             says_word(text, "amp")) {
    strategy.precision = Precision::fp16;
  } else if (has(text, "tf32")) {
    strategy.precision = has_tf32 ? Precision::tf32 : Precision::fp32;
    if (has(text, "or")) recipe.assumed.push_back(fmt::format("{}", to_string(strategy.precision)));
  } else if (has(text, "fp32") || has(text, "float32") || has(text, "single")) {
    strategy.precision = Precision::fp32;
  } else {
    return fail(fmt::format("precision '{}' is not modelled", row.precision));
  }
  strategy.half_weights = framework.half_weights;
  const bool half = strategy.precision == Precision::fp16 || strategy.precision == Precision::bf16;
  strategy.fp32_gradients = framework.bf16_sums_in_full && strategy.precision != Precision::fp16;
  if (sums_in_full(strategy)) recipe.assumed.push_back("gradients summed in f32");
  if (half && !framework.half_weights) recipe.assumed.push_back("torch.autocast's choice of types");
  return {};
}

int degree(const std::optional<std::int64_t>& stated) { return static_cast<int>(stated.value_or(1)); }

// Ranks of expert parallelism are replicas of everything but the experts (Megatron-Core): a source counts them among
// the replicas, or apart.
Result<void> set_expert_degrees(const Row& row, std::int64_t replica, std::int64_t replicas, Strategy& strategy) {
  const std::int64_t ranks = row.gpus / replica;  // of one place in all replicas
  strategy.expert = degree(row.ep);
  // More than there are replicas: ranks of tensor parallelism are among them.
  const int beside = strategy.expert % strategy.tensor == 0 ? strategy.expert / strategy.tensor : 0;
  if (replicas == ranks && replicas % strategy.expert != 0 && beside > 0 && replicas % beside == 0) {
    strategy.whole_experts = strategy.tensor > 1;
    strategy.expert = beside;
  }
  if (replicas == ranks && replicas % strategy.expert != 0)
    return fail(fmt::format("{} replicas are not divided by expert parallelism of {}", replicas, strategy.expert));
  strategy.data = static_cast<int>(replicas == ranks ? replicas / strategy.expert : replicas);
  if (strategy.data * strategy.expert == ranks) return {};
  return fail(fmt::format("data={}, expert={}, tensor={}, context={}, pipeline={} are not the {} devices",
                          strategy.data, strategy.expert, strategy.tensor, strategy.context, strategy.pipeline,
                          row.gpus));
}

// Ranks of tensor and context parallelism are neighbours, stages of a pipeline are not. 0: a node has none whole.
int replicas_of_a_node(const Row& row, const Strategy& strategy) {
  const int per_node = machine_of(row).topology.devices_per_node, neighbours = strategy.tensor * strategy.context;
  return per_node % neighbours == 0 ? std::min(per_node / neighbours, strategy.data * strategy.expert) : 0;
}

// After the degrees.
Result<void> set_shards(const Row& row, Strategy& strategy) {
  const int ranks = strategy.data * strategy.expert;
  strategy.zero = static_cast<int>(row.zero.value_or(0));
  if (!row.other_parallel.empty()) {
    const std::optional<Shards> shards = shards_of(row.other_parallel);
    if (!shards) return fail(fmt::format("'{}' is not modelled", row.other_parallel));
    if (row.zero && shards->stage && *row.zero != *shards->stage)
      return fail(fmt::format("'{}' beside zero of {}", row.other_parallel, *row.zero));
    strategy.zero = shards->stage.value_or(strategy.zero);
    const std::optional<int> group = group_of(*shards, ranks, replicas_of_a_node(row, strategy));
    if (!group) return fail(fmt::format("'{}' does not divide {} replicas", row.other_parallel, ranks));
    strategy.zero_ranks = *group == ranks ? 0 : *group;
  }
  if (ranks == 1 || strategy.zero_ranks == 1) strategy.zero = 0;
  if (strategy.zero == 0) strategy.zero_ranks = 0;
  return {};
}

Result<void> set_degrees(const Row& row, StrategyRecipe& recipe) {
  Strategy& strategy = recipe.strategy;
  strategy.tensor = degree(row.tp);
  strategy.pipeline = degree(row.pp);
  strategy.context = degree(row.cp);
  if (strategy.context > 1)
    recipe.assumed.push_back("parts of sequences are exchanged for heads of attention (the source does not say how)");
  const std::int64_t replica = std::int64_t{strategy.tensor} * strategy.context * strategy.pipeline;
  if (row.gpus % replica != 0) return fail(fmt::format("{} devices are no replicas of {}", row.gpus, replica));
  const std::int64_t replicas = row.dp.value_or(row.gpus / replica);
  SIBYL_CHECK(set_expert_degrees(row, replica, replicas, strategy));
  strategy.sequence = row.sp && strategy.tensor > 1;
  if (strategy.whole_experts) recipe.assumed.push_back("experts dealt out over ranks of tensor parallelism, too");
  strategy.chunks = strategy.pipeline > 1 ? degree(row.vpp) : 1;
  if (strategy.chunks > 1) strategy.schedule = PipelineSchedule::interleaved;
  return set_shards(row, strategy);
}

Result<void> set_batch(const Row& row, StrategyRecipe& recipe) {
  Strategy& strategy = recipe.strategy;
  if (!row.global_batch && !row.micro_batch) return fail("the source states no batch");
  const std::int64_t replicas = std::int64_t{strategy.data} * strategy.expert;
  if (row.global_batch && *row.global_batch < replicas)
    return fail(fmt::format("a batch of {} leaves some of {} replicas without a sample", *row.global_batch, replicas));
  const std::int64_t per_replica = row.global_batch ? *row.global_batch / replicas : *row.micro_batch;
  const std::int64_t micro = row.micro_batch.value_or(strategy.pipeline > 1 ? 1 : per_replica);
  strategy.global_batch = row.global_batch.value_or(micro * replicas);
  if (strategy.global_batch % (micro * replicas) != 0)
    return fail(fmt::format("a batch of {} is no multiple of {} samples on each of {} replicas", strategy.global_batch,
                            micro, replicas));
  strategy.accumulation = strategy.global_batch / (micro * replicas);
  recipe.micro_batch_open = !row.micro_batch;
  return {};
}

Result<void> set_recompute(const Row& row, StrategyRecipe& recipe) {
  const std::string text = lower_case(row.recompute);
  if (text.empty() || text == "none" || text == "no" || text == "0" || text == "false") return {};
  recipe.strategy.recompute = text == "selective" ? Recompute::selective : Recompute::full;
  if (text == "selective" || text == "full") return {};
  if (text == "selective layer") {
    recipe.strategy.recompute_every = 2;  // torchtitan's default
    recipe.assumed.push_back("every second block is run again (the source does not say which)");
    return {};
  }
  recipe.half_recomputed = has(text, "selective");
  recipe.assumed.push_back(
      recipe.half_recomputed
          ? fmt::format("'{}' recomputing as half of every block run again: halfway between none and all",
                        row.recompute)
          : fmt::format("'{}' recomputing as every block run again", row.recompute));
  return {};
}

Result<void> set_optimizer(const Row& row, const FrameworkRecipe& framework, const ModelRecipe& model,
                           StrategyRecipe& recipe) {
  Strategy& strategy = recipe.strategy;
  strategy.optimizer = model.optimizer.value_or(framework.optimizer);
  strategy.clip = framework.clip;
  if (row.optimizer.empty()) {
    const bool timed = row.metric != Metric::fwd_bwd_time && row.metric != Metric::memory_activations;
    if (timed && framework.clip == 0) recipe.assumed.push_back(fmt::format("{}", to_string(strategy.optimizer)));
    return {};
  }
  return parse_optimizer(lower_case(row.optimizer)).map([&](OptimizerKind kind) { strategy.optimizer = kind; });
}

// Where it can be so; a batch may be parted further later.
void set_reduction(const FrameworkRecipe& framework, StrategyRecipe& recipe) {
  Strategy& strategy = recipe.strategy;
  if (framework.stays_gathered && strategy.zero == 3 && strategy.pipeline > 1) {
    strategy.zero = 2;
    recipe.assumed.emplace_back("parameters stay gathered between a pipeline's micro-batches");
  }
  strategy.gather_late = framework.gather_late && strategy.zero == 3;
  strategy.reduce_each = framework.reduce_each && strategy.expert == 1;
  if (!check_reduce_each(strategy)) strategy.reduce_each = false;
}

// As many layers on every stage, where they can be: embedding and head come on top (Megatron-LM and its like).
void set_stages(const ModelRecipe& model, Strategy& strategy) {
  if (strategy.stages() < 2 || model.layers == 0 || model.layers % strategy.stages() != 0) return;
  const std::int64_t each = model.layers / strategy.stages();
  for (std::int64_t stage = 1; stage < strategy.stages(); ++stage)
    strategy.stage_starts.push_back(model.layer_prefix + std::to_string(stage * each) + model.layer_start);
}

}  // namespace

Result<StrategyRecipe> strategy_of(const Row& row, const FrameworkRecipe& framework, const ModelRecipe& model,
                                   const Device& device) {
  StrategyRecipe recipe;
  SIBYL_CHECK(set_degrees(row, recipe));
  SIBYL_CHECK(set_batch(row, recipe));
  SIBYL_CHECK(set_precision(row, framework, device, recipe));
  SIBYL_CHECK(set_recompute(row, recipe));
  SIBYL_CHECK(set_optimizer(row, framework, model, recipe));
  recipe.strategy.exchange = framework.exchange;
  recipe.strategy.attention = framework.attention;
  recipe.strategy.fused_pointwise = framework.fused_pointwise;
  recipe.strategy.fused_update = framework.fused_update;
  recipe.strategy.written_update = framework.written_update;
  recipe.strategy.overlap_tensor = framework.overlap_tensor && recipe.strategy.sequence;
  recipe.strategy.fused_norms = model.fused_norms;
  recipe.strategy.converted_images = model.converted_images;
  recipe.strategy.converted_norms = model.converted_norms;
  set_stages(model, recipe.strategy);
  set_reduction(framework, recipe);
  return recipe;
}

std::int64_t micro_batch_of(const Strategy& strategy) {
  return strategy.global_batch / strategy.data / strategy.expert / strategy.accumulation;
}

bool make_micro_batch_smaller(Strategy& strategy) {
  const std::int64_t samples = micro_batch_of(strategy);
  if (samples <= 1) return false;
  std::int64_t factor = 2;
  while (samples % factor != 0 && factor * factor <= samples) ++factor;
  strategy.accumulation *= samples % factor == 0 ? factor : samples;  // of a prime number itself
  return true;
}

}  // namespace sibyl::published
