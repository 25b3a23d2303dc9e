#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "oracle/axes.h"
#include "oracle/plan/buckets.h"
#include "oracle/plan/compression.h"
#include "oracle/plan/context.h"
#include "oracle/plan/dropless.h"
#include "oracle/plan/framework.h"
#include "oracle/plan/image_kernels.h"
#include "oracle/plan/norms.h"
#include "oracle/plan/offload.h"
#include "oracle/plan/offload_activations.h"
#include "oracle/plan/pipeline/stages.h"
#include "oracle/plan/plan.h"
#include "oracle/plan/pointwise.h"
#include "oracle/plan/precision.h"
#include "oracle/plan/recompute.h"
#include "oracle/plan/regathered.h"
#include "oracle/plan/sharding/policy.h"
#include "oracle/plan/sharding/shard.h"
#include "oracle/plan/sharding/split_point.h"
#include "oracle/plan/strided.h"
#include "oracle/plan/synchronised_norms.h"
#include "oracle/plan/whole_program.h"
#include "oracle/plan/zero.h"

namespace sibyl {

namespace {

// What the numbers of experts of all layers can be divided by; 0 where there are no experts.
std::int64_t experts_of(const Graph& graph) {
  std::int64_t common = 0;
  for (const Operation& operation : graph.operations())
    if (std::holds_alternative<GroupedLinear>(operation.attributes))
      common = std::gcd(common, graph[operation.inputs[1]].shape.front());
  return common;
}

// Each rank is to have as many.
Result<void> check_experts(const Graph& graph, const Strategy& strategy) {
  const int ranks = strategy.expert * (strategy.whole_experts ? strategy.tensor : 1);
  if (ranks == 1 && !strategy.dropless && !strategy.whole_experts) return {};
  const std::int64_t experts = experts_of(graph);
  if (experts == 0 && strategy.dropless)
    return fail(ErrorCode::usage, "the model has no experts whose slots could be left out", "--dropless",
                "leave it out");
  if (experts == 0 && strategy.whole_experts)
    return fail(ErrorCode::usage, "the model has no experts that could stay whole", "--whole-experts", "leave it out");
  if (experts == 0)
    return fail(ErrorCode::infeasible, "the model has no experts that could be dealt out", "--parallel",
                "leave expert= out; data= shares samples");
  if (experts % ranks == 0) return {};
  std::int64_t below = std::min<std::int64_t>(ranks, experts), above = ranks;
  while (experts % below != 0) --below;
  while (above < experts && experts % above != 0) ++above;
  if (strategy.whole_experts)
    return fail(ErrorCode::infeasible,
                fmt::format("{} experts cannot be dealt out evenly to {} ranks of tensor= and expert=", experts, ranks),
                "--whole-experts", fmt::format("degrees whose product is {}", below));
  std::string nearest = fmt::format("expert={}", below);
  if (above <= experts && above != below) nearest += fmt::format(" or expert={}", above);
  return fail(ErrorCode::infeasible, fmt::format("{} experts cannot be dealt out evenly to {} ranks", experts, ranks),
              "--parallel", fmt::format("the nearest that can: {}", nearest));
}

// Each rank is to have as many columns of each table that is looked up in.
Result<void> check_tables(const Graph& graph, int ranks) {
  if (ranks == 1) return {};
  std::int64_t common = 0;
  for (const Operation& operation : graph.operations())
    if (std::holds_alternative<Embedding>(operation.attributes))
      common = std::gcd(common, graph[operation.inputs[0]].shape.at(1));
  if (common == 0)
    return fail(ErrorCode::infeasible, "the model looks nothing up in a table that could be dealt out", "--parallel",
                "leave table= out; data= shares samples");
  if (common % ranks == 0) return {};
  std::int64_t below = ranks;
  while (common % below != 0) --below;
  return fail(ErrorCode::infeasible,
              fmt::format("tables are dealt out by columns: {} ranks cannot have as many of {} each", ranks, common),
              "--parallel", fmt::format("the nearest that can: table={}", below));
}

}  // namespace

Result<void> check_strategy(const Graph& graph, const Strategy& strategy) {
  if (!graph.loss.valid()) return fail("the model has no loss to train", graph.name, "import it with a loss");
  SIBYL_CHECK(check_framework(strategy));
  SIBYL_CHECK(check_offload(strategy));
  SIBYL_CHECK(check_activations(strategy));
  SIBYL_CHECK(check_compression(strategy));
  SIBYL_CHECK(check_reduce_each(strategy));
  if (strategy.data < 1 || strategy.global_batch < 1 || strategy.accumulation < 1)
    return fail(ErrorCode::usage, "degrees of parallelism, batch and accumulation must be at least 1");
  if (strategy.accumulation > most_micro_batches)
    return fail(ErrorCode::infeasible, fmt::format("{} micro-batches are too many", strategy.accumulation),
                "--micro-batches", fmt::format("at most {}", most_micro_batches));
  if (strategy.zero_ranks > 0 && strategy.data % strategy.zero_ranks != 0)
    return fail(ErrorCode::infeasible,
                fmt::format("{} replicas cannot be divided into groups of {}", strategy.data, strategy.zero_ranks),
                "--zero", fmt::format("share among a number that divides {}", strategy.data));
  if (strategy.zero == 3 && strategy.recompute_together > 1)
    return fail(ErrorCode::infeasible, "of sharded parameters one block at a time is gathered, not a group of them",
                "--recompute " + recompute_text(strategy), "--zero 2, or --recompute full");
  SIBYL_CHECK(check_experts(graph, strategy));
  SIBYL_CHECK(check_tables(graph, strategy.table));
  const std::int64_t pieces = static_cast<std::int64_t>(strategy.data) * strategy.accumulation * strategy.samplers();
  if (strategy.global_batch % pieces == 0) return {};
  const std::int64_t below = strategy.global_batch / pieces * pieces;
  const std::string nearest = below > 0 ? fmt::format("{} or {}", below, below + pieces) : fmt::format("{}", pieces);
  return fail(
      ErrorCode::infeasible,
      fmt::format("a global batch of {} cannot be divided over {} replicas{}{}", strategy.global_batch, strategy.data,
                  strategy.samplers() > 1 ? fmt::format(" of {} ranks", strategy.samplers()) : "",
                  strategy.accumulation > 1 ? fmt::format(" of {} micro-batches", strategy.accumulation) : ""),
      "--batch", fmt::format("the nearest batch that can: {}", nearest));
}

namespace {

void add_updates(Stage& stage, const Strategy& strategy) {
  for (std::size_t i = 0; i < stage.tensors.size(); ++i) {
    const LocalTensor& tensor = stage.tensors[i];
    if (tensor.kind == TensorKind::parameter && tensor.requires_gradient)
      stage.updates.push_back({LocalTensorId{i}, update_of(strategy)});
  }
}

bool shares_samples(const Strategy& s) {
  return s.data * s.samplers() > 1 || s.depth > 1 || s.height > 1 || s.width > 1;
}

}  // namespace

// Ranks that talk most are nearest, unless the strategy says otherwise: those that share operations, then replicas,
// then a pipeline's stages.
Mesh mesh_of(const Strategy& strategy) {
  Mesh mesh;
  for (const MeshAxis axis : rank_order(strategy))
    if (strategy.degree(axis) > 1 || axis == MeshAxis::data) mesh.extents.push_back({axis, strategy.degree(axis)});
  return mesh;
}

void add_state(Stage& stage, const Strategy& strategy, const std::map<LocalTensorId, Tie>& ties) {
  add_updates(stage, strategy);
  stage.scaled = strategy.precision == Precision::fp16;
  stage.masters = has_half_weights(strategy);
  stage.in_buckets = gradients_in_buckets(strategy);
  stage.gradients = gradient_syncs(stage, strategy, ties);
  stage.buffer_broadcasts = buffer_broadcasts(stage, strategy);
  shard_state(stage, strategy);
  compress_gradients(stage, strategy);
  offload_state(stage, strategy);
  add_norms(stage, strategy);
  stage.recomputed = recomputed_segments(stage, strategy);
  offload_activations(stage, strategy);
}

namespace {

std::int64_t micro_batch_of(const Strategy& strategy) {
  return strategy.global_batch / strategy.data / strategy.accumulation;
}

bool synchronises(const Strategy& strategy) {
  return strategy.batch_norm == BatchNorm::synchronised && shares_samples(strategy);
}

}  // namespace

// What make_program reads of a strategy.
ProgramKey program_key(const Strategy& s) {
  std::vector<int> degrees;
  for (const MeshAxis axis : axes_of_a_program()) degrees.push_back(s.degree(axis));
  return {micro_batch_of(s),   std::move(degrees),
          s.sequence,          s.context_exchange,
          s.split_until,       s.precision,
          has_half_weights(s), sums_in_full(s),
          s.fused_norms,       s.fused_pointwise,
          s.dropless,          s.whole_experts,
          synchronises(s),     synchronises(s) ? s.data : 1};
}

Result<Stage> make_program(const Graph& graph, const Strategy& strategy) {
  SIBYL_CHECK(check_strategy(graph, strategy));
  Stage stage = whole_program(graph, micro_batch_of(strategy));
  if (synchronises(strategy)) stage = with_synchronised_norms(stage, strategy);
  SIBYL_TRY(const OperationId last, split_point(graph, stage, strategy));
  for (Policy policy : policies(strategy)) {
    if (ends_anywhere(policy)) policy.until = last;
    const bool tokens = policy.axis == MeshAxis::context;
    if (tokens) SIBYL_CHECK(check_sequence(graph, stage, strategy));
    SIBYL_TRY(stage, shard(graph, stage, policy, strategy.degree(policy.axis)));
    if (tokens) SIBYL_CHECK(check_stays_split(graph, stage));
  }
  if (strategy.dropless) send_filled_slots(stage);
  stage = with_precision(stage, strategy.precision, has_half_weights(strategy), strategy.fp32_gradients);
  stage = with_strided_attention(stage);
  if (strategy.fused_norms) stage = with_fused_norms(stage);
  if (strategy.fused_pointwise) stage = with_fused_pointwise(stage);
  return stage;
}

Result<Plan> make_plan(const Graph& graph, const Strategy& strategy, const CutCosts& costs) {
  SIBYL_TRY(Stage program, make_program(graph, strategy));
  return make_plan(graph, strategy, std::move(program), costs);
}

Result<Plan> make_plan(const Graph& graph, const Strategy& strategy, Stage stage, const CutCosts& costs) {
  SIBYL_CHECK(check_strategy(graph, strategy));
  Plan plan;
  plan.strategy = strategy;
  plan.mesh = mesh_of(strategy);
  plan.micro_batch = micro_batch_of(strategy);
  if (strategy.stages() > 1) {
    SIBYL_CHECK(add_stages(graph, stage, costs, plan));
    return plan;
  }
  add_state(stage, strategy, {});
  SIBYL_CHECK(check_reduced_each(stage));
  for (int m = 0; m < static_cast<int>(strategy.accumulation); ++m) {
    stage.schedule.push_back({Turn::Kind::forward, m, 0});
    stage.schedule.push_back({Turn::Kind::backward, m, 0});
  }
  plan.schedule.push_back(stage.schedule);
  plan.stages.push_back(std::move(stage));
  return plan;
}

}  // namespace sibyl
